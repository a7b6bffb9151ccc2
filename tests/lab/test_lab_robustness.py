# SPDX-License-Identifier: MIT
"""The lab server under vanishing clients, exhausted limits, and signals."""

import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import time

import pytest

from labserver import (
    CLIENTS, LAB, MODELS, TIME_WAITS, check_times, children, every_model, every_protocol,
    every_stream, Http, lab, Line, summary_now)
from support.process import alive, cpu_seconds, wait_until


@every_model
@every_stream
def test_pipelined(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    client = CLIENTS[protocol](server)
    texts = [f"size={i}" if i % 3 else f"size={i}&service=2ms" for i in range(1, 300)]
    whole = {"http": Http.request,
             "line": lambda text: text.encode() + b"\n",
             "frame": lambda text: struct.pack(">I", len(text)) + text.encode()}[protocol]
    client.sock.sendall(b"".join(whole(text) for text in texts))
    for i in range(1, 300):
        assert client.receive() == b"x" * i
    summary, truth = server.stop()
    assert summary["exchanges"] == len(truth) == 299
    truth.sort(key=lambda row: row["exchange"])
    assert [row["request_bytes"] for row in truth] == [len(whole(text)) for text in texts]
    assert not truth[0]["pipelined"]
    assert sum(row["pipelined"] for row in truth) > 200
    for row in truth:
        check_times(row)


@pytest.mark.alone
@every_model
@every_stream
def test_clients_that_vanish(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    half = {"http": b"GET / HT", "line": b"abc", "frame": b"\0\0\0\5a"}[protocol]

    def vanish(data, pause=0.05, abort=False):
        client = CLIENTS[protocol](server)
        client.sock.sendall(data) if isinstance(data, bytes) else client.send(data)
        time.sleep(pause)
        if abort:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sock.close()

    vanish(half)                                      # half a request
    vanish(half, abort=True)
    vanish("service=100ms", abort=True)               # while it is served
    vanish("size=20000000", abort=True)               # while it is answered
    vanish("pieces=3&pause=50ms&size=9", abort=True)  # between two pieces
    wait_until(lambda: summary_now(server)["closed"] == 5)
    stays = CLIENTS[protocol](server)
    assert stays.ask("size=2") == b"xx"
    summary, truth = server.stop()
    assert summary["closed_by_client"] == 1 and summary["reset_by_client"] == 4
    # During the service a loop notices at once; a blocking server only when it writes.
    assert summary["unanswered"] == 3
    assert (summary["exchanges"], summary["incomplete"]) == (3, 2)
    assert sum(row["error"] for row in truth) == 5


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
def test_out_of_descriptors(lab, model):
    workers = ["--workers", "1"] if model == "prefork" else []
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
    server = lab("--protocol", "line", "--model", model, *workers, preexec_fn=limit)
    clients = [Line(server) for _ in range(40)]
    time.sleep(0.8)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid = children(server.process.pid)[0] if model == "prefork" else server.process.pid
    assert cpu_seconds(pid) < 0.4, usage
    # As accepted connections leave, the others get their turn.
    for client in clients:
        assert client.ask("hello") == b"hello"
        client.sock.close()
    summary, _ = server.stop()
    assert summary["accepted"] == summary["exchanges"] == 40
    assert 1 <= summary["accept_errors"] <= 100
    lines = server.stderr.splitlines()
    assert 1 <= len(lines) <= 6 and "accept: Too many open files" in lines[0]


@every_model
@every_protocol
def test_stops_at_once_whatever_is_going_on(lab, protocol, model):
    server = lab("--protocol", protocol, *MODELS[model])
    clients = [CLIENTS[protocol](server) for _ in range(3)]
    clients[0].send("service=60s")
    clients[1].send("size=60&pieces=60&pause=1s")
    assert clients[1].sock.recv(1)
    time.sleep(0.1)
    begin = time.monotonic()
    summary, truth = server.stop()
    assert time.monotonic() - begin < 3
    if protocol != "udp":
        assert summary["accepted"] == summary["closed"] == summary["closed_at_exit"]
    assert (summary["unanswered"], summary["exchanges"], summary["incomplete"]) == (1, 1, 1)
    assert [row["error"] for row in truth] == [1, 1]


@pytest.mark.parametrize("worker", ["event", "blocking"])
def test_prefork_survives_and_reports_a_killed_worker(lab, worker):
    server = lab("--protocol", "line", "--model", "prefork", "--workers", "2", "--worker", worker)
    victim = children(server.process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(children(server.process.pid)) == 1)
    assert Line(server).ask("x") == b"x"
    summary, truth = server.stop(status=1)
    assert summary["exchanges"] == len(truth) == 1
    assert f"worker {victim}: killed by signal 9" in server.stderr
    assert not list(server.truth_file.parent.glob("*.part-*"))


@pytest.mark.parametrize("worker", ["event", "blocking"])
def test_prefork_workers_end_with_their_parent(lab, worker):
    server = lab("--protocol", "line", "--model", "prefork", "--worker", worker)
    workers = children(server.process.pid)
    assert len(workers) == 4
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(alive(pid) for pid in workers))


def test_no_part_files_are_left(lab):
    server = lab("--model", "prefork")
    Http(server).ask()
    server.stop()
    assert sorted(path.name for path in server.truth_file.parent.iterdir()) == [
        "summary.json", "truth.csv"]


def test_summary_into_a_device_keeps_the_device(lab):
    server = lab("--summary", "/dev/null")
    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=TIME_WAITS)
    assert server.process.returncode == 0
    assert not pathlib.Path("/dev/null").is_file()


def test_backlog(lab):
    server = lab("--backlog", "5", "--accept-delay", "60s")
    listing = subprocess.run(["ss", "-Hltn", f"sport = :{server.port}"], capture_output=True,
                             text=True, check=True).stdout.split()
    assert listing[2] == "5"


@pytest.mark.parametrize("listen", ["127.0.0.1", "[::1]"])
@pytest.mark.parametrize("protocol", ["line", "udp"])
def test_port_0_is_any(listen, protocol):
    process = subprocess.Popen([str(LAB), "--listen", f"{listen}:0", "--protocol", protocol],
                               stdout=subprocess.PIPE, text=True)
    host, _, port = process.stdout.readline().strip().rpartition(":")
    process.terminate()
    process.communicate(timeout=TIME_WAITS)
    assert host == f"listening on {listen}" and 0 < int(port) < 65536


@pytest.mark.parametrize("protocol", ["line", "udp"])
def test_stopping_blocked_workers_is_silent(lab, protocol):
    server = lab("--protocol", protocol, "--model", "prefork", "--worker", "blocking",
                 "--workers", "16")
    summary, _ = server.stop()
    assert server.stderr == "" and summary["accept_errors"] == 0
