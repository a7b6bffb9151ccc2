# SPDX-License-Identifier: MIT
"""`sojourn doctor` on limits: listeners' queues, TIME_WAIT and who closes first, kernel counters, and the
remedies, applied as printed."""
import contextlib
import ctypes
import json
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ..conftest import kernel_counter, sockets
from support import documents
from support.cgroup import Cgroup, cgroup2
from support.findings import evidence, facts
from support.net import free_port
from support.process import wait_until
from support.programs import OBSERVER, Doctor, Driver, Lab, Observer, out_of_descriptors
from support.timing import in_quiet, timing

SO_ATTACH_FILTER = 26


def sysctl(name, value):
    subprocess.run(["sysctl", "-qw", f"net.{name}={value}"], check=True)


def apply(finding):
    subprocess.run(["sh", "-c", finding["command"]], check=True,
                   stdout=subprocess.DEVNULL)


def connecting(stack, port, count, deaf=False):
    """Start to connect clients. Deaf ones drop every answer, so their handshakes stay unfinished."""
    for _ in range(count):
        client = stack.enter_context(socket.socket())
        if deaf:
            drop_all = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\0\0")  # BPF: return 0
            program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(drop_all))
            client.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))


# ---- queues of listeners ----

# A listener that admits one connection, and clients that find no room.
FULL_QUEUE = """
import socket, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
waiting = socket.create_connection(listener.getsockname())
print(listener.getsockname()[1], flush=True)
while True:
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
        time.sleep(0.01)
"""


def wait_for_overflows(more=5):
    before = kernel_counter("ListenOverflows")
    wait_until(lambda: kernel_counter("ListenOverflows") >= before + more)


@pytest.mark.parametrize("user, named, status", [(65534, False, 1), (65534, True, 2), (1, False, 2)])
def test_a_users_own_queue_does_not_turn_the_host_red(start, user, named, status):
    """Any user may fill the queue of his own listener: it counts if it was named, or if he is a system user."""
    server = start(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "/usr/bin/python3", "-c", FULL_QUEUE])
    port = int(server.wait_for(r"^(\d+)$")[1])
    doctor = Doctor("--sample", "500ms", *(["--port", port] if named else []))
    found = [finding for finding in doctor.document["findings"] if finding["port"] == port]
    assert {finding["severity"] for finding in found} == {"critical" if status == 2 else "warning"}
    assert any("asked of listen(): 0 connections" in text for finding in found for text in finding["evidence"])
    assert doctor.status == status
    serve = start(Observer(*(["--port", port] if named else ["--all-listeners"])))
    wait_for_overflows()
    health = subprocess.run(["curl", "-s", "-w", " %{http_code}", serve.url + "/healthz"], capture_output=True,
                            text=True, check=True).stdout
    assert ('"critical"' in health, health.endswith(" 503")) == (status == 2, status == 2), health
    assert '"ok"' not in health


def test_who_owns_the_namespace_says_whose_services_are_in_it(start):
    """Containers have users of their own, but an ordinary user can make a namespace, and a service in it."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    server = out_of_descriptors()
    own, container = (start(words + server) for words in ([*nobody, "unshare", "--user", "--net"],
                                                          ["unshare", "--net", *nobody]))
    for process in (own, container):
        process.wait_for("^full$")
    wanted = {own.pid: {"warning"}, container.pid: {"critical"}}
    serve = start(Observer("--all-netns"))
    for document in (Doctor("--all-netns", "--sample", "100ms").document, json.loads(serve.get("/v1/findings"))):
        found = [(finding["owners"][0]["pid"], finding["severity"]) for finding in document["findings"]
                 if finding["resource"] == "descriptors"]
        assert {process: {severity for pid, severity in found if pid == process} for process in wanted} == wanted


def dropped():
    """Return (SYNs dropped for another reason than a full accept queue, overflows), by the kernel's count."""
    overflows = kernel_counter("ListenOverflows")
    return kernel_counter("ListenDrops") - overflows, overflows


