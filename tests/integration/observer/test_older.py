# SPDX-License-Identifier: MIT
"""HTTP/2 on connections that are older than the observer (--http): picked up where frames begin, against nginx' log,
grpcio's server and clocks of the test. The proof alone: tests/unit/bpf/protocol/http2.c.

tools/mutate: "two frames prove where frames begin". "DATA proves where frames begin". "frames of one direction are
enough". "trailers of an older stream open another". "a status that is not known is final".
"""
import re
import threading
import time
from collections import Counter, defaultdict

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import frame
from support.programs import Nginx, Observer
from support.timing import MS, in_quiet, in_time, lies_within, timing
from .scene import entries
from .test_speaks import ask_http2, http2_connection
from .test_statuses import counted

pytest.importorskip("h2")
from .test_grpc import grpcio_server  # noqa: E402
from .test_http2 import BY_CONNECTION, STAGES, H2Scene, Talk, between  # noqa: E402

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
ACK, END_STREAM, END_HEADERS, PADDED = 1, 1, 4, 8


class OlderScene(H2Scene):
    """One connection that has had an exchange before the observer starts, and perhaps @before more."""

    def __init__(self, start, *options, before=lambda talk: None):
        super().__init__(start, *options, observe=False)
        self.older = self.talk()
        self.older.exchange(1)
        before(self.older)
        self.observe()

    def ended(self):
        return self.end(samples=False)


def http2_of(entry):
    """Return the counts of HTTP/2 that are not zero, but for those by connection."""
    return {name: n for name, n in entry["http2"].items() if n and isinstance(n, int) and name not in BY_CONNECTION}


def picked_up(entry, streams, connections=1, older=None, **others):
    """So many older connections are followed, with so many streams, all of which are timed exchanges."""
    assert http2_of(entry) == {"connections": connections, "picked_up": connections, "older": older or connections,
                               "streams": streams, **others}
    assert entry["exchanges"] == streams
    for name in STAGES:
        assert entry["stages"][name]["count"] == streams, name
    return True


def earlier(entry, most):
    """Return the streams that began before and ended after: the test does not know which frame is the last of a proof."""
    count = entry["http2"]["earlier"]
    assert count <= most
    return {"earlier": count} if count else {}


def never_picked_up(entry):
    assert not entry["http2"]["picked_up"] and not entry["http2"]["streams"]
    assert entry["exchanges"] == entry["stages"]["service"]["count"] == 0
    assert entry["losses"]["multiplexed"] == 1
    return True


# ---- servers ----

@needs_program("nginx")
def test_nginx_logs_the_same(start, tmp_path):
    """A pool of connections with requests before the observer. Two more on each show where frames begin."""
    log = tmp_path / "log"
    nginx = start(Nginx(listen_options="http2", http_block="log_format by_request '$connection $status';",
                        server=f"access_log {log} by_request; location = /index.html {{ return 404 'gone'; }}"))
    pool = [http2_connection(nginx.port, requests=3) for _ in range(5)]
    observer = start(Observer("--http", "--samples", "100000", ports=[nginx.port]))
    for stream in range(7, 107, 2):
        for client in pool:
            ask_http2(client, stream, path=b"\x85" if stream % 5 else b"\x84")
    observer.stop()
    logged = defaultdict(list)
    for line in log.read_text().splitlines():
        logged[line.split()[0]].append(int(line.split()[1]))
    expected = Counter(status for statuses in logged.values() for status in statuses[3 + 2:])
    assert len(expected) == 2 and len(logged) == 5
    entry = service(observer.summary(), nginx.port)
    assert picked_up(entry, sum(expected.values()), 5)
    assert counted(entry) == expected
    assert entry["losses"]["multiplexed"] == entry["losses"]["untimed"] == entry["losses"]["unanswered"] == 0
    assert entry["losses"]["preexisting"] == 5
    assert "5 of 5 older connections picked up" in observer.stdout
    for client in pool:
        client.close()


