# SPDX-License-Identifier: MIT
"""Messages of WebSocket and server-sent events (--http). Counts equal those of servers by websockets, aiohttp and ws. Other
bytes are written by a test itself. tests/unit/bpf/protocol/websocket.c and events.c test the parsers alone.

tools/mutate: "a frame that goes on is a message", "a server's message is an exchange". And: "events are the rest of their
response"; "a comment is an event"; "frames that came with the handshake are none"; "a read amid events is passed over"; "the
server's end is the client's"; "pushes are read twice"; "the type of events is looked for at few places".
"""
import asyncio
import gzip
import json
import os
import socket
import struct
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.process import Process, wait_until
from support.programs import DRIVER, Observer
from support.timing import MS
from .scene import Scene
from .test_statuses import counted as by_status

FOREIGN = ROOT / "tests" / "support" / "foreign"
PAYLOADS = (b"", b"a", b"b" * 125, b"c" * 126, "text", b"d" * 65535, b"e" * 65536, b"f" * 300000)
HANDSHAKE = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nupgrade: WebSocket\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"event: news\ndata: hello\n\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nab"


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


CHUNKED_EVENT = chunk(EVENT)


def frame(payload=b"", opcode=2, fin=True, mask=False, wide=0):
    """Return a frame; @wide: bytes of the length's long form, at least."""
    first = opcode | (0x80 if fin else 0)
    length = len(payload)
    if length > 65535 or wide == 8:
        head = struct.pack("!BBQ", first, 127, length)
    elif length > 125 or wide == 2:
        head = struct.pack("!BBH", first, 126, length)
    else:
        head = struct.pack("!BB", first, length)
    if not mask:
        return head + payload
    return head[:1] + bytes((head[1] | 0x80,)) + head[2:] + bytes(4) + payload


def size_of(data):
    return len(data.encode() if isinstance(data, str) else data)


def counts(**counted):
    return {**dict.fromkeys(("connections", "given_up", "older", "picked_up", "messages_in", "messages_out", "bytes_in",
                             "bytes_out", "control_in", "control_out"), 0), **counted}


class Foreign(Process):
    """A server that counts what it hears and says."""

    def __init__(self, *argv):
        super().__init__(argv, env={"NODE_PATH": "/usr/share/nodejs"})
        with self.coming_up():
            self.port = int(self.wait_for(r"^listening on (\d+)$", seconds=30)[1])

    def counted(self):
        self.stop()
        return json.loads(self.stdout.split("counted ", 1)[1])


def by_python(kind, *options):
    pytest.importorskip(kind)
    return Foreign(sys.executable, FOREIGN / "pushes.py", kind, *options)


async def talk(port, compression, rounds=2):
    import websockets  # pylint: disable=import-outside-toplevel
    async with websockets.connect(f"ws://127.0.0.1:{port}/", compression=compression, ping_interval=None,
                                  max_size=1 << 26) as client:
        for payload in PAYLOADS * rounds:
            # In two frames, or one.
            await client.send([payload[:1], payload[1:]] if len(payload) > 200 else payload)
            assert await client.recv() == payload
            assert await client.recv() == "pushed"


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
def test_servers_count_the_same(start, kind, compression):
    pytest.importorskip("websockets")
    if kind == "ws":
        if not Path("/usr/share/nodejs/ws").exists():
            pytest.skip("node-ws is not installed")
        server = start(Foreign("node", FOREIGN / "websocket_server.js", compression or ""))
    else:
        server = start(by_python(kind, compression or ""))
    observer = start(Observer("--http", ports=[server.port]))
    clients = 3

    async def all_talk():
        await asyncio.gather(*(talk(server.port, compression) for _ in range(clients)))

    asyncio.run(all_talk())
    expected = server.counted()
    observer.stop()
    entry = service(observer.summary(), server.port)
    told = entry["websocket"]
    assert told["connections"] == expected["connections"] == clients and told["given_up"] == 0
    assert (told["messages_in"], told["messages_out"]) == (expected["messages_in"], expected["messages_out"])
    assert told["messages_in"] == clients * 2 * len(PAYLOADS) and told["messages_out"] == 2 * told["messages_in"]
    if compression:
        assert 0 < told["bytes_in"] < expected["bytes_in"] / 100 and 0 < told["bytes_out"] < expected["bytes_out"] / 100
    else:
        assert (told["bytes_in"], told["bytes_out"]) == (expected["bytes_in"], expected["bytes_out"])
    if kind == "websockets":
        assert (told["control_in"], told["control_out"]) == (expected["control_in"], expected["control_out"])
    assert entry["exchanges"] == clients and by_status(entry) == {101: clients}
    assert entry["stages"]["respond"]["max_ns"] == 0 and entry["losses"]["trailing"] == 0
    assert "service of messages not known" in observer.stdout and f"{clients} connections" in observer.stdout


