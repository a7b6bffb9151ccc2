# SPDX-License-Identifier: MIT
"""`sojourn doctor` on processes' descriptors and queues, and on healthy hosts."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from ..conftest import kernel_counter, sockets
from support.conditions import needs_program
from support.findings import ended_at, evidence, growth, seconds_left
from support.net import free_port
from support.process import Process, run, wait_until
from support.programs import LAB, OBSERVER, Doctor, Driver, Lab, Nginx, Observer, out_of_descriptors
from support.http import request


class LimitedLab(Lab):
    def __init__(self, limit, *options):
        Process.__init__(self, ["sh", "-c", f'ulimit -Sn {limit}; exec "$@"', "sh", LAB,
                                "--listen", "127.0.0.1:0", *options])
        match = self.wait_for(r"^listening on (\S+):(\d+)$")
        self.address, self.port = match[1], int(match[2])
        self.url = f"http://{self.address}:{self.port}/"


@contextlib.contextmanager
def every(seconds, call):
    """Call a function at this interval within `with`, without drift."""
    done = threading.Event()

    def loop():
        at = time.monotonic()
        while not done.wait(max(0, at - time.monotonic())):
            call()
            at += seconds

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def idle(stack, port, count):
    return [stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(count)]


# ---- descriptors ----

def test_descriptors_at_their_limit_are_one_finding(start):
    """64 descriptors, 80 clients: waiting connections are only a consequence."""
    lab = start(LimitedLab(64, "--backlog", "8"))
    with contextlib.ExitStack() as stack:
        idle(stack, lab.port, 60)
        for _ in range(10):  # the last ones also find the queue full
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", lab.port))
        # A client that found the queue full meanwhile comes again after a second.
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (
                len(os.listdir(f"/proc/{lab.pid}/fd")) < 64
                or int(sockets("listening", f"sport = :{lab.port}")[0].split()[0]) <= 8):
            time.sleep(0.05)
        doctor = Doctor("--sample", "200ms", "--pid", lab.pid)
        finding = doctor.finding("fds-exhausted")
        assert doctor.status == 2
        assert (finding["used"], finding["capacity"]) == (64, 64)
        assert finding["used"] == len(os.listdir(f"/proc/{lab.pid}/fd"))
        assert evidence(finding, "waiting for accept() meanwhile") > 0
        assert evidence(finding, "sockets") > 50
        assert f"--pid {lab.pid} " in finding["command"]
        assert doctor.ids == {"fds-exhausted"}
        subprocess.run(["sh", "-c", finding["command"]], check=True)
        # The server accepts again at the next connection: rejected clients retry.
        while len(os.listdir(f"/proc/{lab.pid}/fd")) == 64 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "fds-exhausted" not in Doctor("--sample", "200ms", "--pid", lab.pid).ids


# Opens what argv[1] says, then files until there is no descriptor left.
FULL = """
import os, socket, sys, time
opened = eval(sys.argv[1])
try:
    while True:
        os.dup(2)
except OSError:
    print("full", flush=True)
time.sleep(3600)
"""


SERVER = "socket.create_server(('127.0.0.1', 0))"
NOBODY, DAEMON = 65534, 1


@pytest.mark.parametrize("user, opened, options, severity", [
    (DAEMON, "None", [], "warning"),
    (DAEMON, "socket.create_connection(('127.0.0.1', int(sys.argv[2])))", [], "warning"),
    (DAEMON, SERVER, [], "critical"),
    (DAEMON, "(lambda s: (s.bind(chr(0) + 'sojourn-full-%d' % os.getpid()), s.listen(), s))(socket.socket(socket.AF_UNIX))",
     [], "critical"),
    (NOBODY, SERVER, [], "warning"),
    (NOBODY, SERVER, ["--all-users"], "critical"),
])
def test_a_process_that_harms_itself_alone_is_a_warning(start, user, opened, options, severity):
    """A user fills his own descriptors. Others need them if the process listens, and is a system user's."""
    lab = start(Lab())
    full = start(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", "--nofile=32:32",
                  "/usr/bin/python3", "-c", FULL, opened, lab.port])
    full.wait_for("^full$")
    doctor = Doctor("--sample", "200ms", *options)
    found = [finding for finding in doctor.document["findings"]
             if full.pid in {owner["pid"] for owner in finding["owners"]}]
    assert [(finding["id"], finding["severity"], finding["used"], finding["capacity"]) for finding in found] == \
        [("fds-exhausted", severity, 32, 32)]
    assert found[0]["command"] is None, "the soft limit is the hard one: prlimit changes nothing"
    severities = {finding["severity"] for finding in doctor.document["findings"]}
    assert doctor.status == (2 if "critical" in severities else 1)
    # The user who asks for this process needs it, whatever it does.
    asked = Doctor("--sample", "200ms", "--pid", full.pid)
    assert (asked.finding("fds-exhausted")["severity"], asked.status) == ("critical", 2)


