# SPDX-License-Identifier: MIT
"""HTTP/2 streams as exchanges (--http), against the counts of other people's servers and clients, and times and
bytes under the test's control. The parser alone: tests/unit/bpf/protocol/http2.c.
"""
import os
import re
import socket
import threading
import time

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import frame
from support.h2server import H2Server
from support.process import run
from support.programs import Driver, Nginx, Observer
from support.timing import MS, in_quiet, lies_within, timing
from .scene import Scene
from .test_stages import samples_add_up

pytest.importorskip("h2")
from h2.config import H2Configuration  # noqa: E402
from h2.connection import H2Connection  # noqa: E402

STAGES = ("socket_queue", "receive", "service", "respond")
# Counts that test_streams_per_connection.py compares.
BY_CONNECTION = ("ended", "ended_streams", "streams_highest", "open_highest")
HEADERS = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "test")]
REFUSED, CANCEL = 7, 8
ERRORS = ("no_error protocol_error internal_error flow_control_error settings_timeout stream_closed frame_size_error "
          "refused_stream cancel compression_error connect_error enhance_your_calm inadequate_security "
          "http_1_1_required").split()


def followed(entry, streams, connections=None, **others):
    """Every stream is an exchange, timed in each stage; @others are the only other HTTP/2 counts."""
    counts = {name: n for name, n in entry["http2"].items() if n and isinstance(n, int) and name not in BY_CONNECTION}
    assert counts.pop("streams") == streams
    assert counts.pop("connections") == (connections or entry["accepted"])
    assert counts == others
    return True


def by_error(entry, side):
    return {error: n for error, n in entry["http2"][f"{side}_resets"].items() if n}


def timed(entry, count):
    assert entry["exchanges"] == count, entry["losses"]
    for name in STAGES:
        assert entry["stages"][name]["count"] == count, name
    losses = {name: n for name, n in entry["losses"].items() if n and name != "accept_unseen"}
    assert not losses, losses
    samples_add_up(entry)
    return True


class Talk:
    """A connection with python3-h2 at both ends, byte by byte as the test wants."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asks = H2Connection(H2Configuration(client_side=True))
        self.answers = H2Connection(H2Configuration(client_side=False))
        self.asks.initiate_connection()
        self.answers.initiate_connection()

    def request(self, stream, end=True, headers=()):
        self.asks.send_headers(stream, [*HEADERS, *headers], end_stream=end)

    def response(self, stream, body=b"", headers=()):
        self.answers.send_headers(stream, [(":status", "200"), *headers], end_stream=not body)
        if body:
            self.answers.send_data(stream, body, end_stream=True)

    def ask(self, *streams, read=None):
        """Request these streams. Send the client's pending bytes, and let the server read them."""
        for stream in streams:
            self.request(stream)
        data = self.asks.data_to_send()
        self.client.sendall(data)
        (read or self.read)(self.server, len(data), self.answers)

    def answer(self, write=None):
        data = self.answers.data_to_send()
        (write or (lambda end, out: end.sendall(out)))(self.server, data)
        self.read(self.client, len(data), self.asks)

    def exchange(self, *streams):
        self.ask(*streams)
        for stream in streams:
            self.response(stream, b"hello")
        self.answer()

    @staticmethod
    def read(end, count, connection):
        while count:
            data = end.recv(min(count, 65536))
            connection.receive_data(data)
            count -= len(data)


class H2Scene(Scene):
    """Such connections under observation."""

    def __init__(self, start, *options, observe=True):
        super().__init__(start, "--http", "--samples", "100000", *options, observe=observe)

    def talk(self):
        return Talk(*self.connect())


# ---- real servers and clients ----

