#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether answered exchanges of connections that their client resets at once are counted as answered.

nginx with two workers, observer and driver are in a network namespace of their own. The driver makes a connection for each
request, from several source addresses, and ends it by RST as soon as the response is there (`--close rst`). A repetition is
one observation of all its connections, made in rounds. Prints a row for each repetition. It has the requests of the driver
and of nginx, the exchanges of the observer, and the requests that it has as unanswered or open. The status is 1 if any of them differ.
"""
import argparse
import sys

from common import bounded, machine, need

from support.documents import service
from support.net import Netns
from support.programs import Driver, Nginx, Observer

SOURCES = "127.0.0.2-127.0.0.17"


def repetition(net, arguments):
    """Return (requests of the driver, requests of nginx, exchanges, unanswered or open)."""
    with Nginx(workers=2, netns=net) as nginx, Observer(*arguments.observe, ports=[nginx.port], netns=net) as observer:
        before, sent = nginx.status()["requests"], 0
        while sent < arguments.requests:
            result = Driver(nginx.url, "--new-connections", "--close=rst", f"--source={SOURCES}", netns=net, seconds=600,
                            connections=arguments.connections, count=min(arguments.round, arguments.requests - sent))
            sent += result.document["driver"]["requests"]
        served = nginx.status()["requests"] - before
        observer.stop()
        entry = service(observer.summary(), nginx.port)
    left = entry["losses"]["unanswered"] + sum(entry["open"][name] for name in ("read", "unread"))
    return sent, served, entry["exchanges"], left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=bounded(int, 1, 100_000_000), default=200_000)
    parser.add_argument("--round", type=bounded(int, 1, 1_000_000), default=20_000, help="requests of one run of the driver")
    parser.add_argument("--connections", type=bounded(int, 1, 10_000), default=64)
    parser.add_argument("--repetitions", type=bounded(int, 1, 1000), default=5)
    parser.add_argument("observe", nargs="*", metavar="OPTION", help="options of sojourn observe, behind --")
    arguments = parser.parse_args()
    need("nginx")
    print(f"{machine()}\n{'driver':>10}{'nginx':>10}{'exchanges':>11}{'unanswered':>12}")
    total = wrong = 0
    for _ in range(arguments.repetitions):
        with Netns("resets") as net:
            sent, served, exchanges, left = repetition(net, arguments)
        total += sent
        wrong += abs(served - sent) + abs(exchanges - served) + left
        print(f"{sent:>10,}{served:>10,}{exchanges:>11,}{left:>12,}", flush=True)
    print(f"{wrong:,} of {total:,} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
