#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The price of looking into requests (--http, --route, --tls): CPU time of nginx's worker per request.

nginx has one worker on a core of its own, which a client on the other saturates over kept connections. Each window has
an observer and connections of its own, whose handshakes come before it. Modes take turns in random order. Each window is
compared with the one without an observer in the same round. Medians of these comparisons are printed with their
95 % confidence. With --beside each mode also has windows with another build's observer, and the difference is printed.
"""
import argparse
import contextlib
import dataclasses
import itertools
import random
import statistics
import sys
import time
from pathlib import Path

from common import ROUNDS, Priority, bounded, confident, machine, need, pinned, pinned_nginx

from support.pki import Pki
from support.programs import OBSERVER, Observer

LONGEST = 86400  # seconds, never reached: the load is ended after the window
CONNECTIONS = 64
STREAMS = 8  # of HTTP/2 at a time on a connection
MODES = {"default": [], "--http": ["--http"], "--http, a route": ["--route", "/*"],
         "--tls": ["--tls"], "--tls, a route": ["--tls", "--route", "/*"]}
WRK = ["wrk", "-c", CONNECTIONS, "-t", 1, "-d", f"{LONGEST}s"]
H2LOAD = ["h2load", "-c", CONNECTIONS, "-m", STREAMS, "-D", LONGEST]
IN_CLEAR = ["default", "--http", "--http, a route"]
WARM_SECONDS = 0.5  # in which the handshakes end


@dataclasses.dataclass
class Protocol:
    """How nginx listens and is loaded, and the modes of which a price is printed: those of `knows` know statuses."""
    name: str
    listen: str
    load: list
    modes: list
    knows: list


PROTOCOLS = [
    Protocol("HTTP/1.1", "", WRK, IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/2 (h2c)", "http2", H2LOAD, IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/1.1 in TLS", "ssl", WRK, ["default", "--http", "--tls", "--tls, a route"],
             ["--tls", "--tls, a route"]),
    Protocol("HTTP/2 in TLS", "ssl http2", H2LOAD, ["default", "--tls", "--tls, a route"], ["--tls", "--tls, a route"]),
]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=12, help="windows of each mode")
    parser.add_argument("--only", choices=[protocol.name for protocol in PROTOCOLS], help="one protocol")
    parser.add_argument("--mode", choices=MODES, help="one mode")
    parser.add_argument("--beside", metavar="BUILD", type=Path, help="another build's observer, too")
    parser.add_argument("--window", type=bounded(float, 0.1, 60), default=1, help="seconds of each")
    Priority.option(parser)
    arguments = parser.parse_args()
    arguments.programs = [OBSERVER]
    if arguments.beside:
        arguments.programs.append(arguments.beside / "observer" / "sojourn")
        if not arguments.programs[1].exists():
            parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    return arguments


def window(protocol, nginx, seconds):
    """Return the worker's CPU time per request, ns."""
    clock = ~nginx.workers()[0] << 3 | 2  # as in clock_getcpuclockid()
    load = pinned([*map(str, protocol.load), nginx.url])
    try:
        time.sleep(WARM_SECONDS)
        requests, spent = nginx.status()["requests"], time.clock_gettime_ns(clock)
        time.sleep(seconds)
        return (time.clock_gettime_ns(clock) - spent) / (nginx.status()["requests"] - requests)
    finally:
        load.terminate()
        load.wait()


def observed(protocol, nginx, mode, program, seconds):
    with contextlib.closing(Observer(*MODES[mode], ports=[nginx.port], program=program)) as observer:
        found = window(protocol, nginx, seconds)
        observer.stop()
        service = observer.summary()["services"][0]
    if mode in protocol.knows and service["responses"]["status"]["other"] > service["responses"]["count"] / 100:
        sys.exit(f"{protocol.name}, {mode}: of {service['responses']['count']} statuses "
                 f"{service['responses']['status']['other']} are not known")
    return found


def measured(protocol, nginx, arguments):
    """Return windows of each kind: None (without an observer) or a mode's with a program."""
    modes = [mode for mode in protocol.modes if arguments.mode in (None, mode)]
    kinds = [None, *itertools.product(modes, arguments.programs)]
    found = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in random.sample(kinds, len(kinds)):
            found[kind].append(observed(protocol, nginx, *kind, arguments.window) if kind
                               else window(protocol, nginx, arguments.window))
    return found


def differences(found, kind, other):
    return confident([(one - two) / 1000 for one, two in zip(found[kind], found[other])])


def report(protocol, found, programs):
    print(f"{protocol.name}: {statistics.median(found[None]) / 1000:.1f} µs of CPU time per request")
    for mode, program in (kind for kind in found if kind):
        if program == programs[0]:
            print(f"  {mode:16} {differences(found, (mode, program), None)} µs more")
        else:
            print(f"  {'':16} {differences(found, (mode, programs[0]), (mode, program))} µs more than the other build")
    sys.stdout.flush()


def main():
    arguments = parse()
    Priority.choose(arguments)
    need("nginx", "wrk", "h2load")
    print(machine(), flush=True)
    with contextlib.closing(Pki()) as pki:
        certificate, key = pki.issue("server", "IP:127.0.0.1")
        for protocol in (each for each in PROTOCOLS if arguments.only in (None, each.name)):
            secure = "ssl" in protocol.listen.split()
            server = "keepalive_requests 1000000000; " + (
                f"ssl_certificate {certificate}; ssl_certificate_key {key};" if secure else "")
            with contextlib.closing(pinned_nginx(listen_options=protocol.listen, server=server)) as nginx:
                nginx.url = f"http{'s' * secure}://127.0.0.1:{nginx.port}/"
                report(protocol, measured(protocol, nginx, arguments), arguments.programs)


if __name__ == "__main__":
    main()