@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
def test_nginx_counts_the_same(start, tmp_path):
    """nginx's own count, with files sent by sendfile() and uploaded bodies, 100 streams at a time."""
    nginx = start(Nginx(listen_options="http2", server="location /files/ { alias " + str(tmp_path) + "/; sendfile on; }"
                        "location /post { return 200 'taken'; }"))
    file = tmp_path / "file"
    file.write_bytes(os.urandom(300_000))
    file.chmod(0o644)
    observer = start(Observer("--http", "--samples", "100000", ports=[nginx.port]))
    assert "3000 succeeded" in run(["h2load", "-n", 3000, "-c", 4, "-m", 100, nginx.url]).stdout
    assert "40 succeeded" in run(["h2load", "-n", 40, "-c", 2, "-m", 10, f"{nginx.url}files/file"]).stdout
    run(["nghttp", "-n", "-d", file, f"{nginx.url}post", nginx.url])
    run(["curl", "--silent", "--fail", "--http2-prior-knowledge", "--output", tmp_path / "got", f"{nginx.url}files/file"])
    assert (tmp_path / "got").read_bytes() == file.read_bytes()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    count = nginx.status()["requests"]
    assert count == 3000 + 40 + 2 + 1
    assert followed(entry, count, 4 + 2 + 2)
    assert timed(entry, count)
    assert entry["exchanges"] == len(entry["samples"]["flow"])
    assert f"{count:,} streams on 8 connections" in observer.stdout


@needs_program("node")
@needs_program("h2load")
def test_node_counts_the_same(start, tmp_path):
    """Node writes frames of several streams in one writev(), and reads as libuv does."""
    from support.process import Process

    script = tmp_path / "server.js"
    script.write_text("""
        let count = 0;
        const server = require("http2").createServer();
        server.on("stream", (stream) => { count++; stream.respond({":status": 200}); stream.end("hello"); });
        process.on("SIGTERM", () => { console.log(`count ${count}`); process.exit(0); });
        server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
    """)
    node = start(Process(["node", script]))
    port = int(node.wait_for(r"port (\d+)", "stdout", 30)[1])
    observer = start(Observer("--http", "--samples", "100000", ports=[port]))
    assert "1000 succeeded" in run(["h2load", "-n", 1000, "-c", 3, "-m", 20, f"http://127.0.0.1:{port}/"]).stdout
    node.stop()
    observer.stop()
    assert re.search(r"count (\d+)", node.stdout)[1] == "1000"
    entry = service(observer.summary(), port)
    # Node says goodbye to a client whose own goodbye it reads before the connection's end.
    assert followed(entry, 1000, 3, **{"goaways": n for n in [entry["http2"]["goaways"]] if 0 < n <= 3})
    assert timed(entry, 1000)


def test_grpc_and_the_driver_join_every_call(start):
    """grpc's C core speaks first and ends its responses with trailers; the driver knows each call by its stream."""
    from support.net import free_port
    from support.process import Process
    from pathlib import Path

    pytest.importorskip("grpc")
    port = free_port()
    server = start(Process(["/usr/bin/python3", Path(__file__).parents[2] / "support/grpcserver.py", port]))
    server.wait_for("ready", "stdout", 30)
    observer = start(Observer("--http", ports=[port]))
    driver = Driver(f"h2c://127.0.0.1:{port}/test.Service/Echo", "--grpc", "--body", "hello", "--streams", 8,
                    connections=2, count=400, observer=observer)
    observer.stop()
    server.stop()
    assert "Echo=400" in server.stdout
    entry = service(observer.summary(), port)
    assert followed(entry, 400, 2)
    assert timed(entry, 400)
    joined = driver.document["joined"]
    assert joined["joined"] == 400 and joined["driver_only"] == joined["observer_only"] == 0
    assert joined["sum"]["stages"]["service"] == entry["stages"]["service"]["sum_ns"]


# ---- times ----

