# SPDX-License-Identifier: MIT
"""`sojourn doctor` on ephemeral ports: every test has a range of 500 ports in its own namespace."""
import contextlib
import errno
import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time

import pytest

from support.conditions import needs_program
from support.findings import evidence, growth, seconds_left
from support.net import free_port
from support.programs import DRIVER, OBSERVER, Doctor, Lab, Observer

LOW, HIGH = 40000, 40499


@pytest.fixture(autouse=True)
def small_range():
    sysctl("ip_local_port_range", f"{LOW} {HIGH}")
    sysctl("tcp_tw_reuse", "0")


def sysctl(name, value):
    subprocess.run(["sysctl", "-qw", f"net.ipv4.{name}={value}"], check=True)


@contextlib.contextmanager
def held(address, count, source=None, family=socket.AF_INET):
    """Yield (port, sockets) of a listener and so many connections to it, all of this process."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((address, free_port()), family=family,
                                                            backlog=4096))
        port = listener.getsockname()[1]
        sockets = []
        for _ in range(count):
            client = stack.enter_context(socket.socket(family))
            if source:
                # Otherwise bind() takes the port for every destination.
                client.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                client.bind((source, 0))
            client.connect((address, port))
            sockets.append(client)
        yield port, sockets


def about(what, doctor):
    """Return the findings about one resource. The doctor also judges the descriptors of all processes of the host."""
    return {name for name in doctor.ids if name.startswith(what)}


@pytest.mark.alone
def test_below_half_is_healthy():
    with held("127.0.0.1", 240) as (port, _):
        doctor = Doctor("--sample", "200ms")
        assert not about("ports", doctor)
        entry = doctor.resource("ephemeral_ports", f":{port}")
        assert (entry["used"], entry["capacity"], seconds_left(entry)) == (240, 500, None)


@pytest.mark.alone
def test_the_cliff_is_a_warning_and_names_who_pays():
    with held("127.0.0.1", 260) as (port, _):
        doctor = Doctor("--sample", "200ms")
        finding = doctor.finding("ports-cliff")
        assert doctor.status >= 1 and finding["severity"] == "warning"
        assert finding["object"] == f"127.0.0.1 to 127.0.0.1:{port}"
        assert finding["port"] == port
        assert finding["used"] == 260 == evidence(finding, "connected")
        assert finding["owners"][0]["pid"] == os.getpid()
        assert finding["owners"][0]["sockets"] == 260
        assert finding["link"] == "docs/diagnoses.md#ports-cliff"


@pytest.mark.alone
def test_exhaustion_ends_when_the_remedy_is_applied():
    with held("127.0.0.1", 500) as (port, _):
        with pytest.raises(OSError, match="Cannot assign requested address"):
            socket.create_connection(("127.0.0.1", port))
        doctor = Doctor("--sample", "0")
        finding = doctor.finding("ports-exhausted")
        assert doctor.status == 2
        assert finding["used"] == finding["capacity"] == 500
        assert finding["owners"][0]["pid"] == os.getpid()
        subprocess.run(["sh", "-c", finding["command"]], check=True,
                       stdout=subprocess.DEVNULL)
        socket.create_connection(("127.0.0.1", port)).close()
        after = Doctor("--sample", "0")
        assert not about("ports", after)
        assert after.resource("ephemeral_ports", f":{port}")["capacity"] > 64000


def test_each_source_address_has_its_own_ports():
    with contextlib.ExitStack() as stack:
        port, _ = stack.enter_context(held("127.0.0.1", 260))
        other, _ = stack.enter_context(held("127.0.0.1", 300, source="127.0.0.2"))
        third, _ = stack.enter_context(held("127.0.0.1", 20, source="127.0.0.3"))
        doctor = Doctor("--sample", "0")
        assert {(finding["object"], finding["used"])
                for finding in doctor.findings("ports-cliff")} == {
                    (f"127.0.0.1 to 127.0.0.1:{port}", 260),
                    (f"127.0.0.2 to 127.0.0.1:{other}", 300)}
        assert doctor.resource("ephemeral_ports", f"127.0.0.3 to 127.0.0.1:{third}")["used"] == 20
        # This process listens on both ports, and what it takes elsewhere counts.
        assert {f["object"] for f in Doctor("--sample", "0", "--port", other).findings("ports-cliff")} == {
            f"127.0.0.1 to 127.0.0.1:{port}", f"127.0.0.2 to 127.0.0.1:{other}"}


def test_reserved_and_held_ports_are_no_capacity():
    sysctl("ip_local_reserved_ports", "40000-40099,50000")
    with contextlib.ExitStack() as stack:
        for port in range(40100, 40110):
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", port))
            if port % 2:
                bound.listen()
        port, sockets = stack.enter_context(held("127.0.0.1", 390))
        with pytest.raises(OSError, match="Cannot assign requested address"):
            socket.create_connection(("127.0.0.1", port))
        finding = Doctor("--sample", "0").finding("ports-exhausted")
        assert finding["capacity"] == 390 == len(sockets)
        assert evidence(finding, "reserved") == 100
        assert evidence(finding, "held by bind()") == 10


def test_ipv6():
    with held("::1", 260, family=socket.AF_INET6) as (port, _):
        finding = Doctor("--sample", "0").finding("ports-cliff")
        assert finding["object"] == f"::1 to [::1]:{port}"
        assert finding["used"] == 260


def test_proc_counts_the_same():
    with held("127.0.0.1", 260) as (port, _), held("::1", 300, family=socket.AF_INET6):
        doctors = [Doctor("--sample", "0", "--sockets", source) for source in ("netlink", "proc")]
        counts = [{(f["object"], f["used"], f["owners"][0]["sockets"])
                   for f in doctor.findings("ports-cliff")} for doctor in doctors]
        assert len(counts[0]) == 2
        assert counts[0] == counts[1]
        assert any("/proc/net/tcp" in note for note in doctors[1].document["not_seen"])


@pytest.mark.alone
def test_proc_does_not_know_an_accept_queues_limit():
    with held("127.0.0.1", 5) as (port, _):
        doctor = Doctor("--sample", "0", "--sockets", "proc")
        assert not about("accept-queue", doctor)
        entry = doctor.resource("accept_queue", f":{port}")
        assert (entry["used"], entry["capacity"]) == (5, None)


def time_waits(count):
    """Return a port towards which so many sockets are in TIME_WAIT: the client closes first."""
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        for _ in range(count):
            client = socket.create_connection(listener.getsockname())
            accepted, _ = listener.accept()
            client.close()
            accepted.close()
        return listener.getsockname()[1]


@pytest.mark.parametrize("reuse, used", [(0, 300), (1, 0), (2, 0)])
def test_time_wait_counts_unless_it_may_be_reused(reuse, used):
    sysctl("tcp_tw_reuse", reuse)
    port = time_waits(300)
    time.sleep(1.2)  # tcp_tw_reuse_delay
    doctor = Doctor("--sample", "0")
    entry = doctor.resource("ephemeral_ports", f":{port}")
    assert entry["used"] == used
    assert entry["capacity"] == 500
    assert ("ports-cliff" in doctor.ids) == bool(used)
    if used:
        finding = doctor.finding("ports-cliff")
        assert evidence(finding, "TIME_WAIT not reusable") == 300


class Patient(socketserver.StreamRequestHandler):
    """Answers after 300 ms and lets the client close first, which then has the TIME_WAIT."""

    def handle(self):
        while self.rfile.readline().strip():
            pass
        time.sleep(0.3)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                         b"Connection: close\r\n\r\nok")
        with contextlib.suppress(ConnectionError):
            self.rfile.read(1)


@pytest.fixture
def patient():
    """Yield the port of a server that never closes first."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", free_port()), Patient) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


