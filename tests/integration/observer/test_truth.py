# SPDX-License-Identifier: MIT
"""What disturbs an exchange shows where it belongs, told by clocks that are not ours: the lab server's,
the scheduler's own count of waiting, the client's.

tools/mutate: "samples: told with the next one's pid and bytes" fails each_exchange, "arrival is the
first read" starvation, "resets are closes" reset_mid_response, "existing connections forgotten"
existing_connections, "first write moves" a_burst, "join: the network is the round trip"
shaped_small_requests, "the first message is the last" server_throughput,
"io_uring accepts nothing" prompt_accept, "what left is not told" large_response_joined, "samples: IPv6 taken for
IPv4" ipv6_is_true (none of 60 joined), "service 3 % too long" over_the_path (5.46 ms instead of 5.39).
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
from support.timing import MS, US, close_to, in_quiet, lies_within, timing
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
    """Services of 0 to 5 ms, responses of one to three pieces, as chance has it: noted in `asked`."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        for number in range(count):
            service_us, pieces = random.randrange(5000), random.randrange(1, 4)
            asked[client.getsockname()[1], number] = service_us * US, (pieces - 1) * MS
            client.sendall(REQUEST % b"?service=%dus&pieces=%d&pause=1ms&size=100" % (service_us, pieces))
            received = b""
            while len(received.partition(b"\r\n\r\n")[2]) < 100:
                received += client.recv(65536)


def cannot_be(row, asked, service_ns, respond_ns):
    """Whether service and respond are not within the server's calls, whoever was preempted where: the read
    that ended returned after the request had come and after the call began, a write within its call."""
    pause_ns = asked[1]
    read_ns = max(row["first_read_begin_ns"], row["arrival_ns"] - 5 * US)  # the two clocks' difference
    return not max(asked[0], row["first_write_begin_ns"] - row["last_read_end_ns"]) <= service_ns \
        <= row["first_write_end_ns"] - read_ns or \
        not pause_ns <= respond_ns <= row["last_write_end_ns"] - row["first_write_begin_ns"] or \
        not pause_ns and respond_ns


def is_true(row, service_ns, respond_ns):
    """Whether service and respond lie within the server's own calls, to 10 µs at each end."""
    return row["first_write_begin_ns"] - row["last_read_end_ns"] - 10 * US <= service_ns \
        <= row["first_write_end_ns"] - row["last_read_end_ns"] + 10 * US and \
        row["last_write_end_ns"] - row["first_write_end_ns"] - 30 * US <= respond_ns \
        <= row["last_write_end_ns"] - row["first_write_begin_ns"] + 30 * US


@pytest.mark.parametrize("model", ["event", "threads", "prefork"])
@in_quiet
def test_each_exchange_is_true(start, tmp_path, model):
    """Not the means alone: every single exchange has the server's own times, and no other's. None is outside
    of the calls that it was read and written by; most are close, but for those that were preempted between the
    kernel's clock and the server's, which on a busy machine are many."""
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
    """How long the threads of a process were ready to run and did not, by the scheduler."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total


# It goes before all that is no real-time process, and leaves 2 ms of 10 to them.
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
    """Not in a cgroup that has no share of the CPU for such processes."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


class OnCpu(NamedTuple):
    """Takes the place of a network namespace in Process(netns=…)."""

    number: int

    def prefix(self):
        return ["taskset", "-c", str(self.number)]


@pytest.mark.skipif(not may_be_realtime(), reason="nothing may be a real-time process here")
@in_quiet
def test_starvation_is_socket_queue(start):
    """A server that gets the CPU only when a spinner lets go of it: requests, which come as they like, wait to
    be read."""
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
    """The client goes in the middle: what was written until then is respond, and the rest is not."""
    scene = Scene(start, tmp_path, model=model)
    for _ in range(10):
        client = socket.create_connection(("127.0.0.1", scene.lab.port))
        client.sendall(REQUEST % b"?pieces=10&pause=10ms&size=10000")
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
    with timing():
        assert entry["bytes_out"] < 10 * 8000
    true_ns = mean(truth, "first_write_end_ns", "last_write_end_ns")
    with timing():
        assert 19 * MS <= true_ns <= 45 * MS
    assert close_to(stage(entry, "respond")["mean_ns"], true_ns)
    assert service_is_true(entry, truth)


