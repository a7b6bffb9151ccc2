#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The price of looking into requests (--http, --route, --tls, --protocol): the server's CPU time per request.

The server, nginx with one worker, Redis or PostgreSQL, has a core of its own. A client on the other core saturates it
over kept connections: wrk, h2load, redis-benchmark or pgbench. The server counts its requests. Each window has
an observer and connections of its own, whose handshakes come before it. Modes take turns in random order. Each window is
compared with the one without an observer in the same round. Medians of these comparisons are printed with their
95 % confidence. With --beside each mode also has windows with another build's observer, and the difference is printed.
"""
import argparse
import contextlib
import dataclasses
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import ROUNDS, SERVER_CPU, Priority, bounded, confident, machine, need, pinned, pinned_nginx

from support.databases import Postgres, Redis, postgres_program, until
from support.pki import Pki
from support.process import wait_until
from support.programs import OBSERVER, Observer

LONGEST = 86400  # seconds, never reached: the load is ended after the window
CONNECTIONS = 64
STREAMS = 8  # of HTTP/2 at a time on a connection
BACKENDS = 8  # connections to PostgreSQL
MODES = {"default": [], "--http": ["--http"], "--http, a route": ["--route", "/*"],
         "--tls": ["--tls"], "--tls, a route": ["--tls", "--route", "/*"],
         "--protocol": ["--protocol", "{protocol}:{port}"]}
WRK = ["wrk", "-c", CONNECTIONS, "-t", 1, "-d", f"{LONGEST}s"]
H2LOAD = ["h2load", "-c", CONNECTIONS, "-m", STREAMS, "-D", LONGEST]
IN_CLEAR = ["default", "--http", "--http, a route"]
WARM_SECONDS = 0.5  # in which the handshakes end


class Web:
    """nginx. Its own status page has the number of requests."""

    def __init__(self, stack, listen, load):
        server = "keepalive_requests 1000000000; "
        secure = "ssl" in listen.split()
        if secure:
            certificate, key = stack.enter_context(contextlib.closing(Pki())).issue("server", "IP:127.0.0.1")
            server += f"ssl_certificate {certificate}; ssl_certificate_key {key};"
        self.nginx = stack.enter_context(contextlib.closing(pinned_nginx(listen_options=listen, server=server)))
        self.port = self.nginx.port
        self.load = [*load, f"http{'s' * secure}://127.0.0.1:{self.port}/"]

    def requests(self):
        return self.nginx.status()["requests"]

    def processes(self):
        return [self.nginx.workers()[0]]


class Store:
    """Redis, asked for a key that it does not have; @pipeline commands are sent at a time."""

    def __init__(self, stack, pipeline):
        self.redis = stack.enter_context(contextlib.closing(Redis()))
        self.port = self.redis.port
        with self.redis.connect() as connection:
            until(connection, b"CONFIG SET slowlog-log-slower-than -1\r\n", b"+OK\r\n")
        self.load = ["redis-benchmark", "-h", "127.0.0.1", "-p", self.port, "-c", CONNECTIONS, "-n", 2_000_000_000,
                     "-P", pipeline, "-t", "get", "-q"]
        os.sched_setaffinity(self.redis.pid, {SERVER_CPU})
        Priority.give(self.redis.pid)

    def requests(self):
        return self.redis.calls("get")[0]

    def processes(self):
        return [self.redis.pid]


class Database:
    """PostgreSQL with a process for each of few connections: `select 1` in this mode of pgbench."""

    def __init__(self, stack, mode):
        self.postgres = stack.enter_context(contextlib.closing(Postgres()))
        self.port = self.postgres.port
        script = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".sql"))
        script.write("select 1;\n")
        script.flush()
        self.load = ["env", "PGSSLMODE=disable", postgres_program("pgbench"), "-h", "127.0.0.1", "-p", self.port, "-U",
                     "test", "-n", "-c", BACKENDS, "-T", LONGEST, "-M", mode, "-f", script.name, "postgres"]
        os.sched_setaffinity(self.postgres.pid, {SERVER_CPU})  # its children inherit both
        Priority.give(self.postgres.pid)

    def requests(self):
        return self.postgres.statements("select $1")[0]

    def processes(self):
        return self.postgres.ask("select pid from pg_stat_activity where application_name = 'pgbench'").split()


@dataclasses.dataclass
class Protocol:
    """How a server is started and loaded, and the modes of which a price is printed: those of `knows` see each request.
    In a pipeline the others do not."""
    name: str
    server: object
    options: tuple
    modes: list
    knows: list
    protocol: str = ""


IN_TLS = ["--tls", "--tls, a route"]
COMMANDS = [["default", "--protocol"], ["--protocol"]]
PROTOCOLS = [
    Protocol("HTTP/1.1", Web, ("", WRK), IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/2 (h2c)", Web, ("http2", H2LOAD), IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/1.1 in TLS", Web, ("ssl", WRK), ["default", "--http", *IN_TLS], IN_TLS),
    Protocol("HTTP/2 in TLS", Web, ("ssl http2", H2LOAD), ["default", *IN_TLS], IN_TLS),
    Protocol("Redis", Store, (1,), *COMMANDS, "redis"),
    Protocol("Redis, 16 in a pipeline", Store, (16,), *COMMANDS, "redis"),
    Protocol("PostgreSQL, simple", Database, ("simple",), *COMMANDS, "postgresql"),
    Protocol("PostgreSQL, prepared", Database, ("prepared",), *COMMANDS, "postgresql"),
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


def reading(server, clocks):
    """Return (requests, CPU time). The time between the two readings is the same at both ends of a window."""
    return server.requests(), sum(time.clock_gettime_ns(clock) for clock in clocks)


def window(server, seconds):
    """Return the server's CPU time per request, ns, and the number of requests."""
    before = server.requests()
    load = pinned([*map(str, server.load)])
    try:
        wait_until(lambda: server.requests() > before + CONNECTIONS, 30)
        time.sleep(WARM_SECONDS)
        clocks = [~int(pid) << 3 | 2 for pid in server.processes()]  # as in clock_getcpuclockid()
        requests, spent = reading(server, clocks)
        time.sleep(seconds)
        more_requests, more_spent = reading(server, clocks)
        requests = more_requests - requests
        return (more_spent - spent) / requests, requests
    finally:
        load.terminate()
        load.wait()


