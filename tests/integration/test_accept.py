# SPDX-License-Identifier: MIT
"""What connections and requests wait for accept(), against the lab server's clock and the test's own.

tools/mutate: "accepted as soon as established", "accepted when the request came" and "io_uring accepts
nothing" fail late_accept, "unanswered requests delay others" of_unanswered, "accepted when it was read"
a_greeting.
"""
import socket
import statistics
import time

import pytest

from support.documents import service
from support.programs import Observer
from test_stages import MS, US, Scene, close_to, in_quiet, samples_add_up, service_is_true, stage


def connect_and_ask(port, count, established):
    """Connects and sends at once, `count` times; notes when connect() had returned."""
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port)) as client:
            established[client.getsockname()[1]] = time.monotonic_ns()
            client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
            while client.recv(65536):
                pass


@pytest.mark.parametrize("source", ["inferred", "syscall"])
@pytest.mark.parametrize("call", ["accept4", "accept", "io_uring"])
@in_quiet
def test_late_accept_is_accept_queue(start, tmp_path, call, source):
    scene = Scene(start, tmp_path, "--accept-delay", "10ms", "--service", "1ms", "--accept", call,
                  observe=["--accept-source", source], model="threads")
    established = {}
    connect_and_ask(scene.lab.port, 50, established)
    entry, truth = scene.end()

    waited_ns = statistics.fmean(row["accept_end_ns"] - established[int(row["peer"].split(":")[1])]
                                 for row in truth)
    accept = stage(entry, "accept_queue")
    assert waited_ns >= 9 * MS
    assert accept["source"] == source
    assert accept["count"] == 50
    # inferred: until the first read, which follows accept at once in this server.
    assert close_to(accept["mean_ns"], waited_ns, 500 * US)
    assert stage(entry, "socket_queue")["mean_ns"] < 1 * MS
    assert service_is_true(entry, truth)
    # The request waited in it: it is part of the exchange's time, once.
    assert entry["accept_delayed"] == 50
    assert close_to(entry["accept_delay_ns"] / 50, waited_ns, 500 * US)


@pytest.mark.parametrize("source", ["inferred", "syscall"])
@in_quiet
def test_late_accept_of_unanswered_requests_is_nobodys(start, tmp_path, source):
    """Every second request is reset: what it waited for accept() is no part of the others' residence."""
    scene = Scene(start, tmp_path, "--accept-delay", "10ms", model="threads",
                  observe=["--accept-source", source])
    established, unanswered = {}, 0
    for _ in range(20):
        connect_and_ask(scene.lab.port, 1, established)
        with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
            client.sendall(b"GET /?reset=1 HTTP/1.1\r\nHost: lab\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                client.recv(65536)
        unanswered += 1
    entry, truth = scene.end()
    answered = {port: row for row in truth
                if (port := int(row["peer"].split(":")[1])) in established}

    assert len(answered) == entry["exchanges"] == entry["accept_delayed"] == 20
    assert entry["losses"]["unanswered"] == unanswered == 20
    # Each connection has waited, and each exchange.
    assert stage(entry, "accept_queue")["count"] == 40
    waited_ns = statistics.fmean(row["accept_end_ns"] - established[port]
                                 for port, row in answered.items())
    assert waited_ns >= 9 * MS
    assert close_to(entry["accept_delay_ns"] / entry["exchanges"], waited_ns, 500 * US)


@pytest.mark.parametrize("source", ["inferred", "syscall"])
@in_quiet
def test_a_greeting_behind_a_late_accept(start, source):
    """The client does not wait for the greeting: its request waits for accept() first, and then for the
    read, which comes 20 ms behind the greeting. Each wait is counted once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer("--accept-source", source, ports=[port]))
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"HELO\n")
            time.sleep(0.04)
            connection, _ = listener.accept()
            connection.sendall(b"220 hello\n")
            time.sleep(0.02)
            connection.recv(100)
            connection.sendall(b"250 done\n")
            connection.close()
        observer.stop()
    entry = service(observer.summary(), port)
    samples_add_up(entry)
    assert entry["exchanges"] == entry["accept_delayed"] == entry["losses"]["unsolicited"] == 1
    assert 39 * MS < entry["accept_delay_ns"] < 55 * MS
    assert 19 * MS < stage(entry, "socket_queue")["sum_ns"] < 35 * MS


def test_prompt_accept_is_not_timed_by_inference(start, tmp_path):
    """Accepted before the request came: when, nobody saw. It is said, not made up."""
    scene = Scene(start, tmp_path, observe=["--accept-source", "inferred"])
    with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        time.sleep(0.2)
        client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
        while client.recv(65536):
            pass
    entry, truth = scene.end()
    assert len(truth) == entry["exchanges"] == 1
    assert stage(entry, "accept_queue")["count"] == 0
    assert entry["losses"]["accept_unseen"] == 1
    assert stage(entry, "socket_queue")["max_ns"] < 100 * MS
