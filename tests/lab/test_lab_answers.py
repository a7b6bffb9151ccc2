# SPDX-License-Identifier: MIT
"""The lab server answers, counts exactly, and writes the truth.

Run: SOJOURN_BUILD=build /usr/bin/python3 -m pytest -c tests/pytest.ini tests/lab
"""

import signal
import threading
import time

import pytest

from labserver import (
    CLIENTS, MODELS, answer, check_times, every_model, every_protocol, Http, lab, Line,
    sent_length, summary_now)
from support.process import wait_until
from support.timing import in_quiet, timing


@every_model
@every_protocol
@pytest.mark.parametrize("listen", ["127.0.0.1", "[::1]"])
def test_answers_and_counts_exactly(lab, protocol, model, listen):
    server = lab("--protocol", protocol, *MODELS[model], listen=listen)
    texts = ["size=10", "size=0" if protocol != "udp" else "size=1", "pieces=1", "size=100000"
             if protocol != "udp" else "size=65507"]
    bytes_in = bytes_out = 0
    for _ in range(3):
        client = CLIENTS[protocol](server)
        for text in texts:
            size = int(text.removeprefix("size=")) if text.startswith("size=") else None
            expected = answer(protocol, text) if size is None else b"x" * size
            assert client.ask(text) == expected
        peer = client.sock.getsockname()
        client.sock.close()
    if protocol != "udp":
        wait_until(lambda: summary_now(server)["closed_by_client"] == 3)
    summary, truth = server.stop()
    assert summary["exchanges"] == len(truth) == 3 * len(texts)
    assert summary["accepted"] == summary["closed"] == (0 if protocol == "udp" else 3)
    assert summary["unanswered"] == summary["incomplete"] == summary["bad_requests"] == 0
    for row in truth:
        check_times(row, udp=protocol == "udp")
        assert row["error"] == row["pipelined"] == 0
        assert row["local_port"] == server.port
        bytes_in += row["request_bytes"]
        bytes_out += row["response_bytes"]
    assert (summary["bytes_in"], summary["bytes_out"]) == (bytes_in, bytes_out)
    assert bytes_in == 3 * sum(sent_length(protocol, text) for text in texts)
    host = "[::1]" if listen[0] == "[" else "127.0.0.1"
    assert truth[-1]["peer"] == f"{host}:{peer[1]}"
    if protocol != "udp":
        assert sorted((row["connection"], row["exchange"]) for row in truth) == [
            (connection, index) for connection in (1, 2, 3) for index in range(len(texts))]
    if model.startswith("prefork"):
        assert all(row["pid"] != server.process.pid for row in truth)
    else:
        assert all(row["pid"] == server.process.pid for row in truth)


@every_model
def test_counts_are_exact_under_load(lab, model):
    server = lab("--protocol", "line", *MODELS[model])
    threads, requests = 8, 500
    # As many at a time as workers: a blocking one serves a connection to its end.
    slots = threading.Semaphore(3)

    def run():
        with slots:
            client = Line(server)
            for i in range(requests):
                assert client.ask(str(i)) == str(i).encode()
            client.sock.close()
            done.append(1)

    done = []
    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == threads
    wait_until(lambda: summary_now(server)["closed"] == threads)
    summary, truth = server.stop(signal.SIGINT)
    assert summary["accepted"] == threads
    assert summary["exchanges"] == len(truth) == threads * requests
    assert {(row["connection"], row["exchange"]) for row in truth} == {
        (connection + 1, index) for connection in range(threads) for index in range(requests)}


@every_model
@in_quiet
def test_prefork_shares_and_threads_overlap(lab, model):
    """Three slow requests at once take as long as one, in every model (three workers)."""
    server = lab("--protocol", "line", *MODELS[model])
    clients = [Line(server) for _ in range(3)]
    begin = time.monotonic()
    for client in clients:
        client.send("service=400ms")
    for client in clients:
        assert client.receive() == b"service=400ms"
    with timing():
        assert time.monotonic() - begin < 0.8
    _, truth = server.stop()
    if model == "prefork-blocking":
        assert len({row["pid"] for row in truth}) == 3


def test_truth_only_on_request(lab):
    server = lab(truth=False)
    assert Http(server).ask() == b"ok\n"
    summary, truth = server.stop()
    assert summary["exchanges"] == 1 and summary["truth_dropped"] == 0 and truth == []


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
def test_truth_is_bounded(lab, model):
    workers = ["--workers", "1"] if model == "prefork" else []
    server = lab("--protocol", "line", "--model", model, *workers, "--truth-limit", "1")
    client = Line(server)
    for _ in range(1024 + 50):
        client.ask("x")
    summary, truth = server.stop()
    assert summary["exchanges"] == 1074
    assert (len(truth), summary["truth_dropped"]) == (1024, 50)