def unseen(protocol, service, requests):
    """Return what the observer should know of the requests, but does not."""
    if protocol.protocol:
        return f"of {requests} commands only {service['exchanges']}" if service["exchanges"] < requests else None
    count, other = service["responses"]["count"], service["responses"]["status"]["other"]
    return f"of {count} statuses not {other}" if other > count / 100 else None


def observed(protocol, server, mode, program, seconds):
    options = [option.format(protocol=protocol.protocol, port=server.port) for option in MODES[mode]]
    with contextlib.closing(Observer(*options, ports=[server.port], program=program)) as observer:
        found, requests = window(server, seconds)
        observer.stop()
        problem = mode in protocol.knows and unseen(protocol, observer.summary()["services"][0], requests)
    if problem:
        sys.exit(f"{protocol.name}, {mode}: the observer knows {problem}")
    return found


def measured(protocol, server, arguments):
    """Return windows of each kind: None (without an observer) or a mode's with a program."""
    modes = [mode for mode in protocol.modes if arguments.mode in (None, mode)]
    kinds = [None, *itertools.product(modes, arguments.programs)]
    found = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in random.sample(kinds, len(kinds)):
            found[kind].append(observed(protocol, server, *kind, arguments.window) if kind
                               else window(server, arguments.window)[0])
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
    need("nginx", "wrk", "h2load", "redis-server", "redis-benchmark", "pgbench")
    print(machine(), flush=True)
    for protocol in (each for each in PROTOCOLS if arguments.only in (None, each.name)):
        with contextlib.ExitStack() as stack:
            server = protocol.server(stack, *protocol.options)
            report(protocol, measured(protocol, server, arguments), arguments.programs)


if __name__ == "__main__":
    main()
