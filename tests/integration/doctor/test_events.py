# SPDX-License-Identifier: MIT
"""Events that `sojourn doctor` counts, and its findings in the documents of observer and driver."""
import contextlib
import errno
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

import pytest

from ..conftest import kernel_counter
from support.findings import evidence
from support.net import close_before_data, free_port
from support.programs import OBSERVER, Doctor, Driver, Lab, Observer


def sysctl(name, value):
    subprocess.run(["sysctl", "-qw", f"net.ipv4.{name}={value}"], check=True)


def watch(start, *options):
    """Start `sojourn doctor --watch` and wait for its first reading."""
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "300ms", *options])
    doctor.wait_for("\n")
    return doctor


def looks(doctor):
    """Return all its readings, after waiting for one more."""
    seen = doctor.stdout.count("\n")
    deadline = time.monotonic() + 10
    while doctor.stdout.count("\n") < seen + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    doctor.stop()
    return [json.loads(line) for line in doctor.stdout.splitlines()]


def findings(seen, kind):
    return [f for look in seen for f in look["findings"] if f["resource"] == kind]


# ---- in documents ----

def test_the_drivers_report_has_the_hosts_findings(start):
    """The observer counts as many failures as the driver."""
    sysctl("ip_local_port_range", "40000 40499")
    sysctl("tcp_tw_reuse", "0")
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, "--new-connections", connections=8, duration="2s", observer=observer,
                    check=False)
    met = driver.result["errors"]["address_unavailable"]
    assert met > 0
    found = [f for f in driver.document["findings"] if f["id"] == "ports-exhausted"]
    assert len(found) == 1, driver.document["findings"]
    assert found[0]["object"] == f"127.0.0.1 to 127.0.0.1:{lab.port}"
    # Listening sockets hold the ports that they took from the range.
    assert found[0]["used"] == found[0]["capacity"] >= 490
    assert any(re.match(rf"failed in the sample: {met:,} connect\(\) calls", text)
               for text in found[0]["evidence"]), (met, found[0]["evidence"])
    assert "CRITICAL  ports-exhausted  127.0.0.1 to 127.0.0.1" in driver.report
    assert f"the driver's {met:,} errors 'address unavailable'" in driver.report
    assert "more      docs/diagnoses.md#ports-exhausted" in driver.report
    observer.stop()
    assert [f["id"] for f in observer.summary()["findings"]
            if f["object"].endswith(f":{lab.port}")] == ["ports-exhausted"]


def test_without_the_doctor_nobody_looked(start):
    lab = start(Lab())
    looked = start(Observer(ports=[lab.port]))
    blind = start(Observer("--no-doctor", ports=[lab.port]))
    assert looked.document()["not_seen"] is not None
    assert blind.document()["not_seen"] is None
    assert blind.document()["findings"] == []


# ---- failures ----

HUNGRY = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
failed = 0
sys.stdin.readline()
held = []
for _ in range(60):
    try:
        held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        failed += error.errno == errno.EMFILE
