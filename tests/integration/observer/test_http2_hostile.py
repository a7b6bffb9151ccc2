# SPDX-License-Identifier: MIT
"""HTTP/2 as its attackers and slowest clients speak it (--http): resets at once, windows of a byte, DATA that no
write shows. The counts are those of nginx, or the test's own."""
import os
import random
import socket
import struct
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import PREFACE, frame
from support.h2server import H2Server
from support.programs import Driver, Nginx, Observer
from support.timing import MS, in_quiet, timing
from .test_http2 import H2Scene, followed, timed
from .test_tail import named, tail

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
CANCEL = struct.pack(">I", 8)
GET = b"\x82\x86\x84\x41\x04test"  # of /, in HPACK
INITIAL_WINDOW = 4


def request(stream):
    return frame(HEADERS, stream, GET, flags=0x5)


class Frames:
    """A client's connection to nginx, in frames."""

    def __init__(self, port, window=65535):
        self.end = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = self.end.makefile("rb")
        self.send(PREFACE + frame(SETTINGS, 0, struct.pack(">HI", INITIAL_WINDOW, window)))

    def send(self, data):
        self.end.sendall(data)

    def read(self):
        """Return the next frame: (type, flags, stream, payload)."""
        head = self.bytes.read(9)
        assert len(head) == 9, "nginx has closed the connection"
        return head[3], head[4], int.from_bytes(head[5:], "big"), self.bytes.read(int.from_bytes(head[:3], "big"))

    def close(self):
        self.bytes.close()
        self.end.close()


@needs_program("nginx")
def test_streams_reset_at_once_are_counted(start):
    """Rapid reset (CVE-2023-44487): each stream is cancelled in the bytes that open it. The next one is as before."""
    nginx = start(Nginx(listen_options="http2", server="keepalive_requests 10000;"))
    observer = start(Observer("--http", "--samples", "100000", ports=[nginx.port]))
    frames = Frames(nginx.port)
    for first in range(1, 1001, 100):
        frames.send(b"".join(request(stream) + frame(RST_STREAM, stream, CANCEL)
                             for stream in range(first, first + 100, 2)) + frame(PING, 0, bytes(8)))
        while frames.read()[:2] != (PING, 1):  # nginx closes the connection if too many come at once
            pass
    frames.send(request(1001))
    while frames.read()[:3] != (DATA, 1, 1001):
        pass
    frames.close()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.status()["requests"] == 501
    counts = entry["http2"]
    assert (counts["streams"], counts["reset_by_client"], counts["given_up"], counts["lost"]) == (501, 500, 0, 0)
    # nginx may have begun to answer before it reads a reset.
    assert entry["exchanges"] + entry["losses"]["unanswered"] == 501 and entry["exchanges"] >= 1
    assert entry["open"]["read"] == 0


@needs_program("nginx")
def test_a_window_of_a_byte(start):
    """nginx sends a frame of DATA for each byte that the client allows. It waits for the client between them."""
    body, pause = "abcdefghijklmnopqrst", 0.002
    nginx = start(Nginx(listen_options="http2", body=body))
    observer = start(Observer("--http", "--samples", "100000", ports=[nginx.port]))
    frames = Frames(nginx.port, window=0)
    frames.send(request(1))
    got, parts, ended = b"", 0, False
    while not ended:
        kind, flags, _, payload = frames.read()
        if kind == DATA:
            got, parts, ended = got + payload, parts + bool(payload), flags & 1
        if kind == HEADERS or kind == DATA and payload and not ended:
            time.sleep(pause)
            frames.send(frame(WINDOW_UPDATE, 1, struct.pack(">I", 1)))
    frames.close()
    observer.stop()
    assert (got.decode().strip(), parts) == (body, len(got))
    entry = service(observer.summary(), nginx.port)
    assert followed(entry, nginx.status()["requests"]) and timed(entry, 1)
    assert entry["stages"]["respond"]["sum_ns"] >= len(got) * pause * 1e9


def by_splice(end, data):
    reader, writer = os.pipe()
    try:
        os.write(writer, data)
        assert os.splice(reader, end.fileno(), len(data)) == len(data)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.skipif(not hasattr(os, "splice"), reason="this Python has no os.splice()")
def test_spliced_data_is_skipped(start):
    """The payload of DATA comes from a pipe. The frames after it are understood."""
    scene = H2Scene(start)
    talk = scene.talk()
    for stream in (1, 3, 5):
        talk.ask(stream)
        talk.answers.send_headers(stream, [(":status", "200")])
        talk.answers.send_data(stream, bytes(10_000), end_stream=True)
        data = talk.answers.data_to_send()
        talk.server.sendall(data[:-10_000])
        by_splice(talk.server, data[-10_000:])
        talk.read(talk.client, len(data), talk.asks)
    entry = scene.end()
    assert followed(entry, 3) and timed(entry, 3)


@in_quiet
def test_the_tail_of_streams_is_where_the_delay_is(start):
    """One of 100 streams waits 20 ms in the server: the joined tail names `service`."""
    asked = []

    def answer(exchange):
        asked.append(1)
        if len(asked) % 100 == 0:
            time.sleep(0.02)
        exchange.answer()

    server = H2Server(answer)
    observer = start(Observer("--http", ports=[server.port]))
    driver = Driver(server.url, connections=1, count=1000, observer=observer)
    observer.stop()
    server.close()
    joined = driver.document["joined"]
    assert joined["joined"] == len(asked) == 1000
    assert joined["driver_only"] == joined["observer_only"] == 0
    with timing():
        slow = tail(driver.document, 990)
        assert slow["sum"]["round_trip_ns"] >= slow["count"] * 19 * MS
        assert slow["sum"]["stages"]["service"] >= 0.9 * slow["sum"]["round_trip_ns"]
        words, percent = named(driver.report)
        assert words == "service" and percent >= 90, driver.report


