# SPDX-License-Identifier: MIT
"""Windows of HTTP/2 (--http): responses that wait for the client's WINDOW_UPDATE or SETTINGS, and the server's PINGs.
The truth is the client's own count and clock. The parser alone: tests/unit/bpf/protocol/window.c.
"""
import socket
import sys
import time

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.foreign.grpc import need_grpcio
from support.frames import PREFACE, frame
from support.net import free_port
from support.process import Process, run
from support.programs import Nginx, Observer
from support.timing import MS, in_quiet, lies_within
from .test_http2 import H2Scene, between, cut

DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
START = 65535  # the window that nobody has set
GET, OK = b"\x82\x86\x84", b"\x88"


def window_size(size):
    return frame(SETTINGS, 0, b"\0\3\0\0\0\x64" b"\0\4" + size.to_bytes(4, "big"))


def grant(stream, size):
    return frame(WINDOW_UPDATE, stream, size.to_bytes(4, "big"))


def request(stream, block=GET, body=b""):
    return frame(HEADERS, stream, block, END_HEADERS | (0 if body else END_STREAM)) + \
        (frame(DATA, stream, body, END_STREAM) if body else b"")


def stalls(entry):
    """Return the numbers of stalls, by the stream's window and by the connection's."""
    return entry["http2"]["stream_stalls"]["count"], entry["http2"]["connection_stalls"]["count"]


# ---- real servers ----

class Reader:
    """A client that opens a window again only some time after the server has filled it."""

    def __init__(self, port, window, by_stream):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.by_stream, self.window = by_stream, window if by_stream else START
        self.socket.sendall(PREFACE + window_size(window if by_stream else 1 << 20) +
                            (grant(0, 1 << 24) if by_stream else b""))
        self.count, self.least, self.most = 0, 0, 0

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            assert part
            data += part
        return data

    def fetch(self, ask, wait):
        """Sum up how long windows were closed: at least while the client waited, at most since it opened them last."""
        left, last = self.window, time.monotonic_ns()
        self.socket.sendall(ask)
        while True:
            length, kind, flags = int.from_bytes((head := self.read(9))[:3], "big"), head[3], head[4]
            self.read(length)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return
            if kind != DATA or not length:
                continue
            left -= length
            if not left:
                begun = time.monotonic_ns()
                time.sleep(wait)
                sent, done = between(lambda: self.socket.sendall(grant(1 if self.by_stream else 0, self.window)))
                left = self.window
                self.count += 1
                self.least += sent - begun
                self.most += done - last + MS  # the server reads it a little later
                last = sent


@needs_program("nginx")
@in_quiet
def test_stalls_are_the_clients_waits(start, tmp_path):
    """nginx and grpcio's server fill windows of 20,000 bytes, and those of connections; the client counts and waits."""
    need_grpcio()
    (tmp_path / "file").write_bytes(bytes(210_000))
    (tmp_path / "file").chmod(0o644)
    nginx = start(Nginx(listen_options="http2", server=f"location /file {{ root {tmp_path}; }}"))
    port = free_port()
    grpc = start(Process([sys.executable, ROOT / "tests/support/grpcserver.py", port]))
    grpc.wait_for("ready", "stdout", 20)
    observer = start(Observer("--http", ports=[nginx.port, port]))
    path = b"/test.Service/Echo"
    call = b"\x83\x86\x44" + bytes([len(path)]) + path + b"\x41\x01t" b"\x40\x02te\x08trailers" \
        b"\x5f\x10application/grpc"
    message = b"\0" + (50_000).to_bytes(4, "big") + bytes(50_000)
    body = b"".join(frame(DATA, 1, part) for part in cut(message, 16384)) + frame(DATA, 1, b"", END_STREAM)
    asks = {nginx.port: request(1, b"\x82\x86\x44\x05/file\x41\x01t"),
            port: frame(HEADERS, 1, call, END_HEADERS) + body}
    truth = {}
    for at, ask in asks.items():
        truth[at] = [Reader(at, 20_000, by_stream) for by_stream in (True, False)]
        for reader in truth[at]:
            reader.fetch(ask, 0.01)
            reader.socket.close()
    observer.stop()
    for at, readers in truth.items():
        entry = service(observer.summary(), at)
        assert stalls(entry) == tuple(reader.count for reader in readers)
        for reader, name in zip(readers, ("stream_stalls", "connection_stalls")):
            told = entry["http2"][name]["sum_ns"]
            assert not reader.count or lies_within(told, reader.least, reader.most), (at, name)
            assert told <= entry["stages"]["respond"]["sum_ns"]
    assert stalls(service(observer.summary(), nginx.port)) == (10, 3)
    assert stalls(service(observer.summary(), port)) == (2, 0)
    assert "closed windows of streams 10 " in observer.stdout


# ---- bytes under the test's control ----

class Raw:
    """Frames between two sockets. Each call returns when it began and when it ended."""

    def __init__(self, scene, settings=b""):
        self.client, self.server = scene.connect()
        self.server.sendall(frame(SETTINGS, 0))
        self.ask(PREFACE + (settings or frame(SETTINGS, 0)))

    @staticmethod
    def read(end, count):
        while count:
            count -= len(end.recv(count))

    def ask(self, data, pieces=None):
        for piece in cut(data, pieces or len(data)):
            self.client.sendall(piece)
            times = between(lambda part=piece: self.read(self.server, len(part)))
        return times

    def answer(self, data):
        return between(lambda: self.server.sendall(data))


def headers(stream):
    return frame(HEADERS, stream, OK, END_HEADERS)


def wait():
    time.sleep(0.003)


