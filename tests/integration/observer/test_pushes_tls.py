# SPDX-License-Identifier: MIT
"""Messages of WebSocket and server-sent events in TLS (--tls), by bytes that a test itself writes. Python's ssl calls
OpenSSL. test_pushes_proxied.py compares with foreign servers.

tools/mutate: "a head that is written again counts again"; "pushes in TLS are exchanges"; "frames with a request in TLS are none".
"""
import ssl
import threading

import pytest

from support.pki import Pki
from .scene import Scene
from .test_pushes import EVENT, EVENTS, HANDSHAKE, SWITCH, chunk, counts, exchange_pieces, frame
from .test_statuses import counted as by_status


@pytest.fixture(scope="module", name="contexts")
def _contexts():
    pki = Pki()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(*pki.issue("server", "DNS:localhost,IP:127.0.0.1"))
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    yield server, client
    pki.close()


class SecureScene(Scene):
    def __init__(self, start, contexts):
        super().__init__(start, "--tls")
        self.contexts = contexts

    def connect(self):
        client, server = super().connect()
        shaken = []
        shakes = threading.Thread(target=lambda: shaken.append(self.contexts[0].wrap_socket(server, server_side=True)))
        shakes.start()
        client = self.contexts[1].wrap_socket(client)
        shakes.join()
        self.ends[-2:] = [client, shaken[0]]
        return client, shaken[0]


def read_all(end, length):
    while length:
        length -= len(end.recv(length))


def ask(client, server, request, response):
    client.sendall(request)
    read_all(server, len(request))
    server.sendall(response)
    read_all(client, len(response))


def test_messages_cut_at_every_byte(start, contexts):
    out = b"".join((frame(b"hello"), frame(b"he", 1, False), frame(b"", 9), frame(b"llo", 0), frame(b"x" * 200), frame(b"y", wide=8)))
    into = b"".join((frame(b"hello", mask=True), frame(b"he", 1, False, True), frame(b"", 10, mask=True), frame(b"llo", 0, mask=True)))
    scene = SecureScene(start, contexts)
    client, server = scene.connect()
    ask(client, server, HANDSHAKE, SWITCH + frame(b"at once"))
    for pieces in (1, 2, 3, 7, 1000):
        exchange_pieces(client, server, out, into, pieces)
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, messages_in=5 * 2, bytes_in=5 * 10, control_in=5,
                                        messages_out=5 * 4 + 1, bytes_out=5 * 211 + 7, control_out=5)
    assert entry["exchanges"] == 1 and by_status(entry) == {101: 1}
    assert entry["stages"]["respond"]["max_ns"] == 0


def test_a_head_written_in_parts(start, contexts):
    """The library takes a part of what it is given, or nothing yet, and gets the rest again."""
    size = 4 << 20
    scene = SecureScene(start, contexts)
    client, server = scene.connect()
    client.sendall(HANDSHAKE)
    read_all(server, len(HANDSHAKE))
    said = SWITCH + frame(b"x" * size) + frame(b"end")
    reader = threading.Thread(target=read_all, args=(client, len(said)))
    server.setblocking(False)
    at = refused = 0
    while at < len(said):
        try:
            at += server.send(said[at:])
        except ssl.SSLWantWriteError:
            refused += 1
            if not reader.is_alive():
                reader.start()
    reader.join()
    entry = scene.end(samples=False)
    assert refused, "nothing was given again"
    assert entry["websocket"] == counts(connections=1, messages_out=2, bytes_out=size + 3)
    assert entry["exchanges"] == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_frames_before_the_switch(start, contexts, at_once):
    scene = SecureScene(start, contexts)
    client, server = scene.connect()
    early = frame(b"early", mask=True)
    for piece in (HANDSHAKE + early,) if at_once else (HANDSHAKE, early):
        client.sendall(piece)
        assert server.recv(4096) == piece
    server.sendall(SWITCH)
    for _ in range(3):
        client.sendall(frame(b"more", mask=True))
        server.recv(4096)
        server.sendall(frame(b"answer"))
    entry = scene.end()
    assert entry["websocket"] == counts(connections=1, given_up=1) and entry["exchanges"] == 1


def test_events_between_other_responses(start, contexts):
    """Of two streams on one connection. HEAD has none."""
    scene = SecureScene(start, contexts)
    client, server = scene.connect()
    other = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
    for _ in range(2):
        ask(client, server, b"HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n", EVENTS)
        ask(client, server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", other)
        ask(client, server, b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n", EVENTS)
        for at in (1, 3, len(EVENT)):
            for begin in range(0, len(EVENT), at):
                server.sendall(chunk(EVENT[begin:begin + at]))
        server.sendall(chunk(b": a comment\n\n") + b"0\r\n\r\n")
        client.recv(1 << 16)
    entry = scene.end()
    assert entry["events"] == {"responses": 4, "given_up": 0, "count": 6, "bytes": 6 * len(EVENT) + 2 * 13}
    assert entry["exchanges"] == 6 and by_status(entry) == {200: 4, 404: 2}
    assert entry["stages"]["respond"]["max_ns"] == 0, "events are no part of a response"


def test_a_read_during_events(start, contexts):
    scene = SecureScene(start, contexts)
    client, server = scene.connect()
    ask(client, server, b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n", EVENTS + chunk(EVENT))
    ask(client, server, b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n", chunk(EVENT))
    server.sendall(chunk(EVENT))
    entry = scene.end(samples=False)
    assert entry["events"] == {"responses": 1, "given_up": 1, "count": 1, "bytes": len(EVENT)}