@in_time
def test_grpc_channel_of_long_ago(start):
    """grpcio's server and client, on one channel. The time is between the handler's own and the client's."""
    server, port = grpcio_server(start)
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        nap = channel.unary_unary("/test.Service/Nap")
        nap(b"before")
        observer = start(Observer("--http", ports=[port]))
        rounds = []
        for _ in range(201):
            begun, ended = between(lambda: nap(b"request"))
            rounds.append(ended - begun)
        document = observer.document()
        observer.stop()
    server.stop()
    naps = [int(ns) for ns in re.search(r"^Nap (.*)", server.stdout, re.MULTILINE)[1].split()]
    entry = service(observer.summary(), port)
    assert len(naps) == 202
    # The first call is in the proof; PINGs of the client may be too.
    assert picked_up(entry, 200, **earlier(entry, 1), perhaps_grpc=200)
    assert counted(entry) == {200: 200}
    assert "perhaps of gRPC 200" in observer.stdout
    assert "statuses, kinds and messages of 200 calls not known" in observer.stdout
    times = entry["stages"]["service"]
    with timing():
        assert sum(naps[2:]) <= times["sum_ns"] <= sum(rounds[1:])
    assert service(document, port)["open"]["read"] == 0


def times_are_the_servers(start):
    scene = OlderScene(start)
    talk = scene.older
    for stream in (3, 5):
        talk.exchange(stream)
    truth = {}
    for stream in range(7, 27, 2):
        talk.request(stream)
        data = talk.asks.data_to_send()
        sent = between(lambda: talk.client.sendall(data))
        time.sleep(0.001)
        read = between(lambda: talk.read(talk.server, len(data), talk.answers))
        time.sleep(0.005)
        talk.answers.send_headers(stream, [(":status", "200")])
        first = between(lambda: talk.server.sendall(talk.answers.data_to_send()))
        time.sleep(0.002)
        talk.answers.send_data(stream, b"rest", end_stream=True)
        last = between(lambda: talk.server.sendall(talk.answers.data_to_send()))
        truth[stream >> 1] = {"socket_queue": (sent, read), "service": (read, first), "respond": (first, last)}
    entry = scene.ended()
    assert picked_up(entry, 10, earlier=1)
    samples = entry["samples"]
    assert sorted(samples["index"]) == sorted(truth)
    for place, index in enumerate(samples["index"]):
        for name, ((least, begun), (early, ended)) in truth[index].items():
            assert lies_within(samples["stages"][name][place], early - begun, ended - least), (index, name)
    with timing():
        assert min(samples["stages"]["service"]) >= 5 * MS


@in_quiet
def test_times_are_those_of_the_server(start):
    times_are_the_servers(start)


# ---- where frames begin ----

