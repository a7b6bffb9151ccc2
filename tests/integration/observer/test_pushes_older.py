# SPDX-License-Identifier: MIT
"""Messages of WebSocket on connections that were upgraded before the observer began (--http). Counts equal those of servers by
websockets, aiohttp and ws, also through nginx. Other connections are not taken for such.

tools/mutate: "one frame of a client proves WebSocket". "frames of clients alone prove WebSocket". "messages before the
proof are none". "what seems to be WebSocket's are exchanges". "a frame may have any length".
"""
import asyncio
import os
import re
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.pki import Pki
from support.programs import Nginx, Observer
from .scene import Scene
from .test_pushes import (CHUNKED_EVENT, EVENTS, FOREIGN, HANDSHAKE, PAYLOADS, SWITCH, Foreign, by_python, counts,
                          exchange_pieces, frame, size_of)
from .test_pushes_proxied import LOCATIONS, trusting
from .test_statuses import counted as by_status


def found(connections=1, older=None, **counted):
    return counts(connections=connections, older=older or connections, picked_up=connections, **counted)


def not_known(older=1):
    return counts(older=older)


# ---- servers ----

def foreign(kind, compression):
    pytest.importorskip("websockets")
    if kind != "ws":
        return by_python(kind, compression or "")
    if not Path("/usr/share/nodejs/ws").exists():
        pytest.skip("node-ws is not installed")
    return Foreign("node", FOREIGN / "websocket_server.js", compression or "")


async def converse(client, payloads):
    """Have an echo of each, and a push after it. The server has counted them then."""
    for payload in payloads:
        await client.send([payload[:1], payload[1:]] if len(payload) > 200 else payload)
        assert await client.recv() == payload
        assert await client.recv() == "pushed"


async def upgraded_before(port, path, compression, observe, tls=None):
    """Talk on three connections, then let observe() begin, and talk on."""
    import websockets  # pylint: disable=import-outside-toplevel
    clients = [await websockets.connect(f"ws{'s' if tls else ''}://127.0.0.1:{port}/{path}", compression=compression,
                                        ping_interval=None, max_size=1 << 26, ssl=tls) for _ in range(3)]
    await asyncio.gather(*(converse(client, PAYLOADS) for client in clients))
    observer = observe()
    await asyncio.gather(*(converse(client, 2 * PAYLOADS) for client in clients))
    await asyncio.gather(*(client.close() for client in clients))
    return observer


def since(expected, compression):
    """Return the server's counts without those before the observer: one of three rounds of three clients."""
    before = 3 * len(PAYLOADS)
    size = 3 * sum(map(size_of, PAYLOADS))
    told = {"messages_in": expected["messages_in"] - before, "messages_out": expected["messages_out"] - 2 * before}
    if not compression:
        told |= {"bytes_in": expected["bytes_in"] - size, "bytes_out": expected["bytes_out"] - size - before * len("pushed")}
    return told


def told_the_same(entry, expected, compression):
    told = entry["websocket"]
    assert (told["older"], told["picked_up"], told["connections"], told["given_up"]) == (3, 3, 3, 0)
    assert {name: told[name] for name in since(expected, compression)} == since(expected, compression)
    assert told["control_in"] >= 3 and told["control_out"] >= 3, "closes"
    assert entry["exchanges"] == 0 and not entry.get("responses")
    assert all(not entry["losses"][name] for name in ("unsolicited", "cut_off", "untimed", "unanswered"))
    return True


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
def test_servers_count_the_same(start, kind, compression):
    server = start(foreign(kind, compression))
    observer = asyncio.run(upgraded_before(server.port, "", compression,
                                           lambda: start(Observer("--http", ports=[server.port]))))
    expected = server.counted()
    observer.stop()
    assert expected["messages_in"] == 3 * 3 * len(PAYLOADS)
    assert told_the_same(service(observer.summary(), server.port), expected, compression)
    assert "3 of 3 older connections picked up" in observer.stdout


@needs_program("nginx")
@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
def test_through_nginx(start, kind):
    """Both its port and the server's."""
    server = start(foreign(kind, None))
    nginx = start(Nginx(server=LOCATIONS.format(port=server.port),
                        http_block=f"upstream kept {{ server 127.0.0.1:{server.port}; keepalive 4; }}"))
    ports = [server.port, nginx.port]
    observer = asyncio.run(upgraded_before(nginx.port, "echo", None, lambda: start(Observer("--http", ports=ports))))
    expected = server.counted()
    observer.stop()
    document = observer.summary()
    for port in ports:
        assert told_the_same(service(document, port), expected, None)


