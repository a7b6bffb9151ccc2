# SPDX-License-Identifier: MIT
"""A connection's first bytes show its protocol, in any buffers and after any preamble."""
import itertools
import os
import socket
import struct
import time

import pytest

from support.calls import Ring
from support.conditions import needs_program
from support.documents import service
from support.frames import PREFACE, frame
from support.net import free_port
from support.process import Process, run
from support.programs import Nginx, Observer
from support.timing import MS
from .scene import Scene, entries
from .test_stages import stage

SETTINGS = bytes(3) + b"\x04" + bytes(5)
PROXY_1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n"
PROXY_1_LONG = b"PROXY TCP6 " + b" ".join([b"2001:db8:1111:2222:3333:4444:5555:6666"] * 2) + b" 40000 80\r\n"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack("!H4s4sHH", 12, b"\xc0\0\2\1", b"\xc0\0\2\2", 40000, 80)
HEADERS = (PROXY_1, PROXY_1_LONG, PROXY_2)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def http2_request(stream, path=b"\x84"):
    """GET / by indexed headers, and its authority."""
    return frame(1, stream, b"\x82\x86" + path + b"\x41\x09localhost", flags=5)


def test_buffers_of_any_size(start):
    def read_by(scene, call, sizes):
        client, connection = scene.connect()
        client.sendall(PREFACE + SETTINGS)
        buffers = [bytearray(size) for size in sizes]
        read = os.readv(connection.fileno(), buffers) if call == "readv" \
            else connection.recvmsg_into(buffers)[0]
        assert read == len(PREFACE + SETTINGS)
        connection.sendall(SETTINGS)

    cases = itertools.product(("readv", "recvmsg_into"),
                              [(3, 60), (1, 0, 1, 60), (24, 60), (23, 1, 60), (0, 0, 8, 8, 8, 60)])
    for case, entry in entries(start, list(cases), read_by):
        assert (entry["losses"]["multiplexed"], entry["exchanges"]) == (1, 0), case


def test_http2_behind_a_proxy(start):
    def ask(scene, header, reads):
        client, connection = scene.connect()
        client.sendall(header + PREFACE + SETTINGS)
        for size in reads:
            connection.recv(len(header) if size == "header" else size)
        connection.sendall(SETTINGS)
        client.recv(100)
        client.sendall(http2_request(1))
        connection.recv(4096)
        connection.sendall(frame(1, 1, b"\x88", flags=5))

    cases = itertools.product(HEADERS, [(4096,), (16, 4096), (1, 4096), ("header", 4096), ("header", 3, 4096)])
    for case, entry in entries(start, list(cases), ask):
        assert entry["losses"]["multiplexed"] == 1, case
        assert entry["exchanges"] == entry["losses"]["unanswered"] == 0, case


