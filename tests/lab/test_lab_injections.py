# SPDX-License-Identifier: MIT
"""Each knob of the lab server has its effect in the right place, and only there."""

import os
import pathlib
import socket
import struct
import time

import pytest

from labserver import (
    CLIENTS, MODELS, MS, answer, children, closed_kinds, every_model, every_protocol,
    every_stream, Http, lab, Line, respond_ns, service_ns, Udp)
from support.process import cpu_seconds
from support.timing import in_quiet, in_time, timing


@every_model
@every_protocol
@pytest.mark.parametrize("mode", ["sleep", "spin"])
@in_time
def test_service(lab, protocol, model, mode):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    text = f"service=5ms&mode={mode}"
    for _ in range(10):
        begin = time.monotonic_ns()
        assert client.ask(text) == answer(protocol, text)
        assert time.monotonic_ns() - begin >= 5 * MS
    for _ in range(5):
        assert client.ask("mode=sleep") == answer(protocol, "mode=sleep")
    _, truth = server.stop()
    assert min(service_ns(row) for row in truth[:10]) >= 5 * MS
    with timing():  # the best of them, as the machine may be busy
        assert min(service_ns(row) for row in truth[:10]) < 20 * MS
        assert min(service_ns(row) for row in truth[10:]) < 5 * MS


@pytest.mark.alone
@every_protocol
def test_spin_uses_the_cpu_and_sleep_does_not(lab, protocol):
    server = lab("--protocol", protocol)
    client = CLIENTS[protocol](server)

    before = cpu_seconds(server.process.pid)
    client.ask("service=300ms&mode=sleep")
    slept = cpu_seconds(server.process.pid)
    client.ask("service=300ms&mode=spin")
    assert slept - before < 0.1
    assert cpu_seconds(server.process.pid) - slept > 0.05


@in_quiet
def test_sleep_blocks_the_loop_only_if_asked(lab):
    server = lab("--protocol", "line")
    slow, quick = Line(server), Line(server)
    quick.ask("warm")
    slow.send("service=300ms")
    time.sleep(0.05)
    begin = time.monotonic()
    quick.ask("x")
    with timing():
        assert time.monotonic() - begin < 0.2
    slow.receive()
    for extra in ("block=1", "mode=spin"):
        slow.send("service=300ms&" + extra)
        time.sleep(0.05)
        begin = time.monotonic()
        quick.ask("x")
        with timing():  # of 250: it starts late
            assert time.monotonic() - begin > 0.2
        slow.receive()


@every_model
@in_time
def test_options_are_the_default_of_requests(lab, model):
    server = lab("--service", "20ms", "--pieces=2", "--pause", "5ms", "--close", *MODELS[model])
    client = Http(server)
    assert client.ask() == b"ok\n"
    assert client.sock.recv(1) == b""
    client = Http(server)
    assert client.ask("service=0&pieces=1&close=0") == b"ok\n"
    assert client.ask("close=0") == b"ok\n"
    _, truth = server.stop()
    for injected in (0, 2):
        assert service_ns(truth[injected]) >= 20 * MS
        assert respond_ns(truth[injected]) >= 5 * MS
    with timing():
        assert service_ns(truth[1]) < 20 * MS
        assert respond_ns(truth[1]) < 5 * MS


@every_model
@every_stream
@in_time
def test_accept_delay(lab, protocol, model):
    server = lab("--protocol", protocol, "--accept-delay", "30ms", *MODELS[model])
    connects = []  # (begin, end)
    for _ in range(3):
        begin = time.monotonic_ns()
        client = CLIENTS[protocol](server)
        connects.append((begin, time.monotonic_ns()))
        client.ask("size=1")
        client.sock.close()
        assert time.monotonic_ns() - begin >= 30 * MS
        assert server.process.poll() is None
    _, truth = server.stop()
    assert len(truth) == 3
    assert all(row["accept_end_ns"] - begin >= 30 * MS for row, (begin, _) in zip(truth, connects))
    with timing():
        # connect() needs no accept(): it returned before the server's accept() did.
        assert all(end < row["accept_end_ns"] for row, (_, end) in zip(truth, connects))
        assert all(row["last_write_end_ns"] - row["accept_end_ns"] < 30 * MS for row in truth)


@pytest.mark.parametrize("model", ["event", "threads"])
def test_accept_delay_is_before_each(lab, model):
    server = lab("--protocol", "line", "--accept-delay", "30ms", "--model", model)
    clients = [Line(server) for _ in range(4)]
    for client in clients:
        client.ask("x")
    _, truth = server.stop()
    ends = sorted(row["accept_end_ns"] for row in truth)
    assert all(b - a >= 30 * MS for a, b in zip(ends, ends[1:]))


