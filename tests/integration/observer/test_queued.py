# SPDX-License-Identifier: MIT
"""Data in a socket's queue: since when it waits, whether a read took it, and how it ends.

The server is the test itself, so it chooses when and how to read.
"""
import contextlib
import socket
import time

import pytest
from .test_stages import samples_add_up, stage

from support.documents import service
from support.programs import Observer
from support.timing import MS, in_quiet, in_time, timing


@contextlib.contextmanager
def connected(start):
    """Yield a connection whose start is seen: (client, server, a function that ends both and returns the service)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0] as server:
            def end():
                client.close()
                server.close()
                observer.stop()
                return service(observer.summary(), port)

            time.sleep(0.01)
            yield client, server, end


def test_what_was_queued_before_the_observation_is_untimed(start):
    """Half of a request has waited since before the observation, for an unknown time. The arrival of the other
    half does not make it newer. The next request is timed as usual."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            connection, _ = listener.accept()
            time.sleep(0.02)  # several ticks of the kernel's clock after the handshake
            client.sendall(b"half ")
            observer = start(Observer(ports=[port]))
            for words in (b"a request\n", b"request\n"):
                client.sendall(words)
                time.sleep(0.01)
                assert connection.recv(100).endswith(words)
                connection.sendall(b"done\n")
                assert client.recv(100) == b"done\n"
            connection.close()
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["losses"]["preexisting"] == 1
    assert (entry["exchanges"], entry["losses"]["untimed"]) == (2, 1)
    assert entry["stages"]["socket_queue"]["count"] == 1


@in_quiet
def test_what_stays_queued_keeps_its_arrival(start):
    """Two requests come together and are read 20 and 60 ms later: a read that leaves bytes does not make them
    newer. The second is pipelined, as the first is not answered yet."""
    reads = []
    with connected(start) as (client, server, end):
        client.sendall(b"first\nsecond\n")
        sent_ns = time.monotonic_ns()
        for size, pause in ((len("first\n"), 0.02), (len("second\n"), 0.04)):
            time.sleep(pause)
            assert len(server.recv(size)) == size
            reads.append(time.monotonic_ns() - sent_ns)
            server.sendall(b"done\n")
        entry = end()
    samples_add_up(entry)
    assert entry["exchanges"] == 2 and entry["losses"]["overlapped"] == 1
    with timing():
        assert sorted(entry["samples"]["stages"]["socket_queue"]) == \
            [pytest.approx(read, abs=5 * MS) for read in reads]


@pytest.mark.parametrize("sent, finished, unanswered", [
    (b"", True, 0), (b"a request\n", True, 1), (b"a request\n", False, 1)])
def test_what_is_never_read_is_unanswered(start, sent, finished, unanswered):
    """The server closes without reading. A request in the queue counts as unanswered, a FIN does not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(sent)
                if finished:
                    client.shutdown(socket.SHUT_WR)
                connection, _ = listener.accept()
                time.sleep(0.01)
                connection.close()
        observer.stop()
    entry = service(observer.summary(), port)
    assert (entry["accepted"], entry["exchanges"]) == (3, 0)
    assert entry["losses"]["unanswered"] == 3 * unanswered


@in_time
def test_peeking_is_no_read(start):
    """MSG_PEEK leaves the data in place: only the real read ends socket_queue."""
    with connected(start) as (client, server, end):
        client.sendall(b"hello\n")
        assert server.recv(100, socket.MSG_PEEK) == b"hello\n"
        time.sleep(0.05)
        assert server.recv(100) == b"hello\n"
        server.sendall(b"done\n")
        assert client.recv(100) == b"done\n"
        entry = end()
    assert entry["exchanges"] == 1
    assert stage(entry, "socket_queue")["max_ns"] >= 50 * MS
    assert stage(entry, "receive")["max_ns"] == 0
    with timing():
        assert stage(entry, "service")["max_ns"] < 20 * MS


SO_TIMESTAMPING = 37
TX_SCHED_REPORTED = 1 << 8 | 1 << 4  # SOF_TIMESTAMPING_TX_SCHED, _SOFTWARE


@in_time
def test_peeking_at_the_error_queue_is_no_read(start):
    """With MSG_ERRQUEUE the server gets its own response back with its send time: no request."""
    with connected(start) as (client, server, end):
        server.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SCHED_REPORTED)
        for _ in range(5):
            client.sendall(b"hello\n")
            assert server.recv(100) == b"hello\n"
            server.sendall(b"done\n")
            assert client.recv(100) == b"done\n"
            returned, *_ = server.recvmsg(200, 200, socket.MSG_ERRQUEUE)
            assert returned.endswith(b"done\n")
            time.sleep(0.03)
        entry = end()
    assert entry["exchanges"] == stage(entry, "service")["count"] == 5
    assert entry["bytes_in"] == 5 * len("hello\n")
    assert not any(entry["losses"][name] for name in ("untimed", "unanswered", "unsolicited"))
    with timing():
        assert stage(entry, "receive")["max_ns"] < 20 * MS


@in_quiet
def test_the_wait_for_the_end_of_a_clients_side_is_service(start):
    """A half-close has no bytes. The exchange goes on, and an answer that follows is its response."""
    with connected(start) as (client, server, end):
        client.sendall(b"request")
        assert server.recv(100) == b"request"
        read = time.monotonic_ns()
        time.sleep(0.2)
        client.shutdown(socket.SHUT_WR)
        assert server.recv(100) == b""
        server.sendall(b"answer")
        took = time.monotonic_ns() - read
        assert client.recv(100) == b"answer"
        entry = end()
    samples_add_up(entry)
    assert entry["exchanges"] == 1
    assert not any(entry["losses"][name] for name in ("unanswered", "unsolicited", "trailing", "oneway", "goodbyes"))
    assert stage(entry, "receive")["sum_ns"] == stage(entry, "respond")["sum_ns"] == 0
    with timing():
        assert 200 * MS <= stage(entry, "service")["sum_ns"] <= took + MS
