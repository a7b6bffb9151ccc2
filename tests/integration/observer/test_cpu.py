# SPDX-License-Identifier: MIT
"""CPU or waiting: service divided into running, runnable and blocked. The truth is the lab server's setting and
its thread's /proc/PID/task/TID/schedstat: time on a CPU, time in a run queue.

A clock that missed a switch is not used, so some exchanges may stay undivided. No test depends on how many
exactly.
"""
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.documents import service
from support.net import wait_until_read
from support.programs import Driver, Lab, Observer
from support.timing import MS, in_quiet, stolen_ns, timing
from .test_stages import stage

PARTS = ("running", "runnable", "blocked")
DIVIDED = 0.95  # of the exchanges, at least


class Scene:
    """A lab server under observation, with its thread's (running, runnable) as the kernel counts them."""

    def __init__(self, start, *options, observe=("--cpu",), **named):
        self.lab = start(Lab(*options, **named))
        self.observer = start(Observer(*observe, ports=[self.lab.port]))

    def schedstat(self):
        with open(f"/proc/{self.lab.pid}/task/{self.lab.pid}/schedstat", encoding="ascii") as file:
            return [int(word) for word in file.read().split()[:2]]

    def end(self):
        self.observer.stop()
        return service(self.observer.summary(), self.lab.port)


def adds_up(entry):
    """The parts add up over the divided exchanges, to the nanosecond; each of them is also a sample."""
    samples, count = entry["samples"], entry["cpu"]["running"]["count"]
    divided = [(service_ns, running_ns, runnable_ns) for service_ns, running_ns, runnable_ns in
               zip(samples["stages"]["service"], samples["running_ns"], samples["runnable_ns"])
               if running_ns is not None]
    service_ns, running_ns, runnable_ns = (sum(each) for each in zip(*divided))
    sums = {part: entry["cpu"][part]["sum_ns"] for part in PARTS}
    assert samples["inconsistent"] == 0 and len(divided) == count
    assert {entry["cpu"][part]["count"] for part in PARTS} == {count}
    assert all(ran + waited <= served for served, ran, waited in divided)
    assert (sums["running"], sums["runnable"]) == (running_ns, runnable_ns)
    assert sum(sums.values()) == service_ns
    with timing():
        assert count >= DIVIDED * entry["exchanges"]
    return True


def mean_ns(entry, part):
    return entry["cpu"][part]["mean_ns"]


@pytest.mark.parametrize("model", ["event", "threads", pytest.param("prefork", marks=pytest.mark.long)])
@in_quiet
def test_sleeping_is_blocked(start, model):
    scene = Scene(start, "--service", "5ms", model=model)
    Driver(scene.lab.url, connections=2, count=100)
    entry = scene.end()
    assert adds_up(entry)
    with timing():
        assert 4.9 * MS < mean_ns(entry, "blocked") <= stage(entry, "service")["mean_ns"]
        assert mean_ns(entry, "running") < 1 * MS
    assert entry["cpu"]["runnable"]["p50_ns"] > 0  # a woken thread is not on a CPU at once


@in_quiet
def test_spinning_is_running(start):
    """The server spins until the time is over, even while another thread has the CPU."""
    scene = Scene(start, "--service", "5ms", "--mode", "spin")
    before_ns, stolen = scene.schedstat()[0], stolen_ns()
    Driver(scene.lab.url, connections=1, count=100)
    ran_ns, stolen = scene.schedstat()[0] - before_ns, stolen_ns() - stolen
    entry = scene.end()
    assert adds_up(entry)
    with timing():
        assert mean_ns(entry, "blocked") < 0.1 * MS
        assert mean_ns(entry, "running") + mean_ns(entry, "runnable") > 4.9 * MS
        # The kernel counts all that the thread did.
        share = entry["cpu"]["running"]["count"] / 100
        assert 0.9 * ran_ns * share < entry["cpu"]["running"]["sum_ns"] < 1.02 * ran_ns + stolen