@every_model
@every_protocol
@in_time
def test_read_delay(lab, protocol, model):
    server = lab("--protocol", protocol, "--read-delay", "30ms", *MODELS[model])
    client = CLIENTS[protocol](server)
    sent = []
    for _ in range(3):
        sent.append(time.monotonic_ns())
        assert client.ask("size=5") == b"xxxxx"
    _, truth = server.stop()
    for begin, row in zip(sent, truth):
        assert row["first_read_end_ns"] - begin >= 30 * MS
        assert row["readable_ns"] >= begin
        assert row["first_read_begin_ns"] - row["readable_ns"] >= 30 * MS
        with timing():
            assert service_ns(row) < 30 * MS


def test_readable_is_known_where_the_model_knows_it(lab):
    for model in MODELS:
        server = lab("--protocol", "line", *MODELS[model])
        client = Line(server)
        for _ in range(3):
            client.ask("x")
        _, truth = server.stop()
        known = [0 < row["readable_ns"] <= row["first_read_begin_ns"] for row in truth]
        assert known == [model in ("event", "prefork")] * 3, model


@every_model
@every_stream
@in_time
def test_receive_is_the_request_arriving(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    whole = {"http": Http.request("size=4"), "line": b"size=4\n",
             "frame": struct.pack(">I", 6) + b"size=4"}[protocol]
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in (whole[:1], whole[1:2], whole[2:3], whole[3:-1], whole[-1:]):
        client.sock.sendall(part)
        time.sleep(0.02)
    assert client.receive() == b"xxxx"
    _, truth = server.stop()
    assert len(truth) == 1
    received = truth[0]["last_read_end_ns"] - truth[0]["first_read_end_ns"]
    with timing():
        assert received >= 50 * MS  # of 80, as its first read may be late
        assert service_ns(truth[0]) < 30 * MS


@every_model
@every_stream
@in_time
def test_pieces(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.send("pieces=5&pause=40ms&size=50")
    parts = []
    body = b""
    while b"x" * 50 not in body:
        parts.append(client.sock.recv(65536))
        body += parts[-1]
    with timing():  # a late client finds two at once
        assert len(parts) == 5
    client = CLIENTS[protocol](server)
    assert client.ask("pieces=1000&size=3") == b"xxx"
    _, truth = server.stop()
    assert respond_ns(truth[0]) >= 160 * MS
    assert truth[0]["response_bytes"] == len(body) + (protocol == "line" and body[-1:] != b"\n")


@every_model
def test_udp_pieces(lab, model):
    server = lab("--protocol", "udp", *MODELS[model])
    client = Udp(server)
    client.send("pieces=4&pause=10ms&size=10")
    assert [len(client.receive()) for _ in range(4)] == [2, 3, 2, 3]
    _, truth = server.stop()
    assert respond_ns(truth[0]) >= 30 * MS and truth[0]["response_bytes"] == 10


@every_model
@every_stream
@in_time
def test_large_response_to_a_slow_reader(lab, protocol, model):
    size = 64 << 20
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.send(f"size={size}")
    time.sleep(0.1)  # its send buffer is full by now
    if protocol == "line":
        got = sum(len(part) for part in iter(lambda: take(client.sock, size + 1), b""))
        assert got == size + 1
    else:
        assert len(client.receive()) == size
    _, truth = server.stop()
    assert truth[0]["response_bytes"] >= size and not truth[0]["error"]
    with timing():  # of 100, as its first write may be late
        assert respond_ns(truth[0]) >= 50 * MS


def take(sock, total, taken={}):
    """Receive part by part up to @total bytes, then b""."""
    left = total - taken.get(sock, 0)
    part = sock.recv(min(left, 1 << 20)) if left else b""
    taken[sock] = taken.get(sock, 0) + len(part)
    return part


@every_model
@every_stream
@pytest.mark.parametrize("extra", ["", "&pieces=4&pause=1ms"])
def test_early_close(lab, protocol, model, extra):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1000")
    client.send("size=1000&early-close=1" + extra)
    got = b"".join(iter(lambda: client.sock.recv(65536), b""))
    summary, truth = server.stop()
    assert [row["error"] for row in truth] == [0, 1]
    assert len(got) == truth[1]["response_bytes"] == truth[0]["response_bytes"] // 2
    assert (summary["exchanges"], summary["incomplete"]) == (2, 1)
    assert closed_kinds(summary) == {"closed_by_server": 1}


@every_model
@every_protocol
def test_leak(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1")

    def open_fds():
        pids = [server.process.pid] + children(server.process.pid)
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)

    before = open_fds()
    for _ in range(7):
        client.ask("size=1&leak=1")
    assert open_fds() - before == 7
    client.ask("leak=0")
    assert open_fds() - before == 7
    assert server.stop()[0]["leaked"] == 7


def states(server, peer_port):
    """Return the states as a set: a table that others change meanwhile may show a row several times."""
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = f":{server.port:04X}", f":{peer_port:04X}"
    return {row.split()[3] for row in rows
            if (row.split()[1][8:], row.split()[2][8:]) == ends}


CLOSE_WAIT = "08"


@every_model
@every_stream
def test_ignore_fin(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    clients = [CLIENTS[protocol](server) for _ in range(2)]
    ports = [client.sock.getsockname()[1] for client in clients]
    clients[0].ask("ignore-fin=1")
    clients[1].ask("ignore-fin=0")
    for client in clients:
        client.sock.shutdown(socket.SHUT_WR)
    assert clients[1].sock.recv(1) == b""
    time.sleep(0.1)
    assert states(server, ports[0]) == {CLOSE_WAIT}
    assert CLOSE_WAIT not in states(server, ports[1])
    # The parked connection uses no CPU meanwhile: the others are served as before.
    assert CLIENTS[protocol](server).ask("size=2")
    summary, _ = server.stop()
    assert summary["closed_by_client"] >= 1 and summary["closed_at_exit"] >= 1
    assert summary["accepted"] == summary["closed"] == 3


@every_model
@every_stream
def test_reset(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=1")
    client.send("reset=1")
    with pytest.raises(ConnectionResetError):
        client.sock.recv(1)
    summary, truth = server.stop()
    assert (summary["exchanges"], summary["unanswered"]) == (1, 1)
    assert closed_kinds(summary) == {"reset_by_server": 1}
    assert truth[1]["error"] == 1
    assert truth[1]["first_write_begin_ns"] == truth[1]["response_bytes"] == 0


@every_model
@every_stream
def test_close(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    client.ask("size=3")
    assert client.ask("size=3&close=1") == b"xxx"
    assert client.sock.recv(1) == b""
    assert closed_kinds(server.stop()[0]) == {"closed_by_server": 1}


@every_model
@in_quiet
def test_one_in_n_is_delayed(lab, model):
    """Every fifth request on a connection is delayed, the others are not. Connections without requests do not count."""
    server = lab("--protocol", "line", "--service", "30ms", "--one-in", "5",
                 *[word if word != "3" else "1" for word in MODELS[model]])
    for _ in range(3):
        Line(server).sock.close()
    client = Line(server)
    for _ in range(20):
        client.ask("hello")
    _, truth = server.stop()
    late = [at for at, row in enumerate(truth) if service_ns(row) >= 30 * MS]
    assert set(late) >= {4, 9, 14, 19}
    with timing():
        assert late == [4, 9, 14, 19]


def waits_of(server, count):
    """Return how long each of so many clients, one after the other, waits for its connection and its answer."""
    waits = []
    for _ in range(count):
        begin = time.monotonic_ns()
        client = Line(server)
        client.ask("hello")
        waits.append(time.monotonic_ns() - begin)
        client.sock.close()
    return waits


@pytest.mark.parametrize("model", ["event", "threads"])
def test_one_in_n_is_accepted_late(lab, model):
    """A busy machine delays others, too, but not all of them."""
    server = lab("--protocol", "line", "--accept-delay", "30ms", "--one-in", "3", *MODELS[model])
    waits = waits_of(server, 36)
    assert min(waits[2::3]) >= 30 * MS
    assert max(min(waits[0::3]), min(waits[1::3])) < 30 * MS


@pytest.mark.parametrize("model", ["event", "threads"])
@in_quiet
def test_one_in_n_is_read_late(lab, model):
    """The read of a connection's end counts, too: 8 of 24 reads are late, and about half of these delay an answer."""
    server = lab("--protocol", "line", "--read-delay", "30ms", "--one-in", "3", *MODELS[model])
    late = sum(wait >= 30 * MS for wait in waits_of(server, 12))
    assert late >= 2
    with timing():
        assert late <= 6


@pytest.mark.parametrize("call", ["accept4", "accept", "io_uring", "multishot"])
def test_every_way_to_accept(lab, call):
    """Connections are served as usual with any call; closing the listener wakes it."""
    server = lab("--protocol", "line", "--model", "threads", "--accept", call)
    clients = [Line(server) for _ in range(10)]
    for _ in range(3):
        for client in clients:
            assert client.ask("hello") == b"hello"
    summary, truth = server.stop()
    assert summary["accepted"] == 10
    assert len(truth) == 30
    assert {row["peer"] for row in truth} == \
        {"{}:{}".format(*client.sock.getsockname()) for client in clients}