CLIENTS = {
    "sojourn-drive": lambda url: [DRIVER, url, "-c", "6", "-d", "20s", "--new-connections"],
    "wrk": lambda url: ["wrk", "-c", "6", "-t", "1", "-d", "20s", "-H", "Connection: close", url],
}


@pytest.mark.alone
@pytest.mark.parametrize("name", [
    "sojourn-drive", pytest.param("wrk", marks=needs_program("wrk"))])
def test_a_client_that_reconnects_is_foretold_and_named(start, patient, name):
    """Six connections at a time leave enough time before the first failure. They take 300 ms each: in that time the doctor also
    finds out who holds them."""
    client = start(CLIENTS[name](f"http://127.0.0.1:{patient}/"))
    time.sleep(0.3)
    doctor = Doctor("--sample", "1s", "--port", patient)
    finding = doctor.finding("ports-exhausted-soon")
    assert finding["used"] < 500
    assert "ports-exhausted" not in doctor.ids
    assert finding["owners"][0]["pid"] == client.pid
    assert finding["owners"][0]["comm"].startswith(name[:15])
    rate = evidence(finding, "ports taken")
    assert 5 < rate < 25
    steady = int(re.search(r"lead to (\d+) of 500", finding["outlook"])[1])
    assert steady == pytest.approx(rate * 60, rel=0.05, abs=6 * 60)  # all six may be new in the second: then they grow
    assert seconds_left(finding) == pytest.approx((500 - finding["used"]) / rate, rel=0.3)
    assert evidence(finding, "TIME_WAIT not reusable") > 10


@needs_program("ab")
def test_ab_is_named(start):
    """With -k ab's connections stay; without it the server would close first, as ab speaks HTTP/1.0."""
    lab = start(Lab("--service", "50ms"))
    client = start(["ab", "-q", "-k", "-c", "300", "-t", "20", "-n", "10000000", lab.url])
    deadline = time.monotonic() + 10
    while len(os.listdir(f"/proc/{client.pid}/fd")) < 300 and time.monotonic() < deadline:
        time.sleep(0.05)
    finding = Doctor("--sample", "0", "--port", lab.port).finding("ports-cliff")
    assert finding["used"] == 300
    assert (finding["owners"][0]["pid"], finding["owners"][0]["comm"]) == (client.pid, "ab")


