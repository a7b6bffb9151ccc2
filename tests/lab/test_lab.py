# SPDX-License-Identifier: MIT
"""The lab server does what it says, seen from its clients, from /proc and from its own truth.

Run: SOJOURN_BUILD=build /usr/bin/python3 -m pytest tests/lab/test_lab.py
"""

import csv
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SOJOURN_BUILD", ROOT / "build")).resolve()
LAB = BUILD / "tests" / "lab" / "sojourn-lab"

MS = 1_000_000
STREAMS = ["http", "line", "frame"]
PROTOCOLS = STREAMS + ["udp"]
# Every way to serve; the last two are the two kinds of prefork's workers.
MODELS = {
    "event": ["--model", "event"],
    "threads": ["--model", "threads"],
    "prefork": ["--model", "prefork", "--workers", "3"],
    "prefork-blocking": ["--model", "prefork", "--workers", "3", "--worker", "blocking"],
}
TIME_WAITS = 10  # seconds that anything may take on a loaded machine


class Lab:
    """A running server; stop() gives its summary and truth."""

    def __init__(self, directory, *args, listen="127.0.0.1", truth=True, preexec_fn=None):
        self.truth_file = directory / "truth.csv"
        self.summary_file = directory / "summary.json"
        command = [LAB, "--summary", self.summary_file, *args]
        if truth:
            command += ["--truth", self.truth_file]
        self.stderr = ""
        line = self.start([str(part) for part in command], listen, preexec_fn)
        host, _, port = line.removeprefix("listening on ").strip().rpartition(":")
        self.address = (host.strip("[]"), int(port))
        self.port = int(port)

    def start(self, command, listen, preexec_fn):
        """On a port outside of those that connect() takes, which others may have used up."""
        for _ in range(20):
            port = random.randrange(20000, 30000)
            self.process = subprocess.Popen(
                [*command, "--listen", f"{listen}:{port}"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, preexec_fn=preexec_fn)
            line = self.process.stdout.readline()
            if line.startswith("listening on "):
                return line
            errors = self.process.communicate()[1]
            assert "Address already in use" in errors, errors
        raise AssertionError("no free port")

    def stop(self, number=signal.SIGTERM, status=0):
        self.process.send_signal(number)
        out, self.stderr = self.process.communicate(timeout=TIME_WAITS)
        assert self.process.returncode == status, self.stderr
        assert out == "", "one line on standard output, no more"
        assert "ERROR" not in self.stderr, self.stderr  # a sanitizer's report
        return self.summary(), self.truth()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def summary(self):
        return json.loads(self.summary_file.read_text())

    def truth(self):
        if not self.truth_file.exists():
            return []
        with open(self.truth_file, newline="", encoding="ascii") as file:
            rows = [{k: v if k == "peer" else int(v) for k, v in row.items()}
                    for row in csv.DictReader(file)]
        return sorted(rows, key=lambda row: row["last_read_end_ns"])

    def connect(self):
        return socket.create_connection(self.address, timeout=TIME_WAITS)

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@pytest.fixture
def lab(tmp_path):
    """A factory of servers that are gone when the test is."""
    started = []

    def start(*args, **kwargs):
        directory = tmp_path / str(len(started))
        directory.mkdir()
        started.append(Lab(directory, *args, **kwargs))
        return started[-1]

    yield start
    for server in started:
        server.kill()


def wait_until(condition):
    deadline = time.monotonic() + TIME_WAITS
    while not condition():
        assert time.monotonic() < deadline, "not within time"
        time.sleep(0.01)


def read_exactly(sock, count):
    data = b""
    while len(data) < count:
        part = sock.recv(min(1 << 20, count - len(data)))
        if not part:
            raise EOFError(data)
        data += part
    return data


def read_until(sock, end):
    data = b""
    while not data.endswith(end):
        part = sock.recv(1)
        if not part:
            raise EOFError(data)
        data += part
    return data


class Http:
    """An HTTP client that hides nothing: it sends what it is given."""

    def __init__(self, server):
        self.sock = server.connect()

    @staticmethod
    def request(query="", method="GET", headers="", body=b"", version="1.1"):
        target = "/?" + query if query else "/"
        head = f"{method} {target} HTTP/{version}\r\nHost: lab\r\n{headers}\r\n"
        return head.encode() + body

    def response(self, method="GET"):
        head = read_until(self.sock, b"\r\n\r\n").decode()
        status = int(head.split()[1])
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        if method == "HEAD" or status == 100:
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            return status, headers, b"".join(self.chunks())
        return status, headers, read_exactly(self.sock, int(headers["content-length"]))

    def chunks(self):
        chunks = []
        while True:
            size = int(read_until(self.sock, b"\r\n"), 16)
            chunk = read_exactly(self.sock, size + 2)
            assert chunk.endswith(b"\r\n")
            if not size:
                return chunks
            chunks.append(chunk[:-2])

    def send(self, query=""):
        self.sock.sendall(self.request(query))

    def receive(self):
        return self.response()[2]

    def ask(self, query=""):
        self.send(query)
        return self.receive()


class Line:
    def __init__(self, server):
        self.sock = server.connect()

    def send(self, text=""):
        self.sock.sendall(text.encode() + b"\n")

    def receive(self):
        return read_until(self.sock, b"\n")[:-1]

    def ask(self, text=""):
        self.send(text)
        return self.receive()


class Frame(Line):
    def send(self, text=""):
        payload = text if isinstance(text, bytes) else text.encode()
        self.sock.sendall(struct.pack(">I", len(payload)) + payload)

    def receive(self):
        return read_exactly(self.sock, struct.unpack(">I", read_exactly(self.sock, 4))[0])


class Udp(Line):
    def __init__(self, server):
        family = socket.AF_INET6 if ":" in server.address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.sock.settimeout(TIME_WAITS)
        self.sock.connect(server.address)

    def send(self, text=""):
        self.sock.send(text.encode())

    def receive(self):
        return self.sock.recv(65536)


CLIENTS = {"http": Http, "line": Line, "frame": Frame, "udp": Udp}


def answer(protocol, text):
    """What is answered to a request without `size`: http says ok, the others echo."""
    return b"ok\n" if protocol == "http" else text.encode()


def service_ns(row):
    return row["first_write_end_ns"] - row["last_read_end_ns"]


def respond_ns(row):
    return row["last_write_end_ns"] - row["first_write_end_ns"]


def check_times(row, udp=False):
    """The order of a complete exchange's times."""
    names = ["first_read_begin_ns", "first_read_end_ns", "last_read_end_ns",
             "first_write_begin_ns", "first_write_end_ns", "last_write_end_ns"]
    times = [row[name] for name in names]
    assert all(times) and times == sorted(times), row
    if udp:
        assert row["connection"] == row["accept_begin_ns"] == row["accept_end_ns"] == 0
    else:
        assert 0 < row["accept_begin_ns"] <= row["accept_end_ns"] <= row["first_read_end_ns"], row


def closed_kinds(summary):
    return {name: summary[name] for name in (
        "closed_by_server", "closed_by_client", "reset_by_server", "reset_by_client",
        "closed_at_exit") if summary[name]}


every_model = pytest.mark.parametrize("model", MODELS)
every_stream = pytest.mark.parametrize("protocol", STREAMS)
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


# Answers, counts and truth


@every_model
@every_protocol
@pytest.mark.parametrize("listen", ["127.0.0.1", "[::1]"])
def test_answers_and_counts_exactly(lab, protocol, model, listen):
    server = lab("--protocol", protocol, *MODELS[model], listen=listen)
    texts = ["size=10", "size=0" if protocol != "udp" else "size=1", "pieces=1", "size=100000"
             if protocol != "udp" else "size=65507"]
    bytes_in = bytes_out = 0
    for _ in range(3):
        client = CLIENTS[protocol](server)
        for text in texts:
            size = int(text.removeprefix("size=")) if text.startswith("size=") else None
            expected = answer(protocol, text) if size is None else b"x" * size
            assert client.ask(text) == expected
        peer = client.sock.getsockname()
        client.sock.close()
    if protocol != "udp":
        wait_until(lambda: summary_now(server)["closed_by_client"] == 3)
    summary, truth = server.stop()
    assert summary["exchanges"] == len(truth) == 3 * len(texts)
    assert summary["accepted"] == summary["closed"] == (0 if protocol == "udp" else 3)
    assert summary["unanswered"] == summary["incomplete"] == summary["bad_requests"] == 0
    for row in truth:
        check_times(row, udp=protocol == "udp")
        assert row["error"] == row["pipelined"] == 0
        assert row["local_port"] == server.port
        bytes_in += row["request_bytes"]
        bytes_out += row["response_bytes"]
    assert (summary["bytes_in"], summary["bytes_out"]) == (bytes_in, bytes_out)
    assert bytes_in == 3 * sum(sent_length(protocol, text) for text in texts)
    host = "[::1]" if listen[0] == "[" else "127.0.0.1"
    assert truth[-1]["peer"] == f"{host}:{peer[1]}"
    if protocol != "udp":
        assert sorted((row["connection"], row["exchange"]) for row in truth) == [
            (connection, index) for connection in (1, 2, 3) for index in range(len(texts))]
    if model.startswith("prefork"):
        assert all(row["pid"] != server.process.pid for row in truth)
    else:
        assert all(row["pid"] == server.process.pid for row in truth)


def sent_length(protocol, text):
    if protocol == "http":
        return len(Http.request(text))
    return len(text) + {"line": 1, "frame": 4, "udp": 0}[protocol]


def summary_now(server):
    """The summary as SIGUSR1 makes the server write it while it serves."""
    server.summary_file.unlink(missing_ok=True)
    server.process.send_signal(signal.SIGUSR1)
    wait_until(server.summary_file.exists)
    return server.summary()


@every_model
def test_counts_are_exact_under_load(lab, model):
    server = lab("--protocol", "line", *MODELS[model])
    threads, requests = 8, 500
    # As many at a time as there are workers: a blocking one serves a connection to its end.
    slots = threading.Semaphore(3)

    def run():
        with slots:
            client = Line(server)
            for i in range(requests):
                assert client.ask(str(i)) == str(i).encode()
            client.sock.close()
            done.append(1)

    done = []
    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == threads
    wait_until(lambda: summary_now(server)["closed"] == threads)
    summary, truth = server.stop(signal.SIGINT)
    assert summary["accepted"] == threads
    assert summary["exchanges"] == len(truth) == threads * requests
    assert {(row["connection"], row["exchange"]) for row in truth} == {
        (connection + 1, index) for connection in range(threads) for index in range(requests)}


@every_model
def test_prefork_shares_and_threads_overlap(lab, model):
    """Three slow requests at once take as long as one: in every model (three workers)."""
    server = lab("--protocol", "line", *MODELS[model])
    clients = [Line(server) for _ in range(3)]
    begin = time.monotonic()
    for client in clients:
        client.send("service=400ms")
    for client in clients:
        assert client.receive() == b"service=400ms"
    assert time.monotonic() - begin < 0.8
    _, truth = server.stop()
    if model == "prefork-blocking":
        assert len({row["pid"] for row in truth}) == 3


def test_truth_only_on_request(lab):
    server = lab(truth=False)
    assert Http(server).ask() == b"ok\n"
    summary, truth = server.stop()
    assert summary["exchanges"] == 1 and summary["truth_dropped"] == 0 and truth == []


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
def test_truth_is_bounded(lab, model):
    workers = ["--workers", "1"] if model == "prefork" else []
    server = lab("--protocol", "line", "--model", model, *workers, "--truth-limit", "1")
    client = Line(server)
    for _ in range(1024 + 50):
        client.ask("x")
    summary, truth = server.stop()
    assert summary["exchanges"] == 1074
    assert (len(truth), summary["truth_dropped"]) == (1024, 50)


# HTTP's own


def http_bodies():
    chunked = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    return {
        "content-length": ("Content-Length: 11\r\n", b"hello world"),
        "chunked": ("Transfer-Encoding: chunked\r\n", chunked),
        "large": (f"Content-Length: {3 << 20}\r\n", bytes(3 << 20)),
        "empty": ("Content-Length: 0\r\n", b""),
    }


@every_model
@pytest.mark.parametrize("body", http_bodies())
def test_http_request_bodies(lab, model, body):
    server = lab(*MODELS[model])
    headers, data = http_bodies()[body]
    client = Http(server)
    request = Http.request("service=1ms", "POST", headers, data)
    for _ in range(2):
        client.sock.sendall(request)
        assert client.response() == (
            200, {"content-type": "text/plain", "content-length": "3"}, b"ok\n")
    _, truth = server.stop()
    assert [row["request_bytes"] for row in truth] == [len(request)] * 2
    for row in truth:
        check_times(row)
    if body == "large":
        assert all(row["last_read_end_ns"] > row["first_read_end_ns"] for row in truth)


def test_http_keep_alive_and_close(lab):
    server = lab()
    for version, header, stays in (("1.1", "", True), ("1.1", "Connection: close\r\n", False),
                                   ("1.0", "", False), ("1.0", "Connection: keep-alive\r\n", True)):
        client = Http(server)
        client.sock.sendall(Http.request(headers=header, version=version))
        _, headers, body = client.response()
        assert body == b"ok\n"
        if stays:
            assert headers.get("connection") == ("keep-alive" if version == "1.0" else None)
            assert client.ask() == b"ok\n"
        else:
            assert headers["connection"] == "close"
            assert client.sock.recv(1) == b""
        client.sock.close()
    wait_until(lambda: summary_now(server)["closed"] == 4)
    assert closed_kinds(server.stop()[0]) == {"closed_by_server": 2, "closed_by_client": 2}


def test_http_head_and_chunked(lab):
    server = lab()
    client = Http(server)
    client.sock.sendall(Http.request("size=1000", "HEAD"))
    assert client.response("HEAD")[1]["content-length"] == "1000"
    client.sock.sendall(Http.request("size=1000&chunked=1&pieces=4"))
    read_until(client.sock, b"\r\n\r\n")
    assert [len(chunk) for chunk in client.chunks()] == [250] * 4
    client.sock.sendall(Http.request("size=0&chunked=1"))
    assert client.response()[2] == b""
    # HTTP/1.0 knows no chunks.
    client.sock.sendall(Http.request("size=7&chunked=1", version="1.0"))
    assert client.response()[1]["content-length"] == "7"


def test_http_expect_continue(lab):
    server = lab()
    client = Http(server)
    headers = "Content-Length: 5\r\nExpect: 100-continue\r\n"
    client.sock.sendall(Http.request(method="POST", headers=headers))
    assert client.response()[0] == 100
    client.sock.sendall(b"hello")
    assert client.response()[0] == 200
    summary, truth = server.stop()
    assert summary["exchanges"] == 1 and not truth[0]["error"]


@every_model
def test_http_refuses(lab, model):
    server = lab(*MODELS[model])
    bad = ["service=61s", "size=67108865", "pieces=0", "pieces=1001", "nonsense=1", "service=abc",
           "mode=fast", "close=2", "pieces=1000&pause=1s", "service", "service=1h", "pause=1.s",
           "size=99999999999999999999"]
    client = Http(server)
    for query in bad:
        client.send(query)
        status, headers, body = client.response()
        assert (status, body[:7], body[-1:]) == (400, b"error: ", b"\n"), query
        assert "connection" not in headers
    assert client.ask("service=0.5ms&") == b"ok\n"
    client.sock.close()
    summary, truth = server.stop()
    assert summary["bad_requests"] == len(bad)
    assert [row["error"] for row in truth] == [1] * len(bad) + [0]


@every_model
@pytest.mark.parametrize("garbage,status", [
    (b"not HTTP at all\r\n\r\n" + bytes(200000), 400),
    (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 70000, 431),
    (b"GET /?" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
], ids=["garbage", "long-head", "long-target"])
def test_http_malformed(lab, model, garbage, status):
    server = lab(*MODELS[model])
    client = Http(server)
    client.sock.sendall(garbage)
    got, headers, _ = client.response()
    assert got == status
    if status != 414:  # that one was understood
        assert headers["connection"] == "close"
        assert client.sock.recv(1) == b""
    client.sock.close()
    assert Http(server).ask() == b"ok\n"


@pytest.mark.parametrize("protocol,text", [
    ("line", "x" * 70000), ("frame", struct.pack(">I", 1 << 30) + bytes(70000))],
    ids=["line", "frame"])
def test_too_long_requests(lab, protocol, text):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)
    if protocol == "line":
        client.send(text)
    else:
        client.sock.sendall(text)
    assert client.receive().startswith(b"error: ")
    assert client.sock.recv(1) == b""


@pytest.mark.parametrize("protocol", ["line", "frame", "udp"])
def test_error_lines(lab, protocol):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)
    for text in ("service=61s", "x=y", "chunked=1", "size=1&pieces=x"):
        assert client.ask(text).startswith(b"error: "), text
    if protocol == "udp":
        for text in ("close=1", "reset=1", "early-close=1", "ignore-fin=1", "size=65508"):
            assert client.ask(text).startswith(b"error: "), text
        assert len(client.ask("size=65507")) == 65507
    assert client.ask("plain text") == b"plain text"


