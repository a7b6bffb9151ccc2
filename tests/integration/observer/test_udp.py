# SPDX-License-Identifier: MIT
"""UDP services: every datagram's wait and service, drops, and replies that cannot be matched.

The truth is the lab server's clock, the test's own reads and writes, and the kernel's count of drops.
"""
import ctypes
import errno
import socket
import statistics
import subprocess
import sys
import time

import pytest

from ..conftest import kernel_counter
from support import BUILD
from support.documents import service
from support.packets import Packets
from support.process import run
from support.programs import Lab, Observer
from support.timing import MS, in_quiet, lies_within, timing
from .test_stages import MODELS, mean, service_is_true, stage, truth_of

IP_RECVERR = 11


def ask(port, count, family=socket.AF_INET, address="127.0.0.1", gap=0.0):
    """Send one datagram after another, each after the answer to the last."""
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((address, port))
        for number in range(count):
            client.send(b"question %d" % number)
            assert client.recv(2048)
            time.sleep(gap)


def udp_drops():
    return kernel_counter("RcvbufErrors", table="snmp", row="Udp")


class Scene:
    def __init__(self, start, tmp_path, *options, **lab_options):
        self.path = tmp_path / f"truth-{time.monotonic_ns()}.csv"
        self.lab = start(Lab("--truth", self.path, *options, protocol="udp", **lab_options))
        self.observer = start(Observer(ports=[f"{self.lab.port}/udp"]))

    def end(self):
        self.observer.stop()
        return service(self.observer.summary(), self.lab.port), truth_of(self.lab, self.path)


@pytest.mark.parametrize("milliseconds, count", [(0, 500), (5, 60)])
@in_quiet
def test_service(start, tmp_path, milliseconds, count):
    """Of servers of all models, one after the other, seen by one observer."""
    truths = {model: tmp_path / f"truth-{model}-{time.monotonic_ns()}.csv" for model in MODELS}
    labs = {model: start(Lab("--truth", path, "--service", f"{milliseconds}ms", protocol="udp", model=model))
            for model, path in truths.items()}
    observer = start(Observer(ports=[f"{lab.port}/udp" for lab in labs.values()]))
    for lab in labs.values():
        ask(lab.port, count)
    observer.stop()
    for model, lab in labs.items():
        entry, truth = service(observer.summary(), lab.port), truth_of(lab, truths[model])
        assert entry["protocol"] == "udp"
        assert len(truth) == entry["exchanges"] == stage(entry, "service")["count"] == count, model
        assert stage(entry, "socket_queue")["count"] == count, model
        assert service_is_true(entry, truth), model
        assert not any(entry["losses"].values()), (model, entry["losses"])
        assert {p["comm"] for p in entry["processes"]} == {"sojourn-lab"}
        for other in ("accept_queue", "receive", "respond", "transmit_queue", "ack"):
            assert entry["stages"][other]["measured"] is False
            assert entry["stages"][other]["reason"]


@in_quiet
def test_late_read_is_socket_queue(start, tmp_path):
    scene = Scene(start, tmp_path, "--read-delay", "10ms", "--service", "1ms")
    with Packets(scene.lab.port) as packets:
        ask(scene.lab.port, 50)
    entry, truth = scene.end()
    (arrivals,) = packets.arrivals().values()
    assert len(arrivals) == len(truth) == 50
    for row, packet in zip(truth, arrivals):
        row["arrival_ns"] = packet.at_ns
    assert mean(truth, "readable_ns", "first_read_end_ns") >= 10 * MS
    assert lies_within(stage(entry, "socket_queue")["mean_ns"], mean(truth, "arrival_ns", "first_read_begin_ns"),
                       mean(truth, "arrival_ns", "first_read_end_ns"))
    assert service_is_true(entry, truth)


def timed(call, *arguments):
    before_ns = time.monotonic_ns()
    call(*arguments)
    return before_ns, time.monotonic_ns()


def is_within(found, bounds):
    """Mean, median and maximum of a stage lie within those of the true bounds. The last two are given by their
    buckets, which are at most 1/64 wide."""
    least, most = (sorted(each) for each in zip(*bounds))
    middle = (len(bounds) - 1) // 2
    return lies_within(found["mean_ns"], statistics.fmean(least), statistics.fmean(most)) and \
        lies_within(found["p50_ns"], least[middle], most[middle] * (1 + 1 / 64)) and \
        lies_within(found["max_ns"], least[-1], most[-1] * (1 + 1 / 64))


