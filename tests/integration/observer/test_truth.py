# SPDX-License-Identifier: MIT
"""A disturbance of an exchange shows in the right stage, by independent clocks: the lab server's, the
scheduler's own count of waiting, the client's.
"""
import os
import random
import re
import socket
import struct
import sys
import threading
import time
from typing import NamedTuple

import pytest

from support.documents import service
from support.packets import Packets, port_of
from support.programs import Driver, Lab, Observer
from support.timing import MS, US, in_quiet, lies_within, timing
from .test_accept import connect_and_ask
from .test_stages import Scene, mean, service_is_true, stage, truth_of
from .test_tail import RESIDENCE, all_add_up
from .test_transmit import SERVER, accounted, on_the_wire, path_fixture, read  # pylint: disable=unused-import

REQUEST = b"GET /%s HTTP/1.1\r\nHost: lab\r\n\r\n"


def by_exchange(entry):
    """{(client's port, index): position in the samples}"""
    samples = entry["samples"]
    ports = samples["flows"]["client_port"]
    return {(ports[flow], index): at
            for at, (flow, index) in enumerate(zip(samples["flow"], samples["index"]))}


def ask_for_different(port, count, asked):
    """Send requests with a random service of 0 to 5 ms and one to three pieces, noted in `asked`."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        for number in range(count):
            service_us, pieces = random.randrange(5000), random.randrange(1, 4)
            asked[client.getsockname()[1], number] = service_us * US, (pieces - 1) * MS
            client.sendall(REQUEST % b"?service=%dus&pieces=%d&pause=1ms&size=100" % (service_us, pieces))
            received = b""
            while len(received.partition(b"\r\n\r\n")[2]) < 100:
                received += client.recv(65536)


def cannot_be(row, asked, service_ns, respond_ns):
    """Whether service or respond lies outside the server's calls, which no preemption explains. The last read
    returned after the request came and after its call started; a write lies within its call."""
    pause_ns = asked[1]
    read_ns = max(row["first_read_begin_ns"], row["arrival_ns"] - 5 * US)  # the two clocks' difference
    return not max(asked[0], row["first_write_begin_ns"] - row["last_read_end_ns"]) <= service_ns \
        <= row["first_write_end_ns"] - read_ns or \
        not pause_ns <= respond_ns <= row["last_write_end_ns"] - row["first_write_begin_ns"] or \
        not pause_ns and respond_ns


def is_true(row, service_ns, respond_ns):
    """Whether service and respond lie within the server's own calls, to 10 µs for service and 30 µs for respond
    at each end."""
    return row["first_write_begin_ns"] - row["last_read_end_ns"] - 10 * US <= service_ns \
        <= row["first_write_end_ns"] - row["last_read_end_ns"] + 10 * US and \
        row["last_write_end_ns"] - row["first_write_end_ns"] - 30 * US <= respond_ns \
        <= row["last_write_end_ns"] - row["first_write_begin_ns"] + 30 * US


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
@in_quiet
def test_each_exchange_is_true(start, tmp_path, model):
    """Every single exchange, not only the mean, has the server's own times. None lies outside its read and
    write calls. Most are close, except those preempted between the kernel's clock and the server's: on a busy
    machine many."""
    scene = Scene(start, tmp_path, model=model)
    asked = {}
    clients = [threading.Thread(target=ask_for_different, args=(scene.lab.port, 60, asked))
               for _ in range(4)]
    with Packets(scene.lab.port) as packets:
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    entry, truth = scene.end()
    samples, found, arrivals = entry["samples"], by_exchange(entry), packets.arrivals()
    assert len(found) == len(truth) == entry["exchanges"] == 240
    keys = [(port_of(row), row["exchange"]) for row in truth]
    places = [found[key] for key in keys]
    for name, column in (("bytes_in", "request_bytes"), ("bytes_out", "response_bytes"),
                         ("pid", "pid")):
        assert [samples[name][at] for at in places] == [row[column] for row in truth]
    times = [(samples["stages"]["service"][at], samples["stages"]["respond"][at]) for at in places]
    for row, (client, number) in zip(truth, keys):
        row["arrival_ns"] = arrivals[client][number].at_ns
    assert not [(row, seen) for row, key, seen in zip(truth, keys, times) if cannot_be(row, asked[key], *seen)]
    with timing():
        assert sum(is_true(row, *seen) for row, seen in zip(truth, times)) >= 0.5 * len(truth)


def waited_ns(pid):
    """Return how long the threads of a process were ready to run but did not, by the scheduler."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total


