# SPDX-License-Identifier: MIT
"""Things that the observer could not see are reported: requests in flight at its start or end, and connections
whose peer fell silent. For services without a slot see test_slots.py.
"""
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from support.documents import service
from support.net import Netns, veth
from support.process import Process, die_with_parent, wait_until
from support.conditions import needs_program
from support.programs import Nginx, Observer
from .scene import Scene

TCP_USER_TIMEOUT = 18


def test_a_request_under_way_at_the_begin_is_cut_off(start):
    """A request is read before the observation and answered during it: counted apart, never timed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        connection, _ = listener.accept()
        client.sendall(b"question")
        assert connection.recv(100) == b"question"
        observer = start(Observer(ports=[port]))
        connection.sendall(b"answer")
        client.sendall(b"next")
        assert connection.recv(100) == b"next"
        connection.sendall(b"answer")
        observer.stop()
        client.close()
        connection.close()
    entry = service(observer.summary(), port)
    assert entry["losses"]["cut_off"] == 1
    assert entry["losses"]["preexisting"] == 1
    assert entry["losses"]["unsolicited"] == 0
    assert entry["exchanges"] == entry["stages"]["service"]["count"] == 1


def test_a_silent_peer_is_a_time_out(start):
    """The client's host vanishes; data that the server then sends is never acknowledged."""
    with Netns("client") as client_net, Netns("server") as server_net:
        veth(client_net, server_net)
        server = start([*server_net.prefix(), "/usr/bin/python3", "-c", (
            "import socket, sys, time\n"
            "s = socket.create_server(('10.200.0.2', 0))\n"
            "print(s.getsockname()[1], flush=True)\n"
            "c, _ = s.accept()\n"
            f"c.setsockopt(socket.IPPROTO_TCP, {TCP_USER_TIMEOUT}, 500)\n"
            "print('accepted', flush=True)\n"
            "time.sleep(1)\n"
            "c.sendall(b'x')\n"
            "try:\n"
            "    c.recv(1)\n"
            "except TimeoutError:\n"
            "    print('timed out', flush=True)\n"
            "time.sleep(60)\n")])
        port = int(server.wait_for(r"^(\d+)$")[1])
        observer = start(Observer(ports=[port], netns=server_net))
        start([*client_net.prefix(), "/usr/bin/python3", "-c", (
            f"import socket, time\nc = socket.create_connection(('10.200.0.2', {port}))\n"
            "time.sleep(60)\n")])
        server.wait_for("^accepted$")
        client_net.exec(["ip", "address", "flush", "dev", "veth0"])
        client_net.exec(["ip", "link", "set", "veth0", "down"])
        server.wait_for("^timed out$", seconds=30)
        # The reader sees EOF a moment before the connection is closed.
        deadline = time.monotonic() + 5
        while not sum(service(observer.document(), port)["closes"].values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        observer.stop()
        run = observer.summary()
        entry = service(run, port)
    # A program does not run inside itself on one CPU: such misses are counted.
    seen = entry["accepted"], entry["closes"], run["cost"]["programs"]
    assert entry["closes"]["timed_out"] == 1, seen
    assert sum(entry["closes"].values()) == 1, seen


SILENT = """import socket, sys
listener, taken = socket.socket(fileno=int(sys.argv[1])), []
while True:
    connection, _ = listener.accept()
    taken.append(connection)
    connection.recv(100)
"""


def test_a_request_is_open_or_unanswered(start):
    """A server is killed, and its connections end one after the other. Each document has each request once."""
    requests = 1000
    with socket.create_server(("127.0.0.1", 0), backlog=requests) as listener, contextlib.ExitStack() as clients:
        port = listener.getsockname()[1]
        server = subprocess.Popen([sys.executable, "-c", SILENT, str(listener.fileno())], pass_fds=[listener.fileno()],
                                  preexec_fn=die_with_parent)
        clients.callback(server.wait)
        clients.callback(server.kill)
        observer = start(Observer(ports=[port]))
        for _ in range(requests):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_until(lambda: service(observer.document(), port)["open"]["read"] == requests)
        server.kill()
        sums = []
        while not sums or service(document, port)["losses"]["unanswered"] < requests:
            document = observer.document()
            entry = service(document, port)
            sums.append(entry["open"]["read"] + entry["open"]["unread"] + entry["losses"]["unanswered"])
        assert set(sums) == {requests}


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_reset_within_the_write(start, half_closed):
    """The client reads the begin of a response and resets the connection, while the server's write waits for room. The request
    is answered, though no write had returned. If the client had closed its side before, it wanted no answer.
    tools/mutate: "a response that a reset cuts off is unanswered", "a closed client is answered"."""
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    if half_closed:
        client.shutdown(socket.SHUT_WR)
    assert connection.recv(100).startswith(b"GET")

    def respond():
        with contextlib.suppress(ConnectionError):
            connection.sendall(bytes(64 << 20))

    server = threading.Thread(target=respond)
    server.start()
    assert client.recv(100)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    server.join()
    entry = scene.end(samples=False)
    assert (entry["exchanges"], entry["losses"]["unanswered"]) == ((0, 1) if half_closed else (1, 0))
    assert entry["losses"]["untimed"] == entry["exchanges"]


# Asks twice on each connection, and resets it 0 to 49 µs after a third request.
RESETTING = """
import socket, struct, sys, time
for number in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\\r\\nHost: test\\r\\n\\r\\n")
            assert client.recv(4096)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"GET / HTTP/1.1\\r\\nHost: test\\r\\n\\r\\n")
        reset_ns = time.perf_counter_ns() + number % 50 * 1000
        while time.perf_counter_ns() < reset_ns:
            pass
"""


def on_cpu(pid, cpu):
    """Let it run there as soon as it can."""
    os.sched_setaffinity(pid, {cpu})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


@needs_program("nginx")
def test_requests_whose_clients_reset_at_once(start):
    """nginx reads each request, though some clients reset within the read. Each one is answered or not, and none is
    forgotten. Only a reset within the nanoseconds of a program may be. tools/mutate: "a reset within a read is no loss"."""
    clients = 4000
    cpus = sorted(os.sched_getaffinity(0))
    nginx = start(Nginx())
    on_cpu(nginx.workers()[0], cpus[0])
    observer = start(Observer(ports=[nginx.port]))
    with Process(["/usr/bin/python3", "-c", RESETTING, nginx.port, clients]) as client:
        on_cpu(client.pid, cpus[-1])
        client.wait(seconds=60)
    wait_until(lambda: nginx.status()["requests"] == clients * 3)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert abs(entry["exchanges"] + entry["losses"]["unanswered"] - clients * 3) <= clients / 1000
    assert entry["losses"]["goodbyes"] == entry["losses"]["oneway"] == 0
    assert entry["bytes_in"] <= clients * 3 * len("GET / HTTP/1.1\r\nHost: test\r\n\r\n")
