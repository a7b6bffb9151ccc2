#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The price of looking into requests (--http, --route, --tls, --protocol) and at calls (--calls): the server's CPU time per request.

The server, nginx with one worker, Redis or PostgreSQL, has a core of its own. A client on the other core saturates it
over kept connections: wrk, h2load, redis-benchmark or pgbench. For --calls nginx passes each request to another nginx on
that core, over kept connections, too. The server counts its requests. Each window has
an observer and connections of its own, whose handshakes come before it. Modes take turns in random order. Each window is
compared with the one without an observer in the same round. Medians of these comparisons are printed with their
95 % confidence. With --beside each mode also has windows with another build's observer, and the difference is printed.

Then come prices per call: a mode's time above the default's of the same round, divided by the calls for one request.
For --http and --protocol calls are the server's reads and writes of sockets that moved bytes. For --tls they
are its calls of SSL_read and SSL_write. bpftrace counts them, in windows of their own.

In further windows the kernel times the runs of the observer's programs (run statistics). Runs for the client's socket return
at the filter. Their price is known from an observer without a port in its filter (--floor), and taken out. These times
have neither the entry into a program nor its exit in them. For a probe of a TLS library this is nearly all.
"""
import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import CLIENT_CPU, ROUNDS, SERVER_CPU, Priority, bounded, confident, machine, need, pinned, pinned_nginx

from support.databases import Postgres, Redis, postgres_program, until
from support.pki import Pki
from support.process import Process, run, wait_until
from support.programs import OBSERVER, Nginx, Observer

LONGEST = 86400  # seconds, never reached: the load is ended after the window
CONNECTIONS = 64
STREAMS = 8  # of HTTP/2 at a time on a connection
BACKENDS = 8  # connections to PostgreSQL
MODES = {"default": [], "--http": ["--http"], "--http, a route": ["--route", "/*"],
         "--tls": ["--tls"], "--tls, a route": ["--tls", "--route", "/*"],
         "--protocol": ["--protocol", "{protocol}:{port}"], "--calls": ["--calls"]}
WRK = ["wrk", "-c", CONNECTIONS, "-t", 1, "-d", f"{LONGEST}s"]
# A GET of a browser, of some 600 bytes, and a POST of 140, with its body.
BROWSER = """
wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
wrk.headers["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
wrk.headers["Accept-Language"] = "en-US,en;q=0.5"
wrk.headers["Accept-Encoding"] = "gzip, deflate, br, zstd"
wrk.headers["Connection"] = "keep-alive"
wrk.headers["Cookie"] = "session=" .. string.rep("0123456789abcdef", 8)
wrk.headers["Upgrade-Insecure-Requests"] = "1"
wrk.headers["Sec-Fetch-Dest"] = "document"
wrk.headers["Cache-Control"] = "max-age=0"
"""
POST = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"name": "a value", "n": 12345}'
"""
H2LOAD = ["h2load", "-c", CONNECTIONS, "-m", STREAMS, "-D", LONGEST]
IN_CLEAR = ["default", "--http", "--http, a route"]
WARM_SECONDS = 0.5  # in which the handshakes end
READ, WRITE = "read", "write"
TLS_CALLS = ("SSL_read", "SSL_read_ex", "SSL_write", "SSL_write_ex")  # that carry text, as in observer/kernel/tls/clear.c
# What a mode adds to the default is divided by these calls.
CALLS_OF = {"--http": (READ, WRITE), "--http, a route": (READ, WRITE), "--tls": TLS_CALLS, "--tls, a route": TLS_CALLS,
            "--protocol": (READ, WRITE), "--calls": (READ, WRITE)}
# The calls of which each program runs once, by the beginning of its name.
RUNS_OF = {"exchange_recv": (READ,), "exchange_send": (WRITE,), "calls_recv": (READ,), "calls_send": (WRITE,),
           "clear_received": (READ,), "clear_sent": (WRITE,),
           "clear_enter": TLS_CALLS, "clear_return": TLS_CALLS}
COUNTING_ROUNDS = 3  # windows of each mode with run statistics
TRACEFS = "/sys/kernel/tracing"


class Web:
    """nginx. Its own status page has the number of requests. @script: of wrk, in Lua."""

    def __init__(self, stack, listen, load, script="", more="", http_block=""):
        server = f"keepalive_requests 1000000000; {more}"
        secure = "ssl" in listen.split()
        if secure:
            certificate, key = stack.enter_context(contextlib.closing(Pki())).issue("server", "IP:127.0.0.1")
            server += f"ssl_certificate {certificate}; ssl_certificate_key {key};"
        self.nginx = stack.enter_context(contextlib.closing(pinned_nginx(listen_options=listen, server=server, http_block=http_block)))
        self.port = self.nginx.port
        self.load = [*load, f"http{'s' * secure}://127.0.0.1:{self.port}/"]
        if script:
            path = Path(self.nginx.files.name, "load.lua")
            path.write_text(script, encoding="ascii")
            self.load += ["-s", path]

    def requests(self):
        return self.nginx.status()["requests"]

    def pid(self):
        return self.nginx.workers()[0]

    def processes(self):
        return [self.pid()]


class Proxy(Web):
    """nginx that passes each request to another one."""

    def __init__(self, stack, load):
        behind = stack.enter_context(contextlib.closing(Nginx(server="keepalive_requests 1000000000;")))
        for pid in (behind.pid, *behind.workers()):
            os.sched_setaffinity(pid, {CLIENT_CPU})
        super().__init__(stack, "", load, more='location /behind { proxy_pass http://behind/; proxy_http_version 1.1; proxy_set_header '
                                               'Connection ""; } ',
                         http_block=f"upstream behind {{ server 127.0.0.1:{behind.port}; keepalive 128; keepalive_requests 1000000000; }}")
        self.load[-1] += "behind"


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

    def pid(self):
        return self.redis.pid

    def processes(self):
        return [self.pid()]


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

    def pid(self):
        return self.postgres.pid

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
    Protocol("HTTP/1.1, a browser's GET", Web, ("", WRK, BROWSER), IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/1.1, POST", Web, ("", WRK, POST), IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/2 (h2c)", Web, ("http2", H2LOAD), IN_CLEAR, IN_CLEAR[1:]),
    Protocol("HTTP/1.1 in TLS", Web, ("ssl", WRK), ["default", "--http", *IN_TLS], IN_TLS),
    Protocol("HTTP/2 in TLS", Web, ("ssl http2", H2LOAD), ["default", *IN_TLS], IN_TLS),
    Protocol("HTTP/1.1, passed on", Proxy, (WRK,), ["default", "--calls"], ["--calls"]),
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
    if protocol.server is Proxy:
        calls = sum(call["calls"] for call in service["timed_calls"])
        return f"of {requests} calls only {calls}" if calls < 0.98 * requests else None
    count, other = service["responses"]["count"], service["responses"]["status"]["other"]
    return f"of {count} statuses not {other}" if other > count / 100 else None


def observed(protocol, server, mode, program, seconds, *more):
    """Return the server's CPU time per request, ns, the number of requests, and the observer's document."""
    options = [option.format(protocol=protocol.protocol, port=server.port) for option in (*MODES[mode], *more)]
    with contextlib.closing(Observer(*options, ports=[server.port], program=program)) as observer:
        first = server.requests()
        found, requests = window(server, seconds)
        all_requests = server.requests() - first
        observer.stop()
        document = observer.summary()
    problem = not more and mode in protocol.knows and unseen(protocol, document["services"][0], requests)
    if problem:
        sys.exit(f"{protocol.name}, {mode}: the observer knows {problem}")
    return found, all_requests, document


# ---- calls ----

def library(pid):
    """Return the path of the TLS library that the process has mapped, as another process can open it; None without."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        found = re.search(r" r-xp .* (/\S*/libssl\.so\S*)$", file.read(), re.MULTILINE)
    return f"/proc/{pid}/root{found[1]}" if found else None


class Calls(Process):
    """bpftrace, which counts the calls of a server's processes: of this one, and of children that come meanwhile. Its
    tracefs is mounted for it alone."""

    PROBE = "{hook} /({mine}){also}/ {{ @[\"{name}\"] = count(); }}\n"

    def __init__(self, pid):
        mine = f"pid == {pid} || curtask->real_parent->tgid == {pid}"
        hooks = {READ: ("tracepoint:sock:sock_recv_length", " && args->ret > 0"),
                 WRITE: ("tracepoint:sock:sock_send_length", " && args->ret > 0")}
        path = library(pid)
        if path:
            hooks |= {name: (f"uprobe:{path}:{name}", "") for name in TLS_CALLS}
        script = "".join(self.PROBE.format(hook=hook, mine=mine, also=also, name=name)
                         for name, (hook, also) in hooks.items())
        mount = "" if os.path.exists(f"{TRACEFS}/events") else f"mount -t tracefs nodev {TRACEFS} && "
        super().__init__(["unshare", "-m", "sh", "-c", f"{mount}exec bpftrace -B none -e \"$0\"",
                          script + "interval:ms:200 { printf(\"attached\\n\"); }\n"])
        with self.coming_up():
            self.wait_for("^attached$", seconds=60)

    def end(self):
        """End it; return {name: calls}."""
        self.stop(number=signal.SIGINT, seconds=30)
        return {name: int(count) for name, count in re.findall(r"^@\[(\w+)\]: (\d+)$", self.stdout, re.MULTILINE)}


def print_others():
    """A probe runs for all processes with the library: those of other programs would be in every figure."""
    others = sum(program["type"] == "kprobe" for program in json.loads(run(["bpftool", "-j", "prog", "show"]).stdout))
    if others:
        print(f"Others have {others} programs for probes of functions: what --tls adds may not be known", flush=True)


def calls_per_request(server, seconds):
    with contextlib.closing(Calls(server.pid())) as calls:
        first = server.requests()
        window(server, seconds)
        requests = server.requests() - first
        return {name: count / requests for name, count in calls.end().items() if count > requests / 1000}


def runs(protocol, server, mode, seconds, *more):
    """Return {program: (runs for one request, ns of a run)} of an observer's life."""
    _, requests, document = observed(protocol, server, mode, OBSERVER, seconds, "--cost", *more)
    return {program["name"]: (program["runs"] / requests, program["run_ns"] / program["runs"])
            for program in document["cost"]["programs"] if program["runs"]}


def run_prices(protocol, server, mode, calls, seconds):
    """Return {program: (calls for one request, [ns of a run for one of these, in each round])}."""
    found = {}
    for _ in range(COUNTING_ROUNDS):
        floors = runs(protocol, server, mode, seconds, "--floor")
        for program, (count, ns) in runs(protocol, server, mode, seconds).items():
            mine = sum(calls.get(name, 0) for prefix, names in RUNS_OF.items() if program.startswith(prefix)
                       for name in names)
            if mine and count >= mine * 0.98:
                others = max(0, count - mine) * floors.get(program, (0, 0))[1]
                found.setdefault(program, (mine, []))[1].append((count * ns - others) / mine)
    return found


def measured(protocol, server, arguments):
    """Return windows of each kind: None (without an observer) or a mode's with a program."""
    modes = [mode for mode in protocol.modes if arguments.mode in (None, mode)]
    kinds = [None, *itertools.product(modes, arguments.programs)]
    found = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in random.sample(kinds, len(kinds)):
            found[kind].append((observed(protocol, server, *kind, arguments.window) if kind
                                else window(server, arguments.window))[0])
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


def report_calls(protocol, server, found, arguments):
    calls = calls_per_request(server, arguments.window)
    print("  calls per request: " + ", ".join(f"{count:.3f} {name}" for name, count in sorted(calls.items())))
    default = "default", OBSERVER
    for mode, program in (kind for kind in found if kind):
        count = sum(calls.get(name, 0) for name in CALLS_OF.get(mode, ()))
        if program != OBSERVER or not count:
            continue
        if default in found:
            prices = [(one - two) / count for one, two in zip(found[mode, program], found[default])]
            print(f"  {mode:16} {confident(prices, 0)} ns per call more than the default, of {count:.3f} calls")
        for name, (each, prices) in run_prices(protocol, server, mode, calls, arguments.window).items():
            print(f"  {'':16} {statistics.median(prices):.0f} ns [{min(prices):.0f} .. {max(prices):.0f}] per run of {name}, "
                  f"{each:.3f} runs")
    sys.stdout.flush()


def main():
    arguments = parse()
    Priority.choose(arguments)
    need("nginx", "wrk", "h2load", "redis-server", "redis-benchmark", "pgbench", "bpftrace", "bpftool")
    print(machine(), flush=True)
    print_others()
    for protocol in (each for each in PROTOCOLS if arguments.only in (None, each.name)):
        with contextlib.ExitStack() as stack:
            server = protocol.server(stack, *protocol.options)
            found = measured(protocol, server, arguments)
            report(protocol, found, arguments.programs)
            report_calls(protocol, server, found, arguments)


if __name__ == "__main__":
    main()