@in_quiet
def test_existing_connections_are_true(start, tmp_path):
    """Older than the observation, and idle as it begins: their next exchanges are timed as any."""
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
    """Every request is its connection's first, and there before it is read: the return of the call, or
    io_uring's completion, tells that it waited for the read alone."""
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
    # Between the stamp of the handshake's last packet and ESTABLISHED the kernel makes a socket of it; and
    # accept() returns, or a ring's completion is there, before the server is woken to look at its clock.
    true_ns = mean(truth, "established_ns", "accept_end_ns")
    assert lies_within(accept["mean_ns"], true_ns - 30 * US, true_ns)
    assert lies_within(stage(entry, "socket_queue")["mean_ns"], mean(truth, "late_ns", "first_read_begin_ns"),
                       mean(truth, "asked_ns", "first_read_end_ns"))


@pytest.mark.parametrize("listen, connect", [("::1", "[::1]"), ("::", "127.0.0.1")],
                         ids=["ipv6", "mapped"])
@in_quiet
def test_ipv6_is_true(start, tmp_path, listen, connect):
    """Also where an IPv4 client meets a socket of both families: joined by what it is to each side."""
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
    """Five lines in one segment, read by one call: one exchange, with all the bytes, and the client's
    view of it cannot be joined wrongly: there is but one index."""
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


@pytest.mark.parametrize("service_time", ["1ms", "2ms", "5ms"])
@in_quiet
def test_parts_add_up_over_the_path(path, tmp_path, service_time):
    """The client's mean is that of the stages and of the network, to 0.5 % of it. What the network took is
    what the client's round trip has beyond the time from the request's packet, as the kernel stamped it at the
    server's end of the path, to the write's return: that is between the response's packet, which leaves within
    the write, and the server's own clock, which is late where the client got the processor first."""
    path.serve("--service", service_time, "--truth", tmp_path / "truth.csv")
    observer = path.observe("--listen", f"{SERVER}:0", "--open")
    with path.packets() as packets:
        driver = Driver(path.lab.url, connections=1, count=200, netns=path.client, observer=observer)
    entry, joined = read(observer, path.lab.port), driver.document["joined"]
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
    """From first message to last, over the measured phase: what is asked for at a known rate."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, "--rate", "500", "--warmup", "300ms", connections=4, count=1500,
                    observer=observer)
    observer.stop()
    entry = service(driver.document, lab.port)
    seconds = (entry["last_message_ns"] - entry["first_message_ns"]) / 1e9
    assert entry["exchanges"] == driver.result["requests"] == 1500
    with timing():
        assert 1499 / seconds == pytest.approx(500, rel=0.01)
        told = re.search(r"^server throughput (\d+)/s ", driver.report, re.MULTILINE)
        assert int(told[1]) == pytest.approx(500, rel=0.01), driver.report


@in_quiet
def test_shaped_small_requests_are_network(path):
    """Requests of one segment each, through 200 kbit/s: the server does not see them wait, the client
    does, and joined both say so."""
    path.shape(path.client, "tbf", "rate", "200kbit", "burst", "1600", "latency", "5s")
    path.serve("--service", "1ms")
    observer = path.observe("--listen", f"{SERVER}:0", "--open")
    driver = Driver(path.lab.url, "--body", "x" * 1000, connections=1, count=30, netns=path.client,
                    observer=observer)
    observer.stop()
    entry, joined = service(observer.summary(), path.lab.port), driver.document["joined"]
    observer.close()
    round_trip_ns = driver.result["round_trip"]["mean_ns"]
    assert joined["joined"] == 30 and accounted(entry)
    assert all_add_up(joined)
    with timing():
        # 1000 bytes and their headers, at 25 bytes per millisecond; what the burst lets through is less.
        assert round_trip_ns > 30 * MS
        assert joined["sum"]["network_ns"] >= 0.9 * joined["sum"]["round_trip_ns"]
        assert stage(entry, "receive")["mean_ns"] < 1 * MS
        assert stage(entry, "transmit_queue")["mean_ns"] < 1 * MS


@in_quiet
def test_large_response_joined(path):
    """100,000 bytes through 20 Mbit/s, by the client's clock: the wait is transmit_queue (or, where the
    send buffer was full, respond), in each single exchange; next to nothing is left for the network."""
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
