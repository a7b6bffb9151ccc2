# SPDX-License-Identifier: MIT
"""The past of a service, point by point: counts of the points add up to the totals, and states equal those of
`ss`.
"""
import collections
import socket
import subprocess
import time

import pytest

from ..conftest import kernel_counter, sockets
from support.documents import service
from support.programs import Driver, Lab, Observer
from support.timing import in_quiet, timing

SECOND = 1_000_000_000
COUNTS = ("accepted", "exchanges", "bytes_in", "bytes_out", "retransmits", "time_wait_created")


def adds_up(entry, duration_ns):
    """Over all points, counts, resets and each stage add up, and the time has no gaps."""
    series = entry["series"]
    for name in COUNTS:
        assert sum(series[name]) == entry[name], name
    assert sum(series["resets"]) == \
        entry["closes"]["reset_by_server"] + entry["closes"]["reset_by_client"]
    assert sum(series["overflows"]) == entry["accept_queue"]["overflows"]
    for kinds in ("closes", "losses"):
        assert {name: sum(counts) for name, counts in series[kinds].items()} == \
            {name: count for name, count in entry[kinds].items() if count}
    for name, stage in entry["stages"].items():
        if stage["measured"]:
            for each in ("count", "sum_ns"):
                assert sum(series["stages"][name][each]) == stage[each], (name, each)
        else:
            assert name not in series["stages"]
    ends = [begin + duration for begin, duration in zip(series["begin_ns"], series["duration_ns"])]
    assert series["begin_ns"] == [0, *ends[:-1]] and ends[-1] == duration_ns
    return series


def test_sums_are_the_totals(start):
    """Three seconds with load and without, connections of both kinds, resets."""
    lab = start(Lab("--service", "1ms"))
    observer = start(Observer(ports=[lab.port]))
    Driver(lab.url, "--new-connections", connections=4, count=400)
    time.sleep(1.2)
    Driver(lab.url, connections=4, count=2000)
    Driver(f"{lab.url}?reset=1", connections=1, count=5, check=False)
    time.sleep(0.3)
    observer.stop()
    document = observer.summary()
    series = adds_up(service(document, lab.port), document["duration_ns"])

    assert sum(series["exchanges"]) == 2400 and sum(series["resets"]) > 0
    assert len(series["begin_ns"]) >= 3
    # A point per second, except the last. The machine may be late to one point and early to the next.
    assert all(0.3 * SECOND < each < 1.7 * SECOND for each in series["duration_ns"][:-1])
    for point, count in enumerate(series["stages"]["service"]["count"]):
        p50_ns = series["stages"]["service"]["p50_ns"][point]
        assert (p50_ns is None) == (count == 0)
        assert p50_ns is None or p50_ns > 0.9e6


