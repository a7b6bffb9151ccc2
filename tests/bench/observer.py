#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What observing costs the observed.

nginx with one worker is saturated by wrk over 64 connections, each on a core of its own, without a pause.
The programs of observers with several sets of options are loaded all the time, and attached by turns, for
some hundredths of a second each, in random order (tests/bench/adopted.py): "floor" is the default's with the
port taken out of their filter. The kernel's count of the worker's writes, one per answer, gives each window's
throughput, and its clocks the CPU time that server and client took per request. Neighbouring windows of one
and the same load are compared, so that the machine's drift cancels; the medians stand with their 95 % confidence.

Server and client are in one kernel: the client's sockets pass the same programs, which return at once. Half of
the floor is theirs. So "client elsewhere" is what the server alone would see: the CPU time added on both
sides without half of the floor, to the server's own. The server takes nothing in there, for the client's
processor does that on loopback: on a network it takes more per request, and observing a smaller part.

Then p99 from whole runs of wrk, the BPF time per request by the kernel's run statistics (without the floor,
which has clock reads of the statistics' own), and the observer's own CPU time and memory.
"""
import argparse
import contextlib
import random
import re
import statistics
import time

from common import (
    ROUNDS, Timed, bounded, confident, machine, need, pinned, pinned_nginx, prefer, spread)

from adopted import Adopted
from support.cgroup import Cgroup
from support.programs import Observer

OFF, FLOOR, DEFAULT = "not observed", "floor", "observed"
MODES = {DEFAULT: [], "no samples": ["--samples", "0"], "cpu": ["--cpu"],
         "accept syscall": ["--accept-source", "syscall"],
         "1/16 sent": ["--transmit", "1/16", "--prefer", "transmit_start"],
         "all sent": ["--transmit", "all", "--prefer", "transmit_start"]}
STAMPS = {"1/16 stamped": ["--transmit", "1/16", "--prefer", "sockops"],
          "all stamped": ["--transmit", "all", "--prefer", "sockops"]}
LONGEST = 86400  # seconds of the load, which ends with the windows
WARM_SECONDS = 5  # in which the observers see the load, and sample less and less of it
SETTLE_SECONDS = 0.002
UNITS = {"us": 1, "ms": 1000, "s": 1000000}


def wrk(nginx, seconds, connections):
    return [str(word) for word in
            ("wrk", "-c", connections, "-t", 1, "-d", f"{seconds}s", "--latency", nginx.url)]


class Bench:
    """nginx, its load, and the programs of all modes, of which one mode's are attached."""

    def __init__(self, nginx, modes, arguments, cgroup):
        self.nginx, self.arguments = nginx, arguments
        self.worker = nginx.workers()[0]
        self.adopted, self.load, self.now = {}, None, None
        for mode in modes:
            stamped = cgroup if mode in STAMPS else None
            self.adopted[mode] = Adopted(nginx.port, *modes[mode], cgroup=stamped)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.end_load()
        for adopted in self.adopted.values():
            adopted.close()

    def begin_load(self):
        self.load = pinned(wrk(self.nginx, LONGEST, self.arguments.connections))
        prefer(self.arguments.urgent, self.worker, self.load.pid)

    def end_load(self):
        if self.load:
            self.load.terminate()
            self.load.wait()
            self.load = None

    def take(self):
        for adopted in self.adopted.values():
            adopted.take()

    def switch(self, mode):
        wanted = self.adopted.get(DEFAULT if mode == FLOOR else mode)
        for adopted in self.adopted.values():
            if adopted is not wanted:
                adopted.detach()
            adopted.drain()
        if wanted:
            wanted.attach(watched=mode != FLOOR)
        time.sleep(SETTLE_SECONDS)

    def written(self):
        with open(f"/proc/{self.worker}/io", encoding="ascii") as file:
            return int(re.search(r"^syscw: (\d+)", file.read(), re.MULTILINE)[1])

    def read(self):
        # The CPU-time clock of a process, as clock_getcpuclockid() makes it.
        return (time.monotonic_ns(), self.written(), time.clock_gettime_ns(~self.worker << 3 | 2),
                time.clock_gettime_ns(~self.load.pid << 3 | 2))

    def window(self):
        """Requests per second, and ns of CPU time per request of server and client; None if the machine had
        no time for one of them."""
        before = self.read()
        time.sleep(self.arguments.window)
        passed, requests, server, client = (b - a for a, b in zip(before, self.read()))
        if not (requests and server and client):
            return None
        return requests / passed * 1e9, server / requests, client / requests


def check_counts(bench, written, requests):
    """The kernel's count of writes is nginx's own count of requests, but for those between two looks."""
    now, status = bench.written(), bench.nginx.status()["requests"]
    if abs((now - written) - (status - requests)) > (status - requests) / 200:
        raise SystemExit(f"nginx answered {status - requests} requests and wrote {now - written} times")


def windows(bench, arguments):
    """Rounds of {mode: window}, each with all modes."""
    modes, rounds = [OFF, FLOOR, *bench.adopted], []
    written, requests = bench.written(), bench.nginx.status()["requests"]
    for _ in range(arguments.rounds):
        found = {}
        for mode in random.sample(modes, len(modes)):
            bench.switch(mode)
            found[mode] = bench.window()
        if all(found.values()):
            rounds.append(found)
    check_counts(bench, written, requests)
    bench.switch(OFF)
    return rounds