def test_dropped_syns_are_no_overflow(start):
    """SYNs are dropped at one listener while another's queue overflows; a listener has one counter for both. Clients repeat
    their SYNs when they want: the doctor's samples follow each other, and the clients begin and end within them."""
    sysctl("ipv4.tcp_syncookies", 0)
    flooded = start(Lab("--backlog", "8"))
    slow = start(Lab("--accept-delay", "60s", "--backlog", "4"))
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "1s"])
    doctor.wait_for("\n")
    assert dropped() == (0, 0)
    with contextlib.ExitStack() as stack:
        connecting(stack, flooded.port, 20, deaf=True)
        connecting(stack, slow.port, 10)
        wait_until(lambda: dropped()[0] >= 10 and dropped()[1] >= 5)
    over = doctor.stdout.count("\n")
    wait_until(lambda: doctor.stdout.count("\n") > over + 1, seconds=20)
    syns, overflows = dropped()
    doctor.stop()
    findings = [finding for line in doctor.stdout.splitlines() for finding in documents.parse(line)["findings"]]
    found = {name: [f for f in findings if f["id"] == name] for name in ("syn-drops", "accept-queue-overflowing")}
    for name, lab in zip(found, (flooded, slow)):
        assert {(f["object"], f["owners"][0]["pid"]) for f in found[name]} == {(f"127.0.0.1:{lab.port}", lab.pid)}
    assert sum(evidence(f, "SYNs dropped in the sample") for f in found["syn-drops"]) == syns
    assert sum(evidence(f, "dropped in the sample") for f in found["accept-queue-overflowing"]) == overflows
    with contextlib.ExitStack() as stack:
        apply(found["syn-drops"][0])
        connecting(stack, flooded.port, 20, deaf=True)
        assert "syn-drops" not in Doctor("--sample", "2s", "--port", flooded.port).ids


@pytest.mark.parametrize("cookies, finding", [(0, "syn-backlog"), (1, "syn-backlog")])
def test_half_open_connections_against_the_backlog(start, cookies, finding):
    sysctl("ipv4.tcp_syncookies", cookies)
    lab = start(Lab("--backlog", "16"))
    with contextlib.ExitStack() as stack:
        connecting(stack, lab.port, 12, deaf=True)
        doctor = Doctor("--sample", "0")
        found = doctor.finding(finding)
        assert (found["used"], found["capacity"], found["severity"]) == (12, 16, "warning")
        # If cookies are already on, the command would change nothing.
        assert bool(found["command"]) == (not cookies)


def test_without_cookies_tcp_max_syn_backlog_binds_too(start):
    sysctl("ipv4.tcp_syncookies", 0)
    sysctl("ipv4.tcp_max_syn_backlog", 16)
    lab = start(Lab("--backlog", "1000"))
    with contextlib.ExitStack() as stack:
        connecting(stack, lab.port, 30, deaf=True)
        held = int(subprocess.run(["ss", "-Htan", "state", "syn-recv"], check=True, text=True,
                                  capture_output=True).stdout.count("\n"))
        found = Doctor("--sample", "1500ms").finding("syn-drops")
    assert found["capacity"] == 12
    assert found["used"] == pytest.approx(held, abs=1) == pytest.approx(12, abs=1)
    assert "limit, three quarters of tcp_max_syn_backlog" in facts(found)


def test_which_limit_binds_an_accept_queue(start):
    """The limit is the program's own backlog, or net.core.somaxconn as it was at listen()."""
    sysctl("core.somaxconn", 8)
    capped = start(Lab("--accept-delay", "60s", "--backlog", "1000"))
    modest = start(Lab("--accept-delay", "60s", "--backlog", "4"))
    with contextlib.ExitStack() as stack:
        connecting(stack, capped.port, 9)
        connecting(stack, modest.port, 5)
        time.sleep(0.2)
        findings = {f["port"]: f for f in Doctor("--sample", "0").findings("accept-queue-full")}
        assert "limit, as net.core.somaxconn caps it" in facts(findings[capped.port])
        assert "limit, as the program asked of listen()" in facts(findings[modest.port])
        assert evidence(findings[modest.port], "net.core.somaxconn") == 8
        assert findings[modest.port]["command"] is None
        apply(findings[capped.port])
        # The remedy takes effect when the service listens again, as it says.
        assert "restart the service" in findings[capped.port]["change"]
        assert Doctor("--sample", "0", "--port", capped.port).finding("accept-queue-full")
    capped.stop()
    again = start(Lab("--accept-delay", "60s", "--backlog", "1000"))
    with contextlib.ExitStack() as stack:
        connecting(stack, again.port, 9)
        time.sleep(0.2)
        doctor = Doctor("--sample", "0", "--port", again.port)
        assert doctor.resource("accept_queue", f":{again.port}")["capacity"] == 32
        assert not [finding for finding in doctor.document["findings"] if finding["port"] == again.port]