# As a real-time process it precedes all others, and leaves them 2 ms of every 10.
SPINNER = """
import os, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
print("spins", flush=True)
while True:
    until = time.monotonic() + 0.008
    while time.monotonic() < until:
        pass
    time.sleep(0.002)
"""


def may_be_realtime():
    """A cgroup without a real-time share of the CPU does not allow it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


class OnCpu(NamedTuple):
    """A stand-in for a network namespace in Process(netns=…)."""

    number: int

    def prefix(self):
        return ["taskset", "-c", str(self.number)]


@pytest.mark.skipif(not may_be_realtime(), reason="nothing may be a real-time process here")
@in_quiet
def test_starvation_is_socket_queue(start):
    """The server gets the CPU only when a spinner yields it: requests, at random times, wait to be read."""
    lab = start(Lab())
    os.sched_setaffinity(lab.pid, {0})
    observer = start(Observer(ports=[lab.port]))
    os.sched_setaffinity(observer.pid, {1})
    start([sys.executable, "-c", SPINNER]).wait_for("spins")
    before_ns = waited_ns(lab.pid)
    driver = Driver(lab.url, "--rate", "80", "--arrival", "poisson", connections=1, count=60, observer=observer,
                    netns=OnCpu(1))
    starved_ns = waited_ns(lab.pid) - before_ns
    observer.stop()
    entry = service(observer.summary(), lab.port)
    sums = {name: entry["stages"][name]["sum_ns"] for name in RESIDENCE[1:]}

    assert entry["exchanges"] == driver.result["requests"] == 60
    with timing():
        assert starved_ns > 60 * 1 * MS, "the spinner does not starve it: the test shows nothing"
        assert sums["socket_queue"] >= 0.7 * sum(sums.values())
        assert sum(sums.values()) + entry["accept_delay_ns"] >= 0.8 * starved_ns
    assert all_add_up(driver.document["joined"])


@pytest.mark.parametrize("model", ["event", "threads"])
@in_quiet
def test_reset_mid_response(start, tmp_path, model):
    """The client goes in the middle of the response: respond covers the part written until then."""
    scene = Scene(start, tmp_path, model=model)
    for _ in range(10):
        client = socket.create_connection(("127.0.0.1", scene.lab.port))
        client.sendall(REQUEST % b"?pieces=100&pause=10ms&size=100000")
        received = 0
        while received < 3000:
            received += len(client.recv(65536))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    time.sleep(0.1)
    entry, truth = scene.end()
    assert entry["exchanges"] == len(truth) == 10
    assert entry["closes"]["reset_by_client"] == 10
    assert entry["losses"]["unanswered"] == entry["losses"]["unsolicited"] == 0
    assert entry["bytes_out"] == sum(row["response_bytes"] for row in truth)
    assert entry["bytes_out"] < 10 * 100_000
    # The kernel's times are within the calls: a server that has lost the CPU reads its clock late.
    assert mean(truth, "first_write_begin_ns", "last_write_end_ns") >= 20 * MS
    assert lies_within(stage(entry, "respond")["mean_ns"], mean(truth, "first_write_end_ns", "last_write_begin_ns"),
                       mean(truth, "first_write_begin_ns", "last_write_end_ns"))
    assert service_is_true(entry, truth)


@in_quiet
def test_existing_connections_are_true(start, tmp_path):
    """Connections older than the observation, idle at its start: their next exchanges are timed as usual."""
    path = tmp_path / "truth.csv"
    lab = start(Lab("--truth", path, "--service", "5ms"))
    clients = [socket.create_connection(("127.0.0.1", lab.port)) for _ in range(4)]

    def ask():
        for client in clients:
            client.sendall(REQUEST % b"")
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
    ask()
    observer = start(Observer(ports=[lab.port]))
    for _ in range(10):
        ask()
    observer.stop()
    entry = service(observer.summary(), lab.port)
    for client in clients:
        client.close()
    truth = [row for row in truth_of(lab, path) if row["exchange"] > 0]
    assert entry["exchanges"] == len(truth) == 40
    assert entry["losses"]["preexisting"] == 4
    assert entry["losses"]["cut_off"] == entry["losses"]["untimed"] == 0
    assert service_is_true(entry, truth)
    assert entry["samples"]["flow"] == [], "which exchange of its connection it is, nobody knows"


@pytest.mark.parametrize("call", ["accept4", "accept", "io_uring", "multishot"])
@in_quiet
def test_prompt_accept_and_late_read(start, tmp_path, call):
    """Every request is its connection's first, and there before it is read. The return of the call, or
    io_uring's completion, shows that it waited for the read alone."""
    scene = Scene(start, tmp_path, "--read-delay", "10ms", "--accept", call, model="threads",
                  observe=["--accept-source", "syscall"])
    times = connect_and_ask(scene.lab.port, 30)
    entry, truth = scene.end()
    for row in truth:
        row.update(times[port_of(row)])
        row["late_ns"] = max(row["asked_ns"], row["accept_end_ns"])
    accept = stage(entry, "accept_queue")
    assert accept["source"] == "syscall"
    assert accept["count"] == len(truth) == entry["exchanges"] == 30
    assert entry["losses"]["accept_unseen"] == 0
    # The kernel creates a socket between the stamp of the last handshake packet and ESTABLISHED. After accept()
    # or a ring's completion the woken server reads its clock late.
    true_ns = mean(truth, "established_ns", "accept_end_ns")
    assert lies_within(accept["mean_ns"], true_ns - 30 * US, true_ns)
    assert lies_within(stage(entry, "socket_queue")["mean_ns"], mean(truth, "late_ns", "first_read_begin_ns"),
                       mean(truth, "asked_ns", "first_read_end_ns"))


