# SPDX-License-Identifier: MIT
"""The helpers keep their promises: nothing outlives a test, nothing hangs, counts are exact."""
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from support import ROOT, documents
from support.cgroup import MemoryCgroup, memory_controller
from support.conditions import needs_program, privileged, skip_if
from support.net import Netns, free_port, unread, veth, wait_until_read
from support.packets import Packets, network_of, packet
from support.process import Process, ProcessError, alive, run, uninterrupted, wait_until
from support.programs import Nginx, wrk
from support.timing import Untimely, close_to, in_quiet, lies_within, notes, timing


def gone(pid, seconds=5):
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_waits_until_it_is_read():
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        with server, concurrent.futures.ThreadPoolExecutor(1) as reader:
            client.sendall(b"hello")
            ends = server.getsockname(), client.getsockname()
            wait_until(lambda: unread(*ends) == (5, 5))
            reading = reader.submit(lambda: (time.sleep(0.1), server.recv(5)))
            wait_until_read(client)
            assert unread(*ends) == (0, 5)
            assert reading.result(1)[1] == b"hello"
    with pytest.raises(LookupError):
        unread(ends[0], ("127.0.0.1", 1))


def test_ready_line_and_output(start):
    process = start(["sh", "-c", "echo listening on 127.0.0.1:80; echo no >&2; sleep 60"])
    assert process.wait_for(r"listening on (\S+):(\d+)")[2] == "80"
    assert process.stop() == -signal.SIGTERM
    assert not process.killed
    assert process.stderr == "no\n"


def test_no_ready_line_is_an_error_with_output(start):
    with pytest.raises(ProcessError, match="ended before(.|\n)*cannot bind"):
        start(["sh", "-c", "echo cannot bind >&2"]).wait_for("listening")
    with pytest.raises(ProcessError, match="did not write 'listening' in 0.1 s"):
        start(["sleep", "60"]).wait_for("listening", seconds=0.1)


def test_stop_kills_the_stubborn_and_its_children(start):
    process = start(["sh", "-c", "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"])
    child = int(process.wait_for(r"^(\d+)$")[1])
    assert process.stop(seconds=0.2) == -signal.SIGKILL
    assert process.killed
    assert gone(child)


def test_run_reports_failure():
    with pytest.raises(ProcessError, match="status 3"):
        run(["sh", "-c", "exit 3"])
    assert run(["sh", "-c", "exit 3"], check=False).status == 3
    assert run(["echo", "kept"]).stdout == "kept\n"


def test_a_failing_test_leaves_no_process_and_a_hanging_one_is_ended(tmp_path):
    (tmp_path / "test_bad.py").write_text(textwrap.dedent("""
        import time
        import pytest

        def test_fails(start):
            print("PID", start(["sleep", "600"]).pid)
            assert False

        @pytest.mark.timeout(0.5)
        def test_hangs(start):
            print("PID", start(["sleep", "600"]).pid)
            while True:
                try:
                    time.sleep(600)
                except Exception:
                    pass
        """))
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, cwd=tmp_path, timeout=50,
        capture_output=True, text=True, check=False)
    assert "2 failed" in done.stdout
    assert "the test took longer than 0.5 s" in done.stdout
    pids = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("PID ")]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_a_killed_runner_takes_its_processes_along():
    code = "import time; from support.process import Process; " \
           "print(Process(['sleep', '600']).pid, flush=True); time.sleep(600)"
    with Process([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "tests")}) as runner:
        pid = int(runner.wait_for(r"^(\d+)$")[1])
        assert alive(pid)
        os.kill(runner.pid, signal.SIGKILL)
        assert gone(pid)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return set(file.read().split())


def test_one_that_is_interrupted_as_it_begins_is_ended(monkeypatch):
    """The signal comes when the process exists, but its pid is not recorded yet."""
    begin = Process._begin  # pylint: disable=protected-access

    def interrupted(*words):
        popen = begin(*words)
        os.kill(os.getpid(), signal.SIGINT)
        return popen

    before = children()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Process, "_begin", interrupted)
        Process(["sleep", "600"])
    assert children() == before


def test_a_signal_that_another_thread_takes_interrupts_nothing_either(monkeypatch):
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        for _ in range(10):
            test_one_that_is_interrupted_as_it_begins_is_ended(monkeypatch)
    finally:
        over.set()
        other.join()


