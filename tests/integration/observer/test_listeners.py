# SPDX-License-Identifier: MIT
"""Several processes listen on one port (SO_REUSEPORT), and one is stopped. Each listener's queue is reported
alone, as `ss` shows it. The others' room does not hide the stopped one's overflows.
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from support.browser import Page
from support.documents import service
from support.process import run
from support.programs import OBSERVER, Doctor, Observer

BACKLOG = 4
CONNECTIONS = 60

# Accepts and keeps connections; prints its port when it listens.
SERVER = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(int(sys.argv[2]))
print(listener.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(listener.accept())
"""


def member(port, backlog):
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port), str(backlog)], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def queues(port):
    """Return {pid: (waiting connections, limit)}."""
    text = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return {int(pid): (int(depth), int(limit)) for depth, limit, pid in
            re.findall(r"^LISTEN\s+(\d+)\s+(\d+)\s.*pid=(\d+)", text, re.MULTILINE)}


def overflows():
    with open("/proc/net/netstat", encoding="ascii") as file:
        names, values = [line.split() for line in file if line.startswith("TcpExt:")]
    return int(values[names.index("ListenOverflows")])


@pytest.fixture
def members():
    """Two members of a port; the second has room for all."""
    first, port = member(0, BACKLOG)
    second, _ = member(port, 1000)
    yield port, first, second
    for process in (first, second):
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()


def connect(port):
    """Connect without waiting: a connection that finds the queue full is not established."""
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    return client


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_each_of_several_listeners(start, members, before, tmp_path):
    """`before`: the queue was full when the observation began."""
    port, first, second = members
    os.kill(first.pid, signal.SIGSTOP)
    clients = [connect(port) for _ in range(CONNECTIONS)] if before else []
    observer = start(Observer(ports=[port]))
    overflows_before = overflows()
    clients += [connect(port) for _ in range(CONNECTIONS)]
    time.sleep(0.5)
    truth = queues(port)
    dropped = overflows() - overflows_before
    doctor = Doctor("--sample", "0")
    observer.stop()
    for client in clients:
        client.close()
    entry = service(observer.summary(), port)

    told = {each["pid"]: each for each in entry["listeners"]}
    assert set(truth) == set(told) == {first.pid, second.pid}
    assert truth[first.pid] == (BACKLOG + 1, BACKLOG) and truth[second.pid][0] == 0
    for pid, (depth, limit) in truth.items():
        assert (told[pid]["depth"], told[pid]["limit"]) == (depth, limit)
        assert told[pid]["comm"].startswith("python") and told[pid]["holders"] == 1
    assert entry["accept_queue"]["listeners"] == 2
    if entry["accept_queue"].get("depth_max") is not None:
        assert told[first.pid]["depth_max"] == BACKLOG + 1
        assert told[second.pid]["depth_max"] < 1000
    # Retransmitted SYNs are dropped again, so there may be more between the two readings and the end.
    assert dropped > 0
    assert dropped <= told[first.pid]["overflows"] and told[second.pid]["overflows"] == 0
    assert entry["accept_queue"]["overflows"] == told[first.pid]["overflows"]

    said = re.search(rf"^listeners +python\S* {first.pid} · 127.0.0.1 · accept queue {BACKLOG + 1}/{BACKLOG} · "
                     rf"max {BACKLOG + 1} · overflows (\d+)$", observer.stdout, re.MULTILINE)
    assert said and int(said[1]) == told[first.pid]["overflows"]
    assert re.search(rf"^ +python\S* {second.pid} · 127.0.0.1 · accept queue 0/{truth[second.pid][1]} · max",
                     observer.stdout, re.MULTILINE)

    if shutil.which("chromium"):
        run([OBSERVER, "report", observer.json, "-o", tmp_path / "report.html"])
        page = Page(tmp_path / "report.html", tmp_path / "profile")
        assert page.console == []
        assert f"{first.pid}{BACKLOG + 1}{BACKLOG + 1}{BACKLOG}{told[first.pid]['overflows']}" in page.text

    # The doctor names the full queue and its owner.
    found = [finding for finding in doctor.document["findings"]
             if finding["id"].startswith("accept-queue") and f":{port}" in finding["object"]]
    assert len(found) == 1
    assert [owner["pid"] for owner in found[0]["owners"]] == [first.pid]


def waits_in(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
        return file.read()


def test_who_hangs_comes_first(start, members):
    """Each process has its own state beside it, whichever of them hangs."""
    port, *both = members
    hung, other = both[1], both[0]
    os.kill(hung.pid, signal.SIGSTOP)
    observer = start(Observer(ports=[port]))
    clients = [connect(port) for _ in range(CONNECTIONS)]
    time.sleep(0.2)
    for client in clients:
        with contextlib.suppress(OSError):
            client.send(b"request")
    time.sleep(4)
    waiting = queues(port)
    wanted = [(hung.pid, f"stopped: 'kill -CONT {hung.pid}' lets it go on"), (other.pid, f"sleeping in {waits_in(other.pid)}")]
    observer.stop()
    for client in clients:
        client.close()
    assert waiting[hung.pid][0] > 0 == waiting[other.pid][0]
    finding = next(each for each in observer.summary()["findings"] if each["id"] == "requests-hang")
    assert [(owner["pid"], owner["did"]) for owner in finding["owners"]] == wanted


def test_one_listener_is_no_list(start):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        observer.stop()
    entry = service(observer.summary(), port)
    assert not entry.get("listeners")
    assert entry["accept_queue"]["listeners"] == 1