@needs_program("nginx")
def test_in_tls_nothing_is_known(start):
    """Not even that it is WebSocket. Reads and writes are no exchanges."""
    server = start(foreign("websockets", None))
    pki = Pki()
    certificate, key = pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    nginx = start(Nginx(server=LOCATIONS.format(port=server.port) + f"ssl_certificate {certificate}; ssl_certificate_key {key};",
                        http_block=f"upstream kept {{ server 127.0.0.1:{server.port}; keepalive 4; }}", listen_options="ssl"))
    nginx.status()
    observer = asyncio.run(upgraded_before(nginx.port, "echo", None, lambda: start(Observer("--tls", ports=[server.port, nginx.port])),
                                           trusting()))
    expected = server.counted()
    observer.stop()
    pki.close()
    document = observer.summary()
    front = service(document, nginx.port)
    assert front["exchanges"] == 0 and front["losses"]["tls_unknown"] == 3 and not front.get("websocket")
    assert told_the_same(service(document, server.port), expected, None)


# ---- bytes of the test's own ----

class OlderScene(Scene):
    """A connection that was upgraded, and has had @before from the server, before the observer begins."""

    def __init__(self, start, *options, before=frame(b"before"), asked=HANDSHAKE, said=SWITCH):
        super().__init__(start, *(options or ("--http",)), observe=False)
        self.client, self.server = self.connect()
        self.pass_on(self.client, asked)
        self.pass_on(self.server, said + before)
        self.observe()

    def pass_on(self, end, data):
        """Write, and let the other end read all of it at once."""
        other = self.client if end is self.server else self.server
        end.sendall(data)
        time.sleep(0.002)
        assert other.recv(1 << 20) == data

    def ask(self, data):
        self.pass_on(self.client, data)

    def say(self, data):
        self.pass_on(self.server, data)

    def ended(self):
        return self.end(samples=False)


def test_messages_cut_at_every_byte(start):
    out = b"".join([frame(b"hello"), frame(b"he", 1, False), frame(b"", 9), frame(b"llo", 0), frame(), frame(b"x" * 200)])
    into = b"".join([frame(b"hello", mask=True), frame(b"he", 1, False, True), frame(b"", 10, mask=True),
                     frame(b"llo", 0, mask=True), frame(b"w" * 200, mask=True)])
    for pieces in (1, 2, 3, 7, 1 << 20):
        scene = OlderScene(start)
        for _ in range(3):
            exchange_pieces(scene.client, scene.server, out, into, pieces)
        told = scene.ended()["websocket"]
        # The server writes a round before the client's first frame, which is not followed.
        missed = [told.pop(name) for name in ("messages_out", "bytes_out", "control_out")]
        assert told == {name: n for name, n in found(messages_in=9, bytes_in=3 * 210, control_in=3).items() if name in told}
        assert missed == [8, 2 * 210, 2], pieces


def test_the_first_messages_are_counted(start):
    """Also those before the proof, but for what the server has written before the client's first frame."""
    scene = OlderScene(start)
    scene.say(frame(b"not seen"))
    for _ in range(5):
        scene.ask(frame(b"abc", mask=True))
        scene.say(frame(b"ab"))
        scene.say(frame(b"c"))
    entry = scene.ended()
    assert entry["websocket"] == found(messages_in=5, bytes_in=15, messages_out=10, bytes_out=15)
    assert entry["exchanges"] == 0


def test_a_server_that_is_silent(start):
    """Its first frame, a ping or a close, proves all. Before that messages are not known."""
    for says in (b"", frame(b"", 9), frame(b"", 8)):
        scene = OlderScene(start)
        for _ in range(20):
            scene.ask(frame(b"measured", mask=True))
        if says:
            scene.say(says)
        entry = scene.ended()
        assert entry["exchanges"] == 0
        if says:
            assert entry["websocket"] == found(messages_in=20, bytes_in=160, control_out=1)
        else:
            assert entry["websocket"] == not_known()
            assert "0 of 1 older connections picked up" in scene.observer.stdout
            assert "messages of the others not known" in scene.observer.stdout


