# SPDX-License-Identifier: MIT
"""The hint on Nagle's algorithm appears where TCP held responses back, by the client's own clock, and nowhere
else.
"""
import contextlib
import re
import socket
import threading
import time

import pytest

from support.documents import service
from support.programs import Driver, Observer
from support.timing import in_time, timing

EXCHANGES = 30
# A delayed ACK takes at least 40 ms (TCP_DELACK_MIN); responses that are not held take well below.
HELD_S = 0.03
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
BODY = b"ok"
RESPONSE = len(HEAD + BODY)


def pieces(connection):
    connection.send(HEAD)
    connection.send(BODY)


def pieces_without_delay(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pieces(connection)


def at_once(connection):
    connection.send(HEAD + BODY)


def announced(connection):
    connection.send(HEAD, socket.MSG_MORE)
    connection.send(BODY)


def late_at_once(connection):
    time.sleep(0.04)
    at_once(connection)


def late_end(connection):
    connection.send(HEAD)
    time.sleep(0.06)
    connection.send(BODY)


@contextlib.contextmanager
def serving(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            connection, _ = listener.accept()
            with connection:
                while connection.recv(4096):
                    answer(connection)
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def ask(port):
    took = []
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(EXCHANGES):
            begin, received = time.monotonic(), 0
            client.sendall(b"GET / HTTP/1.1\r\nHost: nagle\r\n\r\n")
            while received < RESPONSE:
                received += len(client.recv(4096))
            took.append(time.monotonic() - begin)
    return took


@pytest.mark.parametrize("answer", [pieces, pieces_without_delay, at_once, announced, late_at_once, late_end])
@in_time
def test_nagle_is_named_where_it_is(start, answer):
    with serving(answer) as port:
        observer = start(Observer(ports=[port]))
        took = ask(port)
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == EXCHANGES
    report = re.sub(r"\s+", " ", observer.stdout)
    if answer is not pieces:
        assert entry["nagle_held"] == 0
        assert "Nagle" not in report
        return
    held = sum(each > HELD_S for each in took)
    assert held > EXCHANGES / 2
    assert f"the end of {entry['nagle_held']} of {EXCHANGES} responses waited for the client's ACK" in report
    with timing():
        assert entry["nagle_held"] == held


@pytest.mark.parametrize("options", [(), ("--transmit", "all")], ids=["usual", "transmit"])
def test_the_verdict_names_who_can_help(start, options):
    """The network is quick and so is the card. The server can end the client's wait."""
    with serving(pieces) as port:
        observer = start(Observer(*options, ports=[port]))
        driver = Driver(f"http://127.0.0.1:{port}/", count=EXCHANGES, observer=observer)
    assert driver.result["round_trip"]["p50_ns"] > HELD_S * 1e9
    verdict = re.sub(r"\s+", " ", driver.report.split("tcp 127.0.0.1")[0])
    held = service(driver.document, port)["nagle_held"]
    assert f"held back the end of {held} of {EXCHANGES} responses until the client's ACK (Nagle); it has to set " \
           "TCP_NODELAY" in verdict
    assert "is not what is slow" not in verdict and "network card" not in verdict
