# SPDX-License-Identifier: MIT
"""The lab server's HTTP: bodies, keep-alive, refusals; and the other protocols' errors."""

import struct

import pytest

from labserver import (
    CLIENTS, MODELS, check_times, closed_kinds, every_model, Frame, Http, lab, read_until,
    summary_now)
from support.process import wait_until


def http_bodies():
    chunked = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    return {
        "content-length": ("Content-Length: 11\r\n", b"hello world"),
        "chunked": ("Transfer-Encoding: chunked\r\n", chunked),
        "large": (f"Content-Length: {3 << 20}\r\n", bytes(3 << 20)),
        "empty": ("Content-Length: 0\r\n", b""),
    }


@every_model
@pytest.mark.parametrize("body", http_bodies())
def test_http_request_bodies(lab, model, body):
    server = lab(*MODELS[model])
    headers, data = http_bodies()[body]
    client = Http(server)
    request = Http.request("service=1ms", "POST", headers, data)
    for _ in range(2):
        client.sock.sendall(request)
        assert client.response() == (
            200, {"content-type": "text/plain", "content-length": "3"}, b"ok\n")
    _, truth = server.stop()
    assert [row["request_bytes"] for row in truth] == [len(request)] * 2
    for row in truth:
        check_times(row)
    if body == "large":
        assert all(row["last_read_end_ns"] > row["first_read_end_ns"] for row in truth)


def test_http_keep_alive_and_close(lab):
    server = lab()
    for version, header, stays in (("1.1", "", True), ("1.1", "Connection: close\r\n", False),
                                   ("1.0", "", False), ("1.0", "Connection: keep-alive\r\n", True)):
        client = Http(server)
        client.sock.sendall(Http.request(headers=header, version=version))
        _, headers, body = client.response()
        assert body == b"ok\n"
        if stays:
            assert headers.get("connection") == ("keep-alive" if version == "1.0" else None)
            assert client.ask() == b"ok\n"
        else:
            assert headers["connection"] == "close"
            assert client.sock.recv(1) == b""
        client.sock.close()
    wait_until(lambda: summary_now(server)["closed"] == 4)
    assert closed_kinds(server.stop()[0]) == {"closed_by_server": 2, "closed_by_client": 2}


def test_http_head_and_chunked(lab):
    server = lab()
    client = Http(server)
    client.sock.sendall(Http.request("size=1000", "HEAD"))
    assert client.response("HEAD")[1]["content-length"] == "1000"
    client.sock.sendall(Http.request("size=1000&chunked=1&pieces=4"))
    read_until(client.sock, b"\r\n\r\n")
    assert [len(chunk) for chunk in client.chunks()] == [250] * 4
    client.sock.sendall(Http.request("size=0&chunked=1"))
    assert client.response()[2] == b""
    # HTTP/1.0 has no chunks.
    client.sock.sendall(Http.request("size=7&chunked=1", version="1.0"))
    assert client.response()[1]["content-length"] == "7"


def test_http_expect_continue(lab):
    server = lab()
    client = Http(server)
    headers = "Content-Length: 5\r\nExpect: 100-continue\r\n"
    client.sock.sendall(Http.request(method="POST", headers=headers))
    assert client.response()[0] == 100
    client.sock.sendall(b"hello")
    assert client.response()[0] == 200
    summary, truth = server.stop()
    assert summary["exchanges"] == 1 and not truth[0]["error"]


@every_model
def test_http_refuses(lab, model):
    server = lab(*MODELS[model])
    bad = ["service=61s", "size=67108865", "pieces=0", "pieces=1001", "nonsense=1", "service=abc",
           "mode=fast", "close=2", "pieces=1000&pause=1s", "service", "service=1h", "pause=1.s",
           "size=99999999999999999999"]
    client = Http(server)
    for query in bad:
        client.send(query)
        status, headers, body = client.response()
        assert (status, body[:7], body[-1:]) == (400, b"error: ", b"\n"), query
        assert "connection" not in headers
    assert client.ask("service=0.5ms&") == b"ok\n"
    client.sock.close()
    summary, truth = server.stop()
    assert summary["bad_requests"] == len(bad)
    assert [row["error"] for row in truth] == [1] * len(bad) + [0]


@every_model
@pytest.mark.parametrize("garbage,status", [
    (b"not HTTP at all\r\n\r\n" + bytes(200000), 400),
    (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 70000, 431),
    (b"GET /?" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
], ids=["garbage", "long-head", "long-target"])
def test_http_malformed(lab, model, garbage, status):
    server = lab(*MODELS[model])
    client = Http(server)
    client.sock.sendall(garbage)
    got, headers, _ = client.response()
    assert got == status
    if status != 414:  # that one was understood
        assert headers["connection"] == "close"
        assert client.sock.recv(1) == b""
    client.sock.close()
    assert Http(server).ask() == b"ok\n"


@pytest.mark.parametrize("protocol,text", [
    ("line", "x" * 70000), ("frame", struct.pack(">I", 1 << 30) + bytes(70000))],
    ids=["line", "frame"])
def test_too_long_requests(lab, protocol, text):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)
    if protocol == "line":
        client.send(text)
    else:
        client.sock.sendall(text)
    assert client.receive().startswith(b"error: ")
    assert client.sock.recv(1) == b""


@pytest.mark.parametrize("protocol", ["line", "frame", "udp"])
def test_error_lines(lab, protocol):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)
    for text in ("service=61s", "x=y", "chunked=1", "size=1&pieces=x"):
        assert client.ask(text).startswith(b"error: "), text
    if protocol == "udp":
        for text in ("close=1", "reset=1", "early-close=1", "ignore-fin=1", "size=65508"):
            assert client.ask(text).startswith(b"error: "), text
        assert len(client.ask("size=65507")) == 65507
    assert client.ask("plain text") == b"plain text"


def test_binary_frames_are_plain(lab):
    client = Frame(lab("--protocol", "frame"))
    for payload in (b"\0=&=\xff", b"", bytes(range(256)) * 4096):
        client.send(payload)
        assert client.receive() == payload
