# SPDX-License-Identifier: MIT
"""Calls of gRPC: against Debian's python3-grpcio, whose own count is the truth, and wrong answers."""
import re
import sys

import pytest

from support import ROOT
from support.h2server import H2Server
from support.net import free_port
from support.pki import Pki
from support.process import run
from support.programs import Driver

SERVER = ROOT / "tests/support/grpcserver.py"


def need(module):
    if run([sys.executable, "-c", f"import {module}"], check=False).status:
        pytest.skip(f"python3-{module} is not installed: tools/setup")


class Server:
    """The server as a process; served() ends it and returns its counts."""

    def __init__(self, start, *identity):
        need("grpc")
        self.port = free_port()
        scheme = "h2" if identity else "h2c"
        self.url = f"{scheme}://127.0.0.1:{self.port}/test.Service/"
        self.process = start([sys.executable, SERVER, self.port, *identity])
        self.process.wait_for("ready", seconds=20)

    def served(self):
        self.process.stop()
        return {name: int(count) for name, count in
                re.findall(r"(\w+)=(\d+)", self.process.stdout)}


def errors(driver):
    return {kind: count for kind, count in driver.result["errors"].items() if count}


def statuses(driver):
    return {name: count for name, count in driver.result["grpc"].items() if count}


@pytest.mark.parametrize("tls", [False, True])
def test_calls_are_the_servers(start, tmp_path, tls):
    (tmp_path / "message").write_bytes(b"\0\1\2" * 1000)
    pki = start(Pki()) if tls else None
    server = Server(start, *(pki.issue("server", "IP:127.0.0.1") if tls else ()))
    options = ["--ca", pki.ca] if tls else []
    driver = Driver(server.url + "Echo", "--grpc", f"--body=@{tmp_path}/message", "--streams=4",
                    *options, connections=2, count=600)
    assert statuses(driver) == {"ok": 600} and errors(driver) == {}
    assert driver.result["requests"] == driver.result["status"]["2xx"] == 600
    assert driver.result["connects"] == 2
    assert "gRPC" in driver.report and "ok 600" in driver.report
    missing = Driver(server.url + "Missing", "--grpc", *options, count=50, check=False)
    assert statuses(missing) == {"not_found": 50} and errors(missing) == {"status": 50}
    assert missing.status == 1
    assert server.served() == {"Echo": 600, "Missing": 50, "Slow": 0, "bytes": 600 * 3000}


def test_expected_statuses(start):
    server = Server(start)
    found = Driver(server.url + "Missing", "--grpc", "--expect-grpc-status=ok,not_found", count=20)
    assert statuses(found) == {"not_found": 20} and errors(found) == {}
    wrong = Driver(server.url + "Echo", "--grpc", "--expect-grpc-status=5", "--body=x", count=20,
                   check=False)
    assert statuses(wrong) == {"ok": 20} and errors(wrong) == {"unexpected": 20}
    unknown = Driver(server.url + "Nothing", "--grpc", count=20, check=False)
    assert statuses(unknown) == {"unimplemented": 20} and errors(unknown) == {"status": 20}
    empty = Driver(server.url + "Echo", "--grpc", "--rate=200", count=100)
    assert statuses(empty) == {"ok": 100}
    slow = Driver(server.url + "Slow", "--grpc", "--timeout=200ms", count=2, check=False)
    assert errors(slow) == {"timeout": 2} and statuses(slow) == {}
    served = server.served()
    assert (served["Missing"], served["Echo"], served["Slow"]) == (20, 120, 2)


def messages(driver):
    return {name: driver.result.get(f"messages_{name}") for name in ("sent", "received")}


@pytest.mark.parametrize("method, calls, options, sent, received", [
    ("Collect", 40, ["--body=abc", "--grpc-messages=25"], 1000, 40),
    ("Serve", 30, [f"--body={'n' * 17}", "--grpc-replies=17"], 30, 510),
    ("Talk", 20, [f"--body={'x' * 3000}", "--grpc-messages=12", "--grpc-replies=any"], 240, 240),
])
def test_streaming_calls_are_the_servers(start, method, calls, options, sent, received):
    server = Server(start)
    driver = Driver(server.url + method, "--grpc", "--streams=3", *options, connections=2, count=calls)
    assert statuses(driver) == {"ok": calls} and errors(driver) == {}
    assert messages(driver) == {"sent": sent, "received": received}
    server.process.stop()
    assert f"{method} read={sent}\n{method} sent={received}\n" in server.process.stdout


