# SPDX-License-Identifier: MIT
"""Descriptors or ports have run out. Observer and doctor, already running, continue; failures of any client are
counted exactly; and the remedy works."""
import contextlib
import json
import os
import re
import resource
import socket
import subprocess
import time
from pathlib import Path

import pytest

from ..conftest import kernel_counter
from support.conditions import needs_program
from support.findings import evidence
from support.net import free_port
from support.process import run, wait_until
from support.programs import DRIVER, OBSERVER, Doctor, Driver, Lab, Observer


def sysctl(name, value):
    subprocess.run(["sysctl", "-qw", f"net.ipv4.{name}={value}"], check=True)


@pytest.fixture
def small_range():
    sysctl("ip_local_port_range", "40000 40499")
    sysctl("tcp_tw_reuse", "0")


def watch(start, *options):
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "300ms", *options])
    doctor.wait_for("\n")
    return doctor


def looks(doctor, more=2):
    """Return all readings so far, after waiting for some more."""
    seen = doctor.stdout.count("\n")
    deadline = time.monotonic() + 20
    while doctor.stdout.count("\n") < seen + more and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = doctor.stdout.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def failed(seen):
    """Return {(comm, destination): calls that failed for lack of a port}, over all readings."""
    counts = {}
    for look in seen:
        for finding in look["findings"]:
            if finding["resource"] in ("ephemeral_ports", "port_failures"):
                key = finding["owners"][0]["comm"] if finding["owners"] else None, finding["port"]
                counts[key] = counts.get(key, 0) + evidence(finding, "failed in the sample")
    return {key: count for key, count in counts.items() if count}


def reserve(process):
    """Return how many files the process holds in reserve: all, except during a reading."""
    count = 0
    for name in os.listdir(f"/proc/{process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/{process.pid}/fd/{name}") == "/dev/null"
    return count


def leave_no_descriptor(process):
    wait_until(lambda: reserve(process) >= 12)
    most = max(int(name) for name in os.listdir(f"/proc/{process.pid}/fd")) + 1
    # Another user's limits take a capability that containers do not have.
    status = Path(f"/proc/{process.pid}/status").read_text()
    uid, gid = (re.search(rf"^{name}:\t(\d+)", status, re.MULTILINE)[1] for name in ("Uid", "Gid"))
    run(["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
         "prlimit", f"--pid={process.pid}", f"--nofile={most}:{most}"])


# ---- observer and doctor ----

def test_the_observer_goes_on_without_descriptors(start):
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    time.sleep(0.3)  # the process is idle and its reserve full
    leave_no_descriptor(observer)
    Driver(lab.url, count=500, connections=4)
    document = observer.document()
    assert document["services"][0]["exchanges"] == 500
    phase = observer.begin_phase()
    Driver(lab.url, count=100)
    assert observer.end_phase(phase)["services"][0]["exchanges"] == 100
    assert observer.stop() == 0
    summary = observer.summary()
    assert summary["services"][0]["exchanges"] == 600
    assert summary["services"][0]["processes"][0]["open_fds"]
    assert not [note for note in summary["not_seen"] if "Too many open files" in note]


def test_the_doctor_goes_on_without_descriptors(start):
    lab = start(Lab("--accept-delay", "60s", "--backlog", "2"))
    doctor = watch(start, "--interval", "1s")
    leave_no_descriptor(doctor)
    before = len(looks(doctor))
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", lab.port)))
        seen = looks(doctor, 3)[before:]
    found = [f for f in seen[-1]["findings"] if f["port"] == lab.port]
    assert [(f["id"], f["used"], f["owners"][0]["pid"]) for f in found] == \
        [("accept-queue-full", 3, lab.pid)]
    assert seen[-1]["not_seen"] == json.loads(doctor.stdout.splitlines()[0])["not_seen"]


