# SPDX-License-Identifier: MIT
"""Real servers under their usual clients: the observer's counts equal the servers' own.

nginx (HTTP/1.1 and HTTP/2), redis, memcached over TCP and UDP, and dnsmasq over both run alone and all on one
host. The truth is redis' INFO, memcached's stats, dnsmasq's log, nginx's status, and the answers that their
clients got.
"""
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from support.documents import service
from support.net import free_port
from support.peers import ask, need
from support.process import Process, run
from support.programs import Nginx, Observer

STAGES = ("socket_queue", "receive", "service", "respond")


def timed(entry, count, stages=STAGES):
    """Every exchange is counted and timed in each stage; nothing was missed."""
    assert entry["exchanges"] == count
    for name in stages:
        assert entry["stages"][name]["count"] == count, (name, {k: v for k, v in entry["losses"].items() if v})
        assert sum(n for _, n in entry["stages"][name]["buckets"]) == count, name
    losses = {name: n for name, n in entry["losses"].items() if n and name != "accept_unseen"}
    assert not losses, losses
    if entry.get("samples") and entry["samples"]["threshold"] == 1 << 32:
        assert entry["samples"]["lost"] == entry["samples"]["inconsistent"] == 0
        assert len(entry["samples"]["flow"]) == count
    return True


def timed_or_told(entry, count):
    """On a busy machine a few datagrams are read before they are announced, or answered before the read is
    seen. These are counted as such, and are few."""
    losses = {name: n for name, n in entry["losses"].items() if n}
    unmatched, untimed = losses.pop("unmatched", 0), losses.pop("untimed", 0)
    assert losses.pop("ambiguous_replies", 0) <= untimed
    assert not losses, losses
    assert entry["exchanges"] == count
    assert entry["stages"]["socket_queue"]["count"] + unmatched == count
    assert entry["stages"]["service"]["count"] + untimed == count
    assert unmatched + untimed <= count // 200
    return True


