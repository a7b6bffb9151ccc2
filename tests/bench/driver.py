#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How much load a CPU second of the driver makes, compared with its peers.

The server is pinned to one core, the client to another; all clients of a scene take turns. Prints requests per
second and per CPU second of the client, peak memory, and the ratio of each round's pair. Scenes:

- keep-alive: HTTP against nginx with one worker, 64 connections
- bound: the same against a server that parses nothing and is faster than its clients, so that they are the
  bottleneck. Saturated nginx would limit all clients to its own speed
- fresh: as keep-alive, but a connection per request
- first: likewise, but the client closes first; tcp_tw_reuse is 0, as towards any other host
- https: keep-alive with TLS; h2: HTTP/2 with TLS, 10 requests at a time on each connection; h2c: the same
  without TLS
- grpc: unary calls to a server of grpcio, 8 at a time on each of 8 connections, against ghz. The server is slower
  than its clients, so their rates are its own. Only with --also ghz
- udp: 64 B datagrams to an echo server from 64 sockets. The peer is a bare loop of epoll_wait(), recv() and
  send() without clock or statistics; udp-8: 8 requests on each socket
- null: requests without I/O, the driver's own ceiling
- loops: no driver; the cost of a request with io_uring and with epoll. A request is sent at once or, as in the
  driver, after all readable responses; loops-udp likewise
