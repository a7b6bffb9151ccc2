#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether every request is counted, at full speed: the observer's counts beside those of its peers.

nginx on one core, sojourn-drive on another, 64 connections, as many requests as asked for. Prints what
the driver sent, what nginx served and what the observer saw, stage by stage, and everything that it
says it missed. Ends with status 1 if a request is neither counted nor among those.
"""
import argparse
import sys

from common import bounded, machine, need, pinned_nginx

from support.documents import service
from support.programs import Driver, Observer

STAGES = ("socket_queue", "receive", "service", "respond")


def observed(nginx, arguments):
    """(the driver's result, nginx's requests, the observer's document)"""
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


def rows(driver, served, entry):
    """(name, count, what it should be)"""
    requests = driver["requests"]
    yield "served by nginx", served, requests
    yield "exchanges", entry["exchanges"], served
    for name in STAGES:
        yield f"timed: {name}", entry["stages"][name]["count"], served
        yield f"in buckets: {name}", sum(n for _, n in entry["stages"][name]["buckets"]), served
    yield "connections", entry["accepted"], driver["connects"]
    yield "bytes in", entry["bytes_in"], driver["bytes_out"]
    yield "bytes out", entry["bytes_out"], driver["bytes_in"]


def missed(document, entry):
    """{what the observer says that it did not see: how often}"""
    counts = dict(entry["losses"])
    for program in document["cost"]["programs"]:
        counts[f"recursion misses of {program['name']}"] = program["recursion_misses"]
    return {name: count for name, count in counts.items() if count}


def explained(losses):
    """How many requests may be missing by what was said; accept() is about connections alone."""
    return sum(count for name, count in losses.items() if name != "accept_unseen")


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
    unexplained = 0
    for name, count, expected in rows(driver, served, entry):
        if not name.startswith("bytes"):
            unexplained = max(unexplained, abs(count - expected) - explained(losses))
        print(f"{name:<28}{count:>15,}  {'=' if count == expected else f'NOT {expected:,}'}")
    print("said to be missed:", losses or "nothing")
    joined = merged["joined"]
    print(f"joined exchanges            {joined['joined']:>15,}  of "
          f"{joined['joined'] + joined['driver_only'] + joined['ambiguous'] + joined['implausible']:,} "
          f"that the driver sampled below the common threshold; {joined['early']:,} early, "
          f"{entry['samples']['lost']:,} lost, {entry['samples']['inconsistent']:,} inconsistent")
    sys.exit(1 if unexplained > 0 else 0)


if __name__ == "__main__":
    main()
