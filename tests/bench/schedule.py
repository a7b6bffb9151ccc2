#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How punctually the driver sends at a rate: the share that leaves within 50 µs of its intended time.

nginx with one worker on CPU 0, the driver on CPU 1, 1,000 connections. Saturation is the rate of a closed loop.
Then come half of it and a low rate in turns, with constant and Poisson arrivals:

- driver: its schedule_delay, from request due and a connection free to sent
- bare timer: a program that only waits for as many times (tests/bench/bare_timer.c). Its lateness is the
  machine's, which limits the driver's
- packets: when the same requests of a constant rate passed the loopback device, by the kernel's stamps
  (tcpdump), against the intended times. Their start is unknown from outside: the earliest packet counts as
  punctual. Includes TCP

Peers have no such figure: h2load's --rps is a rate per connection, wrk and ab have none. `late` is 0 or more; a
share is of all requests.
"""
import argparse
import os
import signal
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

from common import ROUNDS, SERVER_CPU, Priority, Timed, bounded, machine, need, pinned_nginx

from support import documents
from support.process import Process
from support.programs import BUILD, DRIVER

CONNECTIONS = 1000
NEAR_NS = 50_000
LOW_RATE = 2000
WARM_UP = 1  # s: every connection is in use by then
TIMER = BUILD / "tests/bench/bare_timer"
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1)
SUB_BITS = 6  # of the document's buckets


class Lateness:
    """Sorted pairs (ns, count)."""

    def __init__(self, pairs):
        self.pairs = sorted(pairs)
        self.count = sum(count for _, count in self.pairs)

    def share(self, limit_ns):
        return sum(count for late, count in self.pairs if late <= limit_ns) / self.count

    def quantile(self, share):
        left = share * self.count
        for late, count in self.pairs:
            left -= count
            if left <= 0:
                return late
        return self.pairs[-1][0]


def bucket_upper(index):
    octave, part = index >> SUB_BITS, index & ((1 << SUB_BITS) - 1)
    return (((1 << SUB_BITS) + part + 1) << (octave - 1)) - 1 if octave else part


def drive(url, arguments, *options):
    """Return (the driver's part of the document, its CPU seconds including warm-up)."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        done = Timed([DRIVER, url, "-c", CONNECTIONS, "-d",
                      f"{arguments.seconds}s", "--warmup", f"{WARM_UP}s", "--quiet", "--json",
                      file.name, *options])
        result = documents.load(file.name)["driver"]
    if any(result["errors"].values()):
        sys.exit(f"not every request was answered: {result['errors']}")
    if result.get("unsent"):
        print(f"  (a run ended with {result['unsent']:,} requests unsent: something stood still)")
    return result, done.cpu


def delays(result):
    return Lateness((bucket_upper(index), count)
                    for index, count in result["schedule_delay"]["buckets"])


def bare(rate, arguments):
    text = Timed([TIMER, rate, arguments.seconds]).text
    return Lateness((int(line), 1) for line in text.split())


def stamps(path):
    data = Path(path).read_bytes()
    if data[:4] != struct.pack("<I", 0xA1B23C4D):
        sys.exit("tcpdump wrote no capture with nanoseconds")
    at, times = 24, []
    while at + 16 <= len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, at)
        times.append(seconds * 1_000_000_000 + nanoseconds)
        at += 16 + length
    return times


def settle(path):
    """Wait until the file has stopped growing for a while."""
    size = -1
    while size != os.path.getsize(path):
        size = os.path.getsize(path)
        time.sleep(1.5)  # the kernel delivers packets every second, or earlier if there are many


def seen_outside(nginx, rate, arguments):
    """Return (lateness by the packets' stamps, by the driver) of one run; None without one stamp per request."""
    before = nginx.status()["requests"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "capture")
        # Requests only: packets larger than the headers of IP and TCP with a time stamp.
        with Process(["taskset", "-c", SERVER_CPU, "tcpdump", "-i", "lo", "-n", "-Z", "root",
                      "--time-stamp-precision=nano", "-s", "64", "-B", "65536", "-U", "-w", path,
                      f"dst port {nginx.port} and ip[2:2] > 60"]) as capture:
            capture.wait_for("listening on", "stderr")
            result, _ = drive(nginx.url, arguments, "--rate", rate)
            settle(path)
            capture.stop(number=signal.SIGINT)
        times = sorted(stamps(path))
    if result["unsent"] or len(times) != nginx.status()["requests"] - before:
        return None
    times = times[-result["requests"]:]
    late = [at - index * 1_000_000_000 / result["rate"] for index, at in enumerate(times)]
    earliest = min(late)
    return Lateness((at - earliest, 1) for at in late), delays(result)


def saturation(url, arguments):
    result, _ = drive(url, arguments)
    return result["requests"] / result["duration_ns"] * 1e9


def row(name, rounds, more=""):
    middle = statistics.median
    late = "".join(f"{middle(entry.quantile(q) for entry in rounds) / 1000:9.1f}" for q in QUANTILES)
    shares = [entry.share(NEAR_NS) * 100 for entry in rounds]
    print(f"  {name:<20}{middle(shares):9.2f} %  [{min(shares):6.2f} .. {max(shares):6.2f}]{late}{more}")


def compare(nginx, rate, arguments):
    own = {"constant": [], "poisson": []}
    cpu = {"constant": [], "poisson": []}
    timer, outside = [], []
    for _ in range(arguments.rounds):
        for arrival in own:
            result, seconds = drive(nginx.url, arguments, "--rate", rate, "--arrival", arrival)
            own[arrival].append(delays(result))
            cpu[arrival].append(seconds / (arguments.seconds + WARM_UP))
        timer.append(bare(rate, arguments))
        outside.append(seen_outside(nginx, rate, arguments))
    print(f"\n{rate:,} requests/s\n  {'':<20}{'within 50 µs':>11}  {'[least .. most]':<18}"
          f"{'p50':>6}{'p90':>9}{'p99':>9}{'p99.9':>9}{'max':>9}  µs late")
    for arrival, rounds in own.items():
        row(f"driver, {arrival}", rounds,
            f"   {statistics.median(cpu[arrival]) * 100:.0f} % of a CPU")
    row("bare timer", timer)
    whole = [entry for entry in outside if entry]
    if len(whole) < arguments.rounds:
        print(f"  {arguments.rounds - len(whole)} round(s) without a packet for each request are left out")
    if whole:
        row("packets", [entry[0] for entry in whole])
        row("driver, same runs", [entry[1] for entry in whole])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=5)
    parser.add_argument("--seconds", type=bounded(int, 1, 60), default=3, help="length of each run")
    Priority.option(parser)
    arguments = parser.parse_args()
    Priority.choose(arguments)
    need("nginx", "tcpdump")
    if not Path(TIMER).exists():
        sys.exit(f"{TIMER} is missing: build with -D SOJOURN_TESTS=ON")
    with pinned_nginx() as nginx:
        most = saturation(nginx.url, arguments)
        print(f"{machine()}\n{arguments.rounds} rounds of {arguments.seconds} s, {CONNECTIONS:,} "
              f"connections, {Priority.name()} priority, load "
              f"average {os.getloadavg()[0]:.1f}; closed loop {most:,.0f} requests/s; medians")
        for rate in (int(most / 2), LOW_RATE):
            compare(nginx, rate, arguments)


if __name__ == "__main__":
    main()
