# SPDX-License-Identifier: MIT
"""Single exchanges: with all of them sampled, every request of the client is there once, or counted lost."""
import json
import os
import signal
import socket
import sys
from collections import defaultdict

import pytest

from support.documents import service
from support.process import Process, wait_until
from support.programs import DRIVER, Driver, Lab, Observer
from support.timing import in_time, timing

ALL = 1 << 32
RESIDENCE = ("accept_queue", "socket_queue", "receive", "service", "respond")
MICROSECOND = 1000
MILLISECOND = 1000 * MICROSECOND


def connections(samples):
    """Return the indexes of each connection's exchanges, by (client, port, server, port)."""
    names = ("client", "client_port", "server", "server_port")
    flows = list(zip(*(samples["flows"][name] for name in names)))
    found = defaultdict(list)
    for flow, index in zip(samples["flow"], samples["index"]):
        found[flows[flow]].append(index)
    return found


def exchange(client):
    client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
    assert client.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("options", [(), ("--new-connections",), ("-t6",)],
                         ids=["kept", "new", "threads"])
def test_every_exchange_once(start, options):
    """Indexes are 0 … n-1 on each connection; bytes and stages add up to the service's own sums.

    On loopback the kernel gives a port again after a second in TIME_WAIT: then a flow has several connections.
    """
    count = 4000
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, "--keep-samples", *options, connections=8, count=count,
                    observer=observer)
    observer.stop()
    entry = service(observer.summary(), lab.port)
    samples = entry["samples"]

    assert driver.result["requests"] == entry["exchanges"] == len(samples["flow"]) == count
    assert (samples["threshold"], samples["lost"], samples["inconsistent"]) == (ALL, 0, 0)
    indexes = connections(samples).values()
    assert sum(of.count(0) for of in indexes) == driver.result["connects"]
    assert all(sorted(set(of)) == list(range(max(of) + 1)) for of in indexes)
    assert len(indexes) == driver.result["connects"] or options == ("--new-connections",)
    assert sum(samples["bytes_in"]) == driver.result["bytes_out"]
    assert sum(samples["bytes_out"]) == driver.result["bytes_in"]
    assert set(samples["pid"]) == {lab.pid}
    for stage in RESIDENCE[1:]:
        assert sum(samples["stages"][stage]) == entry["stages"][stage]["sum_ns"], stage
    assert sum(samples["stages"]["accept_queue"]) == entry["accept_delay_ns"]
    assert len(service(driver.document, lab.port)["samples"]["flow"]) == count
    joined = driver.document["joined"]
    assert joined["joined"] == count
    assert joined["driver_only"] == joined["observer_only"] == joined["implausible"] == 0
    parts = joined["sum"]
    stages = sum(parts["stages"][stage] for stage in RESIDENCE)
    assert parts["round_trip_ns"] == joined["round_trip"]["sum_ns"]
    assert parts["round_trip_ns"] == parts["network_ns"] + stages - parts["overhang_ns"]


@pytest.mark.parametrize("listen, connect", [("127.0.0.1", "127.0.0.1"), ("::1", "::1"),
                                             ("::", "127.0.0.1")], ids=["ipv4", "ipv6", "mapped"])
def test_flow_is_the_clients(start, listen, connect):
    """Addresses and ports are those of the client's own socket, also while the connection is open."""
    lab = start(Lab(address=listen))
    observer = start(Observer(ports=[lab.port]))
    with socket.create_connection((connect, lab.port)) as client:
        for _ in range(3):
            exchange(client)
        found = connections(service(observer.document(), lab.port)["samples"])
        flow = client.getsockname()[:2] + client.getpeername()[:2]
    assert found == {flow: [0, 1, 2]}


@in_time
def test_stages_of_one_exchange(start):
    """A server sleeps for a known time, which is in the service of each exchange."""
    lab = start(Lab("--service", "20ms"))
    observer = start(Observer(ports=[lab.port]))
    Driver(lab.url, connections=1, count=10, observer=observer)
    observer.stop()
    stages = service(observer.summary(), lab.port)["samples"]["stages"]

    assert len(stages["service"]) == 10
    assert all(20 * MILLISECOND <= each for each in stages["service"])
    with timing():
        assert all(each < 20 * MILLISECOND for name in ("socket_queue", "receive", "respond")
                   for each in stages[name])


def test_full_ring_is_counted(start):
    """4 KiB hold some 28 exchanges; reported and lost ones together are all of them."""
    count = 20_000
    lab = start(Lab())
    observer = start(Observer("--ring", "4", ports=[lab.port]))
    observer.send(signal.SIGSTOP)  # else it may take them as fast as they come
    Driver(lab.url, connections=8, count=count)
    observer.send(signal.SIGCONT)
    observer.stop()
    entry = service(observer.summary(), lab.port)
    samples = entry["samples"]

    assert entry["exchanges"] == count
    assert len(samples["flow"]) + samples["lost"] + samples["inconsistent"] == count
    assert samples["lost"] > 0 and samples["inconsistent"] == 0