def test_aiohttp_counts_the_same_events(start):
    """Of two streams on one connection each, with other responses between them that speak of events."""
    server = start(by_python("aiohttp"))
    observer = start(Observer("--http", ports=[server.port]))
    number, others = 50, 3
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        for path, end in 2 * (*others * (("/other", b"}"),), (f"/events?count={number}&pause=0.01", b"\r\n0\r\n\r\n")):
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            got = b""
            while not got.endswith(end):
                got += client.recv(1 << 20)
    expected = server.counted()
    observer.stop()
    entry = service(observer.summary(), server.port)
    assert entry["events"] == {"responses": expected["responses"], "given_up": 0, "count": expected["events"],
                               "bytes": expected["event_bytes"]}
    assert entry["events"]["count"] == 2 * number
    assert entry["exchanges"] == 2 * (1 + others) and by_status(entry) == {200: 2 * (1 + others)}
    assert entry["stages"]["respond"]["max_ns"] < 10 * MS * number / 10 and entry["losses"]["trailing"] == 0
    assert "events" in observer.stdout


def upgraded(start, *options, rest=b""):
    scene = Scene(start, "--http", *options)
    client, server = scene.connect()
    client.sendall(HANDSHAKE)
    server.recv(4096)
    server.sendall(SWITCH + rest)
    assert client.recv(4096)
    return scene, client, server


def exchange_pieces(client, server, out, into, length):
    """Write and read both in pieces of that many bytes."""
    for end, data in ((server, out), (client, into)):
        for at in range(0, len(data), length):
            end.sendall(data[at:at + length])
    left = len(into)
    while left:
        left -= len(server.recv(length))


def test_messages_cut_at_every_byte(start):
    """Reads and writes of one byte, of all bytes at once, and of many buffers."""
    data = [frame(b"hello"), frame(b"he", 1, False), frame(b"", 9), frame(b"llo", 0), frame(), frame(b"x" * 200),
            frame(b"y", wide=2), frame(b"z", wide=8), frame(b"bye", 8)]
    asked = [frame(b"hello", mask=True), frame(b"he", 1, False, True), frame(b"", 10, mask=True), frame(b"llo", 0, mask=True),
             frame(b"w", wide=8, mask=True)]
    out, into = b"".join(data), b"".join(asked)
    scene, client, server = upgraded(start, rest=frame(b"at once"))
    for pieces in (1, 2, 3, 7, 1 << 20):
        exchange_pieces(client, server, out, into, pieces)
    os.writev(server.fileno(), [piece for byte in out for piece in (b"", bytes((byte,)))][:1000])
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, messages_in=5 * 3, bytes_in=5 * 11, control_in=5,
                                        messages_out=6 * 6 + 1, bytes_out=6 * 212 + 7, control_out=6 * 2)
    assert entry["exchanges"] == 1


def test_many_messages_in_one_write(start):
    scene, client, server = upgraded(start)
    number = 5000
    server.sendall(frame(b"ab") * number)
    client.sendall(frame(b"abc", mask=True) * number)
    left = number * len(frame(b"abc", mask=True))
    while left:
        left -= len(server.recv(1 << 20))
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, messages_in=number, bytes_in=3 * number, messages_out=number,
                                        bytes_out=2 * number)


