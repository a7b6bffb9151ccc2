# SPDX-License-Identifier: MIT
"""Without --http messages of WebSocket on older connections count as exchanges. The report says so, of connections whose first
reads seem to be frames of a client's. Other protocols are not taken for such.

tools/mutate: "one frame is WebSocket's without --http".
"""
import asyncio
import os
import re
import socket
import struct

import pytest

from support.conditions import needs_program
from support.databases import Postgres, Redis, postgres_program, until
from support.documents import service
from support.process import Process, wait_until
from support.programs import Nginx, Observer
from .test_pushes import frame
from .test_pushes_older import OlderScene, foreign, upgraded_before

SAID = r"(\d+) connections that are older than the observation seem to be WebSocket's"


def perhaps(entry):
    return entry["losses"]["perhaps_websocket"]


@pytest.mark.parametrize("kind", ["websockets", "aiohttp", "ws"])
@pytest.mark.parametrize("compression", [None, "deflate"])
def test_clients_frames_are_recognised(start, kind, compression):
    """On each of three connections, once. With --http the messages are counted, and nothing is perhaps so."""
    for options, expected in (((), 3), (("--http",), 0)):
        server = start(foreign(kind, compression))
        observer = asyncio.run(upgraded_before(server.port, "", compression,
                                               lambda options=options, port=server.port: start(Observer(*options, ports=[port]))))
        observer.stop()
        entry = service(observer.summary(), server.port)
        said = re.search(SAID, " ".join(observer.stdout.split()))
        assert perhaps(entry) == expected == (int(said[1]) if said else 0), observer.stdout
        assert bool(entry["exchanges"]) == bool(expected)


# ---- bytes of the test's own ----

def masked(payload, mask, opcode=1):
    head = frame(payload, opcode, mask=True)[:-len(payload) - 4]
    return head + mask + payload


def told(start, messages):
    """Return how many connections are perhaps WebSocket's, of one with these older messages."""
    scene = OlderScene(start, "--debug", before=b"")
    for message in messages:
        scene.ask(message)
        scene.say(b"answer")
    entry = scene.ended()
    assert entry["exchanges"] == len(messages)
    return perhaps(entry)


def length_and(message):
    """As many binary protocols have it, little endian."""
    return struct.pack("<I", len(message)) + message


@pytest.mark.parametrize("expected, messages", [
    pytest.param(1, [masked(b"abc", b"1234"), masked(b"x" * 300, b"4567", 2)], id="two frames"),
    pytest.param(1, [masked(b"abc", bytes([n, 2, 3, 4])) for n in range(20)], id="many"),
    pytest.param(1, [masked(b"ab", b"12fg") + masked(b"c", b"1234"), masked(b"d", b"abcd"), masked(b"e", b"efgh", 2)], id="two at once"),
    pytest.param(0, [masked(b"abc", b"1234"), b"another protocol"], id="one frame"),
    pytest.param(0, [masked(b"abc", b"1234")] * 9, id="one mask"),
    pytest.param(0, [frame(b"abc"), frame(b"abcd")] * 4, id="no mask"),
    pytest.param(0, [masked(b"abc", b"1234") + b"e", masked(b"abc", b"4567")[:-1]] * 4, id="other lengths"),
    pytest.param(0, [b"\x82\xa2id" + bytes([n]) + b"\xa6method\xa4ping" + b"x" * 22 for n in range(8)], id="MessagePack"),
    pytest.param(0, [b"\x82" + bytes([0x80 | n, 1]) + b"topic" * 30 for n in range(8)], id="MQTT"),
    pytest.param(0, [length_and(os.urandom(size - 4)) for size in (0x81, 0x82, 0x181, 0x182, 0x8181, 0x8081, 0xfe81)], id="lengths"),
    pytest.param(0, [os.urandom(n) for n in range(7, 15)], id="random"),
])
def test_only_frames_of_clients(start, expected, messages):
    assert told(start, messages) == expected


# ---- other servers ----

def test_redis(start):
    """Values that are frames are no frames of the connection's."""
    redis = start(Redis())
    connections = [redis.connect() for _ in range(8)]
    for connection in connections:
        until(connection, b"PING\r\n", b"+PONG\r\n")
    observer = start(Observer(ports=[redis.port]))
    for connection in connections:
        for number in range(10):
            value = masked(b"abc", bytes([number, 2, 3, 4]))
            until(connection, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n%s\r\n" % (len(value), value), b"+OK\r\n")
    observer.stop()
    entry = service(observer.summary(), redis.port)
    assert entry["exchanges"] == 80 and perhaps(entry) == 0 and "WebSocket" not in observer.stdout
    for connection in connections:
        connection.close()


def test_postgres(start, tmp_path):
    """Backends of pgbench that are older than the observer, with queries of many lengths and parameters."""
    postgres = start(Postgres())
    script = tmp_path / "queries.sql"
    script.write_text("\\set n random(1, 100000)\nselect :n, repeat('a', :n % 100);\n")
    bench = start(Process([postgres_program("pgbench"), "-h", "127.0.0.1", "-p", postgres.port, "-U", "test", "-n", "-c", 4,
                           "-T", 60, "-M", "prepared", "-f", script, "postgres"], env={"PGSSLMODE": "disable"}))
    wait_until(lambda: int(postgres.ask("select count(*) from pg_stat_activity where application_name = 'pgbench'")) >= 4, 30)
    observer = start(Observer(ports=[postgres.port]))
    wait_until(lambda: service(observer.document(), postgres.port)["exchanges"] > 1000, 30)
    observer.stop()
    bench.kill()
    entry = service(observer.summary(), postgres.port)
    assert entry["losses"]["preexisting"] == 4 and perhaps(entry) == 0


@needs_program("nginx")
def test_requests_of_http(start):
    """Bodies are frames. Each is read apart from its head, on older connections of keep-alive."""
    nginx = start(Nginx(server="location /x { return 404; }"))
    clients = [socket.create_connection(("127.0.0.1", nginx.port)) for _ in range(4)]

    def ask(client, *parts):
        for part in parts:
            client.sendall(part)
        while b"</html>" not in client.recv(1 << 16):
            pass

    # nginx answers before it has the body. Had the last data come from the client, the next response could be to that.
    for client in clients:
        ask(client, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
    observer = start(Observer(ports=[nginx.port]))
    for number in range(1, 11):
        body = masked(b"abc", bytes([number, 2, 3, 4]))
        for client in clients:
            ask(client, b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body), body)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["exchanges"] == 40 and perhaps(entry) == 0
    for client in clients:
        client.close()