def test_a_client_that_only_answers_pings(start):
    scene = OlderScene(start)
    for _ in range(3):
        for _ in range(10):
            scene.say(frame(b"quote"))
        scene.say(frame(b"1234", 9))
        scene.ask(frame(b"1234", 10, mask=True))
    scene.say(frame(b"quote"))
    entry = scene.ended()
    assert entry["websocket"] == found(messages_out=21, bytes_out=105, control_out=2, control_in=3)
    assert entry["exchanges"] == 0


def test_begun_within_a_message(start):
    """Of both directions, when the observer begins. The next ones are counted."""
    scene = OlderScene(start, before=frame(b"x" * 1000)[:500], asked=HANDSHAKE + frame(b"y" * 1000, mask=True)[:500])
    scene.ask(frame(b"y" * 1000, mask=True)[500:800])
    scene.say(frame(b"x" * 1000)[500:])
    scene.ask(frame(b"y" * 1000, mask=True)[800:])
    for _ in range(5):
        scene.ask(frame(b"abc", mask=True))
        scene.say(frame(b"ab"))
    entry = scene.ended()
    assert entry["websocket"] == found(messages_in=5, bytes_in=15, messages_out=5, bytes_out=10)


def test_large_messages_in_parts(start):
    """A header alone, and parts of the payload, while the server pushes. None is an exchange."""
    scene = OlderScene(start)
    scene.ask(frame(b"", 10, mask=True))
    asked, said = frame(os.urandom(70000), mask=True), frame(os.urandom(70000))
    for _ in range(3):
        scene.ask(asked[:14])
        scene.say(said[:10])
        for at in range(14, len(asked), 10000):
            scene.ask(asked[at:at + 10000])
            scene.say(said[at - 4:at + 9996])
    entry = scene.ended()
    assert entry["websocket"] == found(messages_in=3, bytes_in=210000, messages_out=3, bytes_out=210000, control_in=1)
    assert entry["exchanges"] == 0