@contextlib.contextmanager
def spinner(cpu):
    """Run a process that never yields this CPU."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                               preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        yield
    finally:
        process.kill()
        process.wait()


@in_quiet
def test_starved(start):
    """Another process competes for the server's CPU. The server's wait for it is runnable in service, and
    socket_queue before the read. Both together are the thread's wait in schedstat."""
    scene = Scene(start, "--service", "20ms", "--mode", "spin")
    os.sched_setaffinity(scene.lab.pid, {0})
    with spinner(0):
        before, stolen = scene.schedstat(), stolen_ns()
        Driver(scene.lab.url, connections=2, count=60)
        ran_ns, waited_ns = (now - then for now, then in zip(scene.schedstat(), before))
        stolen = stolen_ns() - stolen
    entry = scene.end()
    assert adds_up(entry)
    runnable_ns = entry["cpu"]["runnable"]["sum_ns"]
    with timing():
        assert mean_ns(entry, "blocked") < 0.1 * MS
        assert waited_ns > 0.3 * ran_ns
        assert runnable_ns > 0.5 * waited_ns * DIVIDED
        assert runnable_ns < 1.02 * waited_ns + stolen
        assert entry["cpu"]["running"]["sum_ns"] < 1.02 * ran_ns + stolen
        # Two connections, one thread: a request waits for the other one's whole service, including its wait for
        # a CPU.
        assert stage(entry, "socket_queue")["mean_ns"] > 0.5 * stage(entry, "service")["mean_ns"]


@in_quiet
def test_one_thread_for_all(start):
    """The loop spins for one connection while another one sleeps: its spinning counts in both services' running."""
    scene = Scene(start)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", scene.lab.port)))
                   for _ in range(2)]
        for _ in range(10):
            clients[0].sendall(b"GET /?service=30ms HTTP/1.1\r\nHost: lab\r\n\r\n")
            wait_until_read(clients[0])  # else the loop might spin before it reads this request
            clients[1].sendall(b"GET /?service=20ms&mode=spin HTTP/1.1\r\nHost: lab\r\n\r\n")
            assert all(client.recv(65536) for client in clients)
    entry = scene.end()
    assert adds_up(entry) and entry["exchanges"] == 20
    with timing():
        # 20 ms of its own and 20 of the other's 30 are running, which leaves about 10 to sleep.
        assert entry["cpu"]["running"]["p50_ns"] + entry["cpu"]["runnable"]["p50_ns"] > 15 * MS
        assert 50 * MS < entry["cpu"]["blocked"]["sum_ns"] < 170 * MS


def serve_by_two(listener):
    """One thread reads, another answers; they swap roles, so both are known."""
    client, _ = listener.accept()
    with client, ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        while one.submit(client.recv, 4096).result():
            other.submit(client.sendall, b"x").result()
            one, other = other, one


def test_handed_over(start):
    """The service of these exchanges cannot be divided, and the report says so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer("--cpu", ports=[port]))
        server = threading.Thread(target=serve_by_two, args=(listener,))
        server.start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            for _ in range(20):
                client.sendall(b"x")
                assert client.recv(1) == b"x"
        server.join()
    observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == stage(entry, "service")["count"] == 20
    assert entry["cpu"]["running"]["measured"] and entry["cpu"]["running"]["count"] == 0
    assert "running_ns" not in entry["samples"]


@in_quiet
def test_joined(start):
    """The driver's report divides the service of every joined exchange."""
    scene = Scene(start, "--service", "2ms", model="threads")
    driver = Driver(scene.lab.url, connections=4, count=200, observer=scene.observer)
    parts = driver.document["joined"]["sum"]
    assert driver.document["joined"]["joined"] == 200
    assert parts["running_ns"] + parts["runnable_ns"] + parts["blocked_ns"] <= \
        parts["stages"]["service"]
    with timing():
        assert parts["blocked_ns"] > 0.9 * DIVIDED * 200 * 2 * MS
    text = driver.process.stdout
    assert re.search(r"^service +mean [\d.]+ ms · running .* · runnable .* · blocked ", text,
                     re.MULTILINE), text


def test_off_by_default(start):
    scene = Scene(start, observe=())
    Driver(scene.lab.url, connections=1, count=10)
    scene.observer.stop()
    document = scene.observer.summary()
    assert not [p for p in document["cost"]["programs"] if p["name"].startswith("thread_")]
    for part in PARTS:
        assert service(document, scene.lab.port)["cpu"][part] == {
            "measured": False, "source": None, "reason": "not asked for: --cpu"}
    assert re.search("^not asked for: .*CPU or waiting \\(--cpu\\)$", scene.observer.stdout, re.MULTILINE)