print("failed", failed, flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def hungry():
    process = subprocess.Popen([sys.executable, "-c", HUNGRY], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_every_emfile_is_counted(start):
    with hungry() as process:
        doctor = watch(start, "--syscalls", "--pid", process.pid)
        process.stdin.write("go\n")
        process.stdin.flush()
        failed = int(process.stdout.readline().split()[1])
        assert failed > 15
        seen = looks(doctor)
    found = [f for look in seen for f in look["findings"]
             if evidence(f, "failed in the sample")]
    assert sum(evidence(f, "failed in the sample") for f in found) == failed
    assert {f["owners"][0]["pid"] for f in found} == {process.pid}
    # One finding: the failures are evidence of exhausted descriptors.
    assert {f["id"] for f in found} == {"fds-exhausted"}


def test_an_address_in_use_is_named(start):
    doctor = watch(start, "--syscalls")
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        failed = 0
        for _ in range(3):
            with socket.socket() as second:
                try:
                    second.bind(taken.getsockname())
                except OSError as error:
                    failed += error.errno == errno.EADDRINUSE
        seen = looks(doctor)
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    found = [f for f in findings(seen, "address_failures") if f["object"] == address]
    assert failed == 3
    assert sum(evidence(f, "failed in the sample") for f in found) == 3
    assert {f["severity"] for f in found} == {"warning"}


def test_refused_connections_had_a_port(start):
    doctor = watch(start)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", free_port()))
    seen = looks(doctor)
    assert not [entry for look in seen for entry in look["resources"]
                if entry["resource"] == "port_failures"]


# ---- who closes first ----

def close_first(first, second):
    first.shutdown(socket.SHUT_WR)
    second.recv(1)
    second.close()
    first.recv(1)
    first.close()


def reset(client, accepted):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    with contextlib.suppress(ConnectionError):
        accepted.recv(1)
    accepted.close()


def refuse_data(client, accepted):
    """The client closes, and then the server's data comes with the acknowledgement of its FIN: it sends an RST."""
    close_before_data(client, accepted)
    accepted.close()


@pytest.mark.parametrize("close, made, side", [
    (close_first, 20, "as the client of"),
    (lambda client, accepted: close_first(accepted, client), 20, "as the server at port"),
    (reset, 0, "as the client of"),
    (refuse_data, 0, "as the client of")], ids=["client", "server", "reset", "refused"])
def test_time_wait_by_who_closed_first(start, close, made, side):
    before = kernel_counter("TW")
    doctor = watch(start)
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        for _ in range(20):
            client = socket.create_connection(listener.getsockname())
            close(client, listener.accept()[0])
        seen = looks(doctor)
        port = listener.getsockname()[1]
    owners = [owner for look in seen for entry in look["resources"]
              if entry["resource"] == "time_wait" for owner in entry["owners"]]
    assert kernel_counter("TW") - before == made
    verb = "left" if made else "reset"
    assert sum(int(re.match(rf"{verb} (\d+) ", owner["did"])[1]) for owner in owners) == 20
    for owner in owners:
        assert owner["pid"] == os.getpid()
        assert re.fullmatch(rf"{verb} \d+ {side} .*{port}", owner["did"])


# ---- accept queues and connect() ----

def test_the_deepest_that_an_accept_queue_was(start):
    """The maximum between two readings counts, too: the queue is empty again at each reading."""
    doctor = watch(start)
    with socket.create_server(("127.0.0.1", free_port()), backlog=64) as listener, \
            contextlib.ExitStack() as stack:
        for _ in range(7):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        for _ in range(7):
            stack.enter_context(listener.accept()[0])
        seen = looks(doctor)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    if any("sk_data_ready" in note for note in seen[-1]["not_seen"]):
        pytest.skip("before Linux 6.3 nothing tells")
    entry = next(e for e in seen[-1]["resources"] if e["resource"] == "accept_queue"
                 and e["object"] == address)
    assert (entry["used"], entry["deepest"]) == (0, 7)


def test_connects_are_counted_and_timed():
    """A single reading has the number and the times of connect() calls by process."""
    sysctl("ip_local_port_range", "40000 40499")
    with socket.create_server(("127.0.0.1", free_port()), backlog=500) as listener, \
            contextlib.ExitStack() as stack:
        for _ in range(260):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        client = subprocess.Popen([sys.executable, "-c", CONNECTS,
                                   str(listener.getsockname()[1])], stdout=subprocess.PIPE)
        try:
            client.stdout.readline()
            finding = Doctor("--syscalls", "--sample", "1s").finding("ports-cliff")
        finally:
            client.kill()
            client.communicate()
    calls = evidence(finding, "connect() calls")
    assert 5 <= calls <= 60
    assert 0 < evidence(finding, "time in connect() until the SYN left, mean") < 1_000_000
    assert any(owner["pid"] == client.pid and "connect() calls, mean" in owner.get("did", "")
               for owner in finding["owners"])


CONNECTS = """
import socket, sys, time
kept = []
print("up", flush=True)
for _ in range(200):
    kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    time.sleep(0.03)
"""
