# SPDX-License-Identifier: MIT
"""Kinds of gRPC's calls and their messages (--http), against the counts of a foreign server, of a foreign client and of
our driver. Other tests write the bytes themselves. The parser alone: tests/unit/bpf/protocol/grpc.c.

tools/mutate: "padding is counted as messages", "messages before the response are forgotten".
"""
import collections
import os
import re
import sys

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.process import run, wait_until
from support.programs import Driver, Nginx, Observer

pytest.importorskip("h2")
from .test_grpc import grpcio_server  # noqa: E402
from .test_http2 import CANCEL, READS, WRITES, H2Scene, Talk  # noqa: E402

GRPC = ("content-type", "application/grpc")
OK, FAILED = ("grpc-status", "0"), ("grpc-status", "13")


def kinds(entry):
    """Return {kind: calls}. Each response of gRPC is a call of one kind."""
    told = {name: count for name, count in entry["grpc"]["kinds"].items() if count}
    assert sum(told.values()) == entry["grpc"]["count"]
    return told


def messages(entry):
    return entry["grpc"]["messages_in"], entry["grpc"]["messages_out"]


def kind_of(asked, replies, ok):
    """The rule, once more: for calls whose client has ended its request."""
    if not ok and replies < 2:
        return "undecided"
    return {(True, True): "unary", (False, True): "client_streaming", (True, False): "server_streaming",
            (False, False): "bidirectional"}[asked == 1, replies == 1]


# ---- real servers and clients ----

CALLS = [  # method, calls, options, messages of each call in both directions
    ("Echo", 90, ["--body=abc"], 1, 1),
    ("Collect", 40, ["--body=abc", "--grpc-messages=25"], 25, 1),
    ("Serve", 30, [f"--body={'n' * 17}", "--grpc-replies=17"], 1, 17),
    ("Serve", 6, ["--body=n", "--grpc-replies=1"], 1, 1),  # on the wire no different from unary
    ("Talk", 20, [f"--body={'x' * 30000}", "--grpc-messages=12", "--grpc-replies=any"], 12, 12),
]


