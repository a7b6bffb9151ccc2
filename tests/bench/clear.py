#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The price of --tls for the observed server: CPU time of nginx's worker per request over TLS.

nginx has one worker on a core of its own, which wrk on the other saturates over kept connections. Each window has an
observer and connections of its own, whose handshakes come before it. Modes take turns in random order. Each window is
compared with the one without an observer in the same round. Medians of these comparisons are printed with their
95 % confidence.
"""
import argparse
import contextlib
import random
import statistics
import sys
import time

from common import ROUNDS, Priority, bounded, confident, machine, need, pinned, pinned_nginx

from support.pki import Pki
from support.programs import Observer

MODES = {"--http": ["--http"], "--tls": ["--tls"], "--tls, a route": ["--tls", "--route", "/*"]}
LONGEST = 86400  # seconds, never reached: the load is ended after the window
WARM_SECONDS = 0.5  # in which the handshakes end


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=12, help="windows of each mode")
    parser.add_argument("--window", type=bounded(float, 0.1, 60), default=1, help="seconds of each")
    Priority.option(parser)
    return parser.parse_args()


def window(nginx, seconds):
    """Return the worker's CPU time per request, ns."""
    clock = ~nginx.workers()[0] << 3 | 2  # as in clock_getcpuclockid()
    load = pinned(["wrk", "-c", "64", "-t", "1", "-d", f"{LONGEST}s", nginx.url])
    try:
        time.sleep(WARM_SECONDS)
        requests, spent = nginx.status()["requests"], time.clock_gettime_ns(clock)
        time.sleep(seconds)
        return (time.clock_gettime_ns(clock) - spent) / (nginx.status()["requests"] - requests)
    finally:
        load.terminate()
        load.wait()


def measured(nginx, mode, seconds):
    if mode is None:
        return window(nginx, seconds)
    with contextlib.closing(Observer(*MODES[mode], ports=[nginx.port])) as observer:
        found = window(nginx, seconds)
        observer.stop()
        counts = observer.summary()["services"][0]["responses"]
    if mode != "--http" and counts["status"]["other"] > counts["count"] / 100:
        sys.exit(f"{mode}: of {counts['count']} statuses {counts['status']['other']} are not known")
    return found


def main():
    arguments = parse()
    Priority.choose(arguments)
    need("nginx", "wrk")
    added, bare = {mode: [] for mode in MODES}, []
    with contextlib.ExitStack() as stack:
        pki = stack.enter_context(contextlib.closing(Pki()))
        certificate, key = pki.issue("server", "IP:127.0.0.1")
        nginx = stack.enter_context(contextlib.closing(pinned_nginx(
            listen_options="ssl", server=f"ssl_certificate {certificate}; ssl_certificate_key {key}; "
            "keepalive_requests 1000000000;")))
        nginx.url = f"https://127.0.0.1:{nginx.port}/"
        for _ in range(arguments.rounds):
            found = {mode: measured(nginx, mode, arguments.window)
                     for mode in random.sample([None, *MODES], len(MODES) + 1)}
            bare.append(found[None])
            for mode, values in added.items():
                values.append(found[mode] - found[None])
    print(machine())
    print(f"nginx over TLS: {statistics.median(bare) / 1000:.1f} µs of CPU time per request")
    for mode, values in added.items():
        print(f"  {mode:14} {confident([value / 1000 for value in values])} µs more")


if __name__ == "__main__":
    main()