def test_what_begins_uninterrupted_can_be_ended(start):
    with uninterrupted():
        sleeper = start(["sleep", "600"])
    assert sleeper.stop() == -signal.SIGTERM and not sleeper.killed


RUN = {"schema": documents.SCHEMA, "buckets": {"layout": "log-linear", "sub_bits": 6, "value_bits": 40}, "duration_ns": 1}


@pytest.mark.parametrize("change, said", [
    ({}, []),
    ({"duration_ns": None}, ["$.duration_ns: None is not of type 'integer'"]),
    ({"duration": 1}, ["$: Additional properties are not allowed ('duration' was unexpected)"]),
    ({"findings": [{}]}, ["$.findings[0]: 'id' is a required property"]),
    ({"sweep": {"steps": [{"latency": {"count": 1, "sum_ns": 1, "buckets": [[2240, 1]]}}]}},
     ["$.sweep.steps[0].latency.buckets[0][0]: 2240 is greater than the maximum of 2239"]),
])
def test_what_the_schema_finds(change, said):
    """The schema checks tests' documents: a member of another name or kind is rejected."""
    found = documents.violations({**RUN, **change})
    assert bool(found) == bool(said) and all(line in found for line in said), found


@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="this kernel has no autogroups")
def test_what_runs_aside_begins_sessions_that_do(start):
    code = "from support.process import run; print(run(['cat', '/proc/self/autogroup']).stdout)"
    for policy, nice in (("--idle", 19), ("--other", 0)):
        runner = start(["chrt", policy, "0", sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "tests")})
        assert runner.wait_for(r"nice (-?\d+)$")[1] == str(nice)


@privileged
@skip_if(None if memory_controller() else "no memory controller of cgroups")
def test_memory_of_a_cgroup_is_limited_and_told():
    with MemoryCgroup(64 << 20) as cgroup:
        run([sys.executable, "-c", "b'x' * (16 << 20)"], netns=cgroup)
        assert 16 << 20 <= cgroup.peak() <= 64 << 20 and cgroup.kills() == 0
        assert run([sys.executable, "-c", "b'x' * (256 << 20)"], netns=cgroup, check=False).status == -signal.SIGKILL
        assert cgroup.kills() == 1 and not cgroup.processes()


def test_ports_differ():
    ports = {free_port() for _ in range(50)}
    assert len(ports) == 50
    assert all(20000 <= port < 30000 for port in ports)


SERVICE = {"port": 80, "protocol": "tcp", "address": "127.0.0.1", "netns": 0, "accepted": 0, "exchanges": 0,
           "bytes_in": 0, "bytes_out": 0, "closes": {}, "losses": {}, "first_message_ns": 0, "last_message_ns": 0,
           "stages": {}, "accept_delayed": 0, "accept_delay_ns": 0, "time_wait_created": 0, "accept_queue": {}}


def run_document(**named):
    buckets = {"layout": "log-linear", "sub_bits": 6, "value_bits": 40}
    return json.dumps({"schema": "sojourn.run/1", "buckets": buckets, "duration_ns": 0,
                       "services": [{**SERVICE, **named}]})