def test_messages_of_a_call_have_an_interval(start):
    """No message is sent before its time: so many intervals pass in each call, also if calls run at a time."""
    server = Server(start)
    driver = Driver(server.url + "Collect", "--grpc", "--body=x", "--grpc-messages=4", "--grpc-interval=30ms",
                    "--streams=5", connections=2, count=20)
    assert messages(driver) == {"sent": 80, "received": 20}
    assert driver.result["round_trip"]["mean_ns"] >= 3 * 30e6
    assert driver.result["duration_ns"] < 20 * 3 * 30e6, "one call after the other"


def test_a_call_that_the_server_ends_early_is_over(start):
    server = Server(start)
    driver = Driver(server.url + "Early", "--grpc", "--body=x", "--grpc-messages=1000000", "--grpc-replies=any",
                    "--expect-grpc-status=resource_exhausted", count=10)
    assert statuses(driver) == {"resource_exhausted": 10} and errors(driver) == {}
    assert 10 <= driver.result["messages_sent"] < 10_000_000


def test_replies_that_are_not_expected(start):
    server = Server(start)
    driver = Driver(server.url + "Serve", "--grpc", "--body=abc", "--grpc-replies=2", count=5, check=False)
    assert statuses(driver) == {"ok": 5} and errors(driver) == {"unexpected": 5}
    assert "grpc-status ok with 3 messages" in driver.report


def reply(data, trailers, headers=(("content-type", "application/grpc"),)):
    def treat(exchanges):
        stream = exchanges.answer(body=data, headers=headers, end=not trailers)
        if trailers:
            exchanges.connection.send_headers(stream, trailers, end_stream=True)
    return treat


MESSAGE = b"\0\0\0\0\3abc"
OK = [("grpc-status", "0")]
REPLIES = {
    "good": (reply(MESSAGE, OK), {"ok": 5}, {}),
    "no status": (reply(MESSAGE, None), {}, {"malformed": 5}),
    "status that is none": (reply(MESSAGE, [("grpc-status", "fine")]), {}, {"malformed": 5}),
    "status of tomorrow": (reply(b"", [("grpc-status", "99")]), {"other": 5}, {"status": 5}),
    "no message": (reply(b"", OK), {"ok": 5}, {"malformed": 5}),
    "two messages": (reply(MESSAGE * 2, OK), {"ok": 5}, {"malformed": 5}),
    "half a message": (reply(MESSAGE[:-1], OK), {"ok": 5}, {"malformed": 5}),
}


@pytest.mark.parametrize("name", REPLIES)
def test_replies(start, name):
    pytest.importorskip("h2", reason="python3-h2 is not installed: tools/setup")
    treat, status, wrong = REPLIES[name]
    server = start(H2Server(treat))
    driver = Driver(server.url + "s/m", "--grpc", "--body=abc", count=5, check=False)
    assert errors(driver) == wrong
    assert statuses(driver) == ({} if "malformed" in wrong else status)
    assert server.counts["requests"] == 5


def test_what_is_sent(start):
    """Prefix, length and headers are as the protocol says, and fields are rendered for each call."""
    pytest.importorskip("h2", reason="python3-h2 is not installed: tools/setup")
    bodies = []

    def treat(exchanges):
        bodies.append(exchanges.bodies.pop(exchanges.open[0]))
        reply(MESSAGE, OK)(exchanges)

    server = start(H2Server(treat))
    Driver(server.url + "s/m", "--grpc", "--body=n" + "{{counter:20}}" * 15, count=3)
    assert [body[:5] for body in bodies] == [b"\0\0\0\1\x2d"] * 3
    assert {body[5:] for body in bodies} == {b"n" + (b"%020d" % number) * 15 for number in (1, 2, 3)}
