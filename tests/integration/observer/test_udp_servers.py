# SPDX-License-Identifier: MIT
"""Real UDP servers: some answers take much longer, another thread or goroutine replies, each client has a
socket, or a forwarder waits for its upstream.

The truth is the server's own clock, the client's round trips, or dnsperf's counts.
"""
import heapq
import random
import re
import resource
import select
import socket
import statistics
import struct
import subprocess
import threading
import time

import pytest

from support import golang
from support.calls import Ring
from support.documents import service
from support.net import free_port
from support.peers import need
from support.process import Process, own_folder, run
from support.programs import Observer
from support.timing import MS, in_quiet, timing
from .test_stages import stage
from .test_udp_replies import Scene, accounted, gauge_becomes, times_are


def resolve(server, count, slow):
    """Answer `count` requests 2 ms after the read, those in `slow` after 2 s; return each one's time."""
    due, times = [], []
    for number in range(count):
        while not select.select([server], [], [], max(0, (due[0][0] - time.monotonic()) if due else 5))[0]:
            reply_due(server, due, times)
        data, peer = server.recvfrom(100)
        read_ns = time.monotonic_ns()
        heapq.heappush(due, (time.monotonic() + (2 if number in slow else 0.002), number, read_ns, data, peer))
        reply_due(server, due, times)
    while due:
        time.sleep(max(0, due[0][0] - time.monotonic()))
        reply_due(server, due, times)
    return times


def reply_due(server, due, times):
    while due and due[0][0] <= time.monotonic():
        _, _, read_ns, data, peer = heapq.heappop(due)
        server.sendto(data, peer)
        times.append(time.monotonic_ns() - read_ns)