def tails(bench, arguments):
    """wrk's p99 in µs: rounds of {mode: µs}."""
    rounds = []
    for _ in range(arguments.tails):
        found = {}
        for mode in random.sample(modes := [OFF, FLOOR, *bench.adopted], len(modes)):
            bench.switch(mode)
            text = Timed(wrk(bench.nginx, 1, arguments.connections)).text
            p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
            found[mode] = float(p99[1]) * UNITS[p99[2]]
        rounds.append(found)
    bench.switch(OFF)
    return rounds


def added(rounds, mode, *sides):
    """CPU time that @mode adds to a request, of each round; sides: 1 the server's, 2 the client's."""
    return [sum(found[mode][side] - found[OFF][side] for side in sides) for found in rounds]


def elsewhere(rounds, mode):
    """(ns per request, throughput relative to not observed) of a server whose client is on another host."""
    both, floor = added(rounds, mode, 1, 2), statistics.median(added(rounds, FLOOR, 1, 2))
    own = statistics.median(found[OFF][1] for found in rounds)
    alone = [ns - floor / 2 for ns in both]
    return alone, [own / (own + ns) for ns in alone]


def print_throughputs(rounds, modes):
    base = [statistics.median(column) for column in zip(*(found[OFF] for found in rounds))]
    print(f"{len(rounds)} rounds, medians [95 % confidence]\n"
          f"not observed: {base[0]:,.0f} requests/s; CPU time per request: server {base[1]:,.0f} ns, client "
          f"{base[2]:,.0f} ns\n")
    for mode in modes:
        ratio = [found[mode][0] / found[OFF][0] for found in rounds]
        print(f"{mode:<15}throughput {confident(ratio)} of not observed")
        print(f"{'':<15}CPU time added per request: server {confident(added(rounds, mode, 1), 0)} ns, client "
              f"{confident(added(rounds, mode, 2), 0)} ns")
        ns, throughput = elsewhere(rounds, mode)
        print(f"{'':<15}client elsewhere: {confident(ns, 0)} ns, throughput at least {confident(throughput)}")


def print_tails(rounds, modes):
    print(f"\np99 of {len(rounds)} runs of wrk, 1 s each; not observed "
          f"{statistics.median(found[OFF] for found in rounds):,.0f} µs")
    for mode in modes:
        print(f"{mode:<15}p99 {confident([found[mode] / found[OFF] for found in rounds])} of not observed")


def observed_run(nginx, options, arguments):
    """(requests, the document) of an observer's life beside 3 s of load."""
    with Observer(*options, ports=[nginx.port]) as observer:
        text = Timed(wrk(nginx, 3, arguments.connections)).text
        observer.stop()
        return int(re.search(r"(\d+) requests in", text)[1]), observer.summary()


def print_programs(nginx, mode, options, arguments):
    requests, document = observed_run(nginx, ["--cost", *options], arguments)
    _, floors = observed_run(nginx, ["--cost", "--floor", *options], arguments)
    floors = {p["name"]: p["run_ns"] / p["runs"] for p in floors["cost"]["programs"] if p["runs"]}
    programs = [p for p in document["cost"]["programs"] if p["runs"] > requests / 100]
    own = sum(p["run_ns"] - floors.get(p["name"], 0) * p["runs"] for p in programs)
    print(f"\n{mode}: BPF {own / requests:.0f} ns per request beyond the floor, by run statistics")
    for p in programs:
        print(f"  {p['name']:<20}{p['run_ns'] / p['runs']:6.0f} ns/run, floor {floors.get(p['name'], 0):4.0f}, "
              f"{p['runs'] / requests:.2f} runs per request")


def print_user_space(nginx, arguments):
    runs = [observed_run(nginx, [], arguments) for _ in range(5)]
    documents = [document for _, document in runs]
    cpu = [d["cost"]["cpu_ns"] / d["duration_ns"] * 100 for d in documents]
    rate = statistics.median(requests / 3 for requests, _ in runs)
    print(f"\nobserver at {rate:,.0f} requests/s: {spread(cpu)} % of one core [quartiles], "
          f"{statistics.median(d['cost']['resident_bytes'] for d in documents) / 2**20:.1f} MiB resident, "
          f"{statistics.median(d['cost']['map_bytes'] for d in documents) / 2**20:.2f} MiB BPF maps")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=200, help="windows of each mode")
    parser.add_argument("--window", type=bounded(float, 0.01, 60), default=0.03, help="seconds of each")
    parser.add_argument("--tails", type=ROUNDS, default=10, help="runs of each mode for p99")
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.add_argument("--stamps", action="store_true", help="with TX timestamps too (6.15)")
    parser.add_argument("--urgent", action="store_true",
                        help="the load gets the CPU before all else that runs here (autogroups)")
    return parser.parse_args()


def main():
    arguments = parse()
    need("wrk", "nginx")
    modes = {**MODES, **(STAMPS if arguments.stamps else {})}
    with contextlib.ExitStack() as stack:
        cgroup = stack.enter_context(Cgroup()) if arguments.stamps else None
        nginx = stack.enter_context(pinned_nginx(cgroup))
        prefer(arguments.urgent, "self")
        bench = stack.enter_context(Bench(nginx, modes, arguments, cgroup))
        bench.begin_load()
        time.sleep(WARM_SECONDS)
        bench.take()
        rounds = windows(bench, arguments)
        bench.end_load()
        print(f"{machine()}, {arguments.connections} connections")
        shown = [FLOOR, *modes]
        print_throughputs(rounds, shown)
        print_tails(tails(bench, arguments), shown)
        for mode in modes:
            print_programs(nginx, mode, modes[mode], arguments)
        print_user_space(nginx, arguments)


if __name__ == "__main__":
    main()