def test_binary_frames_are_plain(lab):
    client = Frame(lab("--protocol", "frame"))
    for payload in (b"\0=&=\xff", b"", bytes(range(256)) * 4096):
        client.send(payload)
        assert client.receive() == payload


# Injections


@every_model
@every_protocol
@pytest.mark.parametrize("mode", ["sleep", "spin"])
def test_service(lab, protocol, model, mode):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    text = f"service=5ms&mode={mode}"
    for _ in range(10):
        begin = time.monotonic_ns()
        assert client.ask(text) == answer(protocol, text)
        assert time.monotonic_ns() - begin >= 5 * MS
    for _ in range(5):
        assert client.ask("mode=sleep") == answer(protocol, "mode=sleep")
    _, truth = server.stop()
    assert min(service_ns(row) for row in truth[:10]) >= 5 * MS
    # The best of them, since the machine may be busy.
    assert min(service_ns(row) for row in truth[:10]) < 20 * MS
    assert min(service_ns(row) for row in truth[10:]) < 5 * MS


@every_protocol
def test_spin_uses_the_cpu_and_sleep_does_not(lab, protocol):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)

    def cpu_seconds():
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().split(")")[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu_seconds()
    client.ask("service=300ms&mode=sleep")
    slept = cpu_seconds()
    client.ask("service=300ms&mode=spin")
    assert slept - before < 0.1
    assert cpu_seconds() - slept > 0.05


def test_sleep_blocks_the_loop_only_if_asked(lab):
    server = lab("--protocol", "line")
    slow, quick = Line(server), Line(server)
    quick.ask("warm")
    slow.send("service=300ms")
    time.sleep(0.05)
    begin = time.monotonic()
    quick.ask("x")
    assert time.monotonic() - begin < 0.2
    slow.receive()
    for extra in ("block=1", "mode=spin"):
        slow.send("service=300ms&" + extra)
        time.sleep(0.05)
        begin = time.monotonic()
        quick.ask("x")
        assert time.monotonic() - begin > 0.2
        slow.receive()


@every_model
def test_options_are_the_default_of_requests(lab, model):
    server = lab("--service", "20ms", "--pieces=2", "--pause", "5ms", "--close", *MODELS[model])
    client = Http(server)
    assert client.ask() == b"ok\n"
    assert client.sock.recv(1) == b""
    client = Http(server)
    assert client.ask("service=0&pieces=1&close=0") == b"ok\n"
    assert client.ask("close=0") == b"ok\n"
    _, truth = server.stop()
    assert [service_ns(row) >= 20 * MS for row in truth] == [True, False, True]
    assert [respond_ns(row) >= 5 * MS for row in truth] == [True, False, True]


@every_model
@every_stream
def test_accept_delay(lab, protocol, model):
    server = lab("--protocol", protocol, "--accept-delay", "30ms", *MODELS[model])
    for _ in range(3):
        begin = time.monotonic_ns()
        client = CLIENTS[protocol](server)
        connected = time.monotonic_ns()
        client.ask("size=1")
        client.sock.close()
        assert time.monotonic_ns() - begin >= 30 * MS
        assert server.process.poll() is None
    _, truth = server.stop()
    assert len(truth) == 3
    # connect() needs no accept(): the last one returned long before the server's accept() did.
    assert truth[-1]["accept_end_ns"] - connected >= 25 * MS
    assert all(row["last_write_end_ns"] - row["accept_end_ns"] < 30 * MS for row in truth[:1])


@pytest.mark.parametrize("model", ["event", "threads"])
def test_accept_delay_is_before_each(lab, model):
    server = lab("--protocol", "line", "--accept-delay", "30ms", "--model", model)
    clients = [Line(server) for _ in range(4)]
    for client in clients:
        client.ask("x")
    _, truth = server.stop()
    ends = sorted(row["accept_end_ns"] for row in truth)
    assert all(b - a >= 30 * MS for a, b in zip(ends, ends[1:]))


@every_model
@every_protocol
def test_read_delay(lab, protocol, model):
    server = lab("--protocol", protocol, "--read-delay", "30ms", *MODELS[model])
    client = CLIENTS[protocol](server)
    sent = []
    for _ in range(3):
        sent.append(time.monotonic_ns())
        assert client.ask("size=5") == b"xxxxx"
    _, truth = server.stop()
    for begin, row in zip(sent, truth):
        assert row["first_read_end_ns"] - begin >= 30 * MS
        assert row["readable_ns"] >= begin
        assert row["first_read_begin_ns"] - row["readable_ns"] >= 30 * MS
        assert service_ns(row) < 30 * MS


def test_readable_is_known_where_the_model_knows_it(lab):
    for model in MODELS:
        server = lab("--protocol", "line", *MODELS[model])
        client = Line(server)
        for _ in range(3):
            client.ask("x")
        _, truth = server.stop()
        known = [0 < row["readable_ns"] <= row["first_read_begin_ns"] for row in truth]
        assert known == [model in ("event", "prefork")] * 3, model


@every_model
@every_stream
def test_receive_is_the_request_arriving(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    whole = {"http": Http.request("size=4"), "line": b"size=4\n",
             "frame": struct.pack(">I", 6) + b"size=4"}[protocol]
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in (whole[:1], whole[1:2], whole[2:3], whole[3:-1], whole[-1:]):
        client.sock.sendall(part)
        time.sleep(0.02)
    assert client.receive() == b"xxxx"
    _, truth = server.stop()
    assert len(truth) == 1
    received = truth[0]["last_read_end_ns"] - truth[0]["first_read_end_ns"]
    assert received >= 50 * MS  # of 80, since its first read may be late
    assert service_ns(truth[0]) < 30 * MS


@every_model
@every_stream
def test_pieces(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.send("pieces=5&pause=20ms&size=50")
    parts = []
    body = b""
    while b"x" * 50 not in body:
        parts.append(client.sock.recv(65536))
        body += parts[-1]
    assert len(parts) == 5
    client = CLIENTS[protocol](server)
    assert client.ask("pieces=1000&size=3") == b"xxx"
    _, truth = server.stop()
    assert respond_ns(truth[0]) >= 80 * MS
    assert truth[0]["response_bytes"] == len(body) + (protocol == "line" and body[-1:] != b"\n")


@every_model
def test_udp_pieces(lab, model):
    server = lab("--protocol", "udp", *MODELS[model])
    client = Udp(server)
    client.send("pieces=4&pause=10ms&size=10")
    assert [len(client.receive()) for _ in range(4)] == [2, 3, 2, 3]
    _, truth = server.stop()
    assert respond_ns(truth[0]) >= 30 * MS and truth[0]["response_bytes"] == 10


@every_model
@every_stream
def test_large_response_to_a_slow_reader(lab, protocol, model):
    size = 64 << 20
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.send(f"size={size}")
    time.sleep(0.1)  # its send buffer is full by now
    if protocol == "line":
        got = sum(len(part) for part in iter(lambda: take(client.sock, size + 1), b""))
        assert got == size + 1
    else:
        assert len(client.receive()) == size
    _, truth = server.stop()
    assert truth[0]["response_bytes"] >= size and not truth[0]["error"]
    assert respond_ns(truth[0]) >= 50 * MS


def take(sock, total, taken={}):
    """Part by part up to @total bytes, then b""."""
    left = total - taken.get(sock, 0)
    part = sock.recv(min(left, 1 << 20)) if left else b""
    taken[sock] = taken.get(sock, 0) + len(part)
    return part


@every_model
@every_stream
@pytest.mark.parametrize("extra", ["", "&pieces=4&pause=1ms"])
def test_early_close(lab, protocol, model, extra):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1000")
    client.send("size=1000&early-close=1" + extra)
    got = b"".join(iter(lambda: client.sock.recv(65536), b""))
    summary, truth = server.stop()
    assert [row["error"] for row in truth] == [0, 1]
    assert len(got) == truth[1]["response_bytes"] == truth[0]["response_bytes"] // 2
    assert (summary["exchanges"], summary["incomplete"]) == (2, 1)
    assert closed_kinds(summary) == {"closed_by_server": 1}


@every_model
@every_protocol
def test_leak(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1")

    def open_fds():
        pids = [server.process.pid] + children(server.process.pid)
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)

    before = open_fds()
    for _ in range(7):
        client.ask("size=1&leak=1")
    assert open_fds() - before == 7
    client.ask("leak=0")
    assert open_fds() - before == 7
    assert server.stop()[0]["leaked"] == 7


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def states(server, peer_port):
    """The states of the server's sockets to @peer_port, from /proc/net/tcp."""
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = f":{server.port:04X}", f":{peer_port:04X}"
    return [row.split()[3] for row in rows
            if (row.split()[1][8:], row.split()[2][8:]) == ends]


CLOSE_WAIT = "08"


@every_model
@every_stream
def test_ignore_fin(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    clients = [CLIENTS[protocol](server) for _ in range(2)]
    ports = [client.sock.getsockname()[1] for client in clients]
    clients[0].ask("ignore-fin=1")
    clients[1].ask("ignore-fin=0")
    for client in clients:
        client.sock.shutdown(socket.SHUT_WR)
    assert clients[1].sock.recv(1) == b""
    time.sleep(0.2)
    assert states(server, ports[0]) == [CLOSE_WAIT]
    assert CLOSE_WAIT not in states(server, ports[1])
    # It must not keep a CPU busy meanwhile: the other connections are served as ever.
    assert CLIENTS[protocol](server).ask("size=2")
    summary, _ = server.stop()
    assert summary["closed_by_client"] >= 1 and summary["closed_at_exit"] >= 1
    assert summary["accepted"] == summary["closed"] == 3


@every_model
@every_stream
def test_reset(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1")
    client.send("reset=1")
    with pytest.raises(ConnectionResetError):
        client.sock.recv(1)
    summary, truth = server.stop()
    assert (summary["exchanges"], summary["unanswered"]) == (1, 1)
    assert closed_kinds(summary) == {"reset_by_server": 1}
    assert truth[1]["error"] == 1
    assert truth[1]["first_write_begin_ns"] == truth[1]["response_bytes"] == 0


@every_model
@every_stream
def test_close(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=3")
    assert client.ask("size=3&close=1") == b"xxx"
    assert client.sock.recv(1) == b""
    assert closed_kinds(server.stop()[0]) == {"closed_by_server": 1}


# Robustness


@every_model
@every_stream
def test_pipelined(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    texts = [f"size={i}" if i % 3 else f"size={i}&service=2ms" for i in range(1, 300)]
    whole = {"http": Http.request,
             "line": lambda text: text.encode() + b"\n",
             "frame": lambda text: struct.pack(">I", len(text)) + text.encode()}[protocol]
    client.sock.sendall(b"".join(whole(text) for text in texts))
    for i in range(1, 300):
        assert client.receive() == b"x" * i
    summary, truth = server.stop()
    assert summary["exchanges"] == len(truth) == 299
    truth.sort(key=lambda row: row["exchange"])
    assert [row["request_bytes"] for row in truth] == [len(whole(text)) for text in texts]
    assert not truth[0]["pipelined"]
    assert sum(row["pipelined"] for row in truth) > 200
    for row in truth:
        check_times(row)


@every_model
@every_stream
def test_clients_that_vanish(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    half = {"http": b"GET / HT", "line": b"abc", "frame": b"\0\0\0\5a"}[protocol]

    def vanish(data, pause=0.05, abort=False):
        client = CLIENTS[protocol](server)
        client.sock.sendall(data) if isinstance(data, bytes) else client.send(data)
        time.sleep(pause)
        if abort:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sock.close()

    vanish(half)                                      # half a request
    vanish(half, abort=True)
    vanish("service=100ms", abort=True)               # while it is served
    vanish("size=20000000", abort=True)               # while it is answered
    vanish("pieces=3&pause=50ms&size=9", abort=True)  # between two pieces
    wait_until(lambda: summary_now(server)["closed"] == 5)
    stays = CLIENTS[protocol](server)
    assert stays.ask("size=2") == b"xx"
    summary, truth = server.stop()
    assert summary["closed_by_client"] == 1 and summary["reset_by_client"] == 4
    # During the service: a loop notices at once, a blocking server when it writes (into the void).
    assert summary["unanswered"] == 3
    assert (summary["exchanges"], summary["incomplete"]) == (3, 2)
    assert sum(row["error"] for row in truth) == 5


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
def test_out_of_descriptors(lab, model):
    workers = ["--workers", "1"] if model == "prefork" else []
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
    server = lab("--protocol", "line", "--model", model, *workers, preexec_fn=limit)
    clients = [Line(server) for _ in range(40)]
    time.sleep(1.5)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid = children(server.process.pid)[0] if model == "prefork" else server.process.pid
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()
    assert (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < 0.7, usage
    # As those that were accepted leave, the others get their turn.
    for client in clients:
        assert client.ask("hello") == b"hello"
        client.sock.close()
    summary, _ = server.stop()
    assert summary["accepted"] == summary["exchanges"] == 40
    assert 1 <= summary["accept_errors"] <= 100
    lines = server.stderr.splitlines()
    assert 1 <= len(lines) <= 6 and "accept: Too many open files" in lines[0]


@every_model
@every_protocol
def test_stops_at_once_whatever_is_going_on(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    clients = [CLIENTS[protocol](server) for _ in range(3)]
    clients[0].send("service=60s")
    clients[1].send("size=60&pieces=60&pause=1s")
    assert clients[1].sock.recv(1)
    time.sleep(0.1)
    begin = time.monotonic()
    summary, truth = server.stop()
    assert time.monotonic() - begin < 3
    if protocol != "udp":
        assert summary["accepted"] == summary["closed"] == summary["closed_at_exit"]
    assert (summary["unanswered"], summary["exchanges"], summary["incomplete"]) == (1, 1, 1)
    assert [row["error"] for row in truth] == [1, 1]


@pytest.mark.parametrize("worker", ["event", "blocking"])
def test_prefork_survives_and_reports_a_killed_worker(lab, worker):
    server = lab("--protocol", "line", "--model", "prefork", "--workers", "2", "--worker", worker)
    victim = children(server.process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(children(server.process.pid)) == 1)
    assert Line(server).ask("x") == b"x"
    summary, truth = server.stop(status=1)
    assert summary["exchanges"] == len(truth) == 1
    assert f"worker {victim}: killed by signal 9" in server.stderr
    assert not list(server.truth_file.parent.glob("*.part-*"))


@pytest.mark.parametrize("worker", ["event", "blocking"])
def test_prefork_workers_end_with_their_parent(lab, worker):
    server = lab("--protocol", "line", "--model", "prefork", "--worker", worker)
    workers = children(server.process.pid)
    assert len(workers) == 4
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(is_running(pid) for pid in workers))


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_no_part_files_are_left(lab):
    server = lab("--model", "prefork")
    Http(server).ask()
    server.stop()
    assert sorted(path.name for path in server.truth_file.parent.iterdir()) == [
        "summary.json", "truth.csv"]


def test_summary_into_a_device_keeps_the_device(lab):
    server = lab("--summary", "/dev/null")
    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=TIME_WAITS)
    assert server.process.returncode == 0
    assert not pathlib.Path("/dev/null").is_file()


def test_backlog(lab):
    server = lab("--backlog", "5", "--accept-delay", "60s")
    listing = subprocess.run(["ss", "-Hltn", f"sport = :{server.port}"], capture_output=True,
                             text=True, check=True).stdout.split()
    assert listing[2] == "5"


@pytest.mark.parametrize("listen", ["127.0.0.1", "[::1]"])
@pytest.mark.parametrize("protocol", ["line", "udp"])
def test_port_0_is_any(listen, protocol):
    process = subprocess.Popen([str(LAB), "--listen", f"{listen}:0", "--protocol", protocol],
                               stdout=subprocess.PIPE, text=True)
    host, _, port = process.stdout.readline().strip().rpartition(":")
    process.terminate()
    process.communicate(timeout=TIME_WAITS)
    assert host == f"listening on {listen}" and 0 < int(port) < 65536


@pytest.mark.parametrize("protocol", ["line", "udp"])
def test_stopping_blocked_workers_is_silent(lab, protocol):
    server = lab("--protocol", protocol, "--model", "prefork", "--worker", "blocking",
                 "--workers", "16")
    summary, _ = server.stop()
    assert server.stderr == "" and summary["accept_errors"] == 0


# The command line


def run(*args):
    return subprocess.run([str(LAB), *args], capture_output=True, text=True, check=False,
                          timeout=TIME_WAITS)


@pytest.mark.parametrize("args", [
    ["--protocol", "smtp"], ["--model", "magic"], ["--listen", "localhost:80"],
    ["--listen", "127.0.0.1"], ["--listen", "127.0.0.1:65536"], ["--listen", "::1:80"],
    ["--listen", "[::1:80"], ["--listen", ""], ["--backlog", "-1"], ["--backlog", "65536"],
    ["--workers", "0"], ["--workers", "257"], ["--service", "61s"], ["--service", "fast"],
    ["--pieces", "0"], ["--size", "67108865"], ["--mode", "x"], ["--close=yes"],
    ["--accept-delay", "61s"], ["--read-delay", "1d"], ["--truth", ""], ["--truth-limit", "0"],
    ["--nonsense"], ["--service"], ["-x"], ["argument"],
    ["--protocol", "udp", "--accept-delay", "1ms"], ["--protocol", "udp", "--reset"],
    ["--protocol", "line", "--chunked"], ["--worker", "blocking"],
    ["--pieces", "1000", "--pause", "1s"],
])
def test_bad_options_are_refused(args):
    result = run(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("sojourn-lab: ")
    if args[0].startswith("--") and len(args) <= 2:
        assert args[0].split("=")[0] in result.stderr


def test_cannot_listen_or_write(lab, tmp_path):
    server = lab()
    taken = run("--listen", f"127.0.0.1:{server.port}")
    assert taken.returncode == 1 and "Address already in use" in taken.stderr
    nowhere = run("--listen", "127.0.0.1:0", "--truth", str(tmp_path / "no" / "file"))
    assert nowhere.returncode == 1 and "No such file" in nowhere.stderr
    assert taken.stdout == nowhere.stdout == ""


def test_help():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    for option in ("listen", "protocol", "model", "workers", "worker", "backlog", "accept-delay",
                   "read-delay", "truth", "truth-limit", "summary", "service", "mode", "block",
                   "pieces", "pause", "size", "chunked", "early-close", "leak", "ignore-fin",
                   "reset", "close", "help", "version"):
        assert f"  --{option} " in result.stdout, option
    assert run("--version").stdout.startswith("sojourn-lab ")
