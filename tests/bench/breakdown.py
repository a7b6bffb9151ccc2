#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parts of the observer's cost. tests/bench/observer.py measures the total.

nginx with one worker and wrk, saturated and on a core each, are sampled by perf (cpu-clock, which every machine
has). In turns the default's programs are attached, the same with the port out of their filter (floor), and none. For
each part it prints the additional ns per request on the server's and on the client's core:

    entering       the kernel's way to the programs and back: tracepoint, bpf_trace_run
    filter         the programs up to their filter, which is all of the floor's
    programs       the rest of the programs
    storage        bpf_sk_storage_get(): finding the connection
    clock          reading it
    ring           reporting sampled exchanges

Times are of samples, so one part's wait may count as another's: a cache line fetched while finding the
connection is not waited for again.
"""
import argparse
import collections
import contextlib
import re
import statistics
import tempfile
import time
from pathlib import Path

from common import ROUNDS, bounded, machine, need, pinned_nginx

from adopted import Crowd
from observer import DEFAULT, FLOOR, OFF, Saturated, WARM_SECONDS, switch
from support.process import run

PARTS = {"entering": r"(__)?bpf_trace_|call_trace_", "programs": r"bpf_prog_\w+_(exchange|conn)_",
         "storage": r"bpf_sk_storage_get", "clock": r"(read_tsc|ktime_get_mono_fast_ns|bpf_ktime_get_ns)$",
         "ring": r"(__)?bpf_ringbuf_"}
MODES = (OFF, FLOOR, DEFAULT)
HERTZ = 20000


def part_of(symbol):
    return next((part for part, pattern in PARTS.items() if re.match(pattern, symbol)), None)


def sampled(load, path, seconds):
    """Return {process: {part: its share of the process's samples}}."""
    run(["perf", "record", "-q", "-e", "cpu-clock", "-F", HERTZ, "-p", f"{load.worker},{load.load.pid}",
         "-o", path, "--", "sleep", seconds])
    found = {pid: collections.Counter() for pid in (load.worker, load.load.pid)}
    for line in run(["perf", "script", "-i", path, "-F", "pid,ip,sym"]).stdout.splitlines():
        pid, _, *symbol = line.split()
        if int(pid) in found:
            found[int(pid)][part_of(symbol[0]) if symbol else None] += 1
    return {pid: {part: count / counts.total() for part, count in counts.items()} for pid, counts in found.items()}


def window(load, path, seconds):
    """Return {(side, part): ns per request}, sampled while the kernel counts requests and CPU time."""
    before = load.read()
    shares = sampled(load, path, seconds)
    _, requests, server, client = (b - a for a, b in zip(before, load.read()))
    return {(side, part): shares[pid].get(part, 0) * cpu / requests
            for side, pid, cpu in (("server", load.worker, server), ("client", load.load.pid, client))
            for part in PARTS}


def measured(load, arguments):
    found = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="sojourn-bench.") as folder, Crowd(load.port, {DEFAULT: []}, {}) as crowd:
        load.begin()
        time.sleep(WARM_SECONDS)
        crowd.take()
        for _ in range(arguments.rounds):
            for mode in MODES:
                switch(crowd, mode)
                found[mode].append(window(load, Path(folder, "perf.data"), arguments.seconds))
    return found


def print_parts(found):
    def median(mode, side, part):
        return statistics.median(mine[side, part] - base[side, part]
                                 for mine, base in zip(found[mode], found[OFF]))

    print(f"\n{'ns per request':<16}{'server':>8}{'client':>8}{'floor: server':>16}{'client':>8}")
    for part in PARTS:
        cells = [median(mode, side, part) for mode in (DEFAULT, FLOOR) for side in ("server", "client")]
        if part == "programs":
            print(f"{'filter':<16}{cells[2]:8.0f}{cells[3]:8.0f}{cells[2]:16.0f}{cells[3]:8.0f}")
            cells = [cells[0] - cells[2], cells[1] - cells[3], 0, 0]
        print(f"{part:<16}{cells[0]:8.0f}{cells[1]:8.0f}{cells[2]:16.0f}{cells[3]:8.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=7)
    parser.add_argument("--seconds", type=bounded(float, 0.1, 60), default=1, help="of each mode in a round")
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.set_defaults(urgent=False, window=0)
    arguments = parser.parse_args()
    need("wrk", "nginx", "perf")
    with contextlib.ExitStack() as stack:
        nginx = stack.enter_context(pinned_nginx())
        load = stack.enter_context(Saturated(nginx, arguments))
        found = measured(load, arguments)
    print(f"{machine()}, {arguments.rounds} rounds of {arguments.seconds:g} s, medians")
    print_parts(found)


if __name__ == "__main__":
    main()