def times_are_the_servers(scene):
    """Three streams at a time have their own waits and are answered in another order: all within the promised error."""
    talk = scene.talk()
    talk.ask()
    talk.answer()
    truth, sent, read = {}, {}, {}
    for stream in (1, 3, 5):
        talk.request(stream)
        data = talk.asks.data_to_send()
        sent[stream] = between(lambda: talk.client.sendall(data))
        time.sleep(0.001 * stream)  # unread
        read[stream] = between(lambda: talk.read(talk.server, len(data), talk.answers))
    for stream in (5, 1, 3):
        time.sleep(0.005)
        talk.answers.send_headers(stream, [(":status", "200")])
        first = between(lambda: talk.server.sendall(talk.answers.data_to_send()))
        time.sleep(0.004)  # the response continues
        talk.answers.send_data(stream, b"rest", end_stream=True)
        last = between(lambda: talk.server.sendall(talk.answers.data_to_send()))
        truth[stream >> 1] = {"socket_queue": (sent[stream], read[stream]), "service": (read[stream], first),
                              "respond": (first, last)}
    entry = scene.end()
    assert followed(entry, 3) and timed(entry, 3)
    samples = entry["samples"]
    for place, index in enumerate(samples["index"]):
        for name, ((least, begun), (early, ended)) in truth[index].items():
            assert lies_within(samples["stages"][name][place], early - begun, ended - least), (index, name)
    with timing():
        assert min(samples["stages"]["service"]) >= 5 * MS


@in_quiet
def test_times_are_those_of_the_server(start):
    times_are_the_servers(H2Scene(start))


def between(call):
    begun = time.monotonic_ns()
    call()
    return begun, time.monotonic_ns()


def test_a_request_in_parts_is_received(start):
    """A body that comes later than its headers is `receive`; service starts with the last byte."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.request(1, end=False)
    talk.ask()
    time.sleep(0.02)
    talk.asks.send_data(1, b"more")
    talk.ask()
    time.sleep(0.02)
    talk.asks.send_data(1, b"", end_stream=True)
    talk.ask()
    talk.response(1, b"hello")
    talk.answer()
    entry = scene.end()
    assert followed(entry, 1) and timed(entry, 1)
    assert entry["stages"]["receive"]["sum_ns"] >= 40 * MS


def test_phases_share_a_stream(start):
    """A response in progress when a phase begins counts in the phase in which it started."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.ask(1)
    first = scene.observer.begin_phase()
    talk.answers.send_headers(1, [(":status", "200")])
    talk.answer()
    before = service(scene.observer.end_phase(first), scene.port)
    second = scene.observer.begin_phase()
    talk.answers.send_data(1, b"rest", end_stream=True)
    talk.answer()
    after = service(scene.observer.end_phase(second), scene.port)
    assert before["exchanges"] == 1 and before["http2"]["streams"] == 0
    assert after["exchanges"] == 0 and after["losses"]["carried"] == 1
    scene.end(samples=False)


# ---- shapes of reads and writes ----

def in_pieces(call, size):
    def read(end, count, connection):
        while count:
            data = call(end, min(size, count))
            connection.receive_data(data)
            count -= len(data)
    return read


def readv(end, size):
    buffers = [bytearray(3), bytearray(0), bytearray(1), bytearray(max(0, size - 4))]
    count = os.readv(end.fileno(), buffers)
    return b"".join(buffers)[:count]


def recvmsg_into(end, size):
    buffers = [bytearray(5), bytearray(7), bytearray(max(0, size - 12))]
    count = end.recvmsg_into(buffers)[0]
    return b"".join(buffers)[:count]


def cut(data, size):
    return [data[at:at + size] for at in range(0, len(data), size)]