@pytest.mark.alone
def test_a_leak_of_connections_on_the_client_is_named():
    """Responses are never closed: only live connections grow."""
    with held("127.0.0.1", 130) as (port, sockets):
        looking = subprocess.Popen([sys.executable, "-c", LEAK, str(port)],
                                   stdout=subprocess.PIPE)
        try:
            looking.stdout.readline()
            begin, kept = time.monotonic(), len(os.listdir(f"/proc/{looking.pid}/fd"))
            doctor = Doctor("--sample", "1s")
            took, taken = time.monotonic() - begin, len(os.listdir(f"/proc/{looking.pid}/fd")) - kept
            finding = doctor.finding("ports-exhausted-soon")
            assert took < 5
            assert looking.pid in {owner["pid"] for owner in finding["owners"]}
            assert growth(doctor.document, finding) == pytest.approx(taken / took, rel=0.3)
        finally:
            looking.kill()
            looking.wait()
            looking.stdout.close()
        assert len(sockets) == 130


@pytest.mark.alone
def test_a_pool_that_filled_up_is_no_leak():
    """A quarter of the range is taken at once in the sample and kept: that is no continued growth."""
    looking = subprocess.Popen([OBSERVER, "doctor", "--json", "--sample", "2s"], stdout=subprocess.PIPE)
    try:
        time.sleep(1)
        with held("127.0.0.1", 130):
            document = json.loads(looking.communicate(timeout=30)[0])
    finally:
        looking.kill()
        looking.wait()
    entry = next(entry for entry in document["resources"] if entry["resource"] == "ephemeral_ports")
    assert entry["used"] == 130 and growth(document, entry) > 10, "not filled in the sample"
    assert entry["ends_in_ns"] is None
    assert not {"ports-exhausted-soon", "ports-exhausted"} & {each["id"] for each in document["findings"]}


def test_a_burst_in_a_short_period_is_no_rate(start):
    """60 connections in a fifth of a second would be 18,000 ports."""
    observer = start(Observer(ports=[free_port()]))
    number = observer.begin_phase()
    with held("127.0.0.1", 60) as (port, _):
        document = observer.end_phase(number)
    if document["duration_ns"] > 0.8e9:
        pytest.skip("the machine is slow: the period is long enough to predict")
    assert not [each for each in document["findings"] if each["id"] == "ports-exhausted-soon"]


LEAK = """
import socket, sys, time
kept = []
while True:
    kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    if len(kept) == 10:
        print("leaking", flush=True)
    time.sleep(0.02)
"""


def test_failed_connects_are_counted_as_they_happen(start):
    """Only calls without a port count, not refused ones."""
    with held("127.0.0.1", 490) as (port, sockets):
        doctor = start([OBSERVER, "doctor", "--json", "--interval", "300ms", "--port", port])
        doctor.wait_for("\n")
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", free_port()))
        failed = 0
        for _ in range(25):
            try:
                sockets.append(socket.create_connection(("127.0.0.1", port)))
            except OSError as error:
                failed += error.errno == errno.EADDRNOTAVAIL
        assert failed == 15
        time.sleep(1)
        doctor.stop()
        looks = [json.loads(line) for line in doctor.stdout.splitlines()]
        for client in sockets[490:]:
            client.close()
    found = [f for look in looks for f in look["findings"]
             if evidence(f, "failed in the sample")]
    assert sum(evidence(f, "failed in the sample") for f in found) == 15
    # All ports are held, so the failures are evidence of exactly that.
    assert {(f["id"], f["object"]) for f in found} == {
        ("ports-exhausted", f"127.0.0.1 to 127.0.0.1:{port}")}
    assert {f["owners"][0]["pid"] for f in found} == {os.getpid()}
    assert not any("CAP_BPF" in note for look in looks for note in look["not_seen"])
    last = [entry for entry in looks[-1]["resources"] if entry["resource"] == "port_failures"]
    assert [entry["used"] for entry in last] == [15]


@pytest.mark.alone
def test_a_large_stable_pool_is_no_leak():
    """A pool below the cliff that does not grow is no finding, however long the sample."""
    with held("127.0.0.1", 240):
        doctor = Doctor("--sample", "2s")
        assert not about("ports", doctor)


@pytest.mark.alone
def test_other_namespaces_by_name_path_and_all(netns):
    there = netns("there")
    there.exec(["sysctl", "-qw", "net.ipv4.ip_local_port_range=41000 41099"])
    code = "import socket,time; s=socket.create_server(('127.0.0.1', 20999), backlog=500); " \
           "c=[socket.create_connection(('127.0.0.1', 20999)) for _ in range(60)]; " \
           "print('up', flush=True); time.sleep(60)"
    with there.start([sys.executable, "-c", code]) as process:
        process.wait_for("up")
        assert not about("ports", Doctor("--sample", "0"))
        for options in (["--netns", there.name], ["--netns", there.path], ["--all-netns"],
                        ["--pid", process.pid]):
            found = Doctor("--sample", "0", *options).findings("ports-cliff")
            assert [(f["used"], f["capacity"], f["netns"]) for f in found
                    if f["netns"] == there.inode] == [(60, 100, there.inode)], options
            assert found[0]["owners"][0]["pid"] == process.pid