def test_a_proxys_header_is_no_request(start):
    """A proxy may connect long before it has a request: that time is in no stage."""
    def ask(scene, header, parts):
        client, connection = scene.connect()
        for part in range(parts):
            client.sendall(header[len(header) * part // parts:len(header) * (part + 1) // parts])
            connection.recv(4096)
        time.sleep(0.05)
        for _ in range(2):
            client.sendall(GET)
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            client.recv(4096)

    for case, entry in entries(start, list(itertools.product(HEADERS, (1, 2, 3))), ask):
        assert entry["exchanges"] == stage(entry, "service")["count"] == 2, case
        assert stage(entry, "receive")["sum_ns"] + stage(entry, "socket_queue")["sum_ns"] < 40 * MS, case
        assert entry["bytes_in"] == len(case[0]) + 2 * len(GET), case


def test_a_slow_upload_is_one_request(start):
    """The rest of a body comes after a pause; in another protocol it would be a message without an answer."""
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc")
    connection.recv(4096)
    time.sleep(0.4)
    client.sendall(b"def")
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    client.recv(4096)
    entry = scene.end()
    assert entry["exchanges"] == 1 and entry["losses"]["oneway"] == 0
    assert stage(entry, "receive")["sum_ns"] >= 390 * MS


# ---- connections older than the observation ----

def http2_connection(port, requests=0):
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(PREFACE + SETTINGS)
    for number in range(requests):
        ask_http2(client, 2 * number + 1)
    return client


def ask_http2(client, stream, **request):
    """Ask, and wait until nginx has ended the stream with a DATA frame."""
    client.sendall(http2_request(stream, **request))
    data = b""
    while b"\x00\x01" + stream.to_bytes(4, "big") not in data:
        data += client.recv(4096)


def test_older_http2(start):
    """gRPC clients stay connected for days. Such a connection is recognised by the sequence of its frames."""
    nginx = start(Nginx(listen_options="http2"))
    clients = [http2_connection(nginx.port, requests=2) for _ in range(3)]
    observer = start(Observer(ports=[nginx.port]))
    for client in clients:
        for stream in range(5, 25, 2):
            ask_http2(client, stream)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.status()["requests"] == 36
    assert entry["http2"]["older"] == entry["losses"]["preexisting"] == 3
    assert entry["exchanges"] == entry["http2"]["streams"] <= 30
    for client in clients:
        client.close()


def test_older_http2_in_a_cut_read(start):
    """Two frames follow each other, and the read ends amid a third one."""
    scene = Scene(start, observe=False)
    client, connection = scene.connect()
    scene.observe()
    client.sendall(http2_request(1) + http2_request(3) + http2_request(5)[:12])
    connection.recv(4096)
    connection.sendall(SETTINGS)
    entry = scene.end()
    assert entry["losses"]["multiplexed"] == 1 and entry["exchanges"] == 0


@pytest.mark.parametrize("first", [GET, b"*1\r\n$4\r\nPING\r\n", bytes(3) + b"\x06" + b"select", b"\0\0\0\x04abcd",
                                   b"\x17\x04\x00\x00\x01x", b"\0\0\x05\x00\x0f\0\0\0\x01hello"])
def test_older_connections_of_another_kind(start, first):
    """Data that only resembles a frame or a record is counted as exchanges."""
    scene = Scene(start, observe=False)
    client, connection = scene.connect()
    scene.observe()
    for _ in range(12):
        client.sendall(first)
        connection.recv(4096)
        connection.sendall(b"answer")
        client.recv(100)
    entry = scene.end()
    assert entry["losses"]["multiplexed"] == entry["tls"] == 0
    assert entry["exchanges"] >= 11


# ---- several requests in one read ----

def each_look(entry):
    return entry["looked_requests"] / entry["looked"]


@needs_program("redis-server")
@needs_program("redis-benchmark")
@pytest.mark.parametrize("together", [1, 16])
def test_commands_in_one_read(start, together):
    port = free_port()
    redis = start(Process(["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1"]))
    redis.wait_for("Ready to accept")
    observer = start(Observer(ports=[port]))
    run(["redis-benchmark", "-p", port, "-P", together, "-c", 4, "-n", 32000, "-t", "set", "-r", "1000"])
    observer.stop()
    entry = service(observer.summary(), port)
    assert abs(each_look(entry) - together) <= 0.02 * together
    assert abs(entry["exchanges"] * together - 32000) <= 0.02 * 32000
    assert ("clients sent together" in observer.stdout) == (together > 1)


@pytest.mark.parametrize("together", [1, 8])
def test_requests_in_one_read(start, together):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", nginx.port)) as client:
            for _ in range(100):
                client.sendall(GET * together)
                answers = b""
                while answers.count(b"\r\n\r\nok") < together:
                    answers += client.recv(65536)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.status()["requests"] == 400 * together
    assert entry["exchanges"] == 400
    assert each_look(entry) == together
    assert ("clients sent together" in observer.stdout) == (together > 1)


def test_first_bytes_that_io_uring_reads(start):
    """BPF does not see these reads: the protocol is unknown, which is reported once per connection."""
    scene, ring = Scene(start), start(Ring())
    plain_client, plain = scene.connect()
    client, connection = scene.connect()
    for _ in range(10):
        client.sendall(GET)
        assert ring.receive(connection, 1000) == GET
        connection.sendall(GET)
        plain_client.sendall(GET)
        assert plain.recv(1000) == GET
        plain.sendall(GET)
    entry = scene.end()
    assert entry["exchanges"] == 20
    assert entry["losses"]["unrecognised"] == 1