@pytest.mark.alone
def test_a_leak_of_descriptors_is_foretold(start):
    """Ten descriptors per second leak: the predicted time is within 10 % of the truth."""
    lab = start(LimitedLab(128))
    with every(0.1, lambda: request(lab.url + "?leak=1")):
        time.sleep(1)
        doctor = Doctor("--sample", "2s", "--pid", lab.pid)
        finding = doctor.finding("fds-exhausted-soon")
        assert finding["used"] == pytest.approx(len(os.listdir(f"/proc/{lab.pid}/fd")), abs=8)
        assert finding["capacity"] == 128
        assert growth(doctor.document, finding) == pytest.approx(10, rel=0.1)
        assert seconds_left(finding) == pytest.approx((128 - finding["used"]) / 10, rel=0.1)
        assert evidence(finding, "straightness (R²)") > 0.9


# Has 56 descriptors from one signal to the next.
FILLS = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
opened = []
while len(os.listdir("/proc/self/fd")) < 57:  # its own is among them
    opened.append(os.dup(2))
print("full", flush=True)
signal.sigwait([signal.SIGUSR1])
for one in opened:
    os.close(one)
print("empty", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("ends, told", [(False, "at the end: "), (True, "the process has ended")])
def test_what_was_full_for_a_time_is_told(start, ends, told):
    """Descriptors that were nearly all in use at a point of the observation, and are not at its end."""
    lab = start(Lab())
    filling = start(["prlimit", "--nofile=64:64", "/usr/bin/python3", "-c", FILLS])
    filling.wait_for("^ready$")
    observer = start(Observer(ports=(lab.port,)))

    def points():
        return len(observer.document()["services"][0]["series"]["fds"])

    request(lab.url)
    filling.send(signal.SIGUSR1)
    filling.wait_for("^full$")
    assert len(os.listdir(f"/proc/{filling.pid}/fd")) == 56
    before = points()
    wait_until(lambda: points() > before + 1)
    filling.send(signal.SIGUSR1)
    filling.wait_for("^empty$")
    if ends:
        filling.close()
    observer.stop()
    found = [one for one in observer.summary()["findings"] if filling.pid in {owner["pid"] for owner in one["owners"]}]
    assert [(one["id"], one["severity"], one["used"], one["capacity"]) for one in found] == \
        [("fds-near-limit", "warning", 56, 64)]
    assert told in found[0]["outlook"] + " ".join(found[0]["evidence"])


# Raises its limit at a signal, as servers do when they start, and then has more descriptors than it might have had before.
RAISES = """
import os, resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
opened = [os.dup(2) for _ in range(100)]
print("raised", flush=True)
signal.pause()
"""


def test_a_limit_that_was_raised_is_not_near(start):
    lab = start(Lab())
    raising = start(["prlimit", "--nofile=64:1000", "/usr/bin/python3", "-c", RAISES])
    raising.wait_for("^ready$")
    observer = start(Observer(ports=(lab.port,)))
    raising.send(signal.SIGUSR1)
    raising.wait_for("^raised$")
    observer.stop()
    assert not [one for one in observer.summary()["findings"] if raising.pid in {owner["pid"] for owner in one["owners"]}]


def test_a_process_that_began_meanwhile_is_looked_at(start):
    lab = start(Lab())
    observer = start(Observer(ports=(lab.port,)))
    hungry = start(out_of_descriptors())
    hungry.wait_for("^full$")
    observer.stop()
    found = [one for one in observer.summary()["findings"] if hungry.pid in {owner["pid"] for owner in one["owners"]}]
    assert [(one["id"], one["severity"], one["used"]) for one in found] == [("fds-exhausted", "critical", 64)]


@pytest.mark.alone
def test_steady_growth_far_from_the_limit_is_named(start):
    lab = start(Lab())
    with every(0.05, lambda: request(lab.url + "?leak=1")):
        time.sleep(0.3)
        doctor = Doctor("--sample", "3s", "--pid", lab.pid)
        finding = doctor.finding("fds-growing")
        assert growth(doctor.document, finding) == pytest.approx(20, rel=0.15)
        assert finding["owners"][0]["pid"] == lab.pid


# ---- queues ----

def test_two_accept_queues_are_told_apart(start):
    slow = start(Lab("--accept-delay", "60s", "--backlog", "8"))
    good = start(Lab("--backlog", "8"))
    before = kernel_counter("ListenOverflows")
    with contextlib.ExitStack() as stack:
        idle(stack, good.port, 9)
        for _ in range(12):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", slow.port))
        time.sleep(0.2)
        doctor = Doctor("--sample", "0")
        finding = doctor.finding("accept-queue-full")
        assert doctor.status == 2
        assert finding["object"] == f"127.0.0.1:{slow.port}"
        assert (finding["used"], finding["capacity"]) == (9, 8)
        assert finding["owners"][0]["pid"] == slow.pid
        assert doctor.resource("accept_queue", f":{good.port}")["used"] == 0
        assert evidence(finding, "dropped so far, for any reason") == kernel_counter("ListenOverflows") - before


def test_drops_of_a_listener_as_they_happen(start):
    slow = start(Lab("--accept-delay", "60s", "--backlog", "4"))
    with contextlib.ExitStack() as stack:
        for _ in range(10):  # five are rejected, and retry after a second
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", slow.port))
        overflows = kernel_counter("ListenOverflows")
        assert overflows > 0
        doctor = Doctor("--sample", "1500ms")
        finding = doctor.finding("accept-queue-overflowing")
        assert evidence(finding, "dropped in the sample") >= 5
        assert evidence(finding, "dropped in the sample") == \
            evidence(finding, "overflows of all listeners in the sample")
        assert "accept-queue-full" not in doctor.ids


@pytest.mark.alone
def test_udp_drops_name_the_socket():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", free_port()))
        with every(0.02, lambda: client.sendto(b"x" * 500, server.getsockname())):
            time.sleep(0.5)
            finding = Doctor("--sample", "500ms").finding("udp-drops")
        assert finding["port"] == server.getsockname()[1]
        assert finding["owners"][0]["pid"] == os.getpid()
        assert evidence(finding, "dropped in the sample") == pytest.approx(25, abs=10)
        assert finding["command"] is None, "no sysctl enlarges a buffer that exists"


def test_time_wait_buckets_against_their_limit():
    """The limit is the namespace's own."""
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_max_tw_buckets=100"], check=True)
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        for _ in range(90):
            client = socket.create_connection(listener.getsockname())
            accepted, _ = listener.accept()
            client.close()
            accepted.close()
        finding = Doctor("--sample", "0").finding("time-wait-buckets")
        assert (finding["used"], finding["capacity"]) == (90, 100)

# ---- healthy ----

HEALTHY_SECONDS = float(os.environ.get("SOJOURN_HEALTHY_SECONDS", "5"))


class Redis(Process):
    def __init__(self):
        self.port = free_port()
        super().__init__(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                          "--appendonly", "no", "--protected-mode", "no"])
        self.wait_for("Ready to accept connections")