class Redis:
    count = 5000

    def __init__(self, start):
        need("redis-server", "redis-benchmark")
        self.port = self.name = free_port()
        start(Process(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", ""]))
        self.info()

    def info(self):
        """Return redis' counters, and the length of the answer in bytes."""
        text = ask(self.port, b"INFO stats\r\n")
        return {key: int(value) for key, value in re.findall(r"^(total_\w+):(\d+)\r", text, re.M)}, \
            len(text)

    def begin(self):
        self.before, _ = self.info()

    def load(self):
        run(["redis-benchmark", "-p", self.port, "-n", self.count, "-c", 16, "-t", "get,set", "-q"])

    def end(self):
        self.after, self.told = self.info()

    def check(self, entry):
        """INFO counts itself only in the next one."""
        grown = {name: self.after[name] - self.before[name] for name in self.after}
        assert grown["total_commands_processed"] >= 2 * self.count
        # The benchmark asks for two settings in one write, which is one exchange.
        configs = int(re.search(r"cmdstat_config\|get:calls=(\d+)",
                                ask(self.port, b"INFO commandstats\r\n"))[1])
        assert configs == 2
        assert timed(entry, grown["total_commands_processed"] + 1 - configs // 2)
        assert entry["bytes_in"] == grown["total_net_input_bytes"] + len(b"INFO stats\r\n")
        assert entry["bytes_out"] == grown["total_net_output_bytes"] + self.told
        assert entry["accepted"] == grown["total_connections_received"] + 1


class Memcached:
    """memcached with gets and sets over TCP, one command per turn of a connection."""

    count = 1000
    udp = False

    def __init__(self, start):
        need("memcached")
        self.port = free_port()
        self.name = f"{self.port}/udp" if self.udp else self.port
        start(Process(["memcached", "-l", "127.0.0.1", "-p", self.port, "-U", self.port, "-u",
                       "root", "-t", 2]))
        ask(self.port, b"version\r\n")

    def stats(self):
        text = ask(self.port, b"stats\r\n")
        return {key: int(value) for key, value in re.findall(r"STAT (\w+) (\d+)\r", text)}

    def begin(self):
        self.before = self.stats()

    def load(self):
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(4)]
        for number in range(self.count):
            client = clients[number % 4]
            client.sendall(b"set key%d 0 0 5\r\nvalue\r\n" % number)
            assert client.recv(100) == b"STORED\r\n"
            client.sendall(b"get key%d\r\n" % number)
            assert client.recv(100).endswith(b"END\r\n")
        for client in clients:
            client.close()

    def end(self):
        self.after = self.stats()

    def grown(self, name):
        return self.after[name] - self.before[name]

    def check(self, entry):
        assert self.grown("cmd_set") == self.grown("cmd_get") == self.count
        assert timed(entry, 2 * self.count + 2)  # and two calls of stats
        assert entry["accepted"] == 4 + 2
        assert entry["bytes_in"] == self.grown("bytes_read") + len(b"stats\r\n")


class MemcachedUdp(Memcached):
    """One datagram in and one out, each after a header of 8 bytes; two threads read one socket."""

    udp = True

    def load(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            client.connect(("127.0.0.1", self.port))
            for number in range(self.count):
                for command in (b"set key%d 0 0 5\r\nvalue\r\n", b"get key%d\r\n"):
                    client.send(struct.pack("!HHHH", number, 0, 1, 0) + command % number)
                    answer = client.recv(1400)
                    assert answer[:2] == struct.pack("!H", number)
                    assert answer.endswith((b"STORED\r\n", b"END\r\n"))

    def check(self, entry):
        assert self.grown("cmd_set") == self.grown("cmd_get") == self.count
        assert timed_or_told(entry, 2 * self.count)
        assert len(entry["processes"]) == 1


class Dns:
    """dnsmasq answers what it knows itself; dnsperf keeps 20 queries in flight."""

    count = 2000

    def __init__(self, start):
        need("dnsmasq", "dnsperf", "dig")
        self.port = free_port()
        self.name = f"{self.port}/udp,{self.port}"
        self.server = start(Process([
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--port={self.port}",
            "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts",
            "--pid-file=", "--user=root", "--address=/lab.test/10.1.2.3", "--log-facility=-"]))
        self.wait_until_up()

    def wait_until_up(self):
        for _ in range(100):
            if "10.1.2.3" in run(["dig", "+short", "+tries=1", "+time=1", "-p", self.port,
                                  "@127.0.0.1", "up.lab.test"], check=False).stdout:
                return
            time.sleep(0.05)
        raise self.server.error("does not come up")

    def answered(self):
        """Return dnsmasq's own count, which it logs on SIGUSR1."""
        asked = len(self.said())
        self.server.send(signal.SIGUSR1)
        while len(self.said()) == asked:
            time.sleep(0.01)
        return self.said()[-1]

    def said(self):
        text = self.server.stdout + self.server.stderr
        return [int(count) for count in re.findall(r"queries answered locally (\d+)\n", text)]

    def begin(self):
        self.before = self.answered()

    def load(self):
        lines = "".join(f"host{number}.lab.test A\n" for number in range(self.count))
        text = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-n", "1",
                               "-q", "20"], input=lines, check=True, capture_output=True,
                              text=True).stdout
        self.completed = int(re.search(r"Queries completed:\s+(\d+)", text)[1])
        for _ in range(5):
            assert "10.1.2.3" in run(["dig", "+short", "+tcp", "-p", self.port, "@127.0.0.1",
                                      "a.lab.test"]).stdout

    def end(self):
        self.after = self.answered()

    def check(self, entries):
        udp, tcp = entries["udp"], entries["tcp"]
        assert self.completed == self.count == self.after - self.before
        assert timed_or_told(udp, self.count)
        assert timed(tcp, 5)
        assert tcp["accepted"] == 5


class Web:
    count = 5000

    def __init__(self, start):
        need("h2load")
        self.nginx = start(Nginx(workers=2))
        self.port = self.name = self.nginx.port

    def begin(self):
        pass

    def load(self):
        text = run(["h2load", "--h1", "-n", self.count, "-c", 8, self.nginx.url]).stdout
        assert f"{self.count} succeeded" in text

    def end(self):
        pass

    def check(self, entry):
        status = self.nginx.status()
        assert timed(entry, self.count)
        assert status["requests"] == self.count
        assert entry["accepted"] == status["accepts"]


def entry_of(document, peer):
    found = {entry["protocol"]: entry for entry in document["services"]
             if entry["port"] == peer.port}
    if isinstance(peer, Dns):
        return found
    return found["udp" if isinstance(peer, MemcachedUdp) else "tcp"]


def observed(start, peers):
    observer = start(Observer("--samples", "100000",
                              ports=[peer.name for peer in peers]))
    for peer in peers:
        peer.begin()
    failures = []

    def load(peer):
        try:
            peer.load()
        except BaseException as error:  # raised below, in the test's own thread
            failures.append(error)

    loads = [threading.Thread(target=load, args=(peer,)) for peer in peers]
    for each in loads:
        each.start()
    for each in loads:
        each.join()
    assert not failures, failures
    for peer in peers:
        peer.end()
    time.sleep(0.1)  # until the servers have seen their clients go
    observer.stop()
    document = observer.summary()
    assert all(p["recursion_misses"] == 0 for p in document["cost"]["programs"])
    for peer in peers:
        peer.check(entry_of(document, peer))


@pytest.mark.parametrize("peer", [Redis, Memcached, MemcachedUdp, Dns, Web])
def test_one(start, peer):
    observed(start, [peer(start)])


def test_one_host(start):
    """Several services, each with its own client, at the same time."""
    observed(start, [peer(start) for peer in (Redis, Memcached, MemcachedUdp, Dns, Web)])


def test_h2load_is_labelled_never_timed(start):
    """Many requests at once on few connections, whose streams are not to be followed: multiplexed, none of them timed."""
    need("h2load")
    nginx = start(Nginx(listen_options="http2"))
    observer = start(Observer("--no-http2", ports=[nginx.port]))
    text = run(["h2load", "-n", 2000, "-c", 4, "-m", 10, nginx.url]).stdout
    assert "2000 succeeded" in text
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.status()["requests"] == 2000
    assert entry["losses"]["multiplexed"] == entry["accepted"] == 4
    assert entry["exchanges"] == 0
    assert all(entry["stages"][name]["count"] == 0 for name in STAGES)
    assert entry["samples"]["flow"] == []
    assert "HTTP/2 connections" in observer.stdout


def test_pipelined_commands_are_one_exchange(start):
    """16 commands in one write are read and answered at once, as one exchange. Bytes are exact, and there are
    no more exchanges than reads."""
    redis = Redis(start)
    observer = start(Observer(ports=[redis.port]))
    redis.begin()
    run(["redis-benchmark", "-p", redis.port, "-n", 16000, "-P", 16, "-c", 4, "-t", "set", "-q"])
    redis.end()
    observer.stop()
    entry = service(observer.summary(), redis.port)
    grown = {name: redis.after[name] - redis.before[name] for name in redis.after}
    assert grown["total_commands_processed"] >= 16000
    assert 1000 <= entry["exchanges"] < 2000
    assert entry["bytes_in"] == grown["total_net_input_bytes"] + len(b"INFO stats\r\n")
    assert entry["bytes_out"] == grown["total_net_output_bytes"] + redis.told
    assert entry["losses"]["unsolicited"] == entry["losses"]["unanswered"] == 0
