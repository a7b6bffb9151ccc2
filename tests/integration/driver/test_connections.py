# SPDX-License-Identifier: MIT
"""Connection policies: the server, ss and the kernel's counters see what was requested."""
import ctypes
import os
import socket
import time

import pytest

from ..conftest import kernel_counter, sockets
from support.process import Process
from support.programs import DRIVER, Driver, Lab, Nginx

PIDFD_OPEN, PIDFD_GETFD = 434, 438


@pytest.fixture(name="nginx")
def _nginx(start):
    return start(Nginx())


def time_wait(server):
    return len(sockets("time-wait", f"dport = :{server.port}"))


def test_requests_per_connection(nginx):
    result = Driver(nginx.url, "--requests-per-connection=10", connections=4, count=1000).result
    status = nginx.status()
    assert result["requests"] == status["requests"] == 1000
    # The last connection of each slot may be only partly used.
    assert 100 <= status["accepts"] == result["connects"] <= 104
    assert not result["new_connections"]


def test_one_request_per_connection_is_new_connections(nginx):
    result = Driver(nginx.url, "--requests-per-connection=1", connections=4, count=200).result
    assert nginx.status()["accepts"] == result["connects"] == 200
    assert result["new_connections"]


def test_no_request_follows_one_that_closes(start):
    """Even if the server leaves the connection open (RFC 9112, 9.6)."""
    server = start(Process(["/usr/bin/python3", "-c", (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        "for each in range(5):\n"
        "    c, _ = s.accept()\n"
        "    c.recv(4096)\n"
        "    c.sendall(b'HTTP/1.1 204 No Content\\r\\n\\r\\n')\n"
        "    print('then', c.recv(4096), flush=True)\n")]))
    port = int(server.wait_for(r"^(\d+)$")[1])
    result = Driver(f"http://127.0.0.1:{port}/", "-H", "Connection: close", connections=1, count=5).result
    assert server.wait() == 0
    assert server.stdout.count("then b''\n") == result["requests"] == result["connects"] == 5


def test_lifetime(nginx):
    """4 connections of 250 ms each in 1 s: 16, none of them cut off within a request."""
    driver = Driver(nginx.url, "--connection-lifetime=250ms", connections=4, duration="1s")
    accepts = nginx.status()["accepts"]
    assert 12 <= accepts == driver.result["connects"] <= 20
    assert driver.result["requests"] == nginx.status()["requests"]
    assert not any(driver.result["errors"].values())


def test_idle_connections_have_a_lifetime_too(start, nginx):
    """At a low rate most connections idle: they close on time, not at the next request."""
    driver = start(Process([DRIVER, "--quiet", "--rate=2", "-c2", "-d4s",
                            "--connection-lifetime=100ms", nginx.url]))
    seen = []
    while driver.running():
        seen.append(len(sockets("established", f"dport = :{nginx.port}")))
        time.sleep(0.02)
    assert driver.wait() == 0
    assert seen.count(0) > len(seen) / 3


@pytest.mark.alone
def test_connect_rate(nginx):
    """100 connections/s for 1 s, and as many requests, one per connection."""
    result = Driver(nginx.url, "--new-connections", "--connect-rate=100", connections=32,
                    threads=2, duration="1s").result
    accepts = nginx.status()["accepts"]
    assert 75 <= accepts <= 103
    assert result["connects"] == result["requests"] == accepts
    assert not any(result["errors"].values())


def test_connect_rate_lets_others_work(nginx):
    """20 connections at 10/s: those already open answer everything in the meantime."""
    result = Driver(nginx.url, "--connect-rate=10", connections=20, count=2000).result
    assert result["requests"] == nginx.status()["requests"] == 2000
    assert nginx.status()["accepts"] < 20