@in_quiet
def test_batch(start):
    """Five datagrams of one client arrive 4 ms apart, are read together and answered together. The first two
    bytes, which the replies repeat, distinguish them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        server.bind(("127.0.0.1", 0))
        client.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        observer = start(Observer(ports=[f"{port}/udp"]))
        reads, writes = [], []
        with Packets(port) as packets:
            for number in range(5):
                client.sendto(b"%02d" % number, ("127.0.0.1", port))
                time.sleep(0.004)
            for _ in range(5):
                reads.append(timed(server.recvfrom, 100))
                time.sleep(0.006)
            for number in range(5):
                writes.append(timed(server.sendto, b"%02d" % number, client.getsockname()))
                time.sleep(0.002)
        observer.stop()
    entry = service(observer.summary(), port)
    (arrivals,) = ([packet.at_ns for packet in found] for found in packets.arrivals().values())
    assert entry["exchanges"] == len(arrivals) == 5
    assert is_within(stage(entry, "socket_queue"), [(before - at, after - at) for at, (before, after) in
                                                    zip(arrivals, reads)])
    assert is_within(stage(entry, "service"), [(wrote[0] - read[1], wrote[1] - read[0]) for read, wrote in
                                               zip(reads, writes)])


SINK = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, {size})
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.readline()
s.settimeout(1)
n = 0
try:
    while True:
        s.recv(100)
        n += 1
except TimeoutError:
    pass
print("read", n, flush=True)
time.sleep(60)
"""

SOURCE = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", {port}))
for _ in range({count}):
    s.send(b"x" * 32)