def test_a_watch_goes_on_after_a_look_that_failed(start):
    doctor = watch(start)
    limits = resource.prlimit(doctor.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(doctor.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    doctor.wait_for("cannot look", "stderr")
    resource.prlimit(doctor.pid, resource.RLIMIT_NOFILE, limits)
    assert looks(doctor)[-1]["looked_at"]["namespaces"] == 1
    assert doctor.running()


def test_both_go_on_without_ports(start, small_range):
    lab = start(Lab("--backlog", "1000"))
    observer = start(Observer(ports=[lab.port]))
    doctor = watch(start, "--port", lab.port)
    with contextlib.ExitStack() as stack:
        with pytest.raises(OSError, match="Cannot assign requested address"):
            for _ in range(501):
                stack.enter_context(socket.create_connection(("127.0.0.1", lab.port)))
        document = observer.document()
        seen = looks(doctor)
    assert document["services"][0]["connections"] >= 490
    found = [f for look in seen for f in look["findings"] if f["id"] == "ports-exhausted"]
    assert found[-1]["used"] == found[-1]["capacity"]
    assert failed(seen) == {(found[-1]["owners"][0]["comm"], lab.port): 1}
    assert "ports-exhausted" in {f["id"] for f in document["findings"]}
    observer.stop()
    assert observer.summary()["services"][0]["accepted"] >= 490


# ---- clients ----

@needs_program("wrk")
def test_as_many_failures_as_wrk_met(start, small_range):
    """wrk's own count is `Socket errors: connect N`, without a reason."""
    lab = start(Lab("--service", "5ms"))
    doctor = watch(start, "--port", lab.port)
    text = run(["wrk", "-c", "600", "-t", "1", "-d", "2s", lab.url], seconds=60).stdout
    told = int(re.search(r"connect (\d+),", text)[1])
    seen = looks(doctor)
    assert told >= 100
    assert failed(seen) == {("wrk", lab.port): told}


@needs_program("ab")
def test_as_many_failures_as_ab_met(start, small_range):
    """ab has exited before the doctor reads, and its name is still known. It gives up at `bad++ > 10`, the
    twelfth failure, whatever its message says."""
    lab = start(Lab("--service", "5ms"))
    doctor = watch(start, "--port", lab.port)
    ended = run(["ab", "-q", "-k", "-c", "600", "-n", "100000", lab.url], check=False, seconds=60)
    assert "Test aborted after 10 failures" in ended.stdout + ended.stderr
    assert failed(looks(doctor)) == {("ab", lab.port): 12}


def test_the_remedy_ends_it(start, small_range):
    """Driver and doctor count the same failures; after the printed command there are none."""
    lab = start(Lab())
    doctor = watch(start, "--port", lab.port)
    broke = Driver(lab.url, "--new-connections", connections=2, duration="1s", check=False)
    met = broke.result["errors"]["address_unavailable"]
    seen = looks(doctor)
    findings = [f for look in seen for f in look["findings"] if f["id"] == "ports-exhausted"]
    assert failed(seen) == {("sojourn-drive", lab.port): met} and met > 0
    subprocess.run(["sh", "-c", findings[-1]["command"]], check=True,
                   stdout=subprocess.DEVNULL)
    before = len(looks(doctor))
    Driver(lab.url, "--new-connections", connections=2, count=700)
    assert not failed(looks(doctor)[before:])
    # Findings on descriptors cover the whole host, where another test may use many.
    assert not [name for name in Doctor("--sample", "0", "--port", lab.port).ids if "port" in name]


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_the_cliff_comes_before_the_first_failure(start, small_range, address):
    """With slow growth half of the ports in use is a warning, and exhaustion is predicted; only then do calls fail."""
    lab = start(Lab(address=address.strip("[]")))
    doctor = watch(start, "--port", lab.port)
    client = start([DRIVER, lab.url, "-c", "1", "-d", "30s", "--rate", "120", "--new-connections"])
    wait_until(lambda: '"ports-exhausted"' in doctor.stdout)
    client.stop()
    order, owners = [], {}
    for look in looks(doctor):
        for finding in look["findings"]:
            if finding["object"].endswith(f"{address}:{lab.port}"):
                if finding["id"] not in order:
                    order.append(finding["id"])
                    assert finding["id"] == "ports-exhausted" or not evidence(finding, "failed in the sample")
                owners.setdefault(finding["id"], set()).update(owner["pid"] for owner in finding["owners"])
    # A late reading may have all of its sample's calls in the one before, but not each.
    assert all(client.pid in owners[name] for name in order[:2]), owners
    assert order[:2] in (["ports-exhausted-soon", "ports-cliff"],
                         ["ports-cliff", "ports-exhausted-soon"])
    assert order[2] == "ports-exhausted"
    assert kernel_counter("TW") >= 480


def test_who_pays_for_the_cliff_is_named_with_the_time(start, small_range):
    """The finding has the calls of connect() and their times by process: they take longer in the range's second half."""
    held = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", free_port()),
                                                            backlog=1000))
        for _ in range(260):
            held.append(stack.enter_context(socket.create_connection(listener.getsockname())))
        doctor = watch(start, "--port", listener.getsockname()[1])
        for _ in range(50):
            held.append(stack.enter_context(socket.create_connection(listener.getsockname())))
        seen = looks(doctor)
    did = [owner["did"] for look in seen for f in look["findings"] if f["id"] == "ports-cliff"
           for owner in f["owners"] if owner["pid"] == os.getpid() and "did" in owner]
    assert sum(int(re.match(r"(\d+) connect\(\) calls, mean ", text)[1]) for text in did) == 50, did