def test_both_directions_at_once(start):
    """A thread that reads and one that writes."""
    scene, client, server = upgraded(start)
    number, size = 3000, 300

    def write(end, mask):
        for _ in range(number):
            end.sendall(frame(b"x" * size, mask=mask))

    def read(end, mask):
        left = number * len(frame(b"x" * size, mask=mask))
        while left:
            left -= len(end.recv(777))

    threads = [threading.Thread(target=what, args=args) for what, args in (
        (write, (client, True)), (write, (server, False)), (read, (client, False)), (read, (server, True)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entry = scene.end(samples=False)
    assert entry["websocket"] == counts(connections=1, messages_in=number, bytes_in=size * number, messages_out=number,
                                        bytes_out=size * number)


def test_payload_by_sendfile(start, tmp_path):
    """Bytes that are not seen belong to the frame whose header was. Without one the connection is given up."""
    size = 100000
    (tmp_path / "file").write_bytes(b"f" * size)
    for header in (True, False):
        scene, client, server = upgraded(start)
        reader = threading.Thread(target=lambda end: [None for _ in iter(lambda: end.recv(1 << 16), b"")], args=(client,))
        reader.start()
        with open(tmp_path / "file", "rb") as file:
            if header:
                server.sendall(frame(b"f" * size)[:-size])
            left = size
            while left:
                left -= os.sendfile(server.fileno(), file.fileno(), size - left, left)
        server.sendall(frame(b"seen"))
        server.shutdown(socket.SHUT_WR)
        reader.join()
        entry = scene.end()
        assert entry["websocket"] == (counts(connections=1, messages_out=2, bytes_out=size + 4) if header
                                      else counts(connections=1, given_up=1))
        assert entry["exchanges"] == 1


@pytest.mark.parametrize("garbage", [frame(b"no mask"), b"\xff\xff", b"GET / HTTP/1.1\r\n\r\n"])
def test_garbage_is_given_up(start, garbage):
    """Bytes are counted from then on, and nothing else: they are no exchanges either."""
    scene, client, server = upgraded(start)
    for data in (frame(b"a", mask=True), garbage, frame(b"b", mask=True)):
        client.sendall(data)
        server.recv(4096)
        server.sendall(frame(b"ab"))
        client.recv(4096)
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, given_up=1, messages_in=1, bytes_in=1, messages_out=1, bytes_out=2)
    assert entry["exchanges"] == 1


def test_garbage_with_the_switch(start):
    scene, client, server = upgraded(start, rest=b"\xff\xff")
    for _ in range(3):
        client.sendall(frame(b"a", mask=True))
        server.recv(4096)
        server.sendall(frame(b"ab"))
        client.recv(4096)
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, given_up=1) and entry["exchanges"] == 1


@pytest.mark.parametrize("read", ["with the request", "before the switch", "after it"])
def test_frames_before_the_switch(start, read):
    """A client that does not wait. Frames that were read before the switch are not looked at, so the messages are not known."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    early = frame(b"early", mask=True)
    client.sendall(HANDSHAKE + (early if read == "with the request" else b""))
    server.recv(4096)
    if read != "with the request":
        client.sendall(early)
    if read == "before the switch":
        server.recv(4096)
    server.sendall(SWITCH + frame(b"abc"))
    client.sendall(frame(b"late", mask=True))
    server.recv(4096)
    time.sleep(0.02)
    entry = scene.end(samples=False)
    if read == "after it":
        told = entry["websocket"]
        assert told == counts(connections=1, messages_out=1, bytes_out=3, messages_in=told["messages_in"], bytes_in=told["bytes_in"])
        assert (told["messages_in"], told["bytes_in"]) in ((1, 5), (2, 9)), "one read, perhaps of both"
    else:
        assert entry["websocket"] == counts(connections=1, given_up=1, messages_out=1, bytes_out=3)
    assert entry["exchanges"] == 1


def test_messages_after_the_servers_end(start):
    """The server shuts down its direction with its close frame, and reads on."""
    scene, client, server = upgraded(start)
    server.sendall(frame(b"", 8))
    server.shutdown(socket.SHUT_WR)
    while client.recv(4096):
        pass
    client.sendall(frame(b"late", mask=True) + frame(b"", 8, mask=True))
    server.recv(4096)
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, messages_in=1, bytes_in=4, control_in=1, control_out=1)


def test_other_upgrades_are_none(start):
    scene = Scene(start, "--http")
    client, server = scene.connect()
    client.sendall(HANDSHAKE)
    server.recv(4096)
    server.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nA: websocket\r\n\r\n")
    for _ in range(3):
        client.sendall(b"ask")
        server.recv(4096)
        server.sendall(b"answer")
    entry = scene.end()
    assert entry["exchanges"] == 4 and not entry.get("websocket")


# ---- events ----

def streaming(start, head=EVENTS, *options):
    scene = Scene(start, "--http", *options)
    client, server = scene.connect()
    client.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    server.recv(4096)
    time.sleep(0.02)
    server.sendall(head)
    return scene, client, server


def test_the_response_ends_with_its_head(start):
    """Events come much later, and sooner than the quiet time. Then the connection is asked again."""
    scene, client, server = streaming(start, EVENTS, "--samples", "1")
    for pause in (0.4, 0.05, 0.05, 0.25):
        time.sleep(pause)
        server.sendall(chunk(EVENT))
    server.sendall(b"0\r\n\r\n")
    client.recv(1 << 16)
    client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    server.recv(4096)
    server.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n")
    time.sleep(0.03)
    server.sendall(b"ab")
    entry = scene.end()
    stages = entry["stages"]
    assert entry["events"] == {"responses": 1, "given_up": 0, "count": 4, "bytes": 4 * len(EVENT)}
    assert entry["exchanges"] == 2 and by_status(entry) == {200: 1, 404: 1}
    assert abs(stages["service"]["max_ns"] - 20 * MS) < 10 * MS
    assert abs(stages["respond"]["sum_ns"] - 30 * MS) < 10 * MS, "of the second response alone"
    assert entry["losses"]["trailing"] == entry["losses"]["unsolicited"] == 0


@pytest.mark.parametrize("head, wrap", [
    (EVENTS, chunk), (EVENTS.replace(b"Transfer-Encoding: chunked", b"Connection: close"), bytes),
    (EVENTS.replace(b"Transfer-Encoding: chunked", b"X: " + b"long " * 150), bytes),
    (EVENTS.replace(b"Content-Type: text", b"CONTENT-type:Text"), chunk),
    (EVENTS.replace(b"Content-Type: ", b"X: 1234\r\nContent-Type:\t \t "), chunk)])
def test_events_cut_at_every_byte(start, head, wrap):
    """In chunks, up to the end of the connection, and after a long head; the first ones come with the head."""
    data = b"\xef\xbb\xbf: alive\n\n" + EVENT + b"data: a\r\rdata: b\r\n\r\nid: 1\n\ndata\n\n"
    scene, client, server = streaming(start, head + wrap(data))
    for pieces in (1, 2, 3, 7, 1 << 20):
        body = b"".join(wrap(piece) for piece in (EVENT[:11], EVENT[11:], EVENT * 3))
        for at in range(0, len(body), pieces):
            server.sendall(body[at:at + pieces])
    entry = scene.end()
    assert entry["events"] == {"responses": 1, "given_up": 0, "count": 4 + 5 * 4, "bytes": len(data) + 5 * 4 * len(EVENT)}
    assert entry["exchanges"] == 1 and entry["stages"]["respond"]["max_ns"] == 0


def test_the_type_is_found_at_any_place(start):
    """Of heads of any length up to the limit, in one buffer and in two; other responses are between them."""
    scene = Scene(start, "--http")
    paddings = [*range(40), *range(945, 966), *range(980, 990)]
    limit = 1023 - EVENTS.index(b"; charset")
    for padding in paddings:
        head = EVENTS.replace(b"OK\r\n", b"OK\r\nX:" + b"x" * (padding - 4) + b"\r\n") if padding > 3 else EVENTS
        cut = len(head) - 70 + padding % 20
        for pieces in ((head,), (head[:cut], head[cut:])):
            client, server = scene.connect()
            for answer in ((ANSWER,), pieces):
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                server.recv(4096)
                os.writev(server.fileno(), answer)
                client.recv(4096)
            server.sendall(chunk(EVENT))
            client.close()
            server.close()
    entry = scene.end()
    found = 2 * sum(padding <= limit for padding in paddings)
    assert found == 2 * (40 + 21)
    assert entry["events"] == {"responses": found, "given_up": 0, "count": found, "bytes": found * len(EVENT)}
    assert entry["exchanges"] == 4 * len(paddings) and by_status(entry) == {200: 4 * len(paddings)}


def test_pushes_are_read_once(start):
    """Statuses and routes are read again if a response has come meanwhile. Under load that is often; messages stay as many."""
    pytest.importorskip("websockets")
    server = start(by_python("aiohttp"))
    observer = start(Observer("--http", "--route", "/other", ports=[server.port]))
    asyncio.run(talk(server.port, None))
    load = start(Process([DRIVER, f"http://127.0.0.1:{server.port}/other", "-c", "4", "-d", "60s"]))
    wait_until(lambda: service(observer.document(), server.port)["exchanges"] > 100)
    told = [service(observer.document(), server.port)["websocket"] for _ in range(20)]
    load.stop()
    expected = server.counted()
    observer.stop()
    told.append(service(observer.summary(), server.port)["websocket"])
    assert {entry["messages_in"] for entry in told} == {expected["messages_in"]}
    assert {entry["bytes_out"] for entry in told} == {expected["bytes_out"]}


@pytest.mark.parametrize("read", [b"def", b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_a_read_during_events(start, read):
    """The rest of a request that was answered early, or a request in advance: the events after it are not known."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc" if read == b"def"
                   else b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    server.recv(4096)
    server.sendall(EVENTS)
    server.sendall(chunk(EVENT))
    client.sendall(read)
    server.recv(4096)
    for _ in range(3):
        server.sendall(chunk(EVENT))
    entry = scene.end(samples=False)
    assert entry["events"] == {"responses": 1, "given_up": 1, "count": 1, "bytes": len(EVENT)}
    assert by_status(entry)[200] == 1 and "given up 1" in scene.observer.stdout


def test_head_of_events(start):
    """Responses to HEAD have no events, and nothing is lost by them."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    for method, rest in (("HEAD", b""), ("GET", chunk(EVENT) + b"0\r\n\r\n"), ("HEAD", b"")):
        client.sendall(f"{method} /events HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        server.recv(4096)
        server.sendall(EVENTS)
        if rest:
            server.sendall(rest)
        client.recv(4096)
    entry = scene.end()
    assert entry["events"] == {"responses": 3, "given_up": 0, "count": 1, "bytes": len(EVENT)}
    assert entry["exchanges"] == 3 and by_status(entry) == {200: 3}


def test_compressed_events_are_not_known(start):
    scene, client, server = streaming(start, EVENTS.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
    server.sendall(chunk(gzip.compress(EVENT * 10)))
    entry = scene.end()
    assert entry["events"] == {"responses": 1, "given_up": 1, "count": 0, "bytes": 0}
    assert entry["exchanges"] == 1


@pytest.mark.parametrize("head", [
    EVENTS.replace(b"200 OK", b"404 Not Found"), EVENTS.replace(b"text/event-stream", b"text/event-streams"),
    EVENTS.replace(b"text/event-stream", b"text/html\r\nX: text/event-stream")])
def test_other_responses_are_none(start, head):
    """Their later parts are `respond`."""
    scene, client, server = streaming(start, head)
    for _ in range(3):
        time.sleep(0.03)
        server.sendall(chunk(EVENT))
    entry = scene.end()
    assert not entry.get("events") and entry["exchanges"] == 1
    assert abs(entry["stages"]["respond"]["max_ns"] - 90 * MS) < 20 * MS


def test_without_the_option_all_is_as_before(start):
    scene = Scene(start)
    client, server = scene.connect()
    client.sendall(HANDSHAKE)
    server.recv(4096)
    server.sendall(SWITCH)
    for _ in range(3):
        client.sendall(frame(b"a", mask=True))
        server.recv(4096)
        server.sendall(frame(b"b"))
    entry = scene.end()
    assert entry["exchanges"] == 4 and not entry.get("websocket") and not entry.get("events")
