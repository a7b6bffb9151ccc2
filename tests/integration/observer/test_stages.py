# SPDX-License-Identifier: MIT
"""Every stage equals the lab server's own clock, and shows the delay that was injected into it.

The lab server records CLOCK_MONOTONIC around its own accept, read and write calls; the observer sees the same
calls from the kernel. The two differ by the return of the system call and any preemption there, which on a busy
machine is no error. So a comparison of times has three tries and must hold once (support/timing.py); a count
has one try.
"""
import collections
import csv
import math
import socket
import statistics
import threading
import time

import pytest

from support.documents import service
from support.net import wait_until_read
from support.packets import Packets, port_of
from support.programs import Driver, Lab, Observer
from support.timing import MS, US, close_to, in_quiet, in_time, lies_within, timing


def truth_of(lab, path):
    """End the lab server and return its exchanges, with their times as integers."""
    lab.stop()
    with open(path, encoding="ascii", newline="") as file:
        return [{name: value if name in ("peer",) else int(value) for name, value in row.items()}
                for row in csv.DictReader(file)]


def mean(rows, begin, end):
    return statistics.fmean(row[end] - row[begin] for row in rows)


def service_is_true(entry, truth):
    """The kernel's time of the first write lies within the server's write call. So the mean lies between those
    at the call's start and end, within the promised error."""
    return lies_within(stage(entry, "service")["mean_ns"],
                       mean(truth, "last_read_end_ns", "first_write_begin_ns"),
                       mean(truth, "last_read_end_ns", "first_write_end_ns"))


def stage(entry, name):
    assert entry["stages"][name].get("measured", True), entry["stages"][name]
    return entry["stages"][name]


def samples_add_up(entry):
    """The samples, if all were kept, add up. The stages of each exchange sum to its residence (else it was
    discarded as inconsistent), and all exchanges to the service's sums."""
    samples = entry["samples"]
    assert samples is not None
    if samples["threshold"] < 1 << 32 or entry["losses"]["preexisting"]:
        return
    assert samples["lost"] == samples["inconsistent"] == 0
    assert len(samples["flow"]) == entry["exchanges"] - entry["losses"]["untimed"]
    for name in ("socket_queue", "receive", "service", "respond"):
        assert sum(samples["stages"].get(name, ())) == entry["stages"][name]["sum_ns"], name
    assert sum(samples["stages"].get("accept_queue", ())) == entry["accept_delay_ns"]


class Scene:
    def __init__(self, start, tmp_path, *options, observe=(), **lab_options):
        self.path = tmp_path / f"truth-{time.monotonic_ns()}.csv"
        self.lab = start(Lab("--truth", self.path, *options, **lab_options))
        self.observer = start(Observer(*observe, ports=[self.lab.port]))

    def end(self):
        """Return (the observer's entry, the truth)."""
        self.observer.stop()
        entry = service(self.observer.summary(), self.lab.port)
        samples_add_up(entry)
        return entry, truth_of(self.lab, self.path)


MODELS = ("event", "threads", "prefork")


@pytest.mark.parametrize("milliseconds, count", [(0, 2000), (1, 400), pytest.param(5, 200, marks=pytest.mark.long), (20, 60)])
@in_quiet
def test_service(start, tmp_path, milliseconds, count):
    """Of servers of all models, one after the other, seen by one observer."""
    truths = {model: tmp_path / f"truth-{model}-{time.monotonic_ns()}.csv" for model in MODELS}
    labs = {model: start(Lab("--truth", path, "--service", f"{milliseconds}ms", model=model))
            for model, path in truths.items()}
    observer = start(Observer(ports=[lab.port for lab in labs.values()]))
    for lab in labs.values():
        Driver(lab.url, connections=2, count=count)
    observer.stop()
    for model, lab in labs.items():
        entry, truth = service(observer.summary(), lab.port), truth_of(lab, truths[model])
        samples_add_up(entry)
        assert len(truth) == count == entry["exchanges"] == stage(entry, "service")["count"], model
        true_ns = mean(truth, "last_read_end_ns", "first_write_end_ns")
        assert true_ns >= milliseconds * MS, model
        assert service_is_true(entry, truth), model
        # The delay in service is in no other stage.
        for other in ("receive", "respond"):
            assert stage(entry, other)["max_ns"] == 0, model


@in_quiet
def test_service_spin(start, tmp_path):
    scene = Scene(start, tmp_path, "--service", "2ms", "--mode", "spin", model="threads")
    Driver(scene.lab.url, connections=1, count=200)
    entry, truth = scene.end()
    assert service_is_true(entry, truth)