def test_two_listeners_drop_apart(start):
    """Each listener's drops are those of `ss`, which are the kernel's own."""
    labs = [start(Lab("--accept-delay", "60s", "--backlog", backlog)) for backlog in ("2", "5")]
    with contextlib.ExitStack() as stack:
        for lab, clients in zip(labs, (7, 20)):
            connecting(stack, lab.port, clients)
        doctor = Doctor("--sample", "1500ms")
        shown = [int(re.search(r",d(\d+)\)", subprocess.run(
            ["ss", "-Htlnm", f"sport = :{lab.port}"], check=True, text=True,
            capture_output=True).stdout)[1]) for lab in labs]
    found = {f["port"]: f for f in doctor.findings("accept-queue-overflowing")}
    for lab, drops, limit in zip(labs, shown, (2, 5)):
        assert evidence(found[lab.port], "dropped so far, for any reason") == \
            pytest.approx(drops, abs=2)
        assert found[lab.port]["owners"][0]["pid"] == lab.pid
        assert (found[lab.port]["used"], found[lab.port]["capacity"]) == (limit + 1, limit)
    assert sum(evidence(f, "dropped in the sample") for f in found.values()) == \
        evidence(found[labs[0].port], "overflows of all listeners in the sample")


@in_quiet
def test_put_off_acks_are_no_overflow():
    """With TCP_DEFER_ACCEPT, as Apache has it, the kernel drops an ACK of each connection, and counts it as a drop of the listener."""
    with socket.socket() as slow, socket.create_server(("127.0.0.1", 0)) as deferring:
        slow.bind(("127.0.0.1", 0))
        slow.listen(2)
        deferring.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)

        def act():
            for _ in range(40):
                with socket.create_connection(deferring.getsockname()) as client:
                    client.sendall(b"x")
                    deferring.accept()[0].close()
            with contextlib.ExitStack() as stack:
                connecting(stack, slow.getsockname()[1], 6)
                time.sleep(0.2)
            for _ in range(3):  # neither queue is full when the doctor looks again
                slow.accept()[0].close()

        before = {name: kernel_counter(name) for name in ("TCPDeferAcceptDrop", "ListenOverflows")}
        timer = threading.Timer(1.5, act)
        timer.start()
        doctor = Doctor("--sample", "3s")
        timer.join()
        assert kernel_counter("TCPDeferAcceptDrop") - before["TCPDeferAcceptDrop"] == 40
        assert kernel_counter("ListenOverflows") - before["ListenOverflows"] >= 3
        with timing():
            assert [finding["port"] for finding in doctor.findings("accept-queue-overflowing")] == [slow.getsockname()[1]]
            assert {one["id"] for one in doctor.document["findings"] if one["port"]} == {"accept-queue-overflowing"}


# ---- TIME_WAIT ----

def closes(count):
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        for _ in range(count):
            client = socket.create_connection(listener.getsockname())
            accepted, _ = listener.accept()
            client.close()
            accepted.close()


def test_overflowing_time_wait_buckets_and_their_remedy(start):
    sysctl("ipv4.tcp_max_tw_buckets", 100)
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "1s"])
    doctor.wait_for("\n")
    closes(130)
    seen = doctor.stdout.count("\n")
    while doctor.stdout.count("\n") < seen + 2:
        time.sleep(0.05)
    doctor.stop()
    looks = [json.loads(line) for line in doctor.stdout.splitlines()]
    found = [f for look in looks for f in look["findings"] if f["id"] == "time-wait-buckets"]
    assert {(f["used"], f["capacity"], f["severity"]) for f in found[-1:]} == \
        {(100, 100, "critical")}
    assert sum(evidence(f, "closed without TIME_WAIT in the sample") for f in found) == 30 == \
        kernel_counter("TCPTimeWaitOverflow")
    apply(found[-1])
    closes(20)
    assert kernel_counter("TCPTimeWaitOverflow") == 30
    entry = Doctor("--sample", "0").resource("time_wait", "TIME_WAIT")
    assert (entry["used"], entry["capacity"]) == (120, 200)


@pytest.mark.parametrize("path, options, made, verb, who", [
    ("?close=1", [], 40, "left", "server"), ("", [], 40, "left", "client"),
    ("", ["--close", "rst"], 0, "reset", "client")], ids=["server", "client", "reset"])
