#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of `--accept-source syscall` for other processes: any tracepoint on system calls slows down every
system call of the host.

dd copies bytes one by one, two system calls each, on its own core. In turns an observer watches an idle
service with each source of accept(), or no observer runs. Prints the CPU time of a system call, and the observer's
addition.
"""
import argparse
import contextlib
import statistics

from common import CLIENT_CPU, ROUNDS, Timed, bounded, machine

from support.programs import Lab, Observer

SOURCES = {"not observed": None, "inferred": ["--accept-source", "inferred"],
           "syscall": ["--accept-source", "syscall"]}


def call_ns(count):
    done = Timed(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={count}", "status=none"])
    return done.cpu / (2 * count) * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=15)
    parser.add_argument("--count", type=bounded(int, 1000, 1_000_000_000), default=1_000_000, help="bytes copied each time")
    arguments = parser.parse_args()
    found = {name: [] for name in SOURCES}
    with Lab() as lab:
        for number in range(arguments.rounds):
            first = number % len(SOURCES)
            for name in list(SOURCES)[first:] + list(SOURCES)[:first]:
                options = SOURCES[name]
                with Observer(*options, ports=[lab.port]) if options is not None else \
                        contextlib.nullcontext():
                    found[name].append(call_ns(arguments.count))
    print(f"{machine()}\n{arguments.rounds} rounds of {arguments.count:,} bytes on CPU "
          f"{CLIENT_CPU}, medians [quartiles]\n")
    for name, values in found.items():
        added = [value - base for value, base in zip(values, found["not observed"])]
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        print(f"{name:<14}{middle:6.0f} ns per system call  [{low:.0f} .. {high:.0f}]"
              + (f", {statistics.median(added):+.0f} ns" if SOURCES[name] is not None else ""))


if __name__ == "__main__":
    main()