def works(port, seconds, request):
    with socket.create_connection(("127.0.0.1", port)) as client:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client.sendall(request)
            assert client.recv(4096)
            time.sleep(0.002)


@needs_program("redis-server")
@pytest.mark.timeout(40 + 2 * HEALTHY_SECONDS)
def test_healthy_servers_give_no_finding(start):
    """nginx and redis under load and a pool of 1,000 idle connections, for SOJOURN_HEALTHY_SECONDS."""
    nginx, redis = start(Nginx()), start(Redis())
    ours = {process.pid for process in (nginx, redis)} | set(nginx.workers()) | {os.getpid()}
    requests = {nginx.port: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", redis.port: b"PING\r\n"}
    with contextlib.ExitStack() as stack:
        idle(stack, nginx.port, 1000)
        threads = [threading.Thread(target=works, args=(port, HEALTHY_SECONDS + 3, request_))
                   for port, request_ in requests.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        doctor = Doctor("--sample", f"{HEALTHY_SECONDS:g}s", seconds=HEALTHY_SECONDS + 30)
        for thread in threads:
            thread.join()
    # Other processes of the machine have descriptors, too, which this test does not judge.
    others = [finding for finding in doctor.document["findings"] if finding["owners"]
              and not ours & {owner["pid"] for owner in finding["owners"]}
              and finding["resource"] == "descriptors"]
    assert doctor.document["findings"] == others
    assert doctor.status == 0 or others
    assert doctor.document["duration_ns"] / 1e9 >= HEALTHY_SECONDS
    assert doctor.resource("accept_queue", f":{nginx.port}")["used"] == 0
    pool = doctor.resource("ephemeral_ports", f":{nginx.port}")
    assert pool["used"] >= 1000 and pool["ends_in_ns"] is None


def test_a_healthy_run_gives_no_finding(start):
    nginx = start(Nginx())
    process = threading.Thread(target=Driver, args=(nginx.url,),
                               kwargs={"connections": 64, "duration": "4s"})
    process.start()
    time.sleep(0.5)
    doctor = Doctor("--sample", "2s", "--port", nginx.port)
    process.join()
    assert not doctor.document["findings"]


# ---- the command line ----

@pytest.mark.parametrize("options, said", [
    (["--sample", "5ms"], "--sample: '5ms' is not allowed"),
    (["--port", "0"], "--port: '0' is not allowed"),
    (["--bogus"], "--bogus: unknown option"),
    (["--netns", "no-such"], "--netns: 'no-such' cannot be opened"),
    (["--pid", "4194303"], "--pid: there is no process 4194303"),
    (["--pid", "1", "--all-netns"], "give one of them"),
    (["word"], "'word': unexpected"),
])
def test_wrong_options_do_not_look_like_a_finding(options, said):
    done = run([OBSERVER, "doctor", *options], check=False)
    assert done.status == 64
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_without_root_it_says_what_it_cannot_see(start):
    lab = start(Lab())
    done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                "--bounding-set=-all", OBSERVER, "doctor", "--sample", "0", "--json"], check=False)
    if done.status in (126, 127):
        pytest.skip("nobody may not run the program where it was built")
    document = json.loads(done.stdout)
    assert any("CAP_SYS_PTRACE" in note for note in document["not_seen"])
    assert any(entry["resource"] == "accept_queue" and entry["port"] == lab.port
               for entry in document["resources"])
    refused = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "--bounding-set=-all", OBSERVER, "doctor", "--netns", "/proc/1/ns/net"],
                  check=False)
    assert refused.status == 64
    assert "Permission denied" in refused.stderr


