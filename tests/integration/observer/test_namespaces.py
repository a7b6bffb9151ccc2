# SPDX-License-Identifier: MIT
"""Services in other network namespaces and cgroups than the observer's, which come and go.

The truth is the test's own servers' counts: each server prints how many requests it has answered.
"""
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from ..conftest import in_kernel, left_in_kernel
from support import http
from support.asking import ASK
from support.cgroup import Cgroup, cgroup2
from support.net import free_port
from support.process import Process, run, wait_until
from support.programs import OBSERVER, Observer

# Listens at a port. For each number that it reads, it sends itself that many requests over one connection.
ECHO = ASK + """
import sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
answered = 0
for line in sys.stdin:
    ask(listener, int(line))
    answered += int(line)
    print("answered", answered, flush=True)
"""


class Echo:
    """A server that is its own client, in a namespace or cgroup; .ask(n) returns when n more are answered."""

    def __init__(self, port, where=None, prefix=()):
        self.process = subprocess.Popen(
            [*(where.prefix() if where else []), *prefix, "/usr/bin/python3", "-c", ECHO, str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def counts(document, port):
    """Return {inode of the namespace: [exchanges of each service that had the port there]}."""
    found = {}
    for service in document["services"]:
        if service["port"] == port:
            found.setdefault(service["netns"], []).append(service["exchanges"])
    return found


# Connects to itself as many times as requested, and keeps the connections.
KEEP = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
kept = [(socket.create_connection(listener.getsockname()), listener.accept()) for _ in range(int(sys.argv[2]))]
print("ready", flush=True)
time.sleep(600)
"""


def test_the_same_port_in_two_namespaces_is_two_services(start, netns):
    """One service and its connections exist before the observation, the other one starts during it."""
    here, there, port, other = netns("here"), netns("there"), free_port(), free_port()
    for space, count in ((here, 3), (there, 5)):
        start(["/usr/bin/python3", "-c", KEEP, other, count], netns=space).wait_for("^ready")
    with Echo(port, here) as first:
        observer = start(Observer("--all-netns", ports=[port, other]))
        with Echo(port, there) as second:
            assert first.ask(37) == 37
            assert second.ask(53) == 53
            document = observer.document()
            text = observer.get("/metrics")
    assert counts(document, port) == {here.inode: [37], there.inode: [53]}
    for inode, count in ((here.inode, 37), (there.inode, 53)):
        assert f'sojourn_exchanges_total{{protocol="tcp",port="{port}",netns="{inode}"}} {count}\n' in text
    for service in document["services"]:
        assert "turn" not in service  # each is the first one of its port
        assert service["accept_queue"]["listeners"] == 1
        assert service["ports"]["capacity"] > 0
    # For connections whose start no program has seen, the number is the kernel's own.
    kept = {service["netns"]: service["connections"] for service in document["services"] if service["port"] == other}
    for space, count in ((here, 3), (there, 5)):
        lines = space.exec(["ss", "-Htn", "state", "established", f"sport = :{other}"]).stdout.splitlines()
        assert kept[space.inode] == count == len(lines)
    observer.stop()
    assert document["namespaces"]["not_entered"] == 0
    assert document["namespaces"]["observed"] >= 3
    assert "network namespaces" in observer.stdout


def namespaces(observer):
    """Return `namespaces` of the document without samples. Checking the document would take longer than all the rest."""
    return json.loads(observer.get("/v1/services"))["namespaces"]


def held(observer):
    """Return how many descriptors of network namespaces the observer has: a few, and one more during a visit."""
    count = 0
    for entry in Path(f"/proc/{observer.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(entry).startswith("net:")
    return count


def is_visited(document, inode):
    """Whether the gauges of services in this namespace are known."""
    return any(service["netns"] == inode and service["accept_queue"].get("listeners") for service in document["services"])


def inode_of(pid):
    return os.stat(f"/proc/{pid}/ns/net").st_ino


WITHOUT_ADMIN = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]


class Space:
    """A network namespace without a name: it lives as long as the process that is in it."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"],
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "up\n"
        self.inode = inode_of(self.process.pid)

    def prefix(self):
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", "--"]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def number_again(start, inode):
    """Return a namespace that got the inode number of an ended one; None if other namespaces got the number."""
    for _ in range(50):
        space = start(Space())
        if space.inode == inode:
            return space
    return None


def test_a_namespace_with_the_number_of_an_ended_one_is_another(start):
    """The kernel reuses the inode number. Each namespace has its own counts, also while the observer has not noticed
    yet that the first one has ended. Metrics show the second one."""
    port = free_port()
    observer = start(Observer("--all-netns", ports=[port]))
    second = None
    for _ in range(10):
        first = Space()
        try:
            with Echo(port, first) as server:
                server.ask(11)
                wait_until(lambda: is_visited(json.loads(observer.get("/v1/services")), first.inode))
        finally:
            first.close()
        second = number_again(start, first.inode)
        if second:
            break
    if not second:
        pytest.skip("others took the number of each namespace that ended")
    with start(Echo(port, second)) as server:
        noticed = time.monotonic() + 2  # the observer looks every second
        while time.monotonic() < noticed:
            asked = server.ask(20000)
        assert counts(observer.document(), port)[second.inode] == [11, asked]
        labels = f'sojourn_exchanges_total{{protocol="tcp",port="{port}",netns="{second.inode}"'
        assert observer.get("/metrics").count(labels) == 1
        assert f"{labels}}} {asked}\n" in observer.get("/metrics")
    observer.stop()
    assert counts(observer.summary(), port)[second.inode] == [11, asked]


# Starts children, each in its own namespace. Child N answers N requests. All end at the next line of input.
SPACES = ASK + """
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)

def serve(port, times, say, end):
    assert not libc.unshare(0x40000000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    listener = socket.create_server(("127.0.0.1", port))
    ask(listener, times)
    os.write(say, b".")
    os.read(end, 1)
    os._exit(0)

for line in sys.stdin:
    (said, say), (end, ended) = os.pipe(), os.pipe()
    children = []
    for number in range(int(line)):
        child = os.fork()
        if not child:
            os.close(ended)
            serve(int(sys.argv[1]), number + 1, say, end)
        children.append(child)
    os.close(end)
    left = len(children)
    while left:
        left -= len(os.read(said, left))
    print("served", flush=True)
    sys.stdin.readline()
    os.close(ended)
    for child in children:
        os.waitpid(child, 0)
    print("ended", flush=True)
"""


def test_a_hundred_come_and_go(start):
    """40 at a time, with the same port: no request is lost, and the observer keeps neither a descriptor nor a namespace."""
    port, at_once, turns, loaded = free_port(), 40, 3, in_kernel()
    observer = start(Observer("--all-netns", ports=[port]))
    before = namespaces(observer)["ended"]
    with subprocess.Popen(["/usr/bin/python3", "-c", SPACES, str(port)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as spaces:
        try:
            for turn in range(turns):
                for line, answer in ((f"{at_once}\n", "served\n"), ("\n", "ended\n")):
                    spaces.stdin.write(line)
                    spaces.stdin.flush()
                    assert spaces.stdout.readline() == answer
                    if answer == "served\n" and turn in (0, turns - 1):
                        wait_until(lambda: namespaces(observer)["observed"] > at_once)
        finally:
            spaces.kill()
    wait_until(lambda: namespaces(observer)["ended"] >= before + at_once)
    document = observer.document()
    counted = sum(sum(each) for each in counts(document, port).values())
    counted += document.get("reclaimed", {}).get("exchanges", 0)
    assert (counted, document["services_dropped"]) == (turns * at_once * (at_once + 1) // 2, 0)
    wait_until(lambda: held(observer) < 10)
    observer.stop()
    # The kernel frees programs after a grace period, which is long while it clears namespaces up.
    wait_until(lambda: not left_in_kernel(loaded), seconds=60)


def test_what_cannot_be_entered_is_told(start, netns):
    """Without CAP_SYS_ADMIN the programs still count in another namespace. Its gauges are unknown, not 0."""
    here, port = netns("here"), free_port()
    with Echo(port, here) as server:
        observer = start(Process([*WITHOUT_ADMIN, OBSERVER, "observe", "--all-netns", "--port", port, "--json", "-",
                                  "--listen", "127.0.0.1:0"]))
        observer.wait_for("listening on", "stderr", 30)
        server.ask(7)
        observer.stop()
    document = json.loads(observer.stdout)
    assert counts(document, port) == {here.inode: [7]}
    (service,) = document["services"]
    assert "connections" not in service or service["connections"] is None
    assert document["namespaces"]["not_entered"] >= 1
    assert "CAP_SYS_ADMIN" in document["namespaces"]["reason"]


def test_a_lasting_reason_stays(start, netns):
    """A namespace whose process has just ended hides no missing capability, which somebody can grant."""
    netns("here")
    observer = start(Process([*WITHOUT_ADMIN, OBSERVER, "observe", "--all-netns", "--port", free_port(), "--listen", "127.0.0.1:0"]))
    url = observer.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")

    def told():
        return json.loads(http.request(f"{url}/v1/run"))["namespaces"]

    for _ in range(5):
        before = told()["not_entered"]
        space = start(Space())
        wait_until(lambda before=before: told()["not_entered"] > before)
        space.close()
        assert "CAP_SYS_ADMIN" in told()["reason"]


def test_serve_enters_namespaces_that_come_after_it_gave_up_root(start, netns):
    port = free_port()
    observer = start(Process([OBSERVER, "serve", "--all-netns", "--port", port, "--listen", "127.0.0.1:0", "--open"]))
    url = observer.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    there = netns("there")
    with Echo(port, there) as server:
        server.ask(19)

        def served():
            text = run(["curl", "-sf", f"{url}/v1/services"]).stdout
            return json.loads(text)

        wait_until(lambda: any(one["netns"] == there.inode and (one["connections"] or 0) == 0 and one["exchanges"] == 19
                               and one["accept_queue"].get("listeners") == 1 for one in served()["services"]))
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{observer.pid}/status", encoding="ascii")
                      if ":\t" in line)
        assert status["Uid"].split()[1] != "0"
        assert served()["namespaces"]["not_entered"] == 0


# ---- cgroups and containers ----

ID = "5e1f" * 16


@pytest.fixture
def container():
    """Yield a cgroup named as Docker names them; no container runtime is needed."""
    if cgroup2() is None:
        pytest.skip("no cgroups of version 2 are mounted")
    with Cgroup() as outer:
        inner = Cgroup()
        inner.path = outer.path / f"docker-{ID}.scope"
        with inner:
            yield inner


@pytest.mark.parametrize("word", ["--container", "--cgroup"])
def test_only_listeners_of_the_container_are_observed(start, container, word):
    """Existing and later listeners of the container are observed, and no others of the same network namespace."""
    own, later, other = free_port(), free_port(), free_port()
    with Echo(own, container) as first, Echo(other) as foreign:
        observer = start(Observer(word, container.path if word == "--cgroup" else ID[:12]))
        with Echo(later, container) as second:
            assert (first.ask(3), second.ask(4), foreign.ask(5)) == (3, 4, 5)
            observer.stop()
    services = {service["port"]: service for service in observer.summary()["services"]}
    assert {port: service["exchanges"] for port, service in services.items()} == {own: 3, later: 4}
    for service in services.values():
        assert service["container_id"] == ID
        assert service["cgroup"].endswith(f"/docker-{ID}.scope")
    assert f"container {ID[:12]}" in observer.stdout


def test_a_container_with_its_own_network(start, netns, container):
    """Another service uses the same port in this network namespace: only the container's is observed."""
    there, port = netns("there"), free_port()
    container.netns = there
    with Echo(port, container) as server, Echo(port) as foreign:
        observer = start(Observer("--container", ID, ports=[port]))
        assert (server.ask(6), foreign.ask(7)) == (6, 7)
        observer.stop()
    assert counts(observer.summary(), port) == {there.inode: [6]}


def test_netns_by_name(start, netns):
    there, port = netns("there"), free_port()
    with Echo(port, there) as server, Echo(port) as foreign:
        observer = start(Observer("--netns", there.name))
        assert (server.ask(6), foreign.ask(7)) == (6, 7)
        observer.stop()
    assert counts(observer.summary(), port) == {there.inode: [6]}


@pytest.mark.parametrize("options, words", [
    (["--netns", "sojourn-none"], "--netns: 'sojourn-none': No such file"),
    (["--netns", "/etc/hostname"], "--netns: '/etc/hostname' is no network namespace"),
    (["--container", "sojourn-none"], "--container: 'sojourn-none' matches no"),
    (["--pod", "sojourn/none"], "--pod: 'sojourn/none' matches no"),
    (["--pod", "none"], "--pod: 'none' is not allowed: give NAMESPACE/NAME"),
    (["--cgroup", "/sys/none"], "--cgroup: '/sys/none': No such file"),
    (["--cgroup", "/proc"], "--cgroup: '/proc' is not a cgroup of version 2"),
    (["--netns", "a", "--all-netns"], "give only one of"),
    (["--all-netns", "--port", "53/udp"], "not with UDP"),
    (["--container", "a", "--pid", "1"], "give only one of"),
])
def test_what_is_not_there_is_refused(options, words):
    result = run([OBSERVER, "observe", *options], check=False)
    assert result.status == 2
    assert words in result.stderr, result.stderr


def test_several_containers_are_named(start, container):
    """A word with which the ids of two containers start is refused; the message names both."""
    twin = Cgroup()
    twin.path = container.path.parent / f"docker-5e1f{60 * '0'}.scope"
    with twin, Echo(free_port(), container), Echo(free_port(), twin):
        result = run([OBSERVER, "observe", "--container", ID[:4]], check=False)
    assert result.status == 2
    assert f"'{ID[:4]}' matches several containers: 5e1f" in result.stderr