@needs_program("nginx")
def test_kinds_and_messages_are_the_servers(start):
    """grpcio's server, and nginx before it, which cuts DATA in other places."""
    server, port = grpcio_server(start)
    nginx = start(Nginx(listen_options="http2", server=f"location /test.Service/ {{ grpc_pass grpc://127.0.0.1:{port}; }}"))
    observer = start(Observer("--http", ports=[port, nginx.port]))
    expected = collections.Counter()
    drivers = []
    for at in (port, nginx.port):
        for method, calls, options, asked, replies in CALLS:
            drivers.append(Driver(f"h2c://127.0.0.1:{at}/test.Service/{method}", "--grpc", "--streams=3", *options,
                                  connections=2, count=calls))
            assert drivers[-1].result["grpc"]["ok"] == calls
            expected[kind_of(asked, replies, True)] += calls
    observer.stop()
    server.stop()
    sent, received = (sum(driver.result[f"messages_{way}"] for driver in drivers) for way in ("sent", "received"))
    read, written = (sum(int(count) for count in re.findall(rf"^\w+ {way}=(\d+)", server.stdout, re.MULTILINE))
                     for way in ("read", "sent"))
    assert (read + 180, written + 180) == (sent, received)
    of_server, of_nginx = (service(observer.summary(), at) for at in (port, nginx.port))
    assert kinds(of_server) == expected
    assert messages(of_server) == (sent, received)
    assert kinds(of_nginx) == {kind: count // 2 for kind, count in expected.items()}
    assert messages(of_nginx) == (sent // 2, received // 2)
    assert re.search(r"gRPC calls +unary 192 \(52 %\) · client streaming 80 ", observer.stdout), observer.stdout
    assert f"messages in {sent:,} · messages out {received:,}" in " ".join(observer.stdout.split())


def test_calls_of_a_foreign_client(start):
    """Many calls at a time on a connection, with all statuses and empty responses. The server says how many it served."""
    server, port = grpcio_server(start)
    observer = start(Observer("--http", ports=[port]))
    run([sys.executable, ROOT / "tests/support/grpcclient.py", port, 510])
    observer.stop()
    server.stop()
    expected, sums = collections.Counter(), [0, 0]
    for at in range(510):
        asked, replies, code = 1 + at % 2, at % 4, at % 17 if at % 3 else 0
        expected[kind_of(asked, replies, not code)] += 1
        sums[0] += asked
        sums[1] += replies
    assert sum(int(count) for count in re.findall(r"status \d+=(\d+)", server.stdout)) == 510
    entry = service(observer.summary(), port)
    assert kinds(entry) == expected
    assert list(messages(entry)) == sums


def test_a_call_that_the_server_ends_early_is_undecided(start):
    """Not all that the client sends is read. The server's library reads more than its program takes."""
    server, port = grpcio_server(start)
    observer = start(Observer("--http", ports=[port]))
    driver = Driver(f"h2c://127.0.0.1:{port}/test.Service/Early", "--grpc", f"--body={'x' * 1000}",
                    "--grpc-messages=1000000", "--grpc-replies=any", "--expect-grpc-status=resource_exhausted", count=10)
    observer.stop()
    server.stop()
    entry = service(observer.summary(), port)
    assert "Early read=10" in server.stdout
    assert kinds(entry) == {"undecided": 10}
    assert 10 <= messages(entry)[0] <= driver.result["messages_sent"] and messages(entry)[1] == 0


# ---- bytes under the test's control ----

def message(text, compressed=False):
    return bytes([compressed]) + len(text).to_bytes(4, "big") + text


def in_frames(connection, stream, data, size, pad=None, end=True):
    pieces = [data[at:at + size] for at in range(0, len(data), size)]
    for number, piece in enumerate(pieces):
        connection.send_data(stream, piece, end_stream=end and number + 1 == len(pieces), pad_length=pad)


def answered(talk, stream, data, *, size=16384, pad=None, status=OK, headers=(GRPC,)):
    talk.answers.send_headers(stream, [(":status", "200"), *headers])
    in_frames(talk.answers, stream, data, size, pad, end=False)
    if status:
        talk.answers.send_headers(stream, [status], end_stream=True)


def test_messages_are_counted_however_they_are_cut(start):
    """Frames of one byte, padded ones and such with many messages; each call of reading and writing; compressed and empty
    messages."""
    scene = H2Scene(start)
    asked = [message(b"a" * 700, compressed=True), message(b""), message(b"\0" * 900), message(b"\0\0\0\0\1x")]
    replies = [message(b"b" * n, compressed=n % 2) for n in range(50)]
    total = 0
    for size, pad in ((1, None), (7, 0), (300, 255), (16384, None), (4, 9)):
        for read, write in [*((read, WRITES[0]) for read in READS), *((READS[0], write) for write in WRITES)]:
            talk = scene.talk()
            talk.request(1, end=False)
            in_frames(talk.asks, 1, b"".join(asked), size, pad)
            talk.ask(read=lambda end, count, to, read=read: Talk.read(Reader(end, read), count, to))
            answered(talk, 1, b"".join(replies), size=size, pad=pad)
            talk.answer(write)
            total += 1
    entry = scene.end()
    assert kinds(entry) == {"bidirectional": total}
    assert messages(entry) == (4 * total, 50 * total)


class Reader:
    """An end whose recv() is another call, of a few bytes."""

    def __init__(self, end, call):
        self.end, self.call = end, call

    def recv(self, size):
        return self.call(self.end, min(size, 97))


SHAPES = [  # messages of the client, whether its request ends, messages of the server, its status, the kind
    (1, True, 1, OK, "unary"), (0, True, 1, OK, "client_streaming"), (1, True, 0, OK, "server_streaming"),
    (0, True, 0, OK, "bidirectional"), (2, True, 2, OK, "bidirectional"), (1, True, 0, FAILED, "undecided"),
    (1, True, 2, FAILED, "server_streaming"), (3, True, 1, FAILED, "undecided"), (1, False, 1, OK, "undecided"),
    (2, False, 1, OK, "client_streaming"), (2, False, 2, None, "bidirectional"), (1, True, 1, None, "undecided"),
]


def test_a_kind_is_what_the_messages_show(start):
    scene = H2Scene(start)
    talk = scene.talk()
    expected = collections.Counter()
    for stream, (asked, ends, replies, status, kind) in zip(range(1, 100, 2), SHAPES):
        talk.request(stream, end=False)
        talk.asks.send_data(stream, message(b"ask") * asked, end_stream=ends)
        talk.ask()
        answered(talk, stream, message(b"reply") * replies, status=status)
        if not status:
            talk.answers.reset_stream(stream, CANCEL)
        talk.answer()
        expected[kind] += 1
    entry = scene.end()
    assert kinds(entry) == expected
    assert messages(entry) == tuple(sum(shape[at] for shape in SHAPES) for at in (0, 2))


def test_an_open_call_has_its_messages(start):
    """They are counted as they pass, those of the client from the response's headers on. No kind before the end."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.request(1, end=False)

    def counted():
        return {way: int(count) for way, count in
                re.findall(r'^sojourn_grpc_messages_total\{[^}]*direction="(\w+)"\} (\d+)', scene.observer.get("/metrics"),
                           re.MULTILINE)}

    def asks(count):
        for _ in range(count):
            talk.asks.send_data(1, message(b"one"))
        talk.ask()

    asks(3)
    assert counted() == {}
    answered(talk, 1, message(b"reply"), status=None)
    talk.answer()
    wait_until(lambda: counted() == {"in": 3, "out": 1})
    asks(2)
    wait_until(lambda: counted() == {"in": 5, "out": 1})
    assert "sojourn_grpc_calls_total{" not in scene.observer.get("/metrics")
    talk.answers.send_data(1, message(b"more")[:7])
    talk.answer()
    wait_until(lambda: counted() == {"in": 5, "out": 1})
    talk.answers.send_data(1, message(b"more")[7:])
    talk.answer()
    wait_until(lambda: counted() == {"in": 5, "out": 2})
    entry = scene.end()
    assert kinds(entry) == {"bidirectional": 1}


# ---- what is not known ----

def sent_by_file(folder, data, seen):
    """A write whose bytes from @seen on are sent by sendfile()."""
    def write(end, _data):
        path = folder / "rest"
        path.write_bytes(data[seen:])
        end.sendall(data[:seen])
        with open(path, "rb") as file:
            assert os.sendfile(end.fileno(), file.fileno(), 0, len(data) - seen) == len(data) - seen
    return write


@pytest.mark.parametrize("seen, kind, count", [(9 + 5, "unary", 1), (9 + 4, "not_known", 0)])
def test_text_that_passes_unseen(start, tmp_path, seen, kind, count):
    """The text of a message may pass unseen, a part of its prefix not."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.request(1, end=False)
    talk.asks.send_data(1, message(b"ask"), end_stream=True)
    talk.ask()
    answered(talk, 1, b"", status=None)
    talk.answer()
    talk.answers.send_data(1, message(b"reply"))
    data = talk.answers.data_to_send()
    sent_by_file(tmp_path, data, seen)(talk.server, data)
    Talk.read(talk.client, len(data), talk.asks)
    talk.answers.send_headers(1, [OK], end_stream=True)
    talk.answer()
    entry = scene.end()
    assert kinds(entry) == {kind: 1}
    assert messages(entry) == (1, count)


def test_what_is_not_known_is_told(start):
    """No messages, half a message, a response whose type only its end shows, and one whose connection is given up. Bodies of
    other requests are no messages, even if they look like them."""
    scene = H2Scene(start)
    bad = [(b"\2\0\0\0\1x", message(b"r")), (message(b"ask"), b"\x80\0\0\0\1x"), (message(b"ask")[:-1], message(b"r")),
           (message(b"ask"), message(b"r")[:-1])]
    talk = scene.talk()
    for stream, (asked, replied) in zip(range(1, 20, 2), [*bad, (message(b"ask"), message(b"r"))]):
        talk.request(stream, end=False)
        talk.asks.send_data(stream, asked, end_stream=True)
        talk.ask()
        answered(talk, stream, replied, headers=(GRPC,) if stream < 9 else ())
        talk.answer()
    zeros = scene.talk()
    zeros.request(1, end=False)
    in_frames(zeros.asks, 1, b"\0" * 12000, 6000)
    zeros.ask()
    zeros.response(1, message(b"r") * 3)
    zeros.answer()
    given_up = scene.talk()
    given_up.request(1, end=False)
    given_up.asks.send_data(1, message(b"ask"), end_stream=True)
    given_up.ask()
    answered(given_up, 1, message(b"r"), status=None)
    given_up.answer()
    given_up.server.sendall(b"no frame at all, surely not")
    entry = scene.end(samples=False)
    assert kinds(entry) == {"not_known": 6}
    assert messages(entry) == (2 + 1, 2 + 1)


def test_requests_before_anything_is_known(start):
    """A connection has not carried gRPC: of a body that would have very many messages in a read, they are not known."""
    scene = H2Scene(start)
    for count, first in ((1000, True), (1100, True), (1100, False)):
        talk = scene.talk()
        if not first:
            talk.request(1)
            talk.ask()
            answered(talk, 1, b"")
            talk.answer()
        talk.request(3, end=False)
        talk.asks.send_data(3, message(b"") * count, end_stream=True)
        talk.ask()
        answered(talk, 3, message(b""))
        talk.answer()
    entry = scene.end()
    assert kinds(entry) == {"client_streaming": 2, "not_known": 1, "bidirectional": 1}
    assert messages(entry)[1] == 3