@pytest.mark.alone
def test_connect_rate_delays_no_intended_start(start):
    """At a rate, a request that waits for a connection counts from when it was due."""
    lab = start(Lab("--service", "1ms"))
    result = Driver(lab.url, "--new-connections", "--connect-rate=50", "--rate=100",
                    connections=50, duration="1s").result
    assert 40 <= result["requests"] <= 52
    assert result["unsent"] == result["scheduled"] - result["requests"]
    assert abs(result["scheduled"] - 100) <= 5
    assert result["response_time"]["max_ns"] > 0.25e9
    assert result["round_trip"]["p50_ns"] < 0.1e9


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_close(nginx, how):
    before = kernel_counter("OutRsts", table="snmp", row="Tcp")
    result = Driver(nginx.url, "--new-connections", f"--close={how}", connections=4,
                    count=300).result
    resets = kernel_counter("OutRsts", table="snmp", row="Tcp") - before
    assert result["requests"] == nginx.status()["requests"] == 300
    assert result["errors"]["reset"] == 0
    if how == "rst":
        assert time_wait(nginx) == 0
        assert resets >= 300
    else:
        assert time_wait(nginx) == 300
        assert resets == 0


def descriptors(pid):
    """Yield duplicates of a process's sockets."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pidfd = syscall(PIDFD_OPEN, pid, 0)
    assert pidfd >= 0, os.strerror(ctypes.get_errno())
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                copy = syscall(PIDFD_GETFD, pidfd, int(name), 0)
                if copy >= 0:
                    yield socket.socket(fileno=copy)
    finally:
        os.close(pidfd)


def connected(start, server, *options, netns):
    """Return options of a running driver's one connection: nodelay, send and receive buffer."""
    driver = start(Process([DRIVER, "--quiet", "-c1", "--rate=20", "-d20s", *options, server.url],
                           netns=netns))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        time.sleep(0.05)
        for sock in descriptors(driver.pid):
            with sock:
                if sock.family != socket.AF_INET:
                    continue
                found = [sock.getsockopt(*name) for name in (
                    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                    (socket.SOL_SOCKET, socket.SO_SNDBUF), (socket.SOL_SOCKET, socket.SO_RCVBUF))]
                driver.stop()
                return found
    raise AssertionError("no connection")


@pytest.mark.parametrize("choice", ["range", "own"])
def test_socket_options(start, netns, choice):
    """The kernel doubles the given sizes. Without Fast Open the driver binds to ports itself."""
    space = netns()
    if choice == "own":
        space.exec(["sysctl", "-qw", "net.ipv4.tcp_fastopen=0"])
    nginx = start(Nginx(netns=space))
    plain = connected(start, nginx, netns=space)
    assert plain[0] == 1
    chosen = connected(start, nginx, "--nodelay=off", "--send-buffer=20000",
                       "--receive-buffer=30000", netns=space)
    assert chosen == [0, 40000, 60000]
    assert plain[1] != 40000 and plain[2] != 60000


def test_buffers_that_are_not_granted(nginx):
    with open("/proc/sys/net/core/wmem_max", encoding="ascii") as file:
        limit = int(file.read())
    driver = Driver(nginx.url, f"--send-buffer={limit + 1}", count=1, check=False)
    assert driver.status == 1
    assert f"net.core.wmem_max is {limit}" in driver.process.stderr
    assert len(driver.process.stderr.splitlines()) == 1


def test_preflight_knows_the_policy(start, netns):
    space = netns()
    space.exec(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=0",
                "net.ipv4.ip_local_port_range=40000 40500"])
    nginx = start(Nginx(netns=space))
    warned = Driver(nginx.url, "--requests-per-connection=2", "--rate=400", connections=4,
                    duration="3s", netns=space, check=False)
    assert "opens 200 connections/s and has 501 source ports" in warned.process.stderr
    assert warned.status == 1
    for options in (("--requests-per-connection=2", "--close=rst"),
                    ("--requests-per-connection=5",)):
        driver = Driver(nginx.url, *options, "--source=127.0.0.2", connections=4, count=2000,
                        netns=space)
        assert driver.process.stderr == ""