# ---- more than there is room for ----

AT_ONCE = 32768  # streams of all services: docs/measurement.md
PUT = b"\x42\x03PUT\x86\x44\x05/file\x41\x04test"


@needs_program("nginx")
def test_more_streams_than_there_is_room_for(start):
    """34,000 uploads are open at once. Those without room are lost, and in no figure. When the others are over there is
    room again. nginx's log has each."""
    connections, each, later = 20, 1700, 100
    nginx = start(Nginx(listen_options="http2", server="http2_max_concurrent_streams 4000; access_log {folder}/access.log; "
                        "location /file { root {folder}; client_max_body_size 1k; dav_methods PUT; }"))
    log = Path(nginx.files.name, "access.log")
    observer = start(Observer("--http", "--samples", "0", ports=[nginx.port]))
    clients = [Frames(nginx.port) for _ in range(connections)]
    for client in clients:
        acknowledged(client)  # or else not all arrivals are kept: those before the preface was read
        for first in range(1, 2 * each, 200):
            client.send(b"".join(frame(HEADERS, stream, PUT, flags=0x4) for stream in range(first, min(first + 200, 2 * each), 2)))
        acknowledged(client)
    entry = service(observer.document(), nginx.port)
    assert entry["http2"]["streams"] == connections * each and entry["exchanges"] == 0
    assert entry["http2"]["lost"] == connections * each - AT_ONCE
    assert entry["open"]["read"] == AT_ONCE
    for client in clients:
        client.send(b"".join(frame(DATA, stream, b"", flags=0x1) for stream in range(1, 2 * each, 2)))
        acknowledged(client)
    for client in clients:
        answered(client, each)
        client.send(b"".join(request(stream) for stream in range(2 * each + 1, 2 * each + 2 * later, 2)))
        answered(client, later)
        client.close()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    logged = Counter(line.split('"')[2].split()[0] for line in log.read_text().splitlines())
    assert sum(logged.values()) == connections * (each + later)
    assert entry["http2"]["streams"] == connections * (each + later)
    assert entry["http2"]["lost"] == connections * each - AT_ONCE and entry["http2"]["given_up"] == 0
    assert entry["exchanges"] == entry["responses"]["count"] == AT_ONCE + connections * later
    assert entry["stages"]["service"]["count"] == entry["exchanges"]
    assert entry["losses"]["unanswered"] == entry["open"]["read"] == 0
    assert f"lost {connections * each - AT_ONCE:,}" in observer.stdout


def acknowledged(client):
    """nginx has read all before, and has answered what it could. Keep what came meanwhile."""
    client.send(frame(PING, 0, bytes(8)))
    client.kept = getattr(client, "kept", [])
    while True:
        got = client.read()
        if got[:2] == (PING, 1):
            return
        client.kept.append(got)


def answered(client, count):
    """Read the ends of @count responses."""
    while count:
        kind, flags, *_ = client.kept.pop(0) if client.kept else client.read()
        count -= kind in (DATA, HEADERS) and flags & 1


@needs_program("nginx")
def test_a_storm_of_resets(start):
    """Resets in any order, some of them twice, of streams that are new, answered, or over, and nobody waits for anything.
    Each stream is an exchange or unanswered: an exchange if it was not reset, and none that the client saw no answer of."""
    nginx = start(Nginx(listen_options="http2", server="http2_max_concurrent_streams 10000;"))
    observer = start(Observer("--http", "--samples", "0", ports=[nginx.port]))
    storms = [Storm(nginx.port, seed) for seed in range(6)]
    for storm in storms:
        storm.join()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    opened, begun = sum(storm.opened for storm in storms), sum(len(storm.answered) for storm in storms)
    assert not [storm.error for storm in storms if storm.error]
    assert nginx.status()["requests"] == opened
    counts = entry["http2"]
    assert (counts["streams"], counts["lost"], counts["given_up"]) == (opened, 0, 0)
    reset = sum(len(storm.reset) for storm in storms)
    assert opened - reset <= entry["exchanges"] <= begun
    assert entry["exchanges"] + entry["losses"]["unanswered"] == opened and entry["open"]["read"] == 0
    assert 0 < entry["losses"]["unanswered"] <= counts["reset_by_client"] <= reset
    assert counts["client_resets"]["cancel"] == counts["reset_by_client"]


class Storm(threading.Thread):
    """A client that opens and resets streams as fast as it can. Another thread reads what nginx says."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.frames, self.random = Frames(port), random.Random(seed)
        self.opened, self.answered, self.reset, self.error = 0, set(), set(), None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.start()

    def run(self):
        self.reader.start()
        for _ in range(20):
            parts = []
            for _ in range(200):
                parts.append(request(2 * self.opened + 1))
                self.opened += 1
                if self.random.random() < 0.75:
                    recent = self.random.choice((1, 10, self.opened))
                    stream = 2 * (self.opened - self.random.randint(1, min(recent, self.opened))) + 1
                    parts.append(frame(RST_STREAM, stream, CANCEL))
                    self.reset.add(stream)
            self.frames.send(b"".join(parts))
        self.frames.send(frame(PING, 0, bytes(8)))
        self.reader.join()
        self.frames.close()

    def read(self):
        try:
            while (got := self.frames.read())[:2] != (PING, 1):
                if got[0] == HEADERS:
                    self.answered.add(got[2])
        except (AssertionError, OSError) as error:
            self.error = error
