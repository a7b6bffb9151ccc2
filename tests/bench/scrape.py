#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The price of observing many services for Prometheus: series, bytes and CPU time of a scrape.

Makes a network namespace with N listeners, sends requests to all of them, and observes them. Then it asks for /metrics
once a second. It prints a row per N: series, and those left with convert_classic_histograms_to_nhcb; bytes of an
answer; the observer's CPU time for it; its memory. From the last N it computes as many hosts with as many services.
"""
import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import machine  # noqa: E402
from memory import LISTENERS, memory  # noqa: E402
from support import http  # noqa: E402
from support.net import Netns  # noqa: E402
from support.process import Process  # noqa: E402
from support.programs import OBSERVER, Observer  # noqa: E402

MEBIBYTE = 1 << 20
SIGNAL_ASK = 10  # SIGUSR1


def cpu_seconds(pid):
    """Return the CPU time of a process's threads so far, user and system."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


def scrape(observer):
    text = http.request(observer.url + "/metrics", "GET", observer.netns)
    return text if isinstance(text, str) else text.decode()


def count_series(text):
    """Return the number of series, and of those that are left if Prometheus makes native histograms of classic ones."""
    names = [line.split("{")[0].split()[0] for line in text.splitlines() if line and not line.startswith("#")]
    histograms = sum(name.endswith("_seconds_count") for name in names)
    buckets = sum(name.endswith(("_seconds_bucket", "_seconds_sum", "_seconds_count")) for name in names)
    return len(names), len(names) - buckets + histograms


def measure(args, net, count):
    server = Process([*net.prefix(), "/usr/bin/python3", "-c", LISTENERS, count, count, args.requests])
    try:
        server.wait_for("^ready$", seconds=60)
        observer = Observer("--all-listeners", *args.option, netns=net, program=args.build / "observer" / "sojourn")
        try:
            os.kill(server.popen.pid, SIGNAL_ASK)
            server.wait_for("^asked$", seconds=600)
            scrape(observer)
            before, texts = cpu_seconds(observer.pid), []
            for _ in range(args.scrapes):
                time.sleep(1)  # a reading is at most this old
                texts.append(scrape(observer))
            cpu = (cpu_seconds(observer.pid) - before) / args.scrapes
            maps = observer.document()["cost"]["map_bytes"]
            return texts[-1], cpu, memory(observer.pid, "RssAnon") + maps
        finally:
            observer.close()
    finally:
        server.close()


def print_rows(args, net):
    """Print a row for each count of services; return (series, native, bytes) of the last."""
    print("| services | series | with native histograms | bytes | CPU time per scrape | memory |\n|---|---|---|---|---|---|")
    for count in args.services:
        text, cpu, held = measure(args, net, count)
        series, native = count_series(text)
        print(f"| {count} | {series:,} | {native:,} | {len(text) / 1024:,.0f} KiB | {1e3 * cpu:.1f} ms "
              f"| {held / MEBIBYTE:,.1f} MiB |", flush=True)
    return series, native, len(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, nargs="+", default=[10, 25, 50, 100], metavar="N")
    parser.add_argument("--requests", type=int, default=200, help="to each of them")
    parser.add_argument("--scrapes", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=1000, help="for which the last row is computed")
    parser.add_argument("--every", type=int, default=15, metavar="SECONDS", help="between their scrapes")
    parser.add_argument("--build", type=Path, default=OBSERVER.parent.parent)
    parser.add_argument("option", nargs="*", help="of the observer, behind --")
    args = parser.parse_args()
    print(machine())
    with Netns("scrape") as net:
        series, native, size = print_rows(args, net)
    print(f"{args.hosts:,} hosts with {args.services[-1]} services each, computed: {args.hosts * series:,} series "
          f"({args.hosts * native:,} with native histograms), {args.hosts * series / args.every:,.0f} samples/s, "
          f"{8 * args.hosts * size / args.every / 1e6:,.0f} Mbit/s at a scrape per {args.every} s")


if __name__ == "__main__":
    main()