@pytest.mark.parametrize("clients", ["a port per query", "one port"])
@in_quiet
def test_a_resolver_with_slow_answers(start, clients):
    """4 % of the answers take 2 s: they are in the mean and in p99, whatever else is asked meanwhile."""
    count = 300
    slow = set(random.Random(1).sample(range(count), count // 25))
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    port = server.getsockname()[1]
    observer = start(Observer(ports=[f"{port}/udp"]))
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
               for _ in range(1 if clients == "one port" else count)]

    def ask():
        for number in range(count):
            sockets[number % len(sockets)].sendto(number.to_bytes(2, "big") + b"query", ("127.0.0.1", port))
            time.sleep(0.004)

    client = threading.Thread(target=ask)
    client.start()
    times = resolve(server, count, slow)
    client.join()
    observer.stop()
    for each in (*sockets, server):
        each.close()
    entry = service(observer.summary(), port)
    assert accounted(entry, count, count)
    assert not entry["losses"]["unsolicited"] and not entry["losses"]["unanswered"]
    assert statistics.fmean(times) >= 80 * MS
    assert times_are(entry, times)
    with timing():
        assert stage(entry, "service")["p99_ns"] >= 1990 * MS
        assert stage(entry, "service")["p90_ns"] <= 50 * MS


@in_quiet
def test_other_threads_reply(start):
    """One thread reads and four others reply: each time is its own request's."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    port = server.getsockname()[1]
    observer = start(Observer(ports=[f"{port}/udp"]))
    times, lock, count = [], threading.Lock(), 200
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]

    def answer(data, peer, read_ns, seconds):
        time.sleep(seconds)
        server.sendto(data, peer)
        with lock:
            times.append(time.monotonic_ns() - read_ns)

    def ask(client, number):
        client.settimeout(10)
        for each in range(count // len(clients)):
            client.sendto(b"%02d-%d" % (each, number), ("127.0.0.1", port))
            assert client.recv(100)

    asking = [threading.Thread(target=ask, args=(client, number)) for number, client in enumerate(clients)]
    for thread in asking:
        thread.start()
    answering = []
    for number in range(count):
        data, peer = server.recvfrom(100)
        thread = threading.Thread(target=answer, args=(data, peer, time.monotonic_ns(), 0.002 + number % 7 * 0.005))
        answering.append(thread)
        thread.start()
    for thread in asking + answering:
        thread.join()
    observer.stop()
    for each in (*clients, server):
        each.close()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == count
    assert not entry["losses"]["unsolicited"] and not entry["losses"]["unanswered"]
    assert times_are(entry, times)


@pytest.mark.timeout(300)
@in_quiet
def test_go_server_with_a_goroutine_per_request(start):
    """No time is longer than a client's longest round trip."""
    with own_folder("go") as folder:
        server = start(Process([golang.program(folder, "udp_server")]))
        port = int(server.wait_for(r"^listening on (\d+)$")[1])
        observer = start(Observer(ports=[f"{port}/udp"]))
        trips, lock = [], threading.Lock()

        def ask(number):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(10)
                client.connect(("127.0.0.1", port))
                for each in range(50):
                    begin_ns = time.monotonic_ns()
                    client.send(b"%02d%02d" % (each, number))
                    assert client.recv(100) == b"%02d%02d" % (each, number)
                    with lock:
                        trips.append(time.monotonic_ns() - begin_ns)

        clients = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == len(trips) == 800
    assert not entry["losses"]["unsolicited"] and not entry["losses"]["unanswered"]
    assert stage(entry, "service")["max_ns"] <= max(trips)
    with timing():
        assert stage(entry, "service")["count"] >= 800 * 0.98
        assert stage(entry, "service")["mean_ns"] == pytest.approx(statistics.fmean(trips), abs=2 * MS)


@in_quiet
def test_a_socket_for_each_client(start):
    """1,500 connected sockets share the port. Twice all of them have an open request at the same time."""
    count = 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * count + 100:
        pytest.skip(f"the limit of descriptors is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count + 100), hard))
    try:
        first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
        clients, servers = [], []
        for _ in range(count):
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            client.bind(("127.0.0.1", 0))
            client.connect(("127.0.0.1", port))
            clients.append(client)
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.connect(client.getsockname())
            servers.append(server)
        observer = start(Observer(ports=[f"{port}/udp"]))
        times = []
        for _ in range(2):
            reads = []
            for client in clients:
                client.send(b"question")
            for server in servers:
                assert server.recv(100) == b"question"
                reads.append(time.monotonic_ns())
            for server, read_ns in zip(servers, reads):
                server.send(b"answer")
                times.append(time.monotonic_ns() - read_ns)
        assert all(client.recv(100) == b"answer" for client in clients)
        observer.stop()
        for each in (first, *clients, *servers):
            each.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == 2 * count
    assert not any(entry["losses"].values()), entry["losses"]
    assert times_are(entry, times)


def test_replies_by_io_uring_are_not_timed(start):
    """BPF cannot read the destination of such a reply: it answers some request, and none stays open."""
    scene, ring = Scene(start), start(Ring())
    for number in range(20):
        scene.ask()
        [(_, peer, data)] = scene.read()
        ring.send(scene.server, data, peer)
        assert scene.client.recv(100) == data == number.to_bytes(2, "big") + b"question"
    scene.ask(2)
    scene.read(2)
    gauge = gauge_becomes(scene.observer, lambda gauge: gauge["read"])
    assert (gauge["read"], gauge["oldest_ns"]) == (2, 0)
    entry = scene.end()
    assert accounted(entry, 22, 20)
    assert entry["losses"]["untimed"] == 20
    assert entry["stages"]["service"]["measured"] is False
    assert "calls whose receiver cannot be read (io_uring" in entry["stages"]["service"]["reason"]


class Upstream(threading.Thread):
    """A name server that answers every question after 20 to 60 ms, each time it is asked."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answered = 0
        self.questions = set()  # a resolver asks again if it waits too long
        self.took_ns = []
        self.over = False
        self.start()

    def run(self):
        due = []
        while not self.over:
            timeout = max(0, due[0][0] - time.monotonic()) if due else 0.1
            if select.select([self.socket], [], [], timeout)[0]:
                query, peer = self.socket.recvfrom(2000)
                self.questions.add(self.question(query))
                heapq.heappush(due, (time.monotonic() + random.uniform(0.02, 0.06), time.monotonic_ns(),
                                     self.reply_to(query), peer))
            while due and due[0][0] <= time.monotonic():
                _, read_ns, reply, peer = heapq.heappop(due)
                self.took_ns.append(time.monotonic_ns() - read_ns)
                self.socket.sendto(reply, peer)
                self.answered += 1

    def mean_ns(self, latest):
        return statistics.fmean(self.took_ns[-latest:])

    @staticmethod
    def question(query):
        return query[12:query.index(0, 12) + 5]

    @staticmethod
    def reply_to(query):
        return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + Upstream.question(query) + \
            b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x0a\1\2\3"

    def close(self):
        self.over = True
        self.join()
        self.socket.close()


@pytest.mark.parametrize("clients", [1, 20])
@in_quiet
def test_a_forwarder(start, clients):
    """dnsmasq asks its upstream; dnsperf has several queries in flight, from one port or from twenty."""
    need("dnsmasq", "dnsperf", "dig")
    upstream = start(Upstream())
    port = free_port()
    start(Process([
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--port={port}", "--cache-size=0",
        "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", "--pid-file=",
        "--user=root", f"--server=127.0.0.1#{upstream.port}"]))
    for _ in range(100):
        if "10.1.2.3" in run(["dig", "+short", "+tries=1", "+time=1", "-p", port, "@127.0.0.1", "up.test"],
                             check=False).stdout:
            break
        time.sleep(0.05)
    before = upstream.answered
    observer = start(Observer(ports=[f"{port}/udp"]))
    lines = "".join(f"host{number}.test A\n" for number in range(150))
    text = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-n", "1", "-q", "40", "-c", str(clients),
                           "-Q", "150"], input=lines, check=True, capture_output=True, text=True).stdout
    observer.stop()
    completed = int(re.search(r"Queries completed:\s+(\d+)", text)[1])
    average_ns = float(re.search(r"Average Latency \(s\):\s+([\d.]+)", text)[1]) * 1e9
    longest_ns = float(re.search(r"Average Latency.*max ([\d.]+)", text)[1]) * 1e9
    entry = service(observer.summary(), port)
    assert completed == entry["exchanges"] == upstream.answered - before == 150
    assert accounted(entry, 150, 150)
    assert stage(entry, "service")["max_ns"] <= longest_ns
    assert upstream.mean_ns(150) <= stage(entry, "service")["mean_ns"] <= average_ns
    with timing():
        assert stage(entry, "service")["count"] >= 150 * 0.98