@pytest.mark.parametrize("listen, connect", [("::1", "[::1]"), ("::", "127.0.0.1")],
                         ids=["ipv6", "mapped"])
@in_quiet
def test_ipv6_is_true(start, tmp_path, listen, connect):
    """Also if an IPv4 client meets a dual-stack socket: joined by its address as seen by each side."""
    scene = Scene(start, tmp_path, "--service", "5ms", "--read-delay", "5ms", address=listen)
    with Packets(scene.lab.port) as packets:
        driver = Driver(f"http://{connect}:{scene.lab.port}/", connections=2, count=60,
                        observer=scene.observer)
    entry, truth = scene.end()
    arrivals = packets.arrivals()
    for row in truth:
        row["arrival_ns"] = arrivals[port_of(row)][row["exchange"]].at_ns
    assert entry["exchanges"] == len(truth) == driver.document["joined"]["joined"] == 60
    assert service_is_true(entry, truth)
    assert lies_within(stage(entry, "socket_queue")["mean_ns"] + entry["accept_delay_ns"] / 60,
                       mean(truth, "arrival_ns", "first_read_begin_ns"),
                       mean(truth, "arrival_ns", "first_read_end_ns"))
    assert all_add_up(driver.document["joined"])


@in_quiet
def test_a_burst_of_requests_is_told_as_it_is(start, tmp_path):
    """Five lines in one segment, read by one call, are one exchange with all the bytes. There is only one
    index, so the client's view cannot be joined wrongly."""
    scene = Scene(start, tmp_path, "--service", "5ms", model="threads", protocol="line")
    with socket.create_connection(("127.0.0.1", scene.lab.port)) as client:
        for _ in range(4):
            client.sendall(b"one\ntwo\nthree\nfour\nfive\n")
            received = b""
            while received.count(b"\n") < 5:
                received += client.recv(65536)
    entry, truth = scene.end()
    assert len(truth) == 20 and sum(row["pipelined"] for row in truth) == 16
    assert entry["exchanges"] == 4
    assert entry["bytes_in"] == sum(row["request_bytes"] for row in truth)
    assert entry["bytes_out"] == sum(row["response_bytes"] for row in truth)
    firsts = [row for row in truth if not row["pipelined"]]
    assert service_is_true(entry, firsts)
    # From the first of the five answers to the last: four more services.
    assert stage(entry, "respond")["mean_ns"] >= 4 * 5 * MS
    assert entry["samples"]["index"] == [0, 1, 2, 3]