def test_never_more_than_exchanges(start):
    """Another process gets the observer's CPU for tens of milliseconds, at any place of a reading, while exchanges go on.
    tools/mutate: "samples are taken after the counts"."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    os.sched_setaffinity(observer.pid, {0})
    os.setpriority(os.PRIO_PROCESS, observer.pid, 19)
    driver = start(Process([DRIVER, lab.url, "--rate=3000", "-c4", "-d60s"]))
    wait_until(lambda: service(json.loads(observer.get("/v1/services")), lab.port)["exchanges"] > 100)
    spinner = start(Process(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]))
    more = []
    for _ in range(8):
        entry = service(observer.document(), lab.port)
        more.append(len(entry["samples"]["flow"]) - entry["exchanges"])
    spinner.close()
    driver.stop()
    assert max(more) <= 0, more
    assert min(more) > -3000, "not all of them were sampled"


def test_bounded_choice(start):
    """With more exchanges than may be kept the threshold falls, and all below it are there."""
    count, keep = 8000, 500
    lab = start(Lab())
    observer = start(Observer("--samples", str(keep), ports=[lab.port]))
    Driver(lab.url, connections=4, count=count)
    observer.stop()
    samples = service(observer.summary(), lab.port)["samples"]
    share = samples["threshold"] / ALL

    assert share in (1 / 16, 1 / 32, 1 / 64)
    assert samples["lost"] == 0
    assert 0.8 * share * count <= len(samples["flow"]) <= min(keep, 1.2 * share * count)


def test_bounded_choice_of_the_drivers_threads(start):
    """Each thread halves its own threshold; the lowest one holds for all, and all below it are joined."""
    count, keep = 8000, 500
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    document = Driver(lab.url, "--threads=3", "--samples", str(keep), "--keep-samples",
                      connections=9, count=count, observer=observer).document
    observer.stop()
    samples, joined = document["driver"]["samples"], document["joined"]
    share = samples["threshold"] / ALL

    assert document["driver"]["requests"] == count
    assert share in (1 / 16, 1 / 32, 1 / 64, 1 / 128)
    assert 0.7 * share * count <= len(samples["flow"]) <= keep + 3
    assert joined["joined"] == len(samples["flow"])
    assert joined["driver_only"] == joined["observer_only"] == joined["implausible"] == 0


def test_phases_have_their_own(start):
    """Samples belong to the phase in which they arrived; without --samples there are none."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    with socket.create_connection(("127.0.0.1", lab.port)) as client:
        exchange(client)
        phase = observer.begin_phase()
        exchange(client)
        exchange(client)
        found = connections(service(observer.end_phase(phase), lab.port)["samples"])
        exchange(client)
    assert list(found.values()) == [[1, 2]]
    observer.stop()
    assert list(connections(service(observer.summary(), lab.port)["samples"]).values()) == \
        [[0, 1, 2, 3]]


def test_none_of_older_connections(start):
    lab = start(Lab())
    with socket.create_connection(("127.0.0.1", lab.port)) as client:
        exchange(client)
        observer = start(Observer(ports=[lab.port]))
        exchange(client)
        entry = service(observer.document(), lab.port)
        assert entry["exchanges"] == 1
        assert entry["samples"]["flow"] == []
        off = start(Observer("--samples", "0", ports=[lab.port]))
        assert service(off.document(), lab.port)["samples"] is None


@pytest.mark.parametrize("protocol, options", [
    ("line", ["--payload", r"{{counter}}\n", r"--framing=delimiter:\n"]),
    ("frame", ["--payload", r"\0\0\0\x08{{counter:8}}", "--framing=length:4"]),
    ("frame", ["--payload", r"\0\0\0\x08{{counter:8}}", "--framing=length:4", "--new-connections"]),
], ids=["lines", "frames", "new"])
def test_other_protocols_are_joined(start, protocol, options):
    """Requests of tcp: have an index as those of HTTP have; all are joined."""
    count = 3000
    lab = start(Lab(protocol=protocol))
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(f"tcp://127.0.0.1:{lab.port}", *options, connections=8, count=count,
                    observer=observer)
    joined = driver.document["joined"]
    assert service(driver.document, lab.port)["exchanges"] == joined["joined"] == count
    assert joined["driver_only"] == joined["observer_only"] == joined["implausible"] == 0
    assert joined["round_trip"]["sum_ns"] == driver.result["round_trip"]["sum_ns"]


def test_several_requests_in_one_are_not_joined(start, tmp_path):
    """The lab server may read two lines at once or one by one, so no index would be right."""
    lab = start(Lab(protocol="line"))
    observer = start(Observer(ports=[lab.port]))
    url = f"tcp://127.0.0.1:{lab.port}"
    options = ["--payload", r"a\nb\n", r"--framing=delimiter:\n", "--replies=2"]
    driver = Driver(url, *options, connections=2, count=100, observer=observer)
    assert "--replies" in driver.result["unsampled"]
    assert driver.document["joined"]["joined"] == 0
    scenario = tmp_path / "twice.yaml"
    scenario.write_text("steps: [{name: two, payload: 'a\\nb\\n', framing: 'delimiter:\\n', "
                        "replies: 2}]\n")
    driver = Driver("run", scenario, url, connections=2, count=100, observer=observer)
    assert "--replies" in driver.result["unsampled"]
    assert driver.document["joined"]["joined"] == 0
