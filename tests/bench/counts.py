#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether every request is counted at full speed: the observer's counts beside those of its peers.

nginx on one core, sojourn-drive on another, 64 connections, as many requests as requested. Prints the driver's,
nginx's and the observer's counts, stage by stage, and every reported loss. The status is 1 if a request or a
byte is neither counted nor explained. Explanations are: a program that the kernel did not run (recursion), a
connection without memory, an unseen arrival. Counters that lose nothing (overlapped, unsolicited, preexisting
…) explain nothing.
"""
import argparse
import sys

from common import bounded, machine, need, pinned_nginx

from support.documents import service
from support.programs import Driver, Observer


def observed(nginx, arguments):
    observer = Observer(*arguments.observe, ports=[nginx.port])
    try:
        before = nginx.status()["requests"]
        result = Driver(nginx.url, connections=arguments.connections, count=arguments.requests,
                        observer=observer, seconds=3600)
        served = nginx.status()["requests"] - before
        observer.stop()
        return result.document, served, observer.summary()
    finally:
        observer.close()


def above_zero(entry, name):
    """Return the exchanges that the kernel put into a bucket; bucket 0, of 0 ns, is filled in by user space."""
    return sum(count for index, count in entry["stages"][name]["buckets"] if index > 0)


def rows(driver, served, entry, missed_most):
    """Yield (name, count, expected count, allowed difference because of reported losses)."""
    requests, (programs, arrivals) = driver["requests"], missed_most
    yield "served by nginx", served, requests, 0
    yield "exchanges", entry["exchanges"], served, programs
    for name in ("socket_queue", "service"):
        yield f"timed: {name}", entry["stages"][name]["count"], served, programs + arrivals
        yield f"in buckets: {name}", sum(n for _, n in entry["stages"][name]["buckets"]), served, \
            programs + arrivals
    # nginx reads and answers each of these requests in one call.
    for name in ("receive", "respond"):
        yield f"above zero: {name}", above_zero(entry, name), 0, programs
    yield "connections", entry["accepted"], driver["connects"], 0
    for name, theirs in (("bytes in", "bytes_out"), ("bytes out", "bytes_in")):
        yield name, entry[name.replace(" ", "_")], driver[theirs], programs * driver[theirs] // requests


def missed(document, entry):
    counts = dict(entry["losses"])
    for program in document["cost"]["programs"]:
        counts[f"recursion misses of {program['name']}"] = program["recursion_misses"]
    return {name: count for name, count in counts.items() if count}


def explained(losses):
    """Return how many requests the losses explain: (those in no count, those that are only without times)."""
    programs = sum(count for name, count in losses.items()
                   if name.startswith("recursion misses") or name == "storage_failed")
    return programs, losses.get("untimed", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=bounded(int, 1, 1_000_000_000), default=5_000_000)
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.add_argument("observe", nargs="*", metavar="OPTION",
                        help="options of sojourn observe, behind --")
    arguments = parser.parse_args()
    need("nginx")
    nginx = pinned_nginx()
    try:
        merged, served, document = observed(nginx, arguments)
    finally:
        nginx.close()
    driver, entry = merged["driver"], service(document, nginx.port)
    print(f"{machine()}\n{driver['requests']:,} requests in {driver['duration_ns'] / 1e9:.1f} s, "
          f"{driver['requests'] / driver['duration_ns'] * 1e9:,.0f} per second\n")
    losses = missed(document, entry)
    wrong = []
    for name, count, expected, missing in rows(driver, served, entry, explained(losses)):
        if abs(count - expected) > missing:
            wrong.append(name)
        print(f"{name:<28}{count:>15,}  {'=' if count == expected else f'NOT {expected:,}'}")
    print("said to be missed:", losses or "nothing")
    joined = merged["joined"]
    print(f"joined exchanges            {joined['joined']:>15,}  of "
          f"{joined['joined'] + joined['driver_only'] + joined['ambiguous'] + joined['implausible']:,} "
          f"that the driver sampled below the common threshold; {joined['early']:,} early, "
          f"{entry['samples']['lost']:,} lost, {entry['samples']['inconsistent']:,} inconsistent")
    sys.exit(f"unexplained: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
