# SPDX-License-Identifier: MIT
"""TCP's own clock is used only where TCP has read it for the very event.

One process is client and server, and reads CLOCK_MONOTONIC around its calls. The difference of two readings is
a bound that machine noise does not move.
"""
import contextlib
import ctypes
import socket
import threading
import time

import pytest

from support.net import Netns, veth
from support.timing import in_quiet, timing
from .scene import Scene, inside
from .test_stages import stage
from .test_truth import by_exchange

SERVER = "10.200.0.1"
FIRST, LAST = 14_000, 100  # bytes: TCP sends the first at once, and holds the second back
SO_ATTACH_FILTER = 26


def autocorked(netns):
    """Return how often TCP has held a write back because a device's queue still held the previous one."""
    lines = [line.split() for line in netns.exec(["cat", "/proc/net/netstat"]).stdout.splitlines()]
    return int(dict(zip(*lines[:2]))["TCPAutoCorking"])


@contextlib.contextmanager
def slow_path():
    """Yield a listener, its network and its clients' network, with 2 Mbit/s towards the clients."""
    with Netns("server") as server, Netns("client") as client:
        veth(server, client, (f"{SERVER}/30", "10.200.0.2/30"))
        server.exec(["tc", "qdisc", "replace", "dev", "veth0", "root", "tbf", "rate", "2mbit", "burst", "5kb",
                     "latency", "2s"])
        with inside(server):
            listener = socket.create_server((SERVER, 0))
        yield listener, server, client


@in_quiet
def test_what_is_held_back_was_written_when_it_was(start):
    """The second part of a response waits for room in the network. TCP reads its clock when the first part is
    acknowledged piece by piece and when it sends the rest, but not at the write."""
    bounds = {}
    with slow_path() as (listener, network, beyond):
        scene = Scene(start, listener=listener, netns=network)
        for _ in range(5):  # on a new connection TCP sends ten segments, whatever the path
            with inside(beyond):
                client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            scene.ends += [client, server]
            client.sendall(b"request\n")
            assert server.recv(100) == b"request\n"
            begin_ns = time.monotonic_ns()
            server.sendall(b"x" * FIRST)
            first_ns = time.monotonic_ns()
            time.sleep(0.02)
            last_ns = time.monotonic_ns()
            server.sendall(b"x" * LAST)
            bounds[client.getsockname()[1], 0] = last_ns - first_ns, time.monotonic_ns() - begin_ns
            assert len(client.recv(FIRST + LAST, socket.MSG_WAITALL)) == FIRST + LAST
        with timing():
            assert autocorked(network) == len(bounds)
        entry = scene.end()
    found = by_exchange(entry)
    assert found.keys() == bounds.keys()
    times = [(least, entry["samples"]["stages"]["respond"][found[key]], most) for key, (least, most) in bounds.items()]
    assert not [each for each in times if not each[0] <= each[1] <= each[2]]


def test_what_was_not_announced_has_not_arrived(start):
    """A request shorter than the server's SO_RCVLOWAT becomes readable when the server lowers it."""
    scene = Scene(start)
    client, server = scene.connect()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    client.sendall(b"request\n")
    time.sleep(0.05)
    before_ns = time.monotonic_ns()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    assert server.recv(100) == b"request\n"
    waited_ns = time.monotonic_ns() - before_ns
    server.sendall(b"done\n")
    entry = scene.end()
    if "sk_data_ready" not in stage(entry, "socket_queue")["source"]:
        pytest.skip("the hook of an older kernel tells of the first byte, whatever SO_RCVLOWAT")
    assert stage(entry, "socket_queue")["count"] == 1
    assert stage(entry, "socket_queue")["max_ns"] <= waited_ns


class Marks:
    """The times right before and right after each call of a server's exchange."""

    def __init__(self):
        self.at = {}

    def __call__(self, name, call, *arguments):
        before_ns = time.monotonic_ns()
        result = call(*arguments)
        self.at[name] = before_ns, time.monotonic_ns()
        return result

    def bounds(self, begin, end):
        """Return the least and the longest time from an event within one call to an event within another."""
        return self.at[end][0] - self.at[begin][1], self.at[end][1] - self.at[begin][0]


PAUSE = 0.003  # seconds


def read_late(mark, client, server):
    mark("sent", client.sendall, b"request\n")
    time.sleep(PAUSE)
    mark("first", server.recv, 100)
    mark.at["last"] = mark.at["first"]


