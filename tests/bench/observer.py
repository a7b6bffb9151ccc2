#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What observing costs the observed.

nginx with one worker is saturated by wrk over 64 connections, each on a core of its own. Rounds
interleave: not observed, observed, and the floor, the same programs returning right after their
filter. Prints throughput and p99 relative to not observed in the same round, the BPF time per
request by the kernel's own run statistics, and the observer's CPU time and memory.
"""
import argparse
import re
import statistics
import sys

from common import Timed, machine, need, pinned_nginx, ratios, spread

from support.documents import service
from support.programs import Observer

MODES = {"not observed": None, "observed": [], "floor": ["--floor"]}
UNITS = {"us": 1, "ms": 1000, "s": 1000000}


def load(nginx, seconds, connections):
    """wrk's requests per second and p99 in µs."""
    text = Timed(["wrk", "-c", connections, "-t", 1, "-d", f"{seconds}s", "--latency",
                  nginx.url]).text
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), float(p99[1]) * UNITS[p99[2]]


def run_once(nginx, options, arguments):
    """(rate, p99, the observer's document or None)"""
    if options is None:
        return *load(nginx, arguments.seconds, arguments.connections), None
    with Observer(*options, ports=[nginx.port]) as observer:
        rate, p99 = load(nginx, arguments.seconds, arguments.connections)
        observer.stop()
        return rate, p99, observer.summary()


def measure(nginx, arguments):
    rates, tails, documents = ({mode: [] for mode in MODES} for _ in range(3))
    for number in range(arguments.rounds):
        for mode, options in MODES.items():
            rate, p99, document = run_once(nginx, options, arguments)
            rates[mode].append(rate)
            tails[mode].append(p99)
            documents[mode].append(document)
        print(f"round {number + 1}: " + ", ".join(
            f"{mode} {rates[mode][-1]:,.0f}/s" for mode in MODES), file=sys.stderr)
    return rates, tails, documents


def program_cost(nginx, arguments):
    """Nanoseconds per exchange and per run of each program, by BPF run statistics."""
    _, _, document = run_once(nginx, ["--cost"], arguments)
    exchanges = service(document, nginx.port)["exchanges"]
    programs = document["cost"]["programs"]
    return sum(p["run_ns"] for p in programs) / exchanges, [
        (p["name"], p["run_ns"] / p["runs"], p["runs"] / exchanges) for p in programs if p["runs"]]


def print_cost(documents):
    cpu = [d["cost"]["cpu_ns"] / d["duration_ns"] * 100 for d in documents]
    memory = [d["cost"]["resident_bytes"] / 2**20 for d in documents]
    maps = [d["cost"]["map_bytes"] / 2**20 for d in documents]
    print(f"observer CPU        {spread(cpu)} % of one core")
    print(f"observer memory     {statistics.median(memory):8.1f} MiB resident, "
          f"{statistics.median(maps):.2f} MiB BPF maps")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4, help="length of each run")
    parser.add_argument("--connections", type=int, default=64)
    arguments = parser.parse_args()
    need("wrk", "nginx")
    with pinned_nginx() as nginx:
        load(nginx, 1, arguments.connections)
        rates, tails, documents = measure(nginx, arguments)
        total, programs = program_cost(nginx, arguments)
    print(f"{machine()}\n{arguments.rounds} rounds of {arguments.seconds} s, "
          f"{arguments.connections} connections, medians [range]\n")
    print(f"requests/s, not observed {statistics.median(rates['not observed']):,.0f}")
    for mode in ("observed", "floor"):
        print(f"throughput {mode:<9}{spread(ratios(rates, mode, 'not observed'))} of not observed")
    for mode in ("observed", "floor"):
        print(f"p99 {mode:<16}{spread(ratios(tails, mode, 'not observed'))} of not observed")
    print(f"BPF per request     {total:8.0f} ns, by run statistics (their own clock reads included)")
    for name, each, runs in programs:
        print(f"  {name:<18}{each:8.0f} ns/run, {runs:.2f} runs per request")
    print_cost(documents["observed"])


if __name__ == "__main__":
    main()