@in_quiet
def test_every_way_to_close_a_window(start):
    every_way_to_close_a_window(H2Scene(start))


def every_way_to_close_a_window(scene):
    """The windows of streams: their first size, in SETTINGS cut into bytes, WINDOW_UPDATE before and after the response."""
    talk = Raw(scene)
    talk.ask(window_size(0), 1)
    talk.ask(request(1) + request(3) + request(5) + grant(5, 7))
    closed = talk.answer(headers(1) + headers(3) + headers(5) + frame(DATA, 5, b"seven 7"))
    wait()
    opened = talk.ask(grant(1, 10), 1)
    wait()
    talk.answer(frame(DATA, 1, b"12345") + frame(DATA, 1, b"67890", END_STREAM))  # the first stall
    talk.ask(grant(5, 1))
    raised = talk.ask(window_size(3))  # a second update of a window that is open
    talk.answer(frame(DATA, 5, b"!"))  # the second stall
    talk.answer(frame(DATA, 3, b"abc"))  # the third, which SETTINGS have ended
    talk.ask(grant(3, 1) + request(7))
    talk.answer(frame(HEADERS, 3, OK, END_HEADERS | END_STREAM))  # trailers need no window: no stall
    talk.answer(headers(7) + frame(DATA, 7, b"abc"))
    talk.ask(frame(RESET, 7, bytes(4)))  # the client has closed it and lost interest: no stall
    entry = scene.end()
    assert entry["http2"]["given_up"] == 0 and entry["exchanges"] == 4
    assert stalls(entry) == (3, 0)
    first = opened[0] - closed[1], opened[1] - closed[0]
    third = raised[0] - closed[1], raised[1] - closed[0]
    assert lies_within(entry["http2"]["stream_stalls"]["sum_ns"], first[0] + 2 * third[0] - 1 * MS, first[1] + 2 * third[1])


@in_quiet
def test_a_connections_window_holds_all_its_streams(start):
    """Each response that goes on afterwards has waited. Time of both windows counts once, as the stream's."""
    scene = H2Scene(start)
    talk = Raw(scene, window_size(START))
    talk.ask(request(1) + request(3) + request(5))
    large = [bytes(16384)] * 3 + [bytes(16383)]
    closed = talk.answer(headers(1) + headers(3) + headers(5) + b"".join(frame(DATA, 1, part) for part in large))
    wait()
    stream = talk.ask(grant(1, 100))
    wait()
    both = talk.ask(grant(0, 100), 1)
    wait()
    talk.answer(frame(DATA, 1, b"x" * 10, END_STREAM) + frame(DATA, 3, b"x" * 20))
    talk.ask(request(7))
    again = talk.answer(headers(7) + frame(DATA, 7, b"x" * 70, END_STREAM))
    wait()
    last = talk.ask(grant(0, 100))
    wait()
    talk.answer(frame(DATA, 3, b"x", END_STREAM))  # it was open when it wrote last, so this was a stall
    talk.ask(request(9))
    talk.answer(headers(9) + frame(DATA, 9, b"x", END_STREAM))
    entry = scene.end()
    assert entry["exchanges"] == 5
    assert stalls(entry) == (1, 3)
    assert lies_within(entry["http2"]["stream_stalls"]["sum_ns"], stream[0] - closed[1], stream[1] - closed[0])
    waits = ((stream, both), (closed, both), (again, last))
    assert lies_within(entry["http2"]["connection_stalls"]["sum_ns"], sum(end[0] - begin[1] for begin, end in waits),
                       sum(end[1] - begin[0] for begin, end in waits))


@in_quiet
def test_pings_are_timed_one_at_a_time(start):
    """Two outstanding PINGs count as one. An ACK is only of a PING of the server."""
    scene = H2Scene(start)
    talk = Raw(scene)
    ping, pong = frame(PING, 0, bytes(8)), frame(PING, 0, bytes(8), ACK)
    talk.ask(ping)
    talk.answer(pong)
    sent = talk.answer(ping)
    wait()
    talk.answer(ping)
    got = talk.ask(pong, 5)
    talk.ask(pong)
    talk.answer(ping)
    talk.ask(pong)
    entry = scene.end()
    pings = entry["http2"]["pings"]
    assert pings["count"] == 2
    assert got[0] - sent[1] <= pings["max_ns"] <= got[1] - sent[0]


@needs_program("node")
def test_nodes_own_pings(start, tmp_path):
    """session.ping() has a clock of its own, which starts before the write and stops after the read."""
    script = tmp_path / "server.js"
    script.write_text("""
        const server = require("http2").createServer();
        server.on("session", (session) => {
            let sum = 0, count = 0;
            const ping = () => session.ping((error, ms) => {
                sum += ms;
                if (++count < 20) setTimeout(ping, 1); else console.log(`pings ${count} ${sum}`);
            });
            ping();
        });
        server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
    """)
    node = start(Process(["node", script]))
    port = int(node.wait_for(r"port (\d+)", "stdout", 30)[1])
    observer = start(Observer("--http", ports=[port]))
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(PREFACE + frame(SETTINGS, 0))
        file, answered = client.makefile("rb"), 0
        while answered < 20:
            head = file.read(9)
            payload = file.read(int.from_bytes(head[:3], "big"))
            if head[3] == PING:
                time.sleep(0.001)
                client.sendall(frame(PING, 0, payload, ACK))
                answered += 1
        told_ms = float(node.wait_for(r"pings 20 ([0-9.]+)", "stdout", 10)[1])
    observer.stop()
    node.stop()
    pings = service(observer.summary(), port)["http2"]["pings"]
    assert pings["count"] == 20
    assert 20 * MS <= pings["sum_ns"] <= told_ms * MS