@pytest.mark.skipif(not documents.CHECKER.exists(), reason="the observer is not built")
def test_documents_are_checked(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(run_document())
    assert documents.service(documents.load(path), 80) == SERVICE
    with pytest.raises(AssertionError, match="0 services on port 81"):
        documents.service(documents.load(path), 81)
    with pytest.raises(AssertionError, match="schema"):
        documents.parse('{"schema": "other"}')
    with pytest.raises(AssertionError, match="contradicts itself"):
        documents.parse(run_document(time_wait_created=3))


@privileged
def test_namespaces_are_joined_and_deleted():
    with Netns("left") as left, Netns("right") as right:
        assert left.inode != right.inode
        veth(left, right)
        veth(left, right, ("fd00::1/64", "fd00::2/64"), "veth1")
        server = "import socket; s = socket.create_server(('::', 20000), family=socket.AF_INET6, " \
                 "dualstack_ipv6=True); print('ready', flush=True)\n" \
                 "for _ in range(2): c, a = s.accept(); print(a[0], flush=True)"
        client = "import socket, sys; socket.create_connection((sys.argv[1], 20000), 5)"
        with right.start([sys.executable, "-c", server]) as process:
            process.wait_for("ready")
            left.exec([sys.executable, "-c", client, "10.200.0.2"])
            left.exec([sys.executable, "-c", client, "fd00::2"])
            assert process.wait() == 0
        assert process.stdout.split() == ["ready", "::ffff:10.200.0.1", "fd00::1"]
    assert not os.path.exists(left.path)
    assert not os.path.exists(right.path)


@privileged
def test_a_namespace_is_deleted_after_a_failure():
    with pytest.raises(ZeroDivisionError):
        with Netns("failing") as failing:
            assert os.path.exists(failing.path)
            raise ZeroDivisionError
    assert not os.path.exists(failing.path)


@needs_program("nginx")
@needs_program("wrk")
def test_nginx_counts_what_its_client_counts(start):
    nginx = start(Nginx())
    assert nginx.status() == {"active": 0, "accepts": 0, "handled": 0, "requests": 0}
    assert len(nginx.workers()) == 1
    result = wrk(nginx.url, connections=4, seconds=1)
    assert not any(result["errors"].values())
    status = nginx.status()
    assert status["accepts"] >= 4
    # Each connection may end with a request whose response wrk does not count.
    assert 0 <= status["requests"] - result["requests"] <= status["accepts"]
    assert nginx.stop() == 0
    assert "[emerg]" not in nginx.errors()


@privileged
@needs_program("nginx")
def test_nginx_in_a_namespace(start, netns):
    inside = netns()
    nginx = start(Nginx(netns=inside, addresses=("127.0.0.1", "::1"), body="hello"))
    assert inside.exec(["curl", "-s", "--noproxy", "*", f"http://[::1]:{nginx.port}/"]).stdout \
        == "hello"
    assert nginx.status()["requests"] == 1


def tried(asserting):
    """Return how often in_quiet runs a failing test, and its notes."""
    tries = []

    @in_quiet
    def test():
        tries.append(None)
        asserting()

    notes.clear()
    with pytest.raises(AssertionError):
        test()
    noted = [name for name, _ in notes]
    notes.clear()
    return len(tries), noted


def late():
    with timing():
        assert [] == ["too late"]


def miscounted():
    assert [] == ["lost"]


def test_only_times_are_tried_again():
    assert tried(late) == (3, ["tried again"] * 2)
    assert tried(lambda: close_to(2_000_000, 1_000_000)) == (3, ["tried again"] * 2)
    assert tried(miscounted) == (1, [])


@pytest.mark.parametrize("measured, least, most, true", [
    (1_010_000, 1_000_000, 1_000_000, True), (1_010_001, 1_000_000, 1_000_000, False),
    (990_000, 1_000_000, 1_000_000, True), (989_999, 1_000_000, 1_000_000, False),
    (2_020_000, 1_000_000, 2_000_000, True), (979_999, 1_000_000, 2_000_000, False)])
def test_ten_microseconds_or_one_percent(measured, least, most, true):
    if true:
        assert lies_within(measured, least, most)
        return
    with pytest.raises(Untimely):
        lies_within(measured, least, most)


def test_packets_are_read_as_they_are():
    ipv4 = bytes.fromhex("45000022000040004006000001020304 05060708".replace(" ", ""))
    tcp = bytes.fromhex("1f90a000 0000000a 00000007 50180000 00000000".replace(" ", ""))
    found = packet(ipv4[:2] + (40 + 5).to_bytes(2, "big") + ipv4[4:] + tcp + b"hello", 1, True)
    assert (found.source, found.target, found.size, found.end, found.acked, found.syn) == \
        (0x1f90, 0xa000, 5, 15, 7, False)
    ipv6 = b"\x60" + bytes(3) + (8 + 3).to_bytes(2, "big") + bytes([17]) + bytes(33)
    found = packet(ipv6 + bytes.fromhex("00350036000b0000") + b"abc", 1, False)
    assert (found.source, found.target, found.size, found.comes_in) == (0x35, 0x36, 3, False)


@privileged
def test_packets_are_stamped_as_they_pass(netns):
    """The stamp lies between the sender's call and the receiver's, not at the reading."""
    with network_of(netns("packets")), \
            socket.create_server(("127.0.0.1", 0)) as listener, Packets(listener.getsockname()[1]) as packets, \
            socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
        before_ns = time.monotonic_ns()
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        after_ns = time.monotonic_ns()
        server.sendall(b"answers")
        port = client.getsockname()[1]
    (came,), (went,) = packets.arrivals()[port], packets.departures()[port]
    assert (came.size, went.size) == (8, 7)
    assert before_ns <= came.at_ns <= after_ns <= went.at_ns
    assert packets.acknowledgements()[port][0].at_ns < came.at_ns