def test_a_body_under_way_is_no_frame(start):
    """The observer starts within a megabyte of DATA. The next requests after it are found."""
    body, chunk = 1_000_000, 16384

    def before(talk):
        talk.request(3, end=False)
        talk.asks.increment_flow_control_window(0x1000000)
        talk.ask()
        talk.answers.increment_flow_control_window(0x1000000)
        talk.answers.increment_flow_control_window(0x1000000, 3)
        talk.answer()
        for at in range(0, body, chunk):
            talk.asks.send_data(3, b"\0\1\2\3" * (min(chunk, body - at) // 4))
        talk.asks.end_stream(3)
        data = talk.asks.data_to_send()
        talk.rest = len(data) - 500_001
        talk.sender = threading.Thread(target=talk.client.sendall, args=[data])
        talk.sender.start()
        talk.read(talk.server, 500_001, talk.answers)

    scene = OlderScene(start, before=before)
    talk = scene.older
    talk.read(talk.server, talk.rest, talk.answers)
    talk.sender.join()
    talk.response(3)
    talk.answer()
    for stream in range(5, 45, 2):
        talk.exchange(stream)
    entry = scene.ended()
    count = entry["http2"]["streams"]
    assert 16 <= count <= 18
    assert picked_up(entry, count, **earlier(entry, 1))


def test_frames_are_found_however_they_are_read(start):
    """A server reads the header of each frame alone, and then its payload."""
    scene = OlderScene(start)
    talk = scene.older

    def by_frame(end, count, connection):
        while count:
            header = end.recv(9)
            length = int.from_bytes(header[:3], "big")
            connection.receive_data(header + (end.recv(length) if length else b""))
            count -= len(header) + length

    for stream in range(3, 23, 2):
        talk.ask(stream, read=by_frame)
        talk.response(stream, b"hello")
        talk.answer()
    entry = scene.ended()
    assert picked_up(entry, 8, earlier=1)


def test_a_header_block_under_way_is_no_frame(start):
    """Of a block in three frames the observer sees two. Its stream is not followed, the ones after it are."""
    block = [frame(HEADERS, 3, b"\x83\x86\x84", END_STREAM), frame(CONTINUATION, 3, b"\x41\x01a"),
             frame(CONTINUATION, 3, b"", END_HEADERS)]

    def before(talk):
        talk.client.sendall(block[0])
        talk.read(talk.server, len(block[0]), talk.answers)

    scene = OlderScene(start, before=before)
    talk = scene.older
    for part in block[1:]:
        talk.client.sendall(part)
        talk.read(talk.server, len(part), talk.answers)
    talk.response(3)
    data = talk.answers.data_to_send()
    talk.server.sendall(data)
    talk.client.recv(len(data))
    own(talk, *(frame(HEADERS, stream, b"\x83\x86\x84\x41\x01a", END_STREAM | END_HEADERS) for stream in (5, 7, 9)))
    own(talk, frame(HEADERS, 11, b"\x83\x86\x84\x41\x01a", END_STREAM | END_HEADERS))
    entry = scene.ended()
    assert http2_of(entry)["picked_up"] == 1
    assert entry["exchanges"] == http2_of(entry)["streams"] == 1  # 5, 7 and 9 came before the server's frames


ANSWER = b"\x88"  # :status 200


def own(talk, *frames, answer=True):
    """Send these frames in one write. Then answer each request that they end."""
    data = b"".join(frames)
    talk.client.sendall(data)
    while data:
        data = data[len(talk.server.recv(len(data))):]
    replies = b"".join(frame(HEADERS, int.from_bytes(part[5:9], "big"), ANSWER, END_HEADERS) +
                       frame(DATA, int.from_bytes(part[5:9], "big"), b"hello", END_STREAM)
                       for part in frames if part[3] in (HEADERS, DATA) and part[4] & END_STREAM) if answer else b""
    if replies:
        talk.server.sendall(replies)
        left = len(replies)
        while left:
            left -= len(talk.client.recv(left))


def request(stream, flags=END_STREAM | END_HEADERS, payload=b"\x82\x86\x84\x41\x04test"):
    return frame(HEADERS, stream, payload, flags)


def test_odd_frames_are_frames(start):
    """Padding, PRIORITY, empty DATA, PING, and an update of priority (RFC 9218) count for the proof as others do."""
    scene = OlderScene(start)
    talk = scene.older
    padded = bytes([20]) + b"\x82\x86\x84\x41\x04test" + bytes(20)
    own(talk, frame(WINDOW_UPDATE, 0, b"\0\0\0\1"), frame(PING, 0, bytes(8)), frame(16, 0, b"\0\0\0\5u=1"),
        frame(PRIORITY, 5, b"\0\0\0\0\7"))
    own(talk, request(5, END_STREAM | END_HEADERS | PADDED, padded))
    for stream in (7, 9, 11):
        own(talk, request(stream, END_HEADERS | PADDED, padded), frame(DATA, stream, b"", 0),
            frame(DATA, stream, b"\3abc\0\0\0", END_STREAM | PADDED))
    entry = scene.ended()
    # The server's first answers are its proof: those to 5 and 7.
    assert picked_up(entry, 2, earlier=1)


RESEMBLING = [
    (request(5), request(7), b"\0\0\4\1\5\x80\0\0\x09abcd"),  # the reserved bit
    (request(5), request(7), frame(1, 9, b"abcd", 0x85)),  # a flag that HEADERS do not have
    (request(5), request(7), frame(1, 8, b"abcd", 5)),  # a server's stream
    (request(5), request(7), frame(0, 0, b"abcd")),  # DATA of no stream
    (request(5), request(7), frame(RESET, 5, b"abcde")),
    (request(5), request(7), frame(PING, 0, bytes(7))),
    (request(5), request(7), frame(SETTINGS, 0, bytes(6), ACK)),
    (request(5), request(7), frame(77, 1, b"abcd")),  # a type that nobody knows
    (request(5), request(7), frame(CONTINUATION, 7, b"abcd", END_HEADERS)),
    (request(5), request(7), frame(WINDOW_UPDATE, 0, b"\0\0\1")),
    (request(5), request(7), frame(HEADERS, 9, bytes(65536), END_HEADERS)),
    (frame(DATA, 5, b"abcd"), frame(DATA, 5, b"abcd"), frame(DATA, 5, b"abcd"), frame(DATA, 7, b"abcd")),
]


def test_what_resembles_frames_is_none(start):
    """Two good frames and a bad one, again and again in both directions, or DATA alone: that proves nothing."""
    talks = {}

    def before(scene):
        talks[scene] = Talk(*scene.connect())
        talks[scene].exchange(1)

    def say(scene, *frames):
        for _ in range(8):
            own(talks[scene], *frames, answer=False)
            talks[scene].server.sendall(b"".join(frames))
            left = len(b"".join(frames))
            while left:
                left -= len(talks[scene].client.recv(left))

    for case, entry in entries(start, RESEMBLING, say, "--http", before=before, samples=False):
        assert never_picked_up(entry), case


def test_one_direction_alone_is_not_enough(start):
    """The client's frames are found and the server says nothing that could be one: no stream is followed."""
    scene = OlderScene(start)
    talk = scene.older
    for stream in range(3, 23, 2):
        own(talk, request(stream), answer=False)
        talk.server.sendall(b"\xff" * 30)
        talk.client.recv(30)
    entry = scene.ended()
    assert never_picked_up(entry)


def test_what_breaks_off_later_is_given_up(start):
    scene = OlderScene(start)
    talk = scene.older
    for stream in range(3, 13, 2):
        own(talk, request(stream))
    own(talk, b"\xff" * 100)
    entry = scene.ended()
    assert http2_of(entry) == {"older": 1, "picked_up": 1, "connections": 1, "streams": 3, "given_up": 1}
    assert entry["losses"]["multiplexed"] == 1 and entry["exchanges"] == 3


# ---- what is not known ----

def test_streams_that_began_before_are_counted_apart(start):
    """Their ends are. Trailers of a request, which come first, open no stream. Windows and PINGs are not followed."""
    def before(talk):
        for stream in (3, 5, 7):
            talk.client.sendall(request(stream, END_HEADERS))
            talk.server.recv(100)

    scene = OlderScene(start, before=before)
    talk = scene.older
    own(talk, frame(PING, 0, bytes(8)), frame(PING, 0, bytes(8)), frame(PING, 0, bytes(8)))
    talk.server.sendall(frame(PING, 0, bytes(8)) * 3)
    talk.client.recv(100)
    own(talk, frame(HEADERS, 5, b"\0\1a\1b", END_STREAM | END_HEADERS))  # and the answer ends the stream
    own(talk, frame(DATA, 7, b"rest", END_STREAM))
    own(talk, frame(PING, 0, bytes(8), ACK))
    for stream in (9, 11):
        own(talk, request(stream))
    entry = service(scene.observer.document(), scene.port)
    assert entry["open"]["read"] == 0
    entry = scene.ended()
    assert picked_up(entry, 2, earlier=2)
    assert entry["losses"]["unanswered"] == 0
    for name in ("stream_stalls", "connection_stalls", "pings"):
        assert entry["http2"][name]["count"] == 0


def test_statuses_of_before_are_not_known(start):
    """An index of a field that entered the table before is of no known status, and may be interim: it is not timed. A
    status that enters since is known, also by its index."""
    statuses = {3: "201", 5: "207", 7: "207", 9: "201", 11: "202", 13: "202", 15: "404", 17: "207", 19: "202"}

    def exchange(talk, stream):
        talk.ask(stream)
        talk.answers.send_headers(stream, [(":status", statuses[stream])])
        talk.answers.send_data(stream, b"hello", end_stream=True)
        talk.answer()

    scene = OlderScene(start, before=lambda talk: [exchange(talk, stream) for stream in (3, 5)])
    for stream in (7, 9, 11, 13, 15, 17, 19):
        exchange(scene.older, stream)
    entry = scene.ended()
    # 7 and 9 are in the proof.
    assert http2_of(entry)["streams"] == entry["exchanges"] == 5
    assert counted(entry) == {202: 3, 404: 1, None: 1}
    assert entry["losses"]["untimed"] == 1 and entry["stages"]["service"]["count"] == 4


def test_routes_of_before_are_not_known(start):
    scene = OlderScene(start, "--route", "/old/*", "--route", "/new/*",
                       before=lambda talk: ask_path(talk, 3, "/old/a"))
    talk = scene.older
    for stream, path in ((5, "/old/a"), (7, "/old/a"), (9, "/new/a"), (11, "/new/a"), (13, "/old/a"), (15, "/"), (17, "/old/b")):
        ask_path(talk, stream, path)
    entry = scene.ended()
    assert http2_of(entry)["streams"] == 5
    # "/" is in the static table. "/old/a" of 13 entered before.
    told = {route["route"]: route["count"] for route in entry["routes"]["list"] if route["count"]}
    assert told == {"/new/*": 2, "/old/*": 1, "other": 1}
    assert {name: n for name, n in entry["routes"]["not_known"].items() if n} == {"http2": 1}


def ask_path(talk, stream, path):
    talk.asks.send_headers(stream, [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "test")],
                           end_stream=True)
    talk.ask()
    talk.response(stream, b"hello")
    talk.answer()

