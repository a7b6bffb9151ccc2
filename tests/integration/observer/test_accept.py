# SPDX-License-Identifier: MIT
"""The wait of connections and requests for accept(), against the lab server's clock and the kernel's packet
stamps.
"""
import socket
import time

import pytest

from support.documents import service
from support.packets import Packets, port_of
from support.programs import Observer
from support.timing import MS, in_quiet, in_time, lies_within, timing
from .test_stages import Scene, mean, samples_add_up, service_is_true, stage

# The end of the wait. When inferred: the first read, which follows accept() at once in the lab server.
LATEST = {"inferred": "first_read_end_ns", "syscall": "accept_end_ns"}


def connect_and_ask(port, count):
    """Connect and send at once, `count` times. Return by client port: the kernel's stamp of the last handshake
    packet, the time when connect() returned, and the kernel's stamp of the request."""
    connected = {}
    with Packets(port) as packets:
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", port)) as client:
                connected[client.getsockname()[1]] = time.monotonic_ns()
                client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
                while client.recv(65536):
                    pass
    assert len(connected) == count
    return {client: {"established_ns": found[0].at_ns, "connected_ns": connected[client],
                     "asked_ns": packets.arrivals()[client][0].at_ns}
            for client, found in packets.acknowledgements().items()}


def delays_are_those(entry, rows, source):
    """Whether each exchange's time includes, exactly once, the wait of its request for accept()."""
    earliest, latest = ([max(0, row[end] - row["asked_ns"]) for row in rows]
                        for end in ("accept_begin_ns", LATEST[source]))
    assert sum(map(bool, earliest)) <= entry["accept_delayed"] <= sum(map(bool, latest))
    sure = [max(0, row["accept_end_ns"] - row["asked_ns"]) for row in rows]
    return lies_within(entry["accept_delay_ns"] / len(rows), sum(sure) / len(rows), sum(latest) / len(rows))


# The kernel reports no call then, whichever it is: one is enough in tools/check.
@pytest.mark.parametrize("call, source", [
    ("accept4", "inferred"), ("accept4", "syscall"), ("accept", "syscall"), ("io_uring", "syscall"),
    pytest.param("accept", "inferred", marks=pytest.mark.long), pytest.param("io_uring", "inferred", marks=pytest.mark.long)])
@in_quiet
def test_late_accept_is_accept_queue(start, tmp_path, call, source):
    scene = Scene(start, tmp_path, "--accept-delay", "10ms", "--service", "1ms", "--accept", call,
                  observe=["--accept-source", source], model="threads")
    times = connect_and_ask(scene.lab.port, 50)
    entry, truth = scene.end()

    for row in truth:
        row.update(times[port_of(row)])
    accept = stage(entry, "accept_queue")
    assert mean(truth, "established_ns", "accept_end_ns") >= 9 * MS
    assert accept["source"] == source
    assert accept["count"] + entry["losses"]["accept_unseen"] == len(truth) == 50
    assert delays_are_those(entry, truth, source)
    # The connection is established between the packet's arrival and connect()'s return.
    assert lies_within(accept["mean_ns"], mean(truth, "connected_ns", "accept_end_ns"),
                       mean(truth, "established_ns", LATEST[source]))
    assert lies_within(stage(entry, "socket_queue")["mean_ns"], 0, mean(truth, "accept_end_ns", "first_read_end_ns"))
    assert service_is_true(entry, truth)
    with timing():  # a client that was preempted sends too late
        assert accept["count"] == entry["accept_delayed"] == 50


@pytest.mark.parametrize("source", ["inferred", "syscall"])
@in_quiet
def test_late_accept_of_unanswered_requests_is_nobodys(start, tmp_path, source):
    """Every second request is reset: its wait for accept() is no part of the others' residence."""
    scene = Scene(start, tmp_path, "--accept-delay", "10ms", model="threads",
                  observe=["--accept-source", source])
    times, unanswered = {}, 0
    for _ in range(20):
        times |= connect_and_ask(scene.lab.port, 1)
        with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
            client.sendall(b"GET /?reset=1 HTTP/1.1\r\nHost: lab\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                client.recv(65536)
        unanswered += 1
    entry, truth = scene.end()
    answered = [row | times[port_of(row)] for row in truth if port_of(row) in times]

    assert len(answered) == entry["exchanges"] == 20
    assert entry["losses"]["unanswered"] == unanswered == 20
    # Each connection has waited, and so has each exchange.
    assert stage(entry, "accept_queue")["count"] + entry["losses"]["accept_unseen"] == 40
    assert mean(answered, "established_ns", "accept_end_ns") >= 9 * MS
    assert delays_are_those(entry, answered, source)
    with timing():
        assert entry["accept_delayed"] == 20 and stage(entry, "accept_queue")["count"] == 40


@pytest.mark.parametrize("source", ["inferred", "syscall"])
@in_quiet
def test_a_greeting_behind_a_late_accept(start, source):
    """The client does not wait for the greeting. Its request waits for accept(), then for the read 20 ms after
    the greeting. Each wait is counted once."""
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
    with timing():
        assert 39 * MS < entry["accept_delay_ns"] < 55 * MS
        assert 19 * MS < stage(entry, "socket_queue")["sum_ns"] < 35 * MS


@in_time
def test_prompt_accept_is_not_timed_by_inference(start, tmp_path):
    """The connection is accepted before the request comes. The time is unknown, and reported as unknown."""
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
    with timing():
        assert stage(entry, "socket_queue")["max_ns"] < 100 * MS
