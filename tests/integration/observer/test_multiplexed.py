# SPDX-License-Identifier: MIT
"""HTTP/2 connections are labelled by their preface, however it is read, and never timed as HTTP/1."""
import itertools
import os
import socket
import time

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import PREFACE
from support.process import run
from support.programs import Nginx, Observer
from support.timing import MS
from .scene import entries
from .test_stages import samples_add_up, stage


@needs_program("curl")
def test_http2_is_labelled_never_timed(start):
    """Without its streams (--no-http2) h2c by prior knowledge counts as multiplexed, while HTTP/1.1 beside it is timed."""
    nginx = start(Nginx(listen_options="http2"))
    plain = start(Nginx())
    observer = start(Observer("--no-http2", ports=[nginx.port, plain.port]))
    for _ in range(3):
        run(["curl", "--silent", "--fail", "--http2-prior-knowledge", "--output", "/dev/null",
             nginx.url])
        run(["curl", "--silent", "--fail", "--output", "/dev/null", plain.url])
    observer.stop()
    multiplexed = service(observer.summary(), nginx.port)
    assert nginx.status()["requests"] == 3
    assert multiplexed["losses"]["multiplexed"] == multiplexed["accepted"] == 3
    assert multiplexed["exchanges"] == 0
    assert stage(multiplexed, "service")["count"] == 0
    assert multiplexed["losses"]["unanswered"] == 0
    assert multiplexed["bytes_in"] > 0 and multiplexed["bytes_out"] > 0
    entry = service(observer.summary(), plain.port)
    assert entry["losses"]["multiplexed"] == 0
    assert entry["exchanges"] == 3
    assert "HTTP/2 connections" in observer.stdout


@pytest.mark.parametrize("call", ["recv", "read", "readv", "recvmsg"])
def test_the_preface_is_seen_however_it_is_read(start, call):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        with socket.create_connection(("127.0.0.1", port)) as client:
            connection, _ = listener.accept()
            client.sendall(PREFACE + bytes(9))
            {"recv": lambda: connection.recv(100),
             "read": lambda: os.read(connection.fileno(), 100),
             "readv": lambda: os.readv(connection.fileno(), [bytearray(60), bytearray(60)]),
             "recvmsg": lambda: connection.recvmsg(100)}[call]()
            connection.sendall(b"x")
            connection.close()
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["losses"]["multiplexed"] == 1
    assert entry["exchanges"] == 0


class Scene:
    def __init__(self, start, *options):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.observer = start(Observer(*options, ports=[self.port]))
        self.client = socket.create_connection(("127.0.0.1", self.port))
        self.connection = None

    def accept(self):
        self.connection, _ = self.listener.accept()

    def end(self):
        for end in (self.connection, self.client, self.listener):
            end.close()
        self.observer.stop()
        entry = service(self.observer.summary(), self.port)
        samples_add_up(entry)
        return entry


def test_the_preface_is_seen_in_parts(start):
    """Any part of the preface may come with each read, and the rest may be there already."""
    def say(scene, sizes, together):
        data, client = PREFACE + bytes(9), socket.create_connection(("127.0.0.1", scene.port))
        if together:
            client.sendall(data)
            time.sleep(0.02)  # in the accept queue
        connection, _ = scene.listener.accept()
        scene.ends += [client, connection]
        for size in sizes:
            if not together:
                client.sendall(data[:size])
                data = data[size:]
            connection.recv(size)
            time.sleep(0.002)
        for _ in range(3):
            connection.sendall(b"frame")
            client.recv(100)
            client.sendall(b"frame")
            connection.recv(100)

    cases = itertools.product([(3, 21), (1, 1, 1, 21), (14, 10), (23, 1), (16, 50)], (True, False))
    for case, entry in entries(start, list(cases), say, "--transmit", "all"):
        assert entry["losses"]["multiplexed"] == 1, case
        assert entry["exchanges"] == entry["accept_delay_ns"] == stage(entry, "service")["count"] == 0, case
        assert entry["losses"]["unanswered"] == entry["losses"]["unsolicited"] == 0, case
        assert entry["bytes_out"] == 3 * len("frame"), case


@pytest.mark.parametrize("parts", [(b"PRI", b"NT 1\n"), (b"P", b"OST /"), (b"PRI * HTTP/2.0", b"\r\n\r\nSX\r\n\r\n"),
                                   (b"PRI", b"", b" * HTTP/2.0\r\n\r\nSM\r\n\r\n")])
def test_what_begins_like_the_preface_is_timed(start, parts):
    """Until the last byte it may be another protocol; an answer before that makes it an exchange."""
    scene = Scene(start)
    scene.accept()
    for part in parts:
        if part:
            scene.client.sendall(part)
            assert scene.connection.recv(100) == part
            time.sleep(0.02)
        else:
            scene.connection.sendall(b"answer")
            scene.client.recv(100)
    scene.connection.sendall(b"answer")
    scene.client.recv(100)
    entry = scene.end()
    assert entry["losses"]["multiplexed"] == 0
    assert entry["exchanges"] == stage(entry, "service")["count"] == (2 if b"" in parts else 1)
    if b"" not in parts:
        assert stage(entry, "receive")["sum_ns"] >= 19 * MS
