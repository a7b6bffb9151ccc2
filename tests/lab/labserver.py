# SPDX-License-Identifier: MIT
"""The lab server as a process of its tests, and a client for each protocol.

Clients send exactly the given bytes; times are left to the server's truth.
"""

import csv
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess

import pytest

from support import BUILD
from support.process import wait_until

LAB = BUILD / "tests" / "lab" / "sojourn-lab"

MS = 1_000_000
STREAMS = ["http", "line", "frame"]
PROTOCOLS = STREAMS + ["udp"]
# Every model; the last two are the two kinds of prefork's workers.
MODELS = {
    "event": ["--model", "event"],
    "threads": ["--model", "threads"],
    "prefork": ["--model", "prefork", "--workers", "3"],
    "prefork-blocking": ["--model", "prefork", "--workers", "3", "--worker", "blocking"],
}
TIME_WAITS = 10  # seconds that anything may take on a loaded machine


class Lab:
    """A running server; stop() returns its summary and truth."""

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
        """Start on a port outside connect()'s range, whose ports others may have used up."""
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
    """A factory of servers, all of which end with the test."""
    started = []

    def start(*args, **kwargs):
        directory = tmp_path / str(len(started))
        directory.mkdir()
        started.append(Lab(directory, *args, **kwargs))
        return started[-1]

    yield start
    for server in started:
        server.kill()


def read_exactly(sock, count):
    data = bytearray()  # appending to bytes would copy all of them each time
    while len(data) < count:
        part = sock.recv(min(1 << 20, count - len(data)))
        if not part:
            raise EOFError(bytes(data))
        data += part
    return bytes(data)


def read_until(sock, end):
    data = b""
    while not data.endswith(end):
        # Peek first: bytes after the end stay for the next read.
        part = sock.recv(65536, socket.MSG_PEEK)
        if not part:
            raise EOFError(data)
        at = (data + part).find(end)
        data += sock.recv(len(part) if at < 0 else at + len(end) - len(data))
    return data


class Http:
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
    """Return the answer to a request without `size`: http answers ok, the others echo."""
    return b"ok\n" if protocol == "http" else text.encode()


def service_ns(row):
    return row["first_write_end_ns"] - row["last_read_end_ns"]


def respond_ns(row):
    return row["last_write_end_ns"] - row["first_write_end_ns"]


def check_times(row, udp=False):
    """Check the order of a complete exchange's times."""
    names = ["first_read_begin_ns", "first_read_end_ns", "last_read_end_ns",
             "first_write_begin_ns", "first_write_end_ns", "last_write_end_ns"]
    times = [row[name] for name in names]
    assert all(times) and times == sorted(times), row
    assert row["first_write_begin_ns"] <= row["last_write_begin_ns"] < row["last_write_end_ns"], row
    if udp:
        assert row["connection"] == row["accept_begin_ns"] == row["accept_end_ns"] == 0
    else:
        assert 0 < row["accept_begin_ns"] <= row["accept_end_ns"] <= row["first_read_end_ns"], row


def closed_kinds(summary):
    return {name: summary[name] for name in (
        "closed_by_server", "closed_by_client", "reset_by_server", "reset_by_client",
        "closed_at_exit") if summary[name]}


def sent_length(protocol, text):
    if protocol == "http":
        return len(Http.request(text))
    return len(text) + {"line": 1, "frame": 4, "udp": 0}[protocol]


def summary_now(server):
    server.summary_file.unlink(missing_ok=True)
    server.process.send_signal(signal.SIGUSR1)
    wait_until(server.summary_file.exists)
    return server.summary()


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


every_model = pytest.mark.parametrize("model", MODELS)
every_stream = pytest.mark.parametrize("protocol", STREAMS)
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
