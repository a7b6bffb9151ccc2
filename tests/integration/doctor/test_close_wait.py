# SPDX-License-Identifier: MIT
"""`sojourn doctor` on connections that the peer has closed: a growing number is a leak, a constant one is not."""
import collections
import json
import os
import socket
import sys
import threading
import time

from ..conftest import sockets
from .test_processes import every
from support.findings import evidence
from support.net import free_port
from support.process import wait_until
from support.programs import OBSERVER, Doctor, Lab, Observer

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
GROWTH_SECONDS = 3.5  # 2 s of growth, 1 s until the last one counts, and the start


def ask_and_leave(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(REQUEST)
        assert client.recv(4096)


def left(port):
    """Return how many of a server's connections have lost their client, by `ss`."""
    return len(sockets("close-wait", f"sport = :{port}"))


def given_up(port):
    """Return how many of the clients' connections the server has closed, by `ss`."""
    return len(sockets("close-wait", f"dport = :{port}"))


class Pool:
    """Connections of this process to its own server, which closes them; the client forgets to call close()."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", free_port()), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.kept = collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in (self.listener, *self.kept):
            client.close()

    def open(self):
        self.kept.append(socket.create_connection(("127.0.0.1", self.port)))
        self.listener.accept()[0].close()

    def turn_over(self):
        self.kept.popleft().close()
        self.open()


def test_a_server_that_leaks_is_named(start):
    lab, healthy = start(Lab("--ignore-fin")), start(Lab())
    with every(0.05, lambda: (ask_and_leave(lab.port), ask_and_leave(healthy.port))):
        time.sleep(GROWTH_SECONDS)
        least = left(lab.port)
        doctor = Doctor()
        most = left(lab.port)
        alone = Doctor("--pid", lab.pid)
        assert not Doctor("--pid", healthy.pid).ids
    finding = doctor.finding("close-wait-leak")
    assert finding["owners"][0]["pid"] == lab.pid
    assert finding["severity"] == "warning" and alone.status == 1
    assert 20 < least - 20 <= finding["used"] <= most
    assert evidence(finding, "local port") == lab.port
    assert evidence(finding, "more than at the first reading") > 5
    assert evidence(finding, "with a request that has no answer yet") == 0
    assert GROWTH_SECONDS - 1 < evidence(finding, "oldest") < 30
    assert "close-wait-held" not in doctor.ids


def test_a_client_that_leaks_is_named(start):
    """The server closes idle connections, and the client keeps every one."""
    client = """
import socket, sys, time
kept = []
while True:
    kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    time.sleep(.05)
"""
    with socket.create_server(("127.0.0.1", free_port()), backlog=64) as listener:
        port = listener.getsockname()[1]
        process = start([sys.executable, "-c", client, port])
        end = time.monotonic() + GROWTH_SECONDS
        while time.monotonic() < end:
            listener.accept()[0].close()
        done = threading.Event()

        def serve():
            while not done.is_set():
                listener.accept()[0].close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            least = given_up(port)
            finding = Doctor("--port", port).finding("close-wait-leak")
            most = given_up(port)
        finally:
            done.set()
            thread.join()
    assert finding["owners"][0]["pid"] == process.pid
    assert 20 < least - 20 <= finding["used"] <= most
    assert evidence(finding, "peer's port") == port


def test_the_port_of_a_leaking_server_names_it(start):
    """The server leaks connections to another port, that of its database, say."""
    other = start(Lab())
    with socket.create_server(("127.0.0.1", free_port())) as listener, Pool() as pool, every(0.05, pool.open):
        time.sleep(GROWTH_SECONDS)
        finding = Doctor("--port", listener.getsockname()[1]).finding("close-wait-leak")
        assert not Doctor("--port", other.port).ids & {"close-wait-leak", "close-wait-held"}
    assert finding["owners"][0]["pid"] == os.getpid()
    assert evidence(finding, "peer's port") == pool.port


def ours(*options):
    """Restrict the exit code to this process: others on the machine may exhaust something."""
    return Doctor("--pid", os.getpid(), *options)


def check_notice(doctor, used):
    finding = doctor.finding("close-wait-held")
    assert doctor.ids == {"close-wait-held"} and doctor.status == 0
    assert (finding["severity"], finding["used"]) == ("notice", used)
    return finding


def test_a_pool_that_does_not_grow_is_no_leak():
    """Apache's proxy, for one, keeps connections that its backend has closed until it needs one."""
    with Pool() as pool:
        for _ in range(25):
            pool.open()
        time.sleep(1.2)
        assert given_up(pool.port) == 25
        finding = check_notice(ours("--port", pool.port), 25)
        assert finding["owners"][0]["pid"] == os.getpid()
        assert "does not grow: 0 came and 0 left" in finding["outlook"]
        once = check_notice(ours("--sample", "0", "--port", pool.port), 25)
        assert "grows is not known (one reading)" in once["outlook"]
        # A second later there are 25 more, and none afterwards.
        for _ in range(25):
            pool.open()
        check_notice(ours("--sample", "2s", "--port", pool.port), 50)


def test_a_pool_that_turns_over_is_no_leak():
    with Pool() as pool:
        for _ in range(80):
            pool.open()
        with every(0.05, pool.turn_over):
            time.sleep(5)
            doctor = ours("--sample", "2s", "--port", pool.port)
        assert given_up(pool.port) == 80
    finding = doctor.finding("close-wait-held")
    assert doctor.status == 0 and finding["used"] > 40


def serve_slowly(listener, seconds, done):
    def handle(connection):
        with connection:
            connection.recv(4096)
            done.wait(seconds)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    while not done.is_set():
        connection, _ = listener.accept()
        threading.Thread(target=handle, args=(connection,)).start()


def test_handlers_at_work_for_clients_that_left_are_no_leak():
    """The connections that clients have left even grow in number, as no request is answered yet."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", free_port()), backlog=64) as listener:
        port = listener.getsockname()[1]
        server = threading.Thread(target=serve_slowly, args=(listener, 30, done))
        server.start()

        def give_up():
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(REQUEST)

        try:
            with every(0.05, give_up):
                time.sleep(GROWTH_SECONDS)
                least = left(port)
                doctor = ours("--port", port)
                assert left(port) > least  # the number does grow
        finally:
            done.set()
            give_up()
            server.join()
    finding = doctor.finding("close-wait-held")
    assert doctor.status == 0 and "close-wait-leak" not in doctor.ids
    assert evidence(finding, "with a request that has no answer yet") == finding["used"] > 20


def test_a_slow_leak_shows_over_several_looks(start):
    """One every half second: fewer than three per reading."""
    with Pool() as pool, every(0.5, pool.open):
        doctor = start([OBSERVER, "doctor", "--json", "--interval", "1s", "--port", pool.port])
        wait_until(lambda: "close-wait-leak" in doctor.stdout, seconds=40)
        doctor.stop()
        look = json.loads(doctor.stdout.splitlines()[-1])
        found = {each["id"]: each for each in look["findings"]}
        assert evidence(found["close-wait-leak"], "more than at the first reading") <= len(pool.kept)
        assert found["close-wait-leak"]["owners"][0]["pid"] == os.getpid()


def test_the_observer_tells_a_leak_of_its_period(start):
    lab, steady = start(Lab("--ignore-fin")), Pool()
    with steady:
        for _ in range(10):
            steady.open()
        time.sleep(1.2)
        observer = start(Observer(ports=[lab.port]))
        with every(0.05, lambda: ask_and_leave(lab.port)):
            time.sleep(GROWTH_SECONDS + 2)
            observer.stop()
    found = {(each["id"], each["owners"][0]["pid"]) for each in observer.summary()["findings"] if each["owners"]}
    assert ("close-wait-leak", lab.pid) in found
    assert ("close-wait-held", os.getpid()) in found
    assert ("close-wait-leak", os.getpid()) not in found


def test_a_leak_that_begins_in_the_period_is_one(start):
    """Load that comes later leaves the first quarter of the period empty."""
    with Pool() as pool:
        observer = start(Observer(ports=[pool.port]))
        time.sleep(3)
        with every(0.05, pool.open):
            time.sleep(6)
            observer.stop()
    found = {(each["id"], each["owners"][0]["pid"]) for each in observer.summary()["findings"] if each["owners"]}
    assert ("close-wait-leak", os.getpid()) in found