@pytest.mark.alone
def test_watch_looks_again_until_it_is_told_to_stop(start):
    begin = time.time()
    doctor = start([OBSERVER, "doctor", "--json", "--interval", "200ms"])
    deadline = time.monotonic() + 10
    while doctor.stdout.count("\n") < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert doctor.stop(number=signal.SIGINT) in (0, 1, 2)
    looks = [json.loads(line) for line in doctor.stdout.splitlines()]
    assert len(looks) >= 3
    assert all(look["duration_ns"] / 1e9 == pytest.approx(0.2, abs=0.15) for look in looks)
    times = [ended_at(look) for look in looks]
    assert begin < times[0] and times[-1] < time.time()
    assert all(later - earlier > 0.1 for earlier, later in zip(times, times[1:])), times


def test_watch_goes_on_without_bpf(start):
    """Every reading names what it cannot count, and finds what the kernel shows to everybody."""
    lab = start(Lab("--ignore-fin"))
    doctor = start(["setpriv", "--inh-caps=-bpf,-perfmon,-sys_admin",
                    "--bounding-set=-bpf,-perfmon,-sys_admin", OBSERVER, "doctor", "--json",
                    "--interval", "300ms", "--port", lab.port])
    doctor.wait_for("\n")
    with every(0.1, lambda: socket.create_connection(("127.0.0.1", lab.port)).close()):
        wait_until(lambda: "close-wait-leak" in doctor.stdout, seconds=30)
    doctor.stop()
    looks = [json.loads(line) for line in doctor.stdout.splitlines()]
    assert all(any("CAP_BPF" in note for note in look["not_seen"]) for look in looks)
    found = [f for look in looks for f in look["findings"] if f["id"] == "close-wait-leak"]
    assert found and found[-1]["owners"][0]["pid"] == lab.pid
    assert not any(entry["resource"] == "port_failures" and entry["used"]
                   for look in looks for entry in look["resources"])


def test_the_text_has_all_parts(start):
    subprocess.run(["sysctl", "-qw", "net.core.somaxconn=2"], check=True)
    slow = start(Lab("--accept-delay", "60s"))
    with contextlib.ExitStack() as stack:
        idle(stack, slow.port, 3)
        text = run([OBSERVER, "doctor", "--sample", "0", "--port", str(slow.port)],
                   check=False).stdout
    assert f"CRITICAL  accept-queue-full  127.0.0.1:{slow.port}" in text
    for part in ("what", "who", "evidence", "outlook", "do", "or change", "risk", "more"):
        assert f"\n  {part} " in text
    assert f"pid {slow.pid}" in text
    assert "docs/diagnoses.md#accept-queue-full" in text
    assert "not seen: rates" in text
