#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What observing costs the observed.

nginx with one worker is saturated by wrk over 64 connections, each on a core of its own, without a
pause. Meanwhile the observer comes and goes: every round has a window without it, one with it, one
with the floor, the same programs returning right after their filter, with service divided (--cpu), with
accept() told by its system call, whose tracepoint taxes every call of the host, and others with all
stages, of one response in 16 and of every one; with --stamps also by TX timestamps; in changing order. nginx's
own counter tells each window's throughput, so neighbouring windows of one and the same load are
compared and the machine's drift cancels. Then p99 from whole runs of wrk, the BPF time per request by
the kernel's run statistics, and the observer's CPU time and memory.
"""
import argparse
import contextlib
import re
import statistics
import time

from common import (
    ROUNDS, Timed, bounded, machine, need, pinned, pinned_nginx, ratios, spread)

from support.cgroup import Cgroup
from support.programs import Observer

MODES = {"not observed": None, "observed": [], "floor": ["--floor"],
         "cpu": ["--cpu"], "accept syscall": ["--accept-source", "syscall"],
         "1/16 sent": ["--transmit", "1/16", "--prefer", "transmit_start"],
         "all sent": ["--transmit", "all", "--prefer", "transmit_start"]}
STAMPS = {"1/16 stamped": ["--transmit", "1/16", "--prefer", "sockops"],
          "all stamped": ["--transmit", "all", "--prefer", "sockops"]}
LONGEST = 86400  # seconds of the load, which ends with the windows
UNITS = {"us": 1, "ms": 1000, "s": 1000000}


def wrk(nginx, seconds, connections):
    return ["wrk", "-c", connections, "-t", 1, "-d", f"{seconds}s", "--latency", nginx.url]


def observe(nginx, options):
    return Observer(*options, ports=[nginx.port]) if options is not None else \
        contextlib.nullcontext()


def window(nginx, options, seconds):
    """(nginx's requests per second in a window of the load, the observer's document or None)"""
    with observe(nginx, options) as observer:
        begin, before = time.monotonic(), nginx.status()["requests"]
        time.sleep(seconds)
        end, after = time.monotonic(), nginx.status()["requests"]
        if observer:
            observer.stop()
        return (after - before) / (end - begin), observer.summary() if observer else None


def throughputs(nginx, arguments):
    rates, documents = ({mode: [] for mode in MODES} for _ in range(2))
    load = pinned([str(word) for word in wrk(nginx, LONGEST, arguments.connections)])
    try:
        time.sleep(1)
        for number in range(arguments.rounds):
            first = number % len(MODES)
            order = list(MODES)[first:] + list(MODES)[:first]
            for mode in order:
                rate, document = window(nginx, MODES[mode], arguments.window)
                rates[mode].append(rate)
                documents[mode].append(document)
    finally:
        load.terminate()
        load.wait()
    return rates, documents


def tails(nginx, arguments):
    """wrk's p99 in µs by mode."""
    found = {mode: [] for mode in MODES}
    for _ in range(arguments.tails):
        for mode, options in MODES.items():
            with observe(nginx, options):
                text = Timed(wrk(nginx, 2, arguments.connections)).text
            p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
            found[mode].append(float(p99[1]) * UNITS[p99[2]])
    return found


def program_costs(nginx, options, arguments):
    """(ns per exchange, ns per run and runs per exchange of each program)"""
    with observe(nginx, ["--cost", *options]) as observer:
        text = Timed(wrk(nginx, 3, arguments.connections)).text
        observer.stop()
        programs = observer.summary()["cost"]["programs"]
    requests = int(re.search(r"(\d+) requests in", text)[1])
    return sum(p["run_ns"] for p in programs) / requests, {
        p["name"]: (p["run_ns"] / p["runs"], p["runs"] / requests)
        for p in programs if p["runs"] > requests / 100}


def print_cost(documents):
    cpu = [d["cost"]["cpu_ns"] / d["duration_ns"] * 100 for d in documents]
    memory = [d["cost"]["resident_bytes"] / 2**20 for d in documents]
    maps = [d["cost"]["map_bytes"] / 2**20 for d in documents]
    print(f"observer CPU        {spread(cpu)} % of one core")
    print(f"observer memory     {statistics.median(memory):8.1f} MiB resident, "
          f"{statistics.median(maps):.2f} MiB BPF maps")


def print_programs(nginx, arguments):
    total, programs = program_costs(nginx, [], arguments)
    floor_total, floors = program_costs(nginx, ["--floor"], arguments)
    print(f"BPF per request     {total:8.0f} ns by run statistics, of which the floor (the "
          f"statistics' own\n                             clock reads, entry and filter) is "
          f"{floor_total:.0f}")
    for name, (each, runs) in programs.items():
        floor = f", floor {floors[name][0]:.0f}" if name in floors else ""
        print(f"  {name:<18}{each:8.0f} ns/run{floor}, {runs:.2f} runs per request")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=30, help="windows of each mode")
    parser.add_argument("--window", type=bounded(float, 0.1, 60), default=0.7, help="seconds of each")
    parser.add_argument("--tails", type=ROUNDS, default=7, help="runs of each mode for p99")
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.add_argument("--stamps", action="store_true", help="with TX timestamps too (6.15)")
    arguments = parser.parse_args()
    need("wrk", "nginx")
    MODES.update(STAMPS if arguments.stamps else {})
    with contextlib.ExitStack() as stack:
        cgroup = stack.enter_context(Cgroup()) if arguments.stamps else None
        nginx = stack.enter_context(pinned_nginx(cgroup))
        rates, documents = throughputs(nginx, arguments)
        found = tails(nginx, arguments)
        print(f"{machine()}\n{arguments.rounds} rounds, {arguments.connections} connections, "
              "medians [quartiles]\n")
        print(f"requests/s, not observed {statistics.median(rates['not observed']):,.0f}")
        others = [mode for mode in MODES if mode != "not observed"]
        for mode in others:
            print(f"throughput {mode:<14}{spread(ratios(rates, mode, 'not observed'))} of not "
                  "observed")
        for mode in others:
            print(f"p99 {mode:<21}{spread(ratios(found, mode, 'not observed'))} of not observed")
        print_programs(nginx, arguments)
        for mode in others[2:]:
            print(f"{mode}:")
            for name, (each, runs) in program_costs(nginx, MODES[mode], arguments)[1].items():
                print(f"  {name:<18}{each:8.0f} ns/run, {runs:.2f} runs per request")
    print_cost(documents["observed"])


if __name__ == "__main__":
    main()
