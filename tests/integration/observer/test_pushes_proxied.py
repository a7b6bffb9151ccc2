# SPDX-License-Identifier: MIT
"""Messages and server-sent events through nginx, which may end TLS (--tls). Its port and the server's are observed at once.
Both counts equal those of the server and its client."""
import asyncio
import os
import socket
import ssl
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.pki import Pki
from support.programs import Nginx, Observer
from .test_pushes import FOREIGN, Foreign, by_python
from .test_statuses import counted as by_status

pytestmark = needs_program("nginx")
LOCATIONS = """
proxy_http_version 1.1;
location = /echo {{ proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
    proxy_pass http://127.0.0.1:{port}/; }}
location /unbuffered/ {{ proxy_buffering off; proxy_http_version 1.0; proxy_pass http://127.0.0.1:{port}/; }}
location /kept/ {{ proxy_buffering off; proxy_set_header Connection ""; proxy_pass http://kept/; }}
location /buffered/ {{ proxy_pass http://127.0.0.1:{port}/; }}
location /compressed/ {{ proxy_buffering off; gzip on; gzip_types text/event-stream; gzip_min_length 0;
    proxy_pass http://127.0.0.1:{port}/; }}
"""


@pytest.fixture(scope="module", name="certificate")
def _certificate():
    pki = Pki()
    yield pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    pki.close()


@pytest.fixture(name="identity", params=["clear", pytest.param("TLSv1.2", marks=pytest.mark.long), "TLSv1.3"])
def _identity(request, certificate):
    """nginx' part of the configuration for TLS, or nothing."""
    if request.param == "clear":
        return ""
    return f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]}; ssl_protocols {request.param};"


def trusting():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Both:
    """A server, and nginx in front of it, perhaps with TLS."""

    def __init__(self, start, server, identity):
        self.server = start(server)
        self.proxy = start(Nginx(server=LOCATIONS.format(port=self.server.port) + identity,
                                 http_block=f"upstream kept {{ server 127.0.0.1:{self.server.port}; keepalive 4; }}",
                                 listen_options="ssl" if identity else ""))
        if identity:
            self.proxy.status()


def observed(start, cases, act, identity):
    """Let act(both, case) run for each case, {case: Both}, under one observer. Return [(case, what act returned, what the
    server has counted, entries of nginx and of the server)]."""
    observer = start(Observer("--tls" if identity else "--http",
                              ports=[end.port for both in cases.values() for end in (both.proxy, both.server)]))
    done = [act(both, case) for case, both in cases.items()]
    expected = [both.server.counted() for both in cases.values()]
    observer.stop()
    document = observer.summary()
    entries = [[service(document, end.port) for end in (both.proxy, both.server)] for both in cases.values()]
    return zip(cases, done, expected, entries)


async def talk(port, compression, tls, rounds=20):
    """Talk to an echo, with pings. Return the messages sent and received."""
    import websockets  # pylint: disable=import-outside-toplevel
    sent = got = 0
    async with websockets.connect(f"ws{'s' if tls else ''}://127.0.0.1:{port}/echo", compression=compression, ping_interval=None,
                                  max_size=1 << 26, ssl=trusting() if tls else None) as client:
        for number in range(rounds):
            payload = os.urandom(number ** 4)
            await client.send([payload[:1], payload[1:2], payload[2:]] if number % 2 else payload)
            for _ in range(20):
                await client.ping()
            assert await client.recv() == payload and await client.recv() == "pushed"
            sent, got = sent + 1, got + 2
    return sent, got


@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
def test_messages(start, kind, identity):
    """With compression and without."""
    pytest.importorskip("websockets")
    if kind == "ws" and not Path("/usr/share/nodejs/ws").exists():
        pytest.skip("node-ws is not installed")
    clients = 4

    def server(compression):
        return Foreign("node", FOREIGN / "websocket_server.js", compression) if kind == "ws" else by_python(kind, compression)

    async def all_talk(both, compression):
        return await asyncio.gather(*(talk(both.proxy.port, compression or None, identity) for _ in range(clients)))

    cases = {compression: Both(start, server(compression), identity) for compression in ("", "deflate")}
    for case, done, expected, entries in observed(start, cases, lambda *both: asyncio.run(all_talk(*both)), identity):
        sent, got = map(sum, zip(*done))
        for entry in entries:
            told = entry["websocket"]
            assert told["connections"] == expected["connections"] == clients and told["given_up"] == 0, case
            assert (told["messages_in"], told["messages_out"]) == \
                (expected["messages_in"], expected["messages_out"]) == (sent, got), case
            assert entry["exchanges"] == clients and by_status(entry) == {101: clients}, case
        assert entries[0]["websocket"] == entries[1]["websocket"], case


def test_events(start, identity):
    number, times = 30, 4

    def ask(both, way):
        with socket.create_connection(("127.0.0.1", both.proxy.port)) as plain, \
                (trusting().wrap_socket(plain) if identity else plain) as client:
            for path, end in times * ((f"/{way}/other", b"}"), (f"/{way}/events?count={number}&pause=0.005", b"0\r\n\r\n")):
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n".encode())
                got = b""
                while not got.endswith(end):
                    more = client.recv(1 << 20)
                    assert more, (way, got)
                    got += more

    ways = ("unbuffered", "kept", "buffered", "compressed")
    cases = {way: Both(start, by_python("aiohttp"), identity) for way in ways}
    for way, _, expected, entries in observed(start, cases, ask, identity):
        assert expected["events"] == number * times, way
        for entry, front in zip(entries, (True, False)):
            if front and way == "compressed":
                assert entry["events"] == {"responses": times, "given_up": times, "count": 0, "bytes": 0}
            else:
                assert entry["events"] == {"responses": times, "given_up": 0, "count": expected["events"],
                                           "bytes": expected["event_bytes"]}, (way, front)
            assert entry["exchanges"] == 2 * times and by_status(entry) == {200: 2 * times}, (way, front)
