# SPDX-License-Identifier: MIT
"""UDP on busy servers: batches by recvmmsg() and sendmmsg(), several threads on one socket, several sockets on
one port.

The truth is the kernel's packet stamps, the test's own clock around its calls, the lab server's, and the
datagrams that each socket has read.
"""
import ctypes
import os
import select
import socket
import struct
import threading
import time

import pytest

from support.calls import LIBC, Iovec, Msghdr
from support.documents import service
from support.packets import Packets
from support.programs import Lab, Observer
from support.timing import US, in_quiet, timing
from .test_stages import service_is_true, stage, truth_of
from .test_udp import is_within, timed

MSG_WAITFORONE = 0x10000
BATCH = 16


class Mmsghdr(ctypes.Structure):
    _fields_ = [("header", Msghdr), ("length", ctypes.c_uint)]


class Batch:
    def __init__(self):
        self.names = [ctypes.create_string_buffer(28) for _ in range(BATCH)]
        self.data = [ctypes.create_string_buffer(2048) for _ in range(BATCH)]
        self.vectors = (Iovec * BATCH)(*[Iovec(ctypes.addressof(data), 2048)
                                         for data in self.data])
        self.messages = (Mmsghdr * BATCH)()
        for at, message in enumerate(self.messages):
            message.header = Msghdr(ctypes.addressof(self.names[at]), 28,
                                    ctypes.pointer(self.vectors[at]), 1, None, 0, 0)

    def receive(self, descriptor):
        for at in range(BATCH):
            self.messages[at].header.name_length = 28
            self.vectors[at].length = 2048
        got = LIBC.recvmmsg(descriptor, self.messages, BATCH, MSG_WAITFORONE, None)
        if got < 0:
            raise OSError(ctypes.get_errno(), "recvmmsg")
        return got

    def send(self, descriptor, first, count):
        for at in range(first, first + count):
            self.vectors[at].length = self.messages[at].length
        sent = LIBC.sendmmsg(descriptor, ctypes.byref(self.messages[first]), count, 0)
        assert sent == count, os.strerror(ctypes.get_errno())


@in_quiet
def test_mmsg_batches(start):
    """16 datagrams, sent 1 ms apart, are read by one call and answered by two. Each has its own wait, and the
    first half has less service than the second. All come from one port; two digits distinguish them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        server.bind(("127.0.0.1", 0))
        client.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        observer = start(Observer(ports=[f"{port}/udp"]))
        reads, writes = [], []  # (before, after) the call, once per datagram
        with Packets(port) as packets:
            for _ in range(5):
                for number in range(BATCH):
                    client.sendto(b"%02d" % number, ("127.0.0.1", port))
                    time.sleep(0.001)
                batch = Batch()
                reads += [timed(batch.receive, server.fileno())] * BATCH
                for half, pause in ((0, 0.004), (BATCH // 2, 0.008)):
                    time.sleep(pause)
                    writes += [timed(batch.send, server.fileno(), half, BATCH // 2)] * (BATCH // 2)
                assert [int(client.recv(100)) for _ in range(BATCH)] == list(range(BATCH))
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == stage(entry, "service")["count"] == 5 * BATCH
    assert stage(entry, "socket_queue")["count"] == 5 * BATCH
    assert not any(entry["losses"].values()), entry["losses"]
    (arrivals,) = ([packet.at_ns for packet in found] for found in packets.arrivals().values())
    assert is_within(stage(entry, "socket_queue"), [(before - at, after - at) for at, (before, after) in
                                                    zip(arrivals, reads)])
    assert is_within(stage(entry, "service"), [(wrote[0] - read[1], wrote[1] - read[0]) for read, wrote in
                                               zip(reads, writes)])


@in_quiet
def test_several_threads_on_one_socket(start, tmp_path):
    """Four threads block in recvfrom() on one socket under eight clients: each reply matches its own client."""
    path = tmp_path / "truth.csv"
    lab = start(Lab("--truth", path, "--workers", "4", protocol="udp", model="threads"))
    observer = start(Observer(ports=[f"{lab.port}/udp"]))

    def ask(milliseconds):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(10)
            client.connect(("127.0.0.1", lab.port))
            for _ in range(20):
                client.send(b"service=%dms" % milliseconds)
                assert client.recv(100)

    clients = [threading.Thread(target=ask, args=(milliseconds,))
               for milliseconds in (1, 1, 2, 3, 5, 8, 13, 21)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    observer.stop()
    entry, truth = service(observer.summary(), lab.port), truth_of(lab, path)
    assert entry["exchanges"] == len(truth) == 160
    # A busy reader may take one before it is announced, and threads be seen in another order than they read in.
    raced = {"unmatched", "untimed", "ambiguous_replies", "unsolicited", "unanswered"}
    assert not [name for name, lost in entry["losses"].items() if lost and name not in raced], entry["losses"]
    with timing():
        assert not [name for name in raced if entry["losses"][name]], entry["losses"]
        assert service_is_true(entry, truth)
    true = sorted(row["first_write_end_ns"] - row["last_read_end_ns"] for row in truth)
    for name, rank in (("p50_ns", 79), ("p90_ns", 143)):
        with timing():
            assert true[rank] * 0.98 - 100 * US <= stage(entry, "service")[name] <= \
                true[rank] * 1.02 + 100 * US
    with timing():  # eight wait for four
        assert stage(entry, "socket_queue")["p50_ns"] > 100 * US


def serve_group(server, count, stop):
    """Echo until `stop` is set; return how many."""
    with select.epoll() as poll:
        poll.register(server, select.EPOLLIN)
        while not stop.is_set():
            if not poll.poll(0.05):
                continue
            data, peer = server.recvfrom(100)
            server.sendto(data, peer)
            count[server.fileno()] = count.get(server.fileno(), 0) + 1


def test_reuseport_group_is_one_service(start):
    """Four sockets share the port; the kernel spreads the clients over them."""
    servers, counts, stop = [], {}, threading.Event()
    for _ in range(4):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", servers[0].getsockname()[1] if servers else 0))
        servers.append(server)
    port = servers[0].getsockname()[1]
    observer = start(Observer(ports=[f"{port}/udp"]))
    threads = [threading.Thread(target=serve_group, args=(server, counts, stop))
               for server in servers]
    for thread in threads:
        thread.start()
    try:
        for number in range(40):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(5)
                client.connect(("127.0.0.1", port))
                for index in range(25):
                    client.send(struct.pack("!II", number, index))
                    assert client.recv(100) == struct.pack("!II", number, index)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for server in servers:
            server.close()
    observer.stop()
    entry = service(observer.summary(), port)
    assert sum(counts.values()) == 1000 and len(counts) >= 2
    assert entry["exchanges"] == 1000
    assert stage(entry, "socket_queue")["count"] == stage(entry, "service")["count"] == 1000
    assert not any(entry["losses"].values()), entry["losses"]
    assert entry["bytes_in"] == entry["bytes_out"] == 8000
