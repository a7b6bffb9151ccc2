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


@pytest.fixture(name="identity", params=["clear", "TLSv1.2", "TLSv1.3"])
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
    """A server, nginx in front of it, perhaps with TLS, and their observer."""

    def __init__(self, start, server, identity):
        self.server = start(server)
        self.proxy = start(Nginx(server=LOCATIONS.format(port=self.server.port) + identity,
                                 http_block=f"upstream kept {{ server 127.0.0.1:{self.server.port}; keepalive 4; }}",
                                 listen_options="ssl" if identity else ""))
        if identity:
            self.proxy.status()
        self.observer = start(Observer("--tls" if identity else "--http", ports=[self.server.port, self.proxy.port]))

    def end(self):
        """Return what the server has counted, and the entries of nginx and of the server."""
        expected = self.server.counted()
        self.observer.stop()
        document = self.observer.summary()
        return expected, [service(document, end.port) for end in (self.proxy, self.server)]


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


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
def test_messages(start, kind, compression, identity):
    pytest.importorskip("websockets")
    if kind == "ws":
        if not Path("/usr/share/nodejs/ws").exists():
            pytest.skip("node-ws is not installed")
        server = Foreign("node", FOREIGN / "websocket_server.js", compression or "")
    else:
        server = by_python(kind, compression or "")
    both = Both(start, server, identity)
    clients = 4

    async def all_talk():
        return await asyncio.gather(*(talk(both.proxy.port, compression, identity) for _ in range(clients)))

    sent, got = map(sum, zip(*asyncio.run(all_talk())))
    expected, entries = both.end()
    for entry in entries:
        told = entry["websocket"]
        assert told["connections"] == expected["connections"] == clients and told["given_up"] == 0
        assert (told["messages_in"], told["messages_out"]) == (expected["messages_in"], expected["messages_out"]) == (sent, got)
        assert entry["exchanges"] == clients and by_status(entry) == {101: clients}
    assert entries[0]["websocket"] == entries[1]["websocket"]


@pytest.mark.parametrize("way", ["unbuffered", "kept", "buffered", "compressed"])
def test_events(start, way, identity):
    both = Both(start, by_python("aiohttp"), identity)
    number, times = 30, 4
    with socket.create_connection(("127.0.0.1", both.proxy.port)) as plain, \
            (trusting().wrap_socket(plain) if identity else plain) as client:
        for path, end in times * ((f"/{way}/other", b"}"), (f"/{way}/events?count={number}&pause=0.005", b"0\r\n\r\n")):
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n".encode())
            got = b""
            while not got.endswith(end):
                more = client.recv(1 << 20)
                assert more, got
                got += more
    expected, entries = both.end()
    assert expected["events"] == number * times
    for entry, front in zip(entries, (True, False)):
        if front and way == "compressed":
            assert entry["events"] == {"responses": times, "given_up": times, "count": 0, "bytes": 0}
        else:
            assert entry["events"] == {"responses": times, "given_up": 0, "count": expected["events"],
                                       "bytes": expected["event_bytes"]}
        assert entry["exchanges"] == 2 * times and by_status(entry) == {200: 2 * times}