READS = [lambda end, size: end.recv(size), lambda end, size: os.read(end.fileno(), size), readv, recvmsg_into]
WRITES = [lambda end, data: end.sendall(data), lambda end, data: os.write(end.fileno(), data),
          lambda end, data: os.writev(end.fileno(), cut(data, 1 + len(data) // 100)),
          lambda end, data: end.sendmsg(cut(data, 1 + len(data) // 100)),
          lambda end, data: [end.sendall(piece) for piece in cut(data, 7)]]


def converse(talk, read, write, long):
    """Three exchanges: header blocks of several frames, padding, trailers, empty frames."""
    for stream in (1, 3, 5):
        talk.request(stream, end=False, headers=[("x-long", "y" * (long if stream == 3 else 20))])
        talk.asks.send_data(stream, b"body", pad_length=stream)
        if stream == 5:
            talk.asks.send_headers(stream, [("trailer", "yes")], end_stream=True)
        else:
            talk.asks.send_data(stream, b"", end_stream=True)
    talk.asks.ping(b"12345678")
    talk.ask(read=read)
    talk.answers.send_headers(3, [(":status", "200")])
    talk.answers.send_data(3, b"trailers follow")
    talk.answers.send_headers(3, [("grpc-status", "0")], end_stream=True)
    talk.response(1, b"hello", headers=[("x-long", "y" * long)])
    talk.response(5)
    talk.answer(write)


def test_frames_are_seen_however_they_are_cut(start):
    """Buffers and calls of any length, on one connection per way to read and to write."""
    scene = H2Scene(start)
    ways = [(in_pieces(call, size), WRITES[0], 20_000 if size == 65536 else 20)
            for call in READS for size in (1, 13, 65536)] + [(None, write, 20_000) for write in WRITES[1:]]
    for read, write, long in ways:
        converse(scene.talk(), read, write, long)
    entry = scene.end()
    assert followed(entry, 3 * len(ways))
    assert timed(entry, 3 * len(ways))


def by_sendfile(talk, path, data):
    path.write_bytes(data)
    with open(path, "rb") as file:
        assert os.sendfile(talk.server.fileno(), file.fileno(), 0, len(data)) == len(data)


def test_what_nobody_sees_is_skipped_or_told(start, tmp_path):
    """DATA sent by sendfile() is skipped by its length. If a frame's header is sent so, nothing is known after it."""
    scene = H2Scene(start)
    talk = scene.talk()
    for stream in (1, 3):
        talk.ask(stream)
        talk.answers.send_headers(stream, [(":status", "200")])
        talk.answers.send_data(stream, bytes(10_000), end_stream=True)
        data = talk.answers.data_to_send()
        talk.server.sendall(data[:-10_000])
        by_sendfile(talk, tmp_path / "file", data[-10_000:])
        talk.read(talk.client, len(data), talk.asks)
    blind = scene.talk()
    blind.exchange(1)
    blind.ask(3)
    blind.response(3)
    data = blind.answers.data_to_send()
    by_sendfile(blind, tmp_path / "file", data)
    blind.read(blind.client, len(data), blind.asks)
    entry = scene.end()
    assert followed(entry, 4, given_up=1, lost=1)
    assert entry["exchanges"] == 3 and entry["losses"]["multiplexed"] == 1
    assert entry["losses"]["unanswered"] == 0


def garbage_is_given_up(scene):
    """It comes after the preface, from either side, and is reported and never parsed."""
    for from_client in (True, False):
        talk = scene.talk()
        talk.exchange(1)
        ends = (talk.client, talk.server) if from_client else (talk.server, talk.client)
        for _ in range(3):
            ends[0].sendall(b"\xff" * 100)
            assert ends[1].recv(200)
    entry = scene.end()
    assert followed(entry, 2, given_up=2)
    assert entry["exchanges"] == 2 and entry["losses"]["multiplexed"] == 2
    assert entry["losses"]["unsolicited"] == 0


def test_what_is_no_http2_is_given_up(start):
    garbage_is_given_up(H2Scene(start))


def test_many_small_frames_in_one_read(start):
    """One read returns 1.4 MB of them. Each is followed, or the next request would not be understood."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.exchange(1)
    frames = bytes.fromhex("000005" "02" "00" "00000001" "0000000000") * 100_000  # PRIORITY
    sender = threading.Thread(target=talk.client.sendall, args=[frames])
    sender.start()
    assert len(talk.server.recv(len(frames), socket.MSG_WAITALL)) == len(frames)
    sender.join()
    talk.exchange(3)
    entry = scene.end()
    assert followed(entry, 2) and timed(entry, 2)


# ---- streams that end early ----

GOAWAY = bytes.fromhex("000008" "07" "00" "00000000" "00000001" "00000000")


def resets_are_by_who_did_it(scene):
    """One connection resets five streams; another has three and a GOAWAY that spares the first."""
    talk = scene.talk()
    talk.ask(1, 3, 5, 7, 9)
    talk.answers.reset_stream(1, REFUSED)
    talk.answers.reset_stream(3, CANCEL)
    talk.answers.send_headers(5, [(":status", "200")])
    talk.answer()
    talk.asks.reset_stream(5, CANCEL)  # after its response had started
    talk.asks.reset_stream(7, CANCEL)
    talk.ask()
    talk.response(9)
    talk.answer()
    leaves = scene.talk()
    leaves.ask(1, 3, 5)
    leaves.response(1)
    leaves.answer(lambda end, data: end.sendall(data + GOAWAY))
    leaves.client.recv(len(GOAWAY))
    entry = scene.end()
    assert followed(entry, 5 + 3, reset_by_client=2, reset_by_server=2, refused=1 + 2, goaways=1)
    assert by_error(entry, "client") == {"cancel": 2}
    assert by_error(entry, "server") == {"refused_stream": 1, "cancel": 1}
    assert entry["exchanges"] == entry["stages"]["service"]["count"] == 2 + 1
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == 3 + 2


def test_resets_are_told_by_who_did_it(start):
    resets_are_by_who_did_it(H2Scene(start))


def test_resets_have_their_error(start):
    """Each code of RFC 9113, section 7, by both sides, and codes that it does not know."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.ask()
    talk.answer()
    codes = [*range(14), 14, 0x80000008]
    for at, code in enumerate(codes):
        reset = frame(3, 4 * at + 1, code.to_bytes(4, "big"))
        talk.ask(4 * at + 1, 4 * at + 3)
        talk.client.sendall(reset)
        talk.server.recv(len(reset))
        talk.server.sendall(frame(3, 4 * at + 3, code.to_bytes(4, "big")))
        talk.client.recv(len(reset))
    told = re.findall(r'^sojourn_http2_(client|server)_resets_total\{.*error="(\w+)"\} (\d+)$', scene.observer.get("/metrics"),
                      re.MULTILINE)
    entry = scene.end()
    for side in ("client", "server"):
        assert by_error(entry, side) == {**dict.fromkeys(ERRORS, 1), "other": 2}
        assert {error: int(n) for by, error, n in told if by == side} == by_error(entry, side)
    assert entry["http2"]["reset_by_client"] == entry["http2"]["reset_by_server"] == len(codes)
    assert "reset by server: enhance your calm 1" in scene.observer.stdout


def test_what_is_open_is_told_and_its_end_is_abandoned(start):
    """Of 1,300 streams the first and five late ones stay open until their connection goes; the first is far
    older than the rest."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.request(1)
    for first in range(3, 2601, 100):
        talk.exchange(*range(first, min(first + 100, 2601), 2))
    talk.ask(*range(2601, 2611, 2))
    time.sleep(0.01)
    entry = service(scene.observer.document(), scene.port)
    assert entry["open"]["read"] == 6 and sum(entry["open"]["ages"].values()) == 6
    assert entry["open"]["oldest_ns"] >= 10 * MS
    assert entry["open"]["ages"]["below_10ms"] == entry["open"]["ages"]["below_1ms"] == 0
    entry = scene.end()
    assert followed(entry, 1305)
    assert entry["exchanges"] == 1299
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == 6
    assert entry["open"]["read"] == 0


# ---- which connections ----

def test_who_speaks_first_does_not_matter(start):
    """Servers may send SETTINGS before they have read anything."""
    server = H2Server(lambda exchange: exchange.answer())
    observer = start(Observer("--http", ports=[server.port]))
    Driver(server.url, "--streams", 4, connections=2, count=200)
    observer.stop()
    server.close()
    entry = service(observer.summary(), server.port)
    assert server.counts["requests"] == 200
    assert followed(entry, 200, 2)
    assert timed(entry, 200)


def test_http1_beside_it_is_the_same(start):
    """With --http, HTTP/1.1 is counted and timed as before."""
    nginx = start(Nginx())
    observer = start(Observer("--http", "--samples", "100000", ports=[nginx.port]))
    Driver(nginx.url, connections=4, count=2000)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["http2"]["connections"] == entry["http2"]["streams"] == 0
    assert timed(entry, 2000)