"""
import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from common import (
    CLIENT_CPU, ROUNDS, SERVER_CPU, Priority, Timed, bounded, machine, need, pinned_nginx, ratios, spread)

from support import ROOT
from support.net import Netns, free_port
from support.pki import Pki
from support.process import Process
from support.programs import BUILD, DRIVER

CONNECTIONS = 64
STREAMS = 10
CALLS = 8  # of gRPC: connections, and calls at a time on each
OURS, OTHER = "sojourn-drive", "other build"
BARE = BUILD / "tests/bench/bare_udp"
LOOP = BUILD / "tests/bench/bare_loop"
SIZE = 64


def ours(*options, netns=None, cpu=CLIENT_CPU, connections=CONNECTIONS, program=DRIVER):
    def run(url, seconds):
        with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
            done = Timed([*(netns.prefix() if netns else []), program, url, "-c", connections, "-d",
                          f"{seconds}s", "--quiet", "--json", file.name, *options], cpu)
            with open(file.name, encoding="utf-8") as written:
                driver = json.load(written)["driver"]
        if any(driver["errors"].values()):
            sys.exit(f"sojourn-drive had errors: {driver['errors']}")
        return driver["requests"], driver["requests"] / driver["duration_ns"] * 1e9, done
    return run


def builds(arguments, *options, **more):
    """Return {name: run(url, seconds)} of this build, and of the one that --beside names."""
    programs = {OURS: DRIVER} | ({OTHER: arguments.beside / "driver/sojourn-drive"} if arguments.beside else {})
    return {name: ours(*options, program=program, **more) for name, program in programs.items()}


def peer(count, rate, *command):
    """Return run(url, seconds) of a command. It returns (requests, rate, Timed), found by two patterns in the output."""
    def run(url, seconds):
        words = [str(word).format(url=url, seconds=seconds) for word in command]
        done = Timed(words)
        return int(re.search(count, done.text)[1]), float(re.search(rate, done.text)[1]), done
    return run


def k6(fresh):
    def run(url, seconds):
        with tempfile.NamedTemporaryFile("w", suffix=".js") as script:
            script.write(f"import http from 'k6/http'; export default () => http.get('{url}');")
            script.flush()
            return peer(r"http_reqs\.*: (\d+)", r"http_reqs\.*: \d+ +([\d.]+)/s", "env", "GOMAXPROCS=1", "k6", "run",
                        "--vus", CONNECTIONS, "--duration", "{seconds}s",
                        *(["--no-connection-reuse"] if fresh else ()), script.name)(url, seconds)
    return run


def vegeta(fresh):
    """Its results go into a file, whose report is no part of the cost."""
    def run(url, seconds):
        with tempfile.TemporaryDirectory() as folder:
            targets, results = Path(folder, "targets"), Path(folder, "results")
            targets.write_text(f"GET {url}\n", encoding="utf-8")
            done = Timed(["vegeta", "-cpus", 1, "attack", "-rate", 0, "-max-workers", CONNECTIONS, "-max-connections",
                          CONNECTIONS, "-duration", f"{seconds}s", "-targets", targets, "-output", results,
                          *(["-keepalive=false"] if fresh else ())])
            text = subprocess.run(["vegeta", "report", results], check=True, capture_output=True, text=True).stdout
        found = re.search(r"throughput\]\s+(\d+), ([\d.]+),", text)
        return int(found[1]), float(found[2]), done
    return run


CLOSE = ("-H", "Connection: close")
PEERS = {
    "wrk": lambda fresh: peer(r"(\d+) requests in", r"Requests/sec:\s+([\d.]+)", "wrk", "-c",
                              CONNECTIONS, "-t", 1, "-d", "{seconds}s",
                              *(CLOSE if fresh else ()), "{url}"),
    # With -D and a connection per request h2load 1.52 never ends.
    "h2load": lambda fresh: peer(r"requests: \d+ total, \d+ started, (\d+) done",
                                 r"([\d.]+) req/s", "h2load", "--h1", "-c", CONNECTIONS, "-t", 1,
                                 *(("-n", 40000, *CLOSE) if fresh else ("-D", "{seconds}")),
                                 "{url}"),
    "ab": lambda fresh: peer(r"Complete requests:\s+(\d+)", r"Requests per second:\s+([\d.]+)",
                             "ab", "-q", "-c", CONNECTIONS, "-t", "{seconds}", "-n", 100000000,
                             *(() if fresh else ("-k",)), "{url}"),
}

# With --also. They have no Debian package: docs/cost.md has the commands that install them.
ALSO = {
    "oha": lambda fresh: peer(r'"200": (\d+)', r'"requestsPerSec": ([\d.]+)', "oha", "--no-tui", "--output-format",
                              "json", "-c", CONNECTIONS, "-z", "{seconds}s",
                              *(["--disable-keepalive"] if fresh else ()), "{url}"),
    "hey": lambda fresh: peer(r"\[200\]\s+(\d+) responses", r"Requests/sec:\s+([\d.]+)", "hey", "-cpus", 1, "-c",
                              CONNECTIONS, "-z", "{seconds}s", *(["-disable-keepalive"] if fresh else ()), "{url}"),
    "vegeta": vegeta,
    # It prints its report on standard error.
    "fortio": lambda fresh: peer(
        r"Code 200 : (\d+)", r"avg, ([\d.]+) qps", "sh", "-c",
        f"GOMAXPROCS=1 exec fortio load -c {CONNECTIONS} -qps 0 -t {{seconds}}s -loglevel Error "
        f"{'-keepalive=false ' if fresh else ''}{{url}} 2>&1"),
    "k6": k6,
}


@contextmanager
def http():
    with pinned_nginx() as nginx:
        yield nginx.url


@contextmanager
def namespace():
    with Netns("bench") as netns:
        netns.exec(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=0",
                    "net.ipv4.tcp_max_tw_buckets=2000000"])
        with pinned_nginx(netns) as nginx:
            yield nginx.url, netns


@contextmanager
def pinned_server(program, url):
    """Run `PROGRAM serve PORT`. Yield the URL, with {port} replaced by the port, and the port."""
    port = free_port()
    with Process(["taskset", "-c", SERVER_CPU, program, "serve", port]) as server:
        server.wait_for("ready")
        Priority.give(server.pid)
        yield url.format(port=port), port


def echo():
    return pinned_server(BARE, "udp://127.0.0.1:{port}")


def quick_server():
    return pinned_server(LOOP, "http://127.0.0.1:{port}/")


def counted(*command):
    """Return run(_, seconds) of a command that has the seconds as its last argument and prints the answered requests."""
    def run(_, seconds):
        done = Timed([*command, seconds])
        return int(done.text), int(done.text) / seconds, done
    return run


def bare(port):
    return counted(BARE, "ask", port, CONNECTIONS, SIZE)


def loops(transport, port):
    """Return the clients of bare_loop.c by name; io_uring is compared with the two of epoll."""
    def way(name):
        return counted(LOOP, name, transport, port, CONNECTIONS)
    return {"io_uring": way("io_uring"), "epoll batched": way("batched"), "epoll": way("epoll")}


def compare(title, url, clients, arguments):
    mine = next(iter(clients))
    rates, per_cpu, memory = ({name: [] for name in clients} for _ in range(3))
    for _ in range(arguments.rounds):
        for name, client in clients.items():
            requests, rate, done = client(url, arguments.seconds)
            rates[name].append(rate)
            per_cpu[name].append(requests / done.cpu)
            memory[name].append(done.resident_kib / 1024)
    print(f"\n{title}")
    for name, values in per_cpu.items():
        print(f"  {name:<14}{statistics.median(rates[name]):10,.0f} requests/s"
              f"{statistics.median(values):12,.0f} per CPU second"
              f"{statistics.median(memory[name]):8.1f} MiB")
    for name in list(clients)[1:]:
        print(f"  to {name:<13} per CPU second {spread(ratios(per_cpu, mine, name))}"
              f"   rate {spread(ratios(rates, mine, name))}")


def compare_http(title, url, arguments, fresh=False):
    options = ["-H", "Connection: close", "--new-connections"] if fresh else []
    peers = PEERS | {name: ALSO[name] for name in arguments.also if name in ALSO}
    compare(title, url, builds(arguments, *options) | {name: make(fresh) for name, make in peers.items()}, arguments)


def scene_http(title, arguments, fresh):
    with http() as url:
        compare_http(title, url, arguments, fresh)


def scene_bound(title, arguments):
    with quick_server() as (url, _):
        compare_http(title, url, arguments)


def scene_first(title, arguments):
    with namespace() as (url, netns):
        compare(title, url, builds(arguments, "--new-connections", "--source", "127.0.0.2-127.0.0.40", netns=netns),
                arguments)


def scene_udp(title, arguments, *options):
    with echo() as (url, port):
        compare(title, url, builds(arguments, "--payload", "x" * SIZE, *options) | {"bare loop": bare(port)}, arguments)


def scene_h2(scheme, title, arguments):
    """h2load chooses HTTP/1.1 by --h1, and TLS by the URL."""
    pki, options = Pki(), []
    tls = scheme != "h2c"
    if tls:
        cert, key = pki.issue("server", "IP:127.0.0.1")
        options = ["--ca", pki.ca]
    more = ["--h1"] if scheme == "https" else ["-m", STREAMS]
    streams = [] if scheme == "https" else [f"--streams={STREAMS}"]
    h2load = peer(r"requests: \d+ total, \d+ started, (\d+) done", r"([\d.]+) req/s", "h2load",
                  "-c", CONNECTIONS, "-t", 1, "-D", "{seconds}", *more,
                  "https://{url}" if tls else "http://{url}")
    with pinned_nginx(listen_options={"https": "ssl", "h2": "ssl http2", "h2c": "http2"}[scheme],
                      server=f"ssl_certificate {cert}; ssl_certificate_key {key};" if tls else ""
                      ) as nginx:
        host = nginx.url.removeprefix("http://")
        compare(title, f"{scheme}://{host}", builds(arguments, *options, *streams) |
                {"h2load": lambda _, seconds: h2load(host, seconds)}, arguments)
    pki.close()


PROTO = """syntax = "proto3";
package test;
message Text { string text = 1; }
service Service { rpc Echo(Text) returns (Text); }
"""


def ghz(proto, text):
    """Calls under way at the end are waited for: they would be errors."""
    def run(address, seconds):
        done = Timed(["ghz", "--insecure", "--cpus", 1, "-c", CALLS * CALLS, "--connections", CALLS, "-z", f"{seconds}s",
                      "--duration-stop", "wait", "--proto", proto, "--call", "test.Service.Echo", "-d",
                      json.dumps({"text": text}), "-O", "json", address])
        found = json.loads(done.text)
        if set(found["statusCodeDistribution"]) != {"OK"}:
            sys.exit(f"ghz had other results than OK: {found['statusCodeDistribution']}")
        return found["count"], found["rps"], done
    return run


def scene_grpc(title, arguments):
    text, port = "x" * SIZE, free_port()
    with tempfile.TemporaryDirectory() as folder:
        proto, message = Path(folder, "test.proto"), Path(folder, "message")
        proto.write_text(PROTO, encoding="ascii")
        message.write_bytes(bytes([1 << 3 | 2, SIZE]) + text.encode())  # field 1, of bytes
        with Process(["taskset", "-c", SERVER_CPU, ROOT / "tests/support/grpcserver.py", port]) as server:
            server.wait_for("ready")
            Priority.give(server.pid)
            address = f"127.0.0.1:{port}"
            clients = builds(arguments, "--grpc", "--body", f"@{message}", f"--streams={CALLS}", connections=CALLS)
            clients["ghz"] = lambda _, seconds: ghz(proto, text)(address, seconds)
            compare(title, f"h2c://{address}/test.Service/Echo", clients, arguments)


def scene_null(title, arguments):
    compare(title, "null://", builds(arguments), arguments)


def scene_loops(title, arguments):
    with quick_server() as (url, port):
        compare(title, url, loops("http", port), arguments)


def scene_loops_udp(title, arguments):
    with echo() as (url, port):
        compare(title, url, loops("udp", port), arguments)


SCENES = {
    "keep-alive": lambda title, arguments: scene_http(title, arguments, False),
    "bound": scene_bound,
    "fresh": lambda title, arguments: scene_http(title, arguments, True),
    "first": scene_first,
    **{scheme: lambda title, arguments: scene_h2(title, title, arguments)
       for scheme in ("https", "h2", "h2c")},
    "grpc": scene_grpc,
    "udp": scene_udp,
    "udp-8": lambda title, arguments: scene_udp(title, arguments, "--match=id:4",
                                                "--outstanding=8"),
    "null": scene_null,
    "loops": scene_loops,
    "loops-udp": scene_loops_udp,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=7)
    parser.add_argument("--seconds", type=bounded(int, 1, 3600), default=4, help="length of each run")
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], default=[],
                        help="default: all of them")
    parser.add_argument("--also", metavar="PEER", nargs="+", choices=[*ALSO, "ghz"], default=[],
                        help="clients to compare with over HTTP/1.1, or over gRPC (ghz), which have no Debian package and must "
                        f"be installed: {', '.join(ALSO)}, ghz")
    parser.add_argument("--beside", metavar="BUILD", type=Path, help="the driver of another build takes its turns, too")
    Priority.option(parser)
    arguments = parser.parse_args()
    Priority.choose(arguments)
    if arguments.beside and not (arguments.beside / "driver/sojourn-drive").exists():
        parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    need("wrk", "h2load", "ab", "nginx")
    for name in arguments.also:
        if not shutil.which(name):
            sys.exit(f"--also '{name}': not on the PATH; docs/cost.md has the commands that install it")
    for program in BARE, LOOP:
        if not program.exists():
            sys.exit(f"{program} is missing: build with -D SOJOURN_TESTS=ON")
    print(f"{machine()}\n{arguments.rounds} rounds of {arguments.seconds} s, {CONNECTIONS} "
          f"connections, {Priority.name()} priority, medians [quartiles]")
    if "grpc" in arguments.scenes and "ghz" not in arguments.also:
        parser.error("grpc: its peer has no Debian package: give --also ghz")
    for scene in arguments.scenes or [scene for scene in SCENES if scene != "grpc" or "ghz" in arguments.also]:
        SCENES[scene](scene, arguments)


if __name__ == "__main__":
    main()
