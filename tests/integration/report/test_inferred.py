# SPDX-License-Identifier: MIT
"""If the end of the accept queue is inferred from the first read, reports do not claim a late accept(). By its
own clock the server accepts at once, and reads late, because its one worker is busy.
"""
import queue
import re
import socket
import threading
import time

import pytest

from support.documents import service
from support.process import run
from support.programs import OBSERVER, Observer
from support.timing import MS

WORK_S = 0.05
CLIENTS = 24
REQUEST = b"GET / HTTP/1.1\r\nHost: pool\r\n\r\n"


class Pool:
    """An acceptor, and one worker that takes WORK_S for each connection's only request."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.accepted_ns = {}  # by the client's port
        self.read_ns = {}
        self.connections = queue.Queue()
        self.threads = [threading.Thread(target=self.accept), threading.Thread(target=self.work)]
        for thread in self.threads:
            thread.start()

    def accept(self):
        while True:
            try:
                connection, (_, client) = self.listener.accept()
            except OSError:
                self.connections.put(None)
                return
            self.accepted_ns[client] = time.monotonic_ns()
            self.connections.put((client, connection))

    def work(self):
        while (taken := self.connections.get()) is not None:
            client, connection = taken
            connection.recv(65536)
            self.read_ns[client] = time.monotonic_ns()
            time.sleep(WORK_S)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.close()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        self.listener.close()


def ask(port, asked_ns):
    began_ns = time.monotonic_ns()
    with socket.create_connection(("127.0.0.1", port)) as client:
        asked_ns[client.getsockname()[1]] = began_ns, time.monotonic_ns()
        client.sendall(REQUEST)
        while client.recv(65536):
            pass


def starve(port):
    """Connect all clients at once; return by port when each started to connect and when it had asked."""
    asked_ns = {}
    clients = [threading.Thread(target=ask, args=(port, asked_ns)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return asked_ns


@pytest.fixture(params=["inferred", "syscall"])
def starved(request, start):
    """Return the source, the observer, the service's port, and the server's mean waits: for accept() (at least,
    at most), and from there to the read."""
    pool = Pool()
    try:
        observer = start(Observer("--accept-source", request.param, ports=[pool.port]))
        asked_ns = starve(pool.port)
        observer.stop()
    finally:
        pool.end()
    ports = list(asked_ns)
    accept_ns = [sum(max(0, pool.accepted_ns[port] - asked_ns[port][since]) for port in ports) / CLIENTS
                 for since in (1, 0)]
    read_ns = sum(pool.read_ns[port] - pool.accepted_ns[port] for port in ports) / CLIENTS
    return request.param, observer, pool.port, accept_ns, read_ns


def flat(text):
    return re.sub(r"\s+", " ", text)


def test_a_late_accept_is_not_said_of_a_busy_worker(starved, tmp_path):
    source, observer, port, accept_ns, read_ns = starved
    entry = service(observer.summary(), port)
    waits, queued = entry["stages"]["accept_queue"], entry["stages"]["socket_queue"]
    run([OBSERVER, "report", observer.json, "-o", tmp_path / "report.html"])
    text, page = flat(observer.stdout), (tmp_path / "report.html").read_text()

    # By the server's clock, most of the wait is for the worker.
    assert read_ns > WORK_S * 1e9 and read_ns > 2 * accept_ns[0]
    assert entry["exchanges"] == CLIENTS
    # The whole wait is reported, under whichever name.
    waited_ns = (waits["sum_ns"] + queued["sum_ns"]) / CLIENTS
    assert abs(waited_ns - read_ns) < accept_ns[1] + 20 * MS
    inferred = source == "inferred"
    for report in (text, page):
        assert ("--accept-source syscall distinguishes them" in report) == inferred
    assert bool(re.search(r"^accept or socket queue +\d", observer.stdout, re.MULTILINE)) == inferred
    assert bool(re.search(r"^accept queue +\d", observer.stdout, re.MULTILINE)) != inferred
    if not inferred:
        assert waits["sum_ns"] / CLIENTS < accept_ns[1] + MS


def test_what_the_queue_cannot_have_held_is_not_said_to_be_in_it(starved):
    """The acceptor empties the queue at once: by Little's law most of the wait came after accept()."""
    source, observer, port, accept_ns, read_ns = starved
    queue_now = service(observer.summary(), port)["accept_queue"]
    said = re.search(r"At least (\d+) % of it came after accept\(\)", flat(observer.stdout))
    if source == "syscall":
        assert not said
        return
    truth = 100 * read_ns / (read_ns + accept_ns[0])
    # Connections accepted before their request came have no inferred wait; the others may be too few.
    document = observer.summary()
    waits = service(document, port)["stages"]["accept_queue"]
    possible_ns = max(1, queue_now["depth_max"]) * (document["duration_ns"] + waits["max_ns"])
    assert bool(said) == (1 - possible_ns / waits["sum_ns"] >= 0.01)
    if said:
        assert 1 <= int(said[1]) <= truth + 1