def test_both_directions_at_once(start):
    """Threads that read and write: each message is counted once, those before the proof too."""
    number = 2000
    for _ in range(5):
        scene = OlderScene(start)
        scene.ask(frame(b"begin", mask=True))

        def write(end, mask):
            for _ in range(number):
                end.sendall(frame(b"x" * 30, mask=mask))

        def read(end, mask):
            left = number * len(frame(b"x" * 30, mask=mask))
            while left:
                left -= len(end.recv(777))

        threads = [threading.Thread(target=what, args=args) for what, args in (
            (write, (scene.client, True)), (write, (scene.server, False)), (read, (scene.client, False)), (read, (scene.server, True)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entry = scene.ended()
        assert entry["websocket"] == found(messages_in=number + 1, bytes_in=number * 30 + 5, messages_out=number,
                                           bytes_out=number * 30)
        assert entry["exchanges"] == 0


def test_garbage_after_the_proof(start):
    scene = OlderScene(start)
    for data in (frame(b"a", mask=True), frame(b"b", mask=True), b"garbage", frame(b"c", mask=True)):
        scene.ask(data)
        scene.say(frame(b"ab"))
    entry = scene.ended()
    assert entry["websocket"] == found(given_up=1, messages_in=2, bytes_in=2, messages_out=2, bytes_out=4)
    assert entry["exchanges"] == 0


# ---- what is not WebSocket ----

def test_a_single_frame_proves_nothing(start):
    """The request after it is one like any other."""
    scene = OlderScene(start)
    scene.ask(frame(b"a", mask=True))
    scene.say(frame(b"b"))
    for _ in range(5):
        scene.ask(b"request")
        scene.say(b"response")
    entry = scene.ended()
    assert entry["websocket"] == not_known() and entry["exchanges"] == 5


def test_lengths_are_minimal(start):
    """As RFC 6455 (5.2) has them. Once WebSocket is proved it does not matter."""
    for proved in (False, True):
        scene = OlderScene(start)
        for wide in (0, 0, 2, 2, 2) if proved else (2, 2, 2, 2, 2):
            scene.ask(frame(b"a", mask=True, wide=wide))
            scene.say(frame(b"b"))
        entry = scene.ended()
        if proved:
            assert entry["websocket"] == found(messages_in=5, bytes_in=5, messages_out=5, bytes_out=5)
        else:
            assert not entry.get("websocket") and entry["exchanges"] == 5


def test_another_protocol_whose_responses_look_like_frames(start):
    """Type, length, value in both directions. No client's message is masked."""
    scene = OlderScene(start)
    for _ in range(50):
        scene.ask(frame(b"get"))
        scene.say(frame(b"value"))
    entry = scene.ended()
    assert entry["exchanges"] == 50 and not entry.get("websocket")


def test_random_messages(start):
    """Encrypted ones, say, of any length: 20,000 exchanges."""
    scene = OlderScene(start)
    number = 20000
    for _ in range(number):
        for end, other in ((scene.client, scene.server), (scene.server, scene.client)):
            end.sendall(os.urandom(1 + os.urandom(1)[0]))
            other.recv(1 << 16)
    entry = scene.ended()
    assert (entry.get("websocket") or {"picked_up": 0})["picked_up"] == 0
    # One message of 5,000 seems to be a frame, and its exchange is lost. After 1,024 others it is not looked at.
    assert number - 5 <= entry["exchanges"] <= number


def http(path, body=b"", method=b"GET"):
    return method + b" /" + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize("rest", ["random", "frames"])
def test_a_body_under_way(start, rest):
    """The rest of an upload may even be a record of frames: the server's response shows that it is none."""
    pieces = [os.urandom(100) if rest == "random" else frame(os.urandom(20), mask=True) for _ in range(20)]
    request = http(b"upload", b"".join(pieces), b"POST")
    scene = OlderScene(start, before=b"", asked=request[:-sum(map(len, pieces))], said=b"HTTP/1.1 100 Continue\r\n\r\n")
    for piece in pieces:
        scene.ask(piece)
    scene.say(OK)
    for body in (b"", frame(b"a" * 30, mask=True), os.urandom(5000), b""):
        scene.ask(http(b"next", body, b"POST"))
        scene.say(OK)
    entry = scene.ended()
    if rest == "frames":
        assert entry["websocket"] == not_known() and entry["exchanges"] == 4 and by_status(entry) == {200: 4}
    else:
        assert not entry.get("websocket") and entry["exchanges"] == 5 and by_status(entry) == {200: 5}


def test_pipelines_and_bodies_of_older_connections(start):
    """Requests with frames as bodies, and pipelined ones."""
    scene = OlderScene(start, before=b"", asked=http(b""), said=OK)
    for number in range(30):
        body = frame(os.urandom(number), mask=True)
        asked = http(b"body", body, b"PUT")
        scene.ask(asked[:-len(body)])
        scene.ask(body)
        scene.say(OK)
        scene.ask(http(b"1") + http(b"2", body, b"POST"))
        scene.say(OK + OK)
    entry = scene.ended()
    assert by_status(entry) == {200: 90} and entry["exchanges"] == 90 and not entry.get("websocket")


@needs_program("nginx")
def test_nginx_logs_the_same(start, tmp_path):
    """Older connections of keep-alive: random bodies, each request in the log."""
    log = tmp_path / "log"
    nginx = start(Nginx(http_block="log_format by_request '$connection $status';",
                        server=f"access_log {log} by_request; client_max_body_size 10m; location /gone {{ return 404; }}"))
    with_body = b"POST /gone HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", nginx.port)) for _ in range(8)]

    def ask(client, body):
        client.sendall(with_body % len(body) + body)
        got = b""
        while not re.search(rb"Content-Length: (\d+)\r\n.*\r\n\r\n", got, re.DOTALL) or b"</html>" not in got:
            got += client.recv(1 << 16)

    for client in clients:
        ask(client, b"")
    observer = start(Observer("--http", ports=[nginx.port]))
    for length in (0, 1, 2, 6, 100, 131, 5000, 300000):
        for client in clients:
            ask(client, os.urandom(length))
    for client in clients:
        client.close()
    nginx.stop()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    logged = Counter(int(line.split()[1]) for line in log.read_text().splitlines())
    assert logged == {404: 72} and by_status(entry) == {404: 64} and entry["exchanges"] == 64
    assert not entry.get("websocket")


def test_events_of_an_older_stream_are_no_requests(start):
    """They are writes that nobody asked for. The next request on the connection is an exchange."""
    scene = OlderScene(start, before=b"", asked=b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n", said=EVENTS)
    for _ in range(5):
        scene.say(CHUNKED_EVENT)
        time.sleep(0.01)
    scene.say(b"0\r\n\r\n")
    scene.ask(http(b"next"))
    scene.say(OK)
    entry = scene.ended()
    assert entry["exchanges"] == 1 and by_status(entry) == {200: 1}
    assert not entry.get("events") and not entry.get("websocket")