def test_who_closes_first_among_processes(start, path, options, made, verb, who):
    lab = start(Lab())
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "300ms"])
    doctor.wait_for("\n")
    before = kernel_counter("TW")
    driver = Driver(lab.url + path, "--new-connections", *options, count=40)
    seen = doctor.stdout.count("\n")
    while doctor.stdout.count("\n") < seen + 2:
        time.sleep(0.05)
    doctor.stop()
    looks = [json.loads(line) for line in doctor.stdout.splitlines()]
    did = [(owner["comm"], owner["pid"], owner["did"]) for look in looks
           for entry in look["resources"] if entry["resource"] == "time_wait"
           for owner in entry["owners"]]
    assert driver.status == 0
    # If the server closes first, a client whose FIN crosses the server's enters TIME_WAIT, too.
    assert made <= kernel_counter("TW") - before <= (2 * made if who == "server" else made)
    counts = {"client": 0, "server": 0}
    for comm, pid, text in did:
        side = "server" if " as the server at port " in text else "client"
        counts[side] += int(re.match(rf"{verb} (\d+) ", text)[1])
        assert text.endswith(str(lab.port))
        # The driver has exited meanwhile, but its name is known.
        assert comm == ("sojourn-lab" if side == "server" else "sojourn-drive"), did
        assert side == "client" or pid == lab.pid
    # Sometimes the other side is faster; the kernel's sockets are the truth.
    if made:
        server = len(sockets("time-wait", f"sport = :{lab.port}"))
        client = len(sockets("time-wait", f"dport = :{lab.port}"))
        assert counts == {"server": server, "client": client}
    assert sum(counts.values()) >= (made or 40)
    # A server that closes after its response may still be slower than its client.
    assert counts[who] > (0 if who == "server" else 20)


# ---- limits of host and namespace ----

def kernel_number(path, word=0):
    return int(Path(path).read_text(encoding="ascii").split()[word])


def test_every_limit_that_the_kernel_shows_is_shown():
    closes(5)
    doctor = Doctor("--sample", "0")
    shown = {entry["resource"]: (entry["used"], entry["capacity"])
             for entry in doctor.document["resources"]}
    assert shown["files"][1] == kernel_number("/proc/sys/fs/file-max")
    assert shown["time_wait"] == (5, kernel_number("/proc/sys/net/ipv4/tcp_max_tw_buckets"))
    conntrack = Path("/proc/sys/net/netfilter/nf_conntrack_max")
    assert ("conntrack" in shown) == conntrack.exists()
    if conntrack.exists():
        assert shown["conntrack"][1] == kernel_number(conntrack)
    # The rest exists in the first network namespace only, and is reported as missing elsewhere.
    here = Path("/proc/sys/net/ipv4/tcp_mem").exists()
    assert ("tcp_memory" in shown) == here
    assert any("orphans and TCP memory" in note for note in doctor.document["not_seen"]) != here


# ---- owners ----

@pytest.mark.skipif(cgroup2() is None, reason="no cgroup v2 is mounted")
def test_an_owner_is_named_with_its_cgroup(start):
    with Cgroup() as cgroup:
        lab = start(Lab("--accept-delay", "60s", "--backlog", "2", netns=cgroup))
        with contextlib.ExitStack() as stack:
            connecting(stack, lab.port, 3)
            time.sleep(0.2)
            doctor = Doctor("--sample", "0", "--port", lab.port)
            text = subprocess.run([OBSERVER, "doctor", "--sample", "0", "--port", str(lab.port)],
                                  check=False, text=True, capture_output=True).stdout
        owner = doctor.finding("accept-queue-full")["owners"][0]
        assert (owner["pid"], owner["comm"], owner["unit"]) == \
            (lab.pid, "sojourn-lab", cgroup.path.name)
        assert f"sojourn-lab, pid {lab.pid}, in {cgroup.path.name}" in text
        lab.stop()


def test_observer_keeps_every_listeners_depth(start):
    """The port is not observed; the observer's program at sk_data_ready runs for it anyway. The clients know
    how many of them were queued."""
    observer = start(Observer(ports=[free_port()]))
    lab = start(Lab("--accept-delay", "60s", "--backlog", "4"))
    with contextlib.ExitStack() as stack:
        for _ in range(5):  # a backlog of N admits N + 1
            client = stack.enter_context(socket.socket())
            client.settimeout(5)
            client.connect(("127.0.0.1", lab.port))
        observer.stop()
    found = [finding for finding in observer.summary()["findings"] if finding["port"] == lab.port]
    assert [finding["id"] for finding in found] == ["accept-queue-full"]
    assert any(re.match("deepest since the watch began: 5 ", text) for text in found[0]["evidence"])
