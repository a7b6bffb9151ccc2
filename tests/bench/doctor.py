#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of one reading on a host with many TIME_WAIT sockets.

In its own network namespace, connections from several loopback addresses leave the requested number of sockets
in TIME_WAIT. Then come, in turn, one reading of `sojourn doctor`, `ss -tan` with an awk that counts per
destination, and `ss -s`. Printed are medians of their CPU time. The empty namespace shows each one's cost as a
process.

The observer's pass over the sockets of its namespaces, once a second, holds each full socket's lock while the
iterator's program looks at it. Last, with established connections, it measures that time by the kernel's run
statistics.

Two readings of `sojourn doctor` are compared with each other. Their time is measured with few listening sockets and
with many: for each socket it must not grow with their number.
"""
import argparse
import ctypes
import json
import re
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack

from common import ROUNDS, Timed, bounded, machine, spread

from support.net import free_port
from support.programs import OBSERVER, Observer

CLONE_NEWNET = 0x40000000
PER_SOURCE = 20000
NO_TIME_WAIT = struct.pack("ii", 1, 0)
TASKS = {
    "sojourn doctor --sample 0": [OBSERVER, "doctor", "--sample", "0", "--json"],
    "ss -tan | awk": ["sh", "-c", "ss -tan | awk '{n[$1 \" \" $5]++} END {for (k in n) "
                                  "if (n[k] > 1000) print k, n[k]}'"],
    "ss -s": ["ss", "-s"],
}


def enter_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        sys.exit("the benchmark makes a network namespace: it needs root")
    for command in (["ip", "link", "set", "lo", "up"],
                    ["sysctl", "-qw", "net.ipv4.ip_local_port_range=10000 60999",
                     "net.ipv4.tcp_tw_reuse=0", "net.ipv4.tcp_max_tw_buckets=1000000"]):
        subprocess.run(command, check=True)


def time_waits():
    text = open("/proc/self/net/sockstat", encoding="ascii").read()
    return int(re.search(r"\btw (\d+)", text)[1])


def fill(count):
    """Leave so many sockets in TIME_WAIT: the client closes first, from one address after the other."""
    with socket.create_server(("127.0.0.1", 5000), backlog=16) as listener:
        for number in range(count):
            with socket.socket() as client:
                client.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                client.bind((f"127.0.1.{1 + number // PER_SOURCE}", 0))
                client.connect(listener.getsockname())
                accepted, _ = listener.accept()
            accepted.close()


def measure(rounds):
    results = {name: [] for name in TASKS}
    for _ in range(rounds):
        for name, argv in TASKS.items():
            results[name].append(cpu_ms(argv))
    return results


def cpu_ms(argv):
    """Return the CPU time in ms. The exit code is ignored: it reports findings, which are no failure here."""
    try:
        timed = Timed(["sh", "-c", '"$@"; true', "sh", *argv])
    except SystemExit as error:
        raise SystemExit(f"cannot measure: {error}") from None
    return timed.cpu * 1000


def seen():
    done = subprocess.run([str(word) for word in TASKS["sojourn doctor --sample 0"]], check=False,
                          capture_output=True, text=True)
    document = json.loads(done.stdout)
    ports = sum(entry["used"] for entry in document["resources"]
                if entry["resource"] == "ephemeral_ports")
    return ports, document["looked_at"]["cpu_ns"] / 1e6, document["looked_at"]["descriptor_walks"]


def visits(count):
    """Return (ns of one visit, visits per second) with so many connections, of which both ends are visited."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", free_port()),
                                                            backlog=4096))
        for _ in range(count):
            stack.enter_context(socket.create_connection(listener.getsockname()))
            accepted = stack.enter_context(listener.accept()[0])
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_TIME_WAIT)
        begin = time.monotonic()
        with Observer("--cost", ports=[listener.getsockname()[1]]) as observer:
            time.sleep(5)
            observer.stop()
            seconds = time.monotonic() - begin
            program = next(p for p in observer.summary()["cost"]["programs"]
                           if p["name"] == "sockets_visit")
    return program["run_ns"] / program["runs"], program["runs"] / seconds


def listening(counts, rounds):
    """Return the CPU ms of two readings, by the number of listening sockets."""
    results = {}
    for count in counts:
        with ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            results[count] = [cpu_ms([OBSERVER, "doctor", "--sample", "100ms", "--json"]) for _ in range(rounds)]
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sockets", type=bounded(int, 1, 1_000_000), default=100000)
    parser.add_argument("--rounds", type=ROUNDS, default=9)
    parser.add_argument("--connections", type=bounded(int, 1, 9000), default=4000,
                        help="that are kept locked")
    parser.add_argument("--listeners", type=bounded(int, 2, 4096), default=4000,
                        help="listening sockets, in comparison with a half of them and none")
    arguments = parser.parse_args()
    enter_namespace()
    listeners = listening((0, arguments.listeners // 2, arguments.listeners), arguments.rounds)
    each, visited = visits(arguments.connections)
    empty = measure(arguments.rounds)
    fill(arguments.sockets)
    begun = time_waits()
    full = measure(arguments.rounds)
    ports, own, walks = seen()
    print(f"{machine()}\n{begun} sockets in TIME_WAIT at the begin, {time_waits()} at the end, "
          f"{arguments.rounds} rounds\nCPU ms, median [quartiles]\n")
    for name in TASKS:
        print(f"{name:<28}{spread(full[name])}    empty namespace {spread(empty[name])}")
    print()
    for count, times in listeners.items():
        print(f"{f'two readings, {count} listeners':<28}{spread(times)}")
    print(f"\nthe doctor saw {ports} ports used; by its own clock a look cost {own:.1f} ms "
          f"({walks} walks over descriptors)\nthe observer keeps each of {arguments.connections} "
          f"connections locked for {each:.0f} ns per look ({visited:,.0f} visits per second)")


if __name__ == "__main__":
    main()