"""


def sink(start, size):
    """Start a server that reads when go() says so."""
    process = subprocess.Popen([sys.executable, "-c", SINK.format(size=size)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    start(Ending(process))
    return process, int(process.stdout.readline())


class Ending:
    def __init__(self, process):
        self.process = process

    def close(self):
        self.process.kill()
        self.process.communicate()


def go(process):
    """Let the sink read; return what it has read in the end."""
    process.stdin.write("go\n")
    process.stdin.flush()
    return int(process.stdout.readline().split()[1])


def arrived(process):
    """Return the observer's count of arrivals at a process's only socket."""
    (count, _), = [line.split() for line in
                   run([BUILD / "tests" / "seen" / "sojourn-arrived", process.pid]).stdout.splitlines()]
    return int(count)


def test_drops_equal_the_kernels(start):
    """The server does not read: its buffer fills up, and the rest is dropped."""
    server, port = sink(start, 20000)
    observer = start(Observer(ports=[f"{port}/udp"]))
    before = udp_drops()
    subprocess.run([sys.executable, "-c", SOURCE.format(port=port, count=1000)], check=True)
    count = go(server)
    dropped = udp_drops() - before
    assert arrived(server) == count
    observer.stop()
    entry = service(observer.summary(), port)
    assert dropped > 0 and count + dropped == 1000
    assert entry["losses"]["dropped"] == dropped
    assert stage(entry, "socket_queue")["count"] == count
    assert entry["losses"]["unmatched"] == 0
    assert entry["exchanges"] == 0


@pytest.mark.timeout(120)
@in_quiet
def test_two_senders_race_into_one_socket(start):
    """Every datagram has one arrival, also when two CPUs deliver at once. As many are counted as were sent,
    less those that the kernel dropped."""
    server, port = sink(start, 200000)
    observer = start(Observer(ports=[f"{port}/udp"]))
    before = udp_drops()
    server.stdin.write("go\n")
    server.stdin.flush()
    sources = [subprocess.Popen([sys.executable, "-c", SOURCE.format(port=port, count=100_000)])
               for _ in range(2)]
    assert [source.wait(60) for source in sources] == [0, 0]
    count = int(server.stdout.readline().split()[1])
    dropped = udp_drops() - before
    assert arrived(server) == 200_000 - dropped
    observer.stop()
    document = observer.summary()
    entry = service(document, port)
    assert count + dropped == 200_000
    misses = sum(p["recursion_misses"] for p in document["cost"]["programs"])
    assert misses == 0
    assert entry["losses"]["dropped"] == dropped
    # A datagram that a busy reader took before its arrival was announced is counted, not timed.
    assert stage(entry, "socket_queue")["count"] + entry["losses"]["unmatched"] == count
    with timing():
        assert entry["losses"]["unmatched"] <= count // 50


@in_quiet
def test_one_that_vanishes_delays_no_other(start):
    """The datagram is discarded during the read, here by a bad address, elsewhere by a wrong checksum. The
    counts of arrivals and reads differ from then on, until the queue's length corrects them."""
    libc = ctypes.CDLL(None, use_errno=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        server.bind(("127.0.0.1", 0))
        client.connect(server.getsockname())
        observer = start(Observer(ports=[f"{server.getsockname()[1]}/udp"]))
        client.send(b"vanishes")
        assert libc.recv(server.fileno(), ctypes.c_void_p(1), 100, 0) == -1
        assert ctypes.get_errno() == errno.EFAULT
        for _ in range(200):
            client.send(b"x")
            server.recv(10)
            server.sendto(b"y", client.getsockname())
            time.sleep(0.002)
        port = server.getsockname()[1]
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == 200
    assert 0 < entry["losses"]["unmatched"] <= 20
    # These datagrams have no known sender.
    assert entry["losses"]["untimed"] == entry["losses"]["ambiguous_replies"] <= 20
    assert stage(entry, "service")["count"] == 200 - entry["losses"]["untimed"]
    assert not entry["losses"]["unsolicited"] and not entry["losses"]["unanswered"]
    assert stage(entry, "socket_queue")["count"] == 200 - entry["losses"]["unmatched"]
    with timing():
        # Each of the first few has the arrival time of the previous one, 2 ms earlier.
        assert stage(entry, "socket_queue")["p90_ns"] < 1 * MS
        assert stage(entry, "socket_queue")["mean_ns"] < 0.5 * MS


def test_queued_before_the_observation_is_unmatched(start):
    server, port = sink(start, 200000)
    subprocess.run([sys.executable, "-c", SOURCE.format(port=port, count=7)], check=True)
    observer = start(Observer(ports=[f"{port}/udp"]))
    subprocess.run([sys.executable, "-c", SOURCE.format(port=port, count=5)], check=True)
    assert go(server) == 12
    observer.stop()
    entry = service(observer.summary(), port)
    assert entry["losses"]["unmatched"] == 7
    assert stage(entry, "socket_queue")["count"] == 5


def test_unsolicited_and_ipv6(start):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
        server.bind(("::1", 0))
        client.bind(("::1", 0))
        port = server.getsockname()[1]
        observer = start(Observer(ports=[f"{port}/udp"]))
        client.sendto(b"q", ("::1", port))
        server.recv(10)
        for _ in range(3):  # the first one answers, two more answer nothing
            server.sendto(b"a", client.getsockname())
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == 1
    assert entry["losses"]["unsolicited"] == 2


def test_peeking_is_no_read(start):
    """Reads of the error queue, where the server finds its own undelivered reply, are none either."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        port = server.getsockname()[1]
        observer = start(Observer(ports=[f"{port}/udp"]))
        for _ in range(5):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"q", ("127.0.0.1", port))
                assert server.recv(10, socket.MSG_PEEK) == b"q"
                peer = server.recvfrom(10)[1]
            server.sendto(b"a", peer)
            returned, *_ = server.recvmsg(200, 200, socket.MSG_ERRQUEUE)
            assert returned == b"a"
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == stage(entry, "socket_queue")["count"] == 5
    assert entry["bytes_in"] == 5
    assert not any(entry["losses"].values()), entry["losses"]


def test_tcp_and_udp_on_one_port_are_two_services(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        port = listener.getsockname()[1]
        server.bind(("127.0.0.1", port))
        observer = start(Observer(ports=[f"{port},{port}/udp"]))
        with socket.create_connection(("127.0.0.1", port)) as client:
            connection, _ = listener.accept()
            client.sendall(b"q")
            connection.recv(10)
            connection.sendall(b"a")
            connection.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for _ in range(2):
                client.sendto(b"q", ("127.0.0.1", port))
                server.sendto(b"a", server.recvfrom(10)[1])
        observer.stop()
    services = {entry["protocol"]: entry for entry in observer.summary()["services"]}
    assert services["tcp"]["exchanges"] == 1
    assert services["udp"]["exchanges"] == 2