@in_quiet
def test_service_percentiles(start, tmp_path):
    """Each percentile, not only the mean, is within a bucket's width of the truth's."""
    scene = Scene(start, tmp_path, model="threads")
    for milliseconds, count in ((1, 300), (4, 150), (16, 50)):
        Driver(f"{scene.lab.url}?service={milliseconds}ms", connections=1, count=count)
    entry, truth = scene.end()
    assert stage(entry, "service")["count"] == len(truth) == 500
    lower, upper = (sorted(row[end] - row["last_read_end_ns"] for row in truth)
                    for end in ("first_write_begin_ns", "first_write_end_ns"))
    for name, quantile in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
        rank = math.ceil(quantile * len(truth)) - 1
        # A percentile is the upper edge of its bucket, which is at most 1/64 wide.
        with timing():
            assert lower[rank] - 20 * US <= stage(entry, "service")[name]
            assert stage(entry, "service")[name] <= upper[rank] * (1 + 1 / 64) + 20 * US


@pytest.mark.parametrize("model, source", [
    ("event", "syscall"), ("threads", "inferred"),
    pytest.param("event", "inferred", marks=pytest.mark.long), pytest.param("threads", "syscall", marks=pytest.mark.long)])
@in_quiet
def test_late_read_is_socket_queue(start, tmp_path, model, source):
    """When accept() is inferred, it coincides with the first read if the request was already there. So of 100
    requests on two connections, two may wait in accept_queue instead. The arrival of a request is the kernel's
    stamp of its packet."""
    scene = Scene(start, tmp_path, "--read-delay", "10ms", "--service", "1ms", model=model,
                  observe=["--accept-source", source])
    with Packets(scene.lab.port) as packets:
        Driver(scene.lab.url, connections=2, count=100)
    entry, truth = scene.end()

    moved_ns = entry["accept_delay_ns"] / entry["exchanges"]  # moved from socket_queue to accept_queue
    arrivals = packets.arrivals()
    assert {port: len(packets_) for port, packets_ in arrivals.items()} == collections.Counter(map(port_of, truth))
    assert len(truth) == 100
    for row in truth:
        row["arrival_ns"] = arrivals[port_of(row)][row["exchange"]].at_ns
    assert mean(truth, "readable_ns", "first_read_end_ns") >= 10 * MS
    assert lies_within(stage(entry, "socket_queue")["mean_ns"] + moved_ns,
                       mean(truth, "arrival_ns", "first_read_begin_ns"),
                       mean(truth, "arrival_ns", "first_read_end_ns"))
    assert service_is_true(entry, truth)
    firsts = [row for row in truth if row["exchange"] == 0]
    if source == "inferred":
        assert moved_ns * 100 <= sum(row["first_read_end_ns"] - row["arrival_ns"] + 20 * US for row in firsts)
    else:
        assert lies_within(moved_ns, 0, sum(max(0, row["accept_end_ns"] - row["arrival_ns"]) for row in firsts) / 100)


@pytest.mark.parametrize("model", ["event", "threads"])
@in_quiet
def test_pieces_are_respond(start, tmp_path, model):
    scene = Scene(start, tmp_path, model=model)
    Driver(f"{scene.lab.url}?pieces=4&pause=3ms&size=4000", connections=2, count=50)
    entry, truth = scene.end()
    true_ns = mean(truth, "first_write_end_ns", "last_write_end_ns")

    assert true_ns >= 9 * MS
    assert stage(entry, "respond")["count"] == entry["exchanges"] == 50
    assert close_to(stage(entry, "respond")["mean_ns"], true_ns)
    assert service_is_true(entry, truth)
    assert stage(entry, "respond")["p50_ns"] >= 9 * MS
    # Four writes, yet every exchange is in one bucket.
    assert sum(count for _, count in stage(entry, "respond")["buckets"]) == 50


@in_quiet
def test_slow_request_is_receive(start, tmp_path):
    scene = Scene(start, tmp_path)
    with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(20):
            client.sendall(b"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: 10\r\n\r\n12345")
            time.sleep(0.01)
            client.sendall(b"67890")
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += client.recv(65536)
            time.sleep(0.005)
    entry, truth = scene.end()
    true_ns = mean(truth, "first_read_end_ns", "last_read_end_ns")

    assert len(truth) == entry["exchanges"] == 20
    with timing():
        assert true_ns >= 9 * MS
        assert stage(entry, "socket_queue")["mean_ns"] < 2 * MS
    assert close_to(stage(entry, "receive")["mean_ns"], true_ns)
    assert service_is_true(entry, truth)
    assert entry["losses"]["overlapped"] == 0
    assert entry["bytes_in"] == sum(row["request_bytes"] for row in truth)


