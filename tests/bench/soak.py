#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether a long run at full speed stays stable: flat memory, no drift of rate or latency.

nginx and sojourn-drive with 64 connections on all cores. Prints the driver's own memory (RssAnon) and open
files every tenth of the run. From its document come the rate and p99 of each tenth and the correlation of rate
with time. Status 1 if memory grew by more than 128 KiB after the first tenth, descriptors by any, or a request
failed.
"""
import argparse
import os
import re
import sys
import tempfile
import time

from common import bounded, machine, need

from support import documents
from support.process import Process
from support.programs import DRIVER, Nginx

PARTS = 10
GROWTH_KIB = 128  # allowed: the driver keeps some KiB for each tenth


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search(r"^RssAnon:\s+(\d+)", file.read(), re.MULTILINE)[1])


def watch(driver, seconds):
    """Return (memory in KiB, descriptors) near the end of every part but the last, when the driver may have
    exited."""
    begin, seen = time.monotonic(), []
    for part in range(1, PARTS):
        time.sleep(max(0, begin + part * seconds / PARTS - time.monotonic()))
        seen.append((anonymous_kib(driver.pid), len(os.listdir(f"/proc/{driver.pid}/fd"))))
        print(f"  {part * seconds / PARTS:7.0f} s   memory {seen[-1][0]:7,} KiB   "
              f"{seen[-1][1]} open files", flush=True)
    return seen


def report(result):
    intervals = result["intervals"]
    size = max(1, len(intervals) // PARTS)
    for part in range(min(PARTS, len(intervals))):
        # Intervals beyond the last tenth hold the last responses, without a rate of their own.
        some = intervals[part * size:(part + 1) * size if part + 1 < PARTS else None]
        nanoseconds = sum(interval["duration_ns"] for interval in some)
        requests = sum(interval["requests"] for interval in some)
        p99 = max(interval["latency"]["p99_ns"] for interval in some)
        print(f"  from {some[0]['begin_ns'] / 1e9:7.0f} s   {requests / nanoseconds * 1e9:10,.0f} "
              f"requests/s   highest p99 of an interval {p99 / 1e6:7.2f} ms")
    print(f"  correlation of rate with time {result.get('drift')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=bounded(int, 10, 1_000_000), default=300)
    seconds = parser.parse_args().seconds
    need("nginx")
    print(machine())
    with tempfile.TemporaryDirectory() as folder, Nginx(body="x" * 200) as nginx:
        path = os.path.join(folder, "run.json")
        with Process([DRIVER, nginx.url, "-c", 64, "-d", f"{seconds}s", "--quiet",
                      "--interval", f"{seconds / PARTS}s", "--json",
                      path]) as driver:
            seen = watch(driver, seconds)
            status = driver.wait(seconds)
        result = documents.load(path)["driver"]
    report(result)
    grown = seen[-1][0] - seen[0][0]
    print(f"  memory grew by {grown} KiB after the first tenth; "
          f"{result['requests']:,} requests, {sum(result['errors'].values())} errors")
    if status or grown > GROWTH_KIB or seen[-1][1] > seen[0][1]:
        sys.exit(1)


if __name__ == "__main__":
    main()