def read_twice(mark, client, server):
    mark("sent", client.sendall, b"request\n")
    time.sleep(PAUSE)
    mark("first", server.recv, 3)
    time.sleep(PAUSE)
    mark("last", server.recv, 100)


def look_first(mark, client, server):
    """The look copies the bytes as a read does, and takes none."""
    mark("sent", client.sendall, b"request\n")
    time.sleep(PAUSE)
    server.recv(100, socket.MSG_PEEK)
    time.sleep(PAUSE)
    mark("first", server.recv, 100)
    mark.at["last"] = mark.at["first"]


def send_twice(mark, client, server):
    """TCP's time at the read could also be that of the second segment, or of the acknowledgement of a response."""
    mark("sent", client.sendall, b"req")
    time.sleep(PAUSE)
    client.sendall(b"uest\n")
    time.sleep(PAUSE)
    mark("first", server.recv, 100)
    mark.at["last"] = mark.at["first"]


def wait_for_it(mark, client, server):
    """The server waits in its read."""
    reader = threading.Thread(target=lambda: mark("first", server.recv, 100))
    reader.start()
    time.sleep(PAUSE)
    mark("sent", client.sendall, b"request\n")
    reader.join()
    mark.at["first"] = mark.at["sent"][0], mark.at["first"][1]  # not before it was sent
    mark.at["last"] = mark.at["first"]


def test_a_read_is_when_the_server_read(start):
    """Each stage lies between the bounds that the calls around its ends give."""
    scene = Scene(start)
    client, server = scene.connect()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    port, marks = client.getsockname()[1], []
    for request in (read_late, read_twice, look_first, send_twice, wait_for_it) * 4:
        mark = Marks()
        request(mark, client, server)
        time.sleep(PAUSE)
        mark("wrote", server.sendall, b"done\n")
        assert client.recv(100) == b"done\n"
        marks.append(mark)
    entry = scene.end()
    stages, found = entry["samples"]["stages"], by_exchange(entry)
    assert len(found) == len(marks)
    for index, mark in enumerate(marks):
        at = found[port, index]
        for name, begin, end in (("socket_queue", "sent", "first"), ("receive", "first", "last"),
                                 ("service", "last", "wrote")):
            least, most = mark.bounds(begin, end) if begin != end and mark.at[begin] != mark.at[end] else (0, 0)
            assert least <= stages[name][at] <= most, (index, name, least, stages[name][at], most)


class Instruction(ctypes.Structure):
    """struct sock_filter, linux/filter.h"""
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """struct sock_fprog"""
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.c_void_p)]


LOAD, DIVIDE, PASS = 0x00, 0x3c, 0x06  # BPF_LD | BPF_IMM, BPF_ALU | BPF_DIV | BPF_X, BPF_RET | BPF_K
TO_X = 0x07  # BPF_MISC | BPF_TAX


def make_receiving_slow(client):
    """Each packet for the socket first passes 1,000 divisions. On loopback they run within the sender's call."""
    words = [(LOAD, 3), (TO_X, 0), (LOAD, 0xffffffff), *[(DIVIDE, 0)] * 1000, (PASS, 0xffffffff)]
    filters = (Instruction * len(words))(*(Instruction(code, 0, 0, k) for code, k in words))
    program = Program(len(words), ctypes.addressof(filters))
    client.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))


@in_quiet
def test_what_the_kernel_does_with_a_response_is_no_service(start):
    """The server's part ends when TCP starts to transmit; here the client's slow filter runs in the server's call."""
    scene = Scene(start)
    client, server = scene.connect()
    make_receiving_slow(client)
    before_ns = within_ns = 0
    for _ in range(200):
        client.sendall(b"request\n")
        assert server.recv(100) == b"request\n"
        read_ns = time.monotonic_ns()
        begin_ns = time.monotonic_ns()
        server.sendall(b"done\n")
        within_ns += time.monotonic_ns() - begin_ns
        before_ns += begin_ns - read_ns
        assert client.recv(100) == b"done\n"
    entry = scene.end()
    assert entry["exchanges"] == stage(entry, "service")["count"] == 200
    if "sock_send_length" not in stage(entry, "service")["source"]:
        pytest.skip("the hook of an older kernel has the time at which the write returns")
    with timing():
        assert stage(entry, "service")["sum_ns"] < before_ns + 0.5 * within_ns