@pytest.mark.parametrize("service_time", ["1ms", pytest.param("2ms", marks=pytest.mark.long), "5ms"])
@in_quiet
def test_parts_add_up_over_the_path(path, tmp_path, service_time):
    """The client's mean is stages plus network, to 0.5 %. The true network is the round trip
    minus the time from the request's packet (kernel's stamp at the server's end) to the write's return. That end
    lies between the response's packet, which leaves within the write, and the server's own clock. The server's
    clock is late if the client got the processor first."""
    path.serve("--service", service_time, "--truth", tmp_path / "truth.csv")
    observer = path.observe("--listen", f"{SERVER}:0", "--open")
    with path.packets() as packets:
        driver = Driver(path.lab.url, connections=1, count=200, netns=path.client, observer=observer)
    entry, joined = read(observer, path), driver.document["joined"]
    truth, arrivals = on_the_wire(packets, truth_of(path.lab, tmp_path / "truth.csv")), packets.arrivals()
    for row in truth:
        row["arrival_ns"] = arrivals[port_of(row)][row["exchange"]].at_ns
        row["returned_ns"] = max(row["last_write_end_ns"], row["left_ns"])
    round_trip_ns = driver.result["round_trip"]["mean_ns"]
    stages_ns = (sum(stage(entry, name)["sum_ns"] for name in (*RESIDENCE[1:], "transmit_queue")) +
                 entry["accept_delay_ns"]) / 200
    network_ns = (joined["sum"]["network_ns"] - joined["sum"]["overhang_ns"]) / 200
    assert len(truth) == entry["exchanges"] == joined["joined"] == driver.result["requests"] == 200
    assert accounted(entry) and all_add_up(joined)
    with timing():
        for here_ns in (stages_ns, round_trip_ns - network_ns):
            assert mean(truth, "arrival_ns", "left_ns") - 0.005 * round_trip_ns < here_ns < \
                mean(truth, "arrival_ns", "returned_ns") + 0.005 * round_trip_ns


@in_quiet
def test_server_throughput_is_the_clients(start):
    """From first message to last, over the measured phase: the rate is the one requested."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, "--rate", "500", "--warmup", "300ms", connections=4, count=750,
                    observer=observer)
    observer.stop()
    entry = service(driver.document, lab.port)
    seconds = (entry["last_message_ns"] - entry["first_message_ns"]) / 1e9
    assert entry["exchanges"] == driver.result["requests"] == 750
    with timing():
        assert 749 / seconds == pytest.approx(500, rel=0.01)
        told = re.search(r"^server throughput (\d+)/s ", driver.report, re.MULTILINE)
        assert int(told[1]) == pytest.approx(500, rel=0.01), driver.report


@in_quiet
def test_shaped_small_requests_are_network(path):
    """Requests of one segment each at 200 kbit/s: the server does not see their wait, the client does, and the
    joined report shows it."""
    path.shape(path.client, "tbf", "rate", "200kbit", "burst", "1600", "latency", "5s")
    path.serve("--service", "1ms")
    observer = path.observe("--listen", f"{SERVER}:0", "--open")
    driver = Driver(path.lab.url, "--body", "x" * 1000, connections=1, count=30, netns=path.client,
                    observer=observer)
    observer.stop()
    entry, joined = service(observer.summary(), path.lab.port), driver.document["joined"]
    observer.close()
    # An arrival that interrupts certain processes of a sandbox is not seen (docs/kernels.md).
    assert joined["joined"] == 30 - entry["losses"]["untimed"] >= 25 and accounted(entry)
    assert all_add_up(joined)
    # 1000 bytes and their headers, at 25 bytes per millisecond; the burst lets less than that through.
    assert joined["sum"]["network_ns"] > joined["joined"] * 30 * MS
    with timing():
        assert stage(entry, "receive")["mean_ns"] < 1 * MS
        assert stage(entry, "transmit_queue")["mean_ns"] < 1 * MS


@in_quiet
def test_large_response_joined(path):
    """100,000 bytes at 20 Mbit/s, by the client's clock. In each exchange the wait is transmit_queue, or
    respond while the send buffer is full; next to nothing is left for the network."""
    path.shape(path.server, "tbf", "rate", "20mbit", "burst", "5kb", "latency", "2s")
    path.serve("--service", "1ms")
    observer = path.observe("--listen", f"{SERVER}:0", "--open")
    driver = Driver(f"{path.lab.url}?size=100000", connections=1, count=30, netns=path.client,
                    observer=observer)
    observer.stop()
    entry, joined = service(observer.summary(), path.lab.port), driver.document["joined"]
    observer.close()
    parts = joined["sum"]
    assert joined["joined"] == 30 and accounted(entry) and all_add_up(joined)
    with timing():
        assert parts["round_trip_ns"] > 30 * 35 * MS
        assert parts["stages"]["transmit_queue"] + parts["stages"]["respond"] >= \
            0.85 * parts["round_trip_ns"]
        assert parts["stages"]["transmit_queue"] > 0.5 * parts["round_trip_ns"]
        assert parts["stages"]["service"] < 0.1 * parts["round_trip_ns"]
        assert parts["network_ns"] < 0.1 * parts["round_trip_ns"]