def test_each_kind_of_end_and_loss(start):
    """Closes by either side, unanswered requests, and exchanges that start before the previous one has ended:
    the test knows how many. The highest value so far never falls."""
    lab = start(Lab("--service", "1ms", "--backlog", "64"))
    observer = start(Observer("--cpu", ports=[lab.port]))
    Driver(lab.url, "--new-connections", connections=4, count=200)
    time.sleep(1.2)
    Driver(f"{lab.url}?reset=1", connections=1, count=5, check=False)
    for _ in range(7):
        with socket.create_connection((lab.address, lab.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n")  # and never the rest
            time.sleep(0.01)
    time.sleep(1.2)
    observer.stop()
    document = observer.summary()
    entry = service(document, lab.port)
    series = adds_up(entry, document["duration_ns"])

    assert sum(series["losses"]["unanswered"]) == entry["losses"]["unanswered"] >= 7
    assert sum(series["closes"]["reset_by_server"]) >= 5
    assert set(series["closes"]) <= set(entry["closes"]) and set(series["losses"]) <= set(entry["losses"])
    assert series["depth_max"] == sorted(series["depth_max"])
    assert series["depth_max"][-1] == entry["accept_queue"]["depth_max"]
    divided = entry["cpu"]["running"]
    if divided["measured"]:
        assert sum(series["cpu"]["count"]) == divided["count"]
        for name in ("running", "runnable", "blocked"):
            assert sum(series["cpu"][f"{name}_ns"]) == entry["cpu"][name]["sum_ns"]


@in_quiet
def test_drops_when_they_happened(start):
    """Datagrams that the kernel drops for a full buffer in the second second are not in the first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        observer = start(Observer(ports=[f"{port}/udp"]))
        time.sleep(1.3)
        before = kernel_counter("RcvbufErrors", table="snmp", row="Udp")
        for _ in range(500):
            client.sendto(b"x" * 100, ("127.0.0.1", port))
        dropped = kernel_counter("RcvbufErrors", table="snmp", row="Udp") - before
        observer.stop()
    entry = service(observer.summary(), port)
    counts = entry["series"]["losses"]["dropped"]
    assert dropped > 0 and sum(counts) == entry["losses"]["dropped"] == dropped
    with timing():
        assert counts[0] == 0


@in_quiet
def test_overflows_when_they_happened(start):
    """A listener never accepts; in the second second it gets more connections than its backlog."""
    with socket.create_server(("127.0.0.1", 0), backlog=4) as server:
        port = server.getsockname()[1]
        observer = start(Observer(ports=[port]))
        time.sleep(1.3)
        before = kernel_counter("ListenDrops")
        clients = [socket.socket() for _ in range(15)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        time.sleep(0.3)
        entry = service(observer.document(), port)
        dropped = kernel_counter("ListenDrops") - before
        for client in clients:
            client.close()
        observer.stop()
    series = entry["series"]
    assert dropped > 0
    assert abs(sum(series["overflows"]) - dropped) <= 2
    assert sum(series["overflows"]) == entry["accept_queue"]["overflows"]
    with timing():
        assert series["overflows"][0] == 0 and series["depth_max"][0] == 0
    assert series["depth_max"][-1] == entry["accept_queue"]["depth_max"] == 5  # a backlog of N admits N + 1


def test_state_at_the_ends(start):
    """Five connections wait, some longer than a point."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    clients = [socket.create_connection(("127.0.0.1", lab.port)) for _ in range(5)]
    time.sleep(1.3)
    for client in clients[:3]:
        client.close()
    time.sleep(1.3)
    observer.stop()
    series = service(observer.summary(), lab.port)["series"]
    for client in clients:
        client.close()
    assert series["connections"][0] == 5
    assert series["connections"][-1] == 2
    # One descriptor for each connection; no other came or went.
    assert series["fds"][0] - series["fds"][-1] == 3


def test_phases_have_their_own(start):
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    Driver(lab.url, connections=2, count=100)
    phase = observer.begin_phase()
    Driver(lab.url, connections=2, count=300)
    time.sleep(1.1)
    document = observer.end_phase(phase)
    series = adds_up(service(document, lab.port), document["duration_ns"])
    assert sum(series["exchanges"]) == 300
    whole = observer.document()
    of_all = adds_up(service(whole, lab.port), whole["duration_ns"])
    assert sum(of_all["exchanges"]) == 400
    assert series["started_ns"] > of_all["started_ns"]
    observer.stop()


@in_quiet
def test_throughput_without_the_idle(start):
    """A phase starts half a second before the load and ends as long after it. From first message to last the server has
    the rate that the client measured; over the whole phase far less."""
    lab = start(Lab("--service", "1ms"))
    observer = start(Observer(ports=[lab.port]))
    phase = observer.begin_phase()
    time.sleep(0.5)
    driver = Driver(lab.url, connections=2, count=1000).result
    time.sleep(0.5)
    document = observer.end_phase(phase)
    entry = service(document, lab.port)
    own = driver["requests"] / driver["duration_ns"]
    seen = entry["exchanges"] / (entry["last_message_ns"] - entry["first_message_ns"])
    assert entry["exchanges"] == driver["requests"] == 1000
    with timing():
        assert abs(seen / own - 1) < 0.05
        assert entry["exchanges"] / document["duration_ns"] < 0.5 * own


LOW, HIGH, RESERVED, LISTENED = 25000, 29999, (25100, 25199), 26234


def set_range():
    """Set the test's own namespace: its port range, the reserved ports, and no reuse of TIME_WAIT."""
    for name, value in (("ip_local_port_range", f"{LOW} {HIGH}"), ("tcp_tw_reuse", "0"),
                        ("ip_local_reserved_ports", "-".join(map(str, RESERVED)))):
        subprocess.run(["sysctl", "-qw", f"net.ipv4.{name}={value}"], check=True)


def fullest():
    """Return the destination with most of the range's connections from one address, and their number, as `ss`
    shows them. A listener's connections do not count."""
    found = collections.Counter()
    for line in sockets("connected", f"sport >= :{LOW} and sport <= :{HIGH} and sport != :{LISTENED}"):
        local, remote = line.replace("[::ffff:127.0.0.1]", "127.0.0.1").split()[3:5]
        found[local.rpartition(":")[0], remote] += 1
    (_, towards), used = found.most_common(1)[0]
    return towards, used


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_ports_are_those_of_ss(start, address):
    """Ports towards the fullest destination count: open ones, those in TIME_WAIT, and those of IPv6 sockets.
    Ports of other destinations and the server's ends of connections to a listener in the range do not."""
    lab, other = start(Lab()), start(Lab(address=address))
    observer = start(Observer(ports=[lab.port]))
    with socket.create_server(("127.0.0.1", LISTENED), backlog=512) as server:
        set_range()
        time.sleep(1.2)
        Driver(other.url, "--new-connections", connections=4, count=300)
        Driver(lab.url, "--new-connections", connections=4, count=100)
        kept = [socket.create_connection((address, other.port)) for _ in range(7)]
        for _ in range(5):
            kept.append(socket.socket(socket.AF_INET6))
            kept[-1].connect((address if ":" in address else f"::ffff:{address}", other.port))
        for _ in range(200):
            kept.append(socket.create_connection(("127.0.0.1", LISTENED)))
            kept.append(server.accept()[0])
        time.sleep(1.2)
        towards, used = fullest()
        entry = service(observer.document(), lab.port)
        assert fullest() == (towards, used)
    for each in kept:
        each.close()
    observer.stop()
    assert used >= 250 and towards == other.url[7:].strip("/")
    assert entry["ports"] == {"used": used, "towards": towards, "capacity":
                              HIGH - LOW + 1 - (RESERVED[1] - RESERVED[0] + 1) - 1}
    assert entry["series"]["ports"][-1] == used and entry["series"]["ports"][0] < used
