#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of observation for the observed server.

The programs of observers with several sets of options stay loaded. They are attached by turns, in random order
and for some hundredths of a second each (tests/bench/adopted.py). "floor" is the default's with the port taken
out of their filter. Before and after each window comes one with nothing attached. Each is compared with its
neighbours within the same load, so that the machine's drift cancels. Medians of these comparisons are printed
with their 95 % confidence.

First, exchanges by one thread with both ends of a loopback connection (pingpong.c): the ns that observing adds
to one. Then nginx with one worker, saturated by wrk over 64 connections, each on its own core. Throughput is
the kernel's count of the worker's writes, one per answer; CPU time per request is from the kernel's clocks of
processes.

Server and client share one kernel: the client's sockets pass the same programs, which return at once, and half
of the floor is theirs. "Client elsewhere" is without that half: the cost for a server whose client is on
another host.

Last comes p99, by pairs of windows within one load (tests/bench/paired.py), once by the filter and once by the programs.
Controls show the resolution of this method.
The observer's own CPU time and memory follow. "--only" measures only p99. The runs of single programs are in `sojourn
probe --cost`, by medians of short windows. The kernel's run statistics count the time on
the wall. So a mean over a whole load has all interruptions in it.
"""
import argparse
import contextlib
import mmap
import os
import random
import re
import statistics
import struct
import tempfile
import time
from pathlib import Path

from common import (
    ROUNDS, SERVER_CPU, Priority, Timed, bounded, confident, machine, need, pinned, pinned_nginx, prefer, spread)

import paired
from adopted import Crowd, Idle
from paired import BASE, CONTROLS, Latencies, print_verdicts
from support import BUILD
from support.cgroup import Cgroup
from support.net import free_port
from support.programs import Observer

PINGPONG = BUILD / "tests" / "bench" / "pingpong"
OFF, FLOOR, DEFAULT, OTHER = "nothing", "floor", "observed", "other build"
MODES = {DEFAULT: [], "http": ["--http"], "cpu": ["--cpu"], "accept syscall": ["--accept-source", "syscall"],
         "1/16 sent": ["--transmit", "1/16", "--prefer", "transmit_start"],
         "all sent": ["--transmit", "all", "--prefer", "transmit_start"]}
TAIL_MODES = (DEFAULT, "1/16 sent")  # modes with a target
STAMPS = {"1/16 stamped": ["--transmit", "1/16", "--prefer", "sockops"],
          "all stamped": ["--transmit", "all", "--prefer", "sockops"]}
SHARED = "shared"  # as if the machine had so many CPUs that all of its own share the copies of counts
SHARED_MODES = {DEFAULT: [], SHARED: ["--cpus", "8192", "--memory", "100M"]}
LONGEST = 86400  # seconds, never reached: the load is ended after the last window
WARM_SECONDS = 4  # in which the observers see the load, and reduce their share of sampled exchanges
SETTLE_SECONDS = 0.002


# ---- loads ----

class PingPong:
    """Exchanges by one thread; a window is (ns per exchange,). @neighbour: another does the same, at the same service
    and on the other core."""

    BATCHES = 4096  # as in pingpong.c

    def __init__(self, arguments, neighbour=False):
        self.arguments, self.port = arguments, free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="sojourn-bench.")
        path = Path(self.folder.name, "batches")
        self.processes = [pinned([PINGPONG, str(self.port), path], stdin=-1, stdout=-1)]
        if neighbour:
            self.processes.append(pinned([PINGPONG, str(self.port), f"{path}.other", "127.0.0.2"], SERVER_CPU,
                                         stdin=-1, stdout=-1))
        for process in self.processes:
            process.stdout.readline()
        with open(path, "rb") as file:
            self.batches = mmap.mmap(file.fileno(), 8 + 8 * self.BATCHES, prot=mmap.PROT_READ)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for process in self.processes:
            process.kill()
            process.communicate()
        self.folder.cleanup()

    def begin(self):
        for process in self.processes:
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            prefer(self.arguments.urgent, process.pid)

    def count(self):
        return struct.unpack_from("=Q", self.batches)[0]

    def window(self):
        first = self.count() + 1
        time.sleep(self.arguments.window)
        found = [struct.unpack_from("=Q", self.batches, 8 + number % self.BATCHES * 8)[0]
                 for number in range(first, self.count())]
        return (statistics.median(found),) if len(found) > 4 else None


class Saturated:
    """nginx and wrk; a window is (requests per second, CPU ns per request of server, of client)."""

    def __init__(self, nginx, arguments):
        self.nginx, self.arguments, self.port = nginx, arguments, nginx.port
        self.worker = nginx.workers()[0]
        self.load = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.load:
            self.load.terminate()
            self.load.wait()

    def begin(self):
        self.load = pinned(wrk(self.nginx, LONGEST, self.arguments.connections))
        prefer(self.arguments.urgent, self.worker, self.load.pid)

    def written(self):
        with open(f"/proc/{self.worker}/io", encoding="ascii") as file:
            return int(re.search(r"^syscw: (\d+)", file.read(), re.MULTILINE)[1])

    def read(self):
        # The CPU-time clock of a process, computed as in clock_getcpuclockid().
        return (time.monotonic_ns(), self.written(), time.clock_gettime_ns(~self.worker << 3 | 2),
                time.clock_gettime_ns(~self.load.pid << 3 | 2))

    def window(self):
        before = self.read()
        time.sleep(self.arguments.window)
        passed, requests, server, client = (b - a for a, b in zip(before, self.read()))
        # One of them may have had no CPU time.
        return (requests / passed * 1e9, server / requests, client / requests) \
            if requests and server and client else None

    def counted(self):
        """Return (writes before, requests by nginx's own count, writes after): the query takes time."""
        return self.written(), self.nginx.status()["requests"], self.written()

    @contextlib.contextmanager
    def checked(self):
        """Check that the kernel's count of writes is nginx's own count of requests."""
        first = self.counted()
        yield
        last = self.counted()
        requests, least, most = last[1] - first[1], last[0] - first[2], last[2] - first[0]
        if not least * 0.995 <= requests <= most * 1.005:
            raise SystemExit(f"nginx answered {requests} requests and wrote {least} to {most} times")


def wrk(nginx, seconds, connections):
    return [str(word) for word in
            ("wrk", "-c", connections, "-t", 1, "-d", f"{seconds}s", "--latency", nginx.url)]


# ---- windows ----

def switch(crowd, mode):
    if mode == OFF:
        crowd.switch(None)
    else:
        crowd.switch(DEFAULT if mode == FLOOR else mode, watched=mode != FLOOR)
    time.sleep(SETTLE_SECONDS)


def windows(crowd, load, rounds):
    """Return {mode: [(its window, the mean of its neighbours with nothing attached)]}, of rounds that have all modes."""
    found = {mode: [] for mode in (FLOOR, *crowd.members)}
    for _ in range(rounds):
        one = {}
        switch(crowd, OFF)
        before = load.window()
        for mode in random.sample(list(found), len(found)):
            switch(crowd, mode)
            mine = load.window()
            switch(crowd, OFF)
            after = load.window()
            if mine and before and after:
                one[mode] = mine, tuple(statistics.mean(pair) for pair in zip(before, after))
            before = after
        for mode in found if len(one) == len(found) else ():
            found[mode].append(one[mode])
    return found


def measured(load, modes, more, arguments):
    with Crowd(load.port, modes, more) as crowd:
        load.begin()
        time.sleep(WARM_SECONDS)
        crowd.take()
        return windows(crowd, load, arguments.rounds)


def by_filter(load, crowd, modes):
    """Compare windows in which the port is in the filter of the attached programs with windows in which it is not."""
    found = {}
    for member in TAIL_MODES:
        def prepare(mode, member=member):
            crowd.switch(member, watched=mode != BASE)

        judged = [mode for mode in modes if mode == member or (member == DEFAULT and mode in CONTROLS)]
        if judged:
            switch(crowd, member)
            found |= paired.measured(load, prepare, judged)
    return found


def by_programs(load, crowd, idle, modes):
    """Compare windows with a mode's programs with windows with idle ones."""
    def exchange(mode):
        idle.detach()
        switch(crowd, OFF)
        if mode == BASE:
            idle.attach()
        else:
            switch(crowd, mode)

    def prepare(mode):
        exchange(BASE)
        exchange(mode)

    return paired.measured(load, prepare, modes)


def print_tails(nginx, arguments):
    wanted = arguments.only or "tails"
    modes = CONTROLS + (() if wanted == "controls" else TAIL_MODES)
    with Latencies(nginx, arguments, 4 * arguments.tails * (len(modes) + 1)) as load, \
            Crowd(nginx.port, {mode: MODES[mode] for mode in TAIL_MODES}, {}) as crowd, \
            contextlib.closing(Idle(len(crowd.members[DEFAULT].programs))) as idle:
        load.begin()
        time.sleep(WARM_SECONDS)
        crowd.take()
        with Priority.first():
            if wanted != "programs":
                print_verdicts("observed port to other port, the same programs attached",
                               by_filter(load, crowd, modes), arguments)
            if wanted != "filter":
                print_verdicts("these programs to idle ones",
                               by_programs(load, crowd, idle, modes if wanted == "controls" else (*modes, FLOOR)), arguments)


# ---- printing ----

def added(pairs, *columns):
    return [sum(mine[column] - base[column] for column in columns) for mine, base in pairs]


def print_against_other(found, column):
    """Print by how much this build adds less than the other, as a median of differences within rounds."""
    if OTHER in found:
        less = [other - mine for mine, other in zip(added(found[DEFAULT], column), added(found[OTHER], column))]
        print(f"  this build adds {confident(less, 0)} ns less than the other")


def print_exchange(found):
    base = statistics.median(base[0] for pairs in found.values() for _, base in pairs)
    floor = statistics.median(added(found[FLOOR], 0))
    print(f"\none exchange, both ends: {base:,.0f} ns not observed")
    for mode, pairs in found.items():
        alone = [ns - floor / 2 for ns in added(pairs, 0)]
        print(f"  {mode:<15} adds {confident(added(pairs, 0), 0)} ns; client elsewhere {confident(alone, 0)} ns")
    print_against_other(found, 0)


def print_saturated(found):
    rate, server, client = (statistics.median(base[column] for pairs in found.values() for _, base in pairs)
                            for column in range(3))
    print(f"\nnginx saturated: {rate:,.0f} requests/s not observed; CPU time per request: server {server:,.0f} ns, "
          f"client {client:,.0f} ns")
    for mode, pairs in found.items():
        print(f"  {mode:<15} throughput {confident([mine[0] / base[0] for mine, base in pairs])} of not observed; "
              f"adds server {confident(added(pairs, 1), 0)} ns, client {confident(added(pairs, 2), 0)} ns")
    print_against_other(found, 1)


def observed_run(nginx, options, arguments):
    """Return (requests, the document) of an observer during 3 s of load."""
    with Observer(*options, ports=[nginx.port]) as observer:
        text = Timed(wrk(nginx, 3, arguments.connections)).text
        observer.stop()
        return int(re.search(r"(\d+) requests in", text)[1]), observer.summary()


def print_user_space(nginx, arguments):
    runs = [observed_run(nginx, [], arguments) for _ in range(5)]
    costs = [document["cost"] for _, document in runs]
    cpu = [document["cost"]["cpu_ns"] / document["duration_ns"] * 100 for _, document in runs]
    print(f"\nobserver at {statistics.median(requests / 3 for requests, _ in runs):,.0f} requests/s: "
          f"{spread(cpu)} % of one core [quartiles], "
          f"{statistics.median(cost['resident_bytes'] for cost in costs) / 2**20:.1f} MiB resident, "
          f"{statistics.median(cost['map_bytes'] for cost in costs) / 2**20:.2f} MiB of BPF maps")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=150, help="windows of each mode")
    parser.add_argument("--window", type=bounded(float, 0.01, 60), default=0.025, help="seconds of each")
    parser.add_argument("--tails", type=ROUNDS, default=300, help="pairs of windows of each mode for p99")
    parser.add_argument("--tail-window", type=bounded(float, 0.01, 60), default=0.05, help="seconds of each of these")
    parser.add_argument("--burden", type=bounded(int, 1, 90), default=3,
                        help="percent of the CPU that the server loses in the control that must be found")
    parser.add_argument("--only", choices=("tails", "filter", "programs", "controls"),
                        help="p99 alone, one of its two comparisons, or the controls of both")
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.add_argument("--stamps", action="store_true", help="with TX timestamps too (6.15)")
    parser.add_argument("--beside", metavar="BUILD", type=Path,
                        help="the default's programs of another build, too: these two alone, until p99")
    parser.add_argument("--shared", action="store_true",
                        help="the default, and with copies of counts that CPUs share: these two alone, until p99")
    parser.add_argument("--urgent", action="store_true",
                        help="the loads get the CPU before all else that runs here (autogroups)")
    Priority.option(parser)
    arguments = parser.parse_args()
    Priority.choose(arguments)
    if arguments.beside and not (arguments.beside / "observer" / "sojourn").exists():
        parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    return arguments


def main():
    arguments = parse()
    need("wrk", "nginx")
    modes = {**MODES, **(STAMPS if arguments.stamps else {})}
    more = {}
    if arguments.beside:
        modes, more = {DEFAULT: [], OTHER: []}, {OTHER: {"build": arguments.beside}}
    elif arguments.shared:
        modes = SHARED_MODES
    with contextlib.ExitStack() as stack:
        # This session is the caller's, and outlives this process.
        stack.callback(prefer, arguments.urgent, "self", nice=0)
        prefer(arguments.urgent, "self")
        cgroup = stack.enter_context(Cgroup()) if arguments.stamps else None
        more |= dict.fromkeys(STAMPS, {"cgroup": cgroup}) if arguments.stamps else {}
        nginx = stack.enter_context(pinned_nginx(cgroup))
        if arguments.only:
            print(machine())
            print_tails(nginx, arguments)
            return
        print(f"{machine()}, {arguments.rounds} rounds, medians [95 % confidence]")
        with PingPong(arguments) as load:
            print_exchange(measured(load, {mode: modes[mode] for mode in modes if mode not in STAMPS}, more, arguments))
        if arguments.shared:
            with PingPong(arguments, neighbour=True) as load:
                print("\nwith a neighbour on the other core, at the same service:", end="")
                print_exchange(measured(load, modes, more, arguments))
        with Saturated(nginx, arguments) as load, load.checked():
            print_saturated(measured(load, modes, more, arguments))
        if arguments.beside or arguments.shared:
            return
        print_tails(nginx, arguments)
        print_user_space(nginx, arguments)


if __name__ == "__main__":
    main()