@pytest.mark.parametrize("protocol", ["line", "frame"])
@in_quiet
def test_no_protocol_is_assumed(start, tmp_path, protocol):
    scene = Scene(start, tmp_path, "--service", "2ms", protocol=protocol)
    with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        for _ in range(50):
            client.sendall(b"hello\n" if protocol == "line" else b"\0\0\0\5hello")
            client.recv(65536)
    entry, truth = scene.end()
    assert len(truth) == entry["exchanges"] == 50
    assert service_is_true(entry, truth)


@in_quiet
def test_half_close(start, tmp_path):
    """The client sends its request and its FIN; the response still belongs to the request."""
    scene = Scene(start, tmp_path, "--service", "5ms", protocol="line")
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
            client.sendall(b"hello\n")
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    entry, truth = scene.end()
    assert len(truth) == entry["exchanges"] == 20
    assert service_is_true(entry, truth)
    assert entry["losses"]["unanswered"] == 0
    assert entry["losses"]["overlapped"] == 0
    assert entry["closes"]["closed_by_client"] == 20


def test_unanswered_and_reset(start, tmp_path):
    scene = Scene(start, tmp_path)
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
            client.sendall(b"GET /?reset=1 HTTP/1.1\r\nHost: lab\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                client.recv(65536)
    # Connections without any request are no exchanges.
    for _ in range(5):
        socket.create_connection(("127.0.0.1", scene.lab.port)).close()
    time.sleep(0.1)
    entry, _ = scene.end()
    assert entry["exchanges"] == 0
    assert entry["losses"]["unanswered"] == 10
    assert entry["closes"]["reset_by_server"] == 10
    assert entry["closes"]["closed_by_client"] == 5


def test_reset_by_client(start, tmp_path):
    scene = Scene(start, tmp_path, "--service", "50ms")
    for _ in range(10):
        client = socket.create_connection(("127.0.0.1", scene.lab.port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
        time.sleep(0.01)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    time.sleep(0.2)
    entry, _ = scene.end()
    assert entry["closes"]["reset_by_client"] == 10
    assert entry["losses"]["unanswered"] == 10
    assert entry["time_wait_created"] == 0


@in_quiet
def test_pipelined_requests_are_overlapped(start, tmp_path):
    """The second request is readable while the first one is served: its wait is socket_queue."""
    scene = Scene(start, tmp_path, "--service", "10ms", model="threads", protocol="line")
    sent = []  # (before, after) the second of each pair
    with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(10):
            client.sendall(b"first\n")
            wait_until_read(client)
            before_ns = time.monotonic_ns()
            client.sendall(b"second\n")
            sent.append((before_ns, time.monotonic_ns()))
            received = b""
            while received.count(b"\n") < 2:
                received += client.recv(65536)
            time.sleep(0.002)
    entry, truth = scene.end()
    assert len(truth) == entry["exchanges"] == 20
    # Overlapped are the requests sent before the first one's response; a preempted client sends too late.
    assert sum(after_ns < first["first_write_begin_ns"] for (_, after_ns), first in zip(sent, truth[::2])) \
        <= entry["losses"]["overlapped"] <= \
        sum(before_ns < first["first_write_end_ns"] for (before_ns, _), first in zip(sent, truth[::2]))
    # The second request waited for the end of the first one's service; the first of each pair waited for
    # nothing.
    waits = [(second["first_read_begin_ns"] - after_ns, second["first_read_end_ns"] - before_ns)
             for (before_ns, after_ns), second in zip(sent, truth[1::2])]
    assert lies_within(stage(entry, "socket_queue")["max_ns"], *map(max, zip(*waits)))
    with timing():
        assert entry["losses"]["overlapped"] >= 8
        assert stage(entry, "socket_queue")["max_ns"] > 5 * MS
    assert service_is_true(entry, truth)


def greet(listener, count):
    for _ in range(count):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"220 hello\n")
            connection.recv(100)
            connection.sendall(b"250 done\n")
            connection.recv(100)


@in_time
def test_greetings_are_unsolicited(start):
    """The server speaks first: its greeting is no response and enters no stage. No stage is longer than the
    client's round trip, which starts after the greeting."""
    trips_ns = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        server = threading.Thread(target=greet, args=(listener, 10))
        server.start()
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", port)) as client:
                assert client.recv(100) == b"220 hello\n"
                time.sleep(0.05)
                begin_ns = time.monotonic_ns()
                client.sendall(b"HELO\n")
                assert client.recv(100) == b"250 done\n"
                trips_ns.append(time.monotonic_ns() - begin_ns)
        server.join()
        observer.stop()
    entry = service(observer.summary(), port)
    assert entry["losses"]["unsolicited"] == 10
    assert entry["exchanges"] == 10
    for name in ("socket_queue", "service"):
        assert lies_within(stage(entry, name)["max_ns"], 0, max(trips_ns))
    with timing():
        assert max(trips_ns) < 40 * MS  # otherwise the test shows nothing


@in_quiet
def test_what_is_pushed_behind_a_response_is_respond(start):
    """A push looks like a piece of the response, as documented. The other stages are unaffected."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        observer = start(Observer(ports=[port]))
        rows = []
        with socket.create_connection(("127.0.0.1", port)) as client:
            connection, _ = listener.accept()
            for _ in range(2):
                client.sendall(b"question\n")
                connection.recv(100)
                times = [time.monotonic_ns()]
                for pause in (0.005, 0.04, 0.04):  # the answer and two pushes
                    time.sleep(pause)
                    connection.sendall(b"text\n")
                    times.append(time.monotonic_ns())
                rows.append(times)
                time.sleep(0.02)
            connection.close()
        observer.stop()
    entry = service(observer.summary(), port)
    samples_add_up(entry)
    assert entry["exchanges"] == stage(entry, "respond")["count"] == 2
    assert entry["losses"]["unsolicited"] == 0
    assert stage(entry, "respond")["sum_ns"] > 2 * 79 * MS
    with timing():
        assert lies_within(stage(entry, "respond")["sum_ns"], 2 * 80 * MS, mean(rows, 1, -1) * 2 + MS)
        assert lies_within(stage(entry, "service")["sum_ns"], 2 * 5 * MS, mean(rows, 0, 1) * 2 + MS)
        assert stage(entry, "socket_queue")["max_ns"] < 40 * MS


@in_quiet
def test_idle_time_is_no_stage(start, tmp_path):
    """Keep-alive gaps between requests are in no stage: each stage is as packets and server show it."""
    scene = Scene(start, tmp_path)
    with Packets(scene.lab.port) as packets, \
            socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        for _ in range(5):
            client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
            client.recv(65536)
            time.sleep(0.1)
    entry, truth = scene.end()
    for row in truth:
        row["arrival_ns"] = packets.arrivals()[port_of(row)][row["exchange"]].at_ns
    assert entry["exchanges"] == len(truth) == 5
    assert stage(entry, "receive")["max_ns"] == stage(entry, "respond")["max_ns"] == 0
    assert service_is_true(entry, truth)
    assert lies_within(stage(entry, "socket_queue")["mean_ns"] + entry["accept_delay_ns"] / 5,
                       mean(truth, "arrival_ns", "first_read_begin_ns"),
                       mean(truth, "arrival_ns", "first_read_end_ns"))


@in_quiet
def test_parts_add_up_to_the_round_trip(start, tmp_path):
    """Client mean = network + stages. The stages last from the request's packet to the end of the write, to
    0.5 % of the round trip. The client's mean is no less."""
    scene = Scene(start, tmp_path, "--service", "5ms", model="event")
    with Packets(scene.lab.port) as packets:
        driver = Driver(scene.lab.url, connections=4, count=400, observer=scene.observer)
    entry, arrivals = service(driver.document, scene.lab.port), packets.arrivals()
    round_trip_ns = driver.result["round_trip"]["mean_ns"]
    parts_ns = sum(stage(entry, name)["sum_ns"] for name in
                   ("socket_queue", "receive", "service", "respond"))
    parts_ns = (parts_ns + entry["accept_delay_ns"]) / entry["exchanges"]
    _, truth = scene.end()
    for row in truth:
        row["arrival_ns"] = arrivals[port_of(row)][row["exchange"]].at_ns
    assert entry["exchanges"] == len(truth) == driver.result["requests"] == 400
    with timing():
        assert parts_ns <= round_trip_ns
        assert mean(truth, "arrival_ns", "first_write_begin_ns") - 0.005 * round_trip_ns < parts_ns < \
            mean(truth, "arrival_ns", "last_write_end_ns") + 0.005 * round_trip_ns
    assert "network + client" in driver.report
    assert "← true server-side latency" in driver.report
