# SPDX-License-Identifier: MIT
"""Failures are predicted, explained with this host's numbers, and decide the exit code."""
import contextlib
import os
import re
import shlex
import signal
import socket
import struct
import threading
import time

import pytest

from support import documents
from support.net import free_port, serve_each
from support.programs import DRIVER, Driver, Lab, Nginx
from support.process import Process, run, stat_fields, wait_until


@pytest.fixture(name="here")
def _here(netns):
    """A namespace of 501 ports, each blocked by TIME_WAIT."""
    space = netns()
    space.exec(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=0",
                "net.ipv4.ip_local_port_range=40000 40500"])
    return space


def failure(driver, kind):
    (found,) = [entry for entry in driver.result["failures"] if entry["kind"] == kind]
    assert found["count"] == driver.result["errors"][kind]
    assert found["first_ns"] <= found["last_ns"] <= driver.result["duration_ns"] + 1e9
    return found


def test_ports_are_explained(start, here):
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, "--new-connections", connections=16, duration="1s", netns=here,
                    check=False)
    found = failure(driver, "address_unavailable")

    assert driver.status == 1
    assert (f"501 of 501 ports towards 127.0.0.1:{nginx.port} in use, 100 % TIME_WAIT: add source "
            "addresses (--source), keep connections alive, or stay below 8/s"
            ) == found["explanation"]
    assert "100 % TIME_WAIT" in " ".join(driver.report.split())
    assert re.search(r"has 501 source ports, each blocked for 60 s", driver.process.stderr)


def test_unsent_for_want_of_ports(start, here):
    """The report says that connections were missing for lack of ports, and not that all were busy."""
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, "--new-connections", "--rate=2000", connections=16, duration="3s",
                    netns=here, check=False)
    assert driver.result["errors"]["address_unavailable"] and driver.result["unsent"]
    report = " ".join(driver.report.split())
    assert "were never sent, no connection being free for want of source ports" in report
    assert "all connections being busy" not in report
    # Connection attempts are no requests.
    assert "without a complete response" not in report
    assert nginx.status()["requests"] == driver.result["requests"] <= 501


def test_preflight(start, here):
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, connections=600, count=1000, netns=here, check=False)
    assert "needs 600 source ports and has 501" in driver.process.stderr
    assert "give 2 source addresses" in driver.process.stderr

    driver = Driver(nginx.url, "--source=127.0.0.2,127.0.0.3", connections=600, count=1000,
                    netns=here)
    assert driver.process.stderr == ""
    assert driver.result["failures"] == []
    assert driver.result["limited"] is None or driver.result["limited"]["by"] != "ports"


SCENARIO = """\
order: {order}
steps:
  - name: one
    path: /one
  - name: two
    target: {second}
    path: /two
"""


@pytest.mark.parametrize("order, two, warned", [
    ("cycle", False, True), ("cycle", True, False), ("mix", False, True), ("mix", True, False)])
def test_preflight_of_scenarios(start, here, tmp_path, order, two, warned):
    """With one server all requests count; with two in a cycle, half; with a mix of two the share is unknown."""
    nginx, other = start(Nginx(netns=here)), start(Nginx(netns=here))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(order=order, second=other.url if two else nginx.url))
    command = [DRIVER, "run", path, "-c4", "-n600", "--new-connections", "--quiet", nginx.url]
    if not two:
        command += ["--fail-fast", "--timeout=1s"]
    ended = run(command, netns=here, check=False)
    assert ended.status != 2, ended.stderr
    assert ("has 501 source ports, each blocked for 60 s" in ended.stderr) == warned, ended.stderr


def test_descriptors(start):
    """A number of connections above the hard limit is refused before any load."""
    nginx = start(Nginx())
    command = shlex.join([str(DRIVER), nginx.url, "-c100", "-n100"])
    result = run(["sh", "-c", f"ulimit -n 64; {command}"], check=False)
    assert result.status == 1
    assert "hard limit is 64" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_descriptors_of_several_servers(start):
    """The suggested number works, one more does not: each connection is one to every server."""
    urls = [start(Nginx()).url, start(Nginx()).url]

    def limited(connections):
        command = shlex.join([str(DRIVER), *urls, f"-c{connections}", "-n100", "--quiet"])
        return run(["sh", "-c", f"ulimit -n 64; {command}"], check=False)

    refused = limited(24)
    assert refused.status == 1 and "24 connections to each of 2 servers" in refused.stderr
    most = int(re.search(r"use at most (\d+) connections", refused.stderr)[1])
    assert limited(most).status == 0
    assert limited(most + 1).status == 1


def test_command_line_is_to_blame(tmp_path):
    """The file alone is valid: the message names the conflicting option, and no line of the file."""
    path = tmp_path / "scenario.yaml"
    path.write_text("target: http://127.0.0.1:1/\nload: {connections: 2, requests: 5}\n"
                    "steps: [{name: a}]\n")
    refused = run([DRIVER, "run", path, "-c1..4"], check=False)
    assert refused.status == 2
    assert f"{path}: with the command line: --requests: 5 of them" in refused.stderr
    refused = run([DRIVER, "run", path, "-t5"], check=False)
    assert refused.status == 2
    assert f"{path}: with the command line: --connections: 2 is fewer" in refused.stderr
    path.write_text("target: http://127.0.0.1:1/\nload: {connections: 2, threads: 3}\n"
                    "steps: [{name: a}]\n")
    refused = run([DRIVER, "run", path, "-d1s"], check=False)
    assert refused.status == 2
    assert f"{path}:2:8: connections: 2 is fewer" in refused.stderr


def test_refused_is_explained():
    port = free_port()
    driver = Driver(f"http://127.0.0.1:{port}/", connections=2, count=4, check=False)
    assert driver.status == 1
    assert f"127.0.0.1:{port}" in failure(driver, "refused")["explanation"]


class Answers:
    """Answers each request with these bytes, keeps or closes the connection, and counts connections."""

    def __init__(self, data, keep=True):
        self.data, self.keep, self.connections = data, keep, []
        self.listener = socket.create_server(("127.0.0.1", free_port()), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self.listener.accept()[0])
                threading.Thread(target=self.serve, args=(self.connections[-1],), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            while connection.recv(65536):
                connection.sendall(self.data)
                if not self.keep:
                    return

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: "


@pytest.mark.parametrize("answer, keep, kind, words", [
    (b"SSH-2.0-OpenSSH\r\n", True, "malformed", "byte 0: Expected HTTP/; it begins 'SSH-2.0-OpenSSH\\r\\n'"),
    (OK + b"2\r\n\r\nok!", True, "malformed", f"byte {len(OK) + 7}: after the end of the response"),
    (OK + b"many\r\n\r\n", True, "malformed", f"byte {len(OK)}: Invalid character in Content-Length"),
    (OK + b"9\r\n\r\nok", False, "closed_early", f"{len(OK) + 7} bytes of the response had come"),
    (OK + b"9\r\n\r\nok", True, "timeout", f"200 ms (--timeout); first: {len(OK) + 7} bytes of the response had come"),
    (b"", True, "timeout", "200 ms (--timeout); first: nothing of the response had come"),
    (b"", False, "closed_early", "nothing of the response had come"),
    (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", True, "status", "status 503"),
])
def test_first_of_a_kind_is_told(start, answer, keep, kind, words):
    """The message quotes the server's bytes exactly."""
    driver = Driver(start(Answers(answer, keep)).url, "--timeout=200ms", connections=2, count=4, check=False)
    found = failure(driver, kind)
    assert found["count"] == 4
    assert "first: " in found["explanation"] and words in found["explanation"], found
    assert words in " ".join(driver.report.split())
    seconds = driver.result["duration_ns"] / 1e9
    rate = float(re.search(r"from \S+ \S+ to \S+ \S+, ([\d.,]+)/s", driver.report)[1].replace(",", ""))
    assert 0.8 * 4 / seconds <= rate <= 1.25 * 4 / seconds


@pytest.mark.parametrize("think, told", [("300ms", True), ("0", False)])
def test_an_idle_connection_that_the_server_closes_is_told(think, told):
    """Its second request meets the server's close: the server's limit of idle connections may be shorter than the pause."""
    def serve(listener):
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(OK + b"0\r\n\r\n")
            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        driver = Driver(f"http://127.0.0.1:{listener.getsockname()[1]}/", f"--think={think}", connections=1, count=2, check=False)
        thread.join()
    explanation = failure(driver, "closed_early")["explanation"]
    assert ("the connection had been idle for 3" in explanation) == told, explanation


def received_bytes(connection):
    """Return the bytes received in order by TCP: tcpi_bytes_received, include/uapi/linux/tcp.h."""
    return struct.unpack_from("=Q", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 128)[0]


def test_bytes_out_are_those_that_left(tmp_path):
    """A body that the server refuses early is not sent completely."""
    path = tmp_path / "body"
    path.write_bytes(bytes(40 << 20))
    received = []

    def serve(listener):
        for _ in range(3):
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            time.sleep(0.2)
            received.append(received_bytes(connection))
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        driver = Driver(f"http://127.0.0.1:{listener.getsockname()[1]}/", "--body", f"@{path}", "--method=POST",
                        count=3, check=False)
        thread.join()
    # The bytes between the driver's and the server's sockets are fewer than the largest send buffer.
    assert sum(received) <= driver.result["bytes_out"] < sum(received) + 3 * (8 << 20)


def test_first_of_a_framing_is_told(start):
    server = start(Answers(b"1234567"))
    url = f"tcp://127.0.0.1:{server.port}"

    def first(kind, framing):
        driver = Driver(url, "--payload=x", f"--framing={framing}", "--timeout=200ms", count=2, check=False)
        return failure(driver, kind)["explanation"]
    assert first("timeout", "fixed:8").endswith("first: 7 bytes of the response had come")
    assert first("malformed", "fixed:4") == "first: 3 bytes after its end; it begins '1234567'"
    assert first("malformed", "resp").startswith("first: by byte 0 it is not what --framing=resp allows")


def test_first_unexpected_is_told(start, tmp_path):
    """The message names the expectation, or the step and its capture."""
    body = b'{"a": 1, "b": [1, 2, x]}'
    server = start(Answers(OK + b"%d\r\n\r\n" % len(body) + body))

    def first(*options):
        return failure(Driver(server.url, *options, count=2, check=False), "unexpected")["explanation"]
    assert first("--expect-status=201,404") == "first: status 200, expected 201,404"
    assert first("--expect-body=zz") == "first: no 'zz' in the body"
    path = tmp_path / "scenario.yaml"
    path.write_text("steps:\n  - name: one\n  - name: two\n    capture: {id: {json: /b/0}}\n")
    ended = run([DRIVER, "run", path, "-n4", "-c1", "--json=-", server.url], check=False)
    (found,) = documents.parse(ended.stdout)["driver"]["failures"]
    assert (found["kind"], found["count"]) == ("unexpected", 2)
    assert found["explanation"] == "first: step two: capture id: not JSON, as its first 22 bytes show"


def test_no_route_is_told(netns):
    """A namespace has a loopback and no route: the errno is named, for streams, HTTP/2 and datagrams."""
    for url, *options in (("http://10.1.2.3/",), ("h2c://10.1.2.3/",), ("udp://10.1.2.3:53", "--payload=x")):
        driver = Driver(url, *options, count=2, netns=netns(), check=False)
        assert driver.status == 1
        assert "network is unreachable (ENETUNREACH)" in failure(driver, "connect_other")["explanation"]


def test_local_socket_that_is_not_there(tmp_path):
    """ENOENT and ECONNREFUSED both mean that nothing listens, with different messages."""
    path = tmp_path / "socket"

    def first():
        driver = Driver(f"unix:{path}", "--payload=x", "--framing=echo", count=2, check=False)
        return failure(driver, "refused")["explanation"]
    assert first() == "first: no such file or directory (ENOENT)"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert first() == "first: connection refused (ECONNREFUSED)"


def test_abort_is_no_reset(start, tmp_path):
    """The host's administrator ends the connection (ss -K): ECONNABORTED."""
    server = start(Answers(b""))
    path = tmp_path / "run.json"
    driver = start([DRIVER, server.url, "-n1", "-c1", "--timeout=20s", "--json", path])
    kill = ["ss", "-HtnK", f"dport = :{server.port}"]
    deadline = time.monotonic() + 10
    while not run(kill, check=False).stdout.strip():
        if time.monotonic() > deadline:
            pytest.skip("the kernel does not end connections (CONFIG_INET_DIAG_DESTROY)")
        time.sleep(0.1)
    driver.wait(10)
    result = documents.load(path)["driver"]
    assert (result["errors"]["transfer_other"], result["errors"]["reset"]) == (1, 0)
    assert "(ECONNABORTED), nothing of the response had come" in result["failures"][0]["explanation"]


def test_descriptors_that_run_out(start, tmp_path):
    """The limit is lowered during the run, which no check predicts: open connections continue, and EMFILE is
    reported."""
    nginx = start(Nginx())
    path = tmp_path / "run.json"
    driver = start([DRIVER, nginx.url, "-c8", "--requests-per-connection=50", "-d3s", "--json", path])
    deadline = time.monotonic() + 10
    while nginx.status()["requests"] < 100 and time.monotonic() < deadline:
        time.sleep(0.05)
    # Five of the eight still have descriptors: sockets have the largest numbers.
    most = max(map(int, os.listdir(f"/proc/{driver.pid}/fd"))) - 2
    run(["prlimit", f"--pid={driver.pid}", f"--nofile={most}:{most}"])
    assert driver.wait(20) == 1
    document = documents.load(path)
    result = document["driver"]
    assert {kind for kind, count in result["errors"].items() if count} == {"too_many_files"}
    (found,) = result["failures"]
    assert "first: too many open files (EMFILE)" in found["explanation"]
    assert result["limited"]["by"] == "files"
    assert result["requests"] == nginx.status()["requests"]


def test_timeout_is_explained(start):
    lab = start(Lab("--service", "500ms"))
    driver = Driver(lab.url, "--timeout=100ms", count=2, check=False)
    found = failure(driver, "timeout")
    assert "100 ms (--timeout)" in found["explanation"]
    assert found["first_ns"] >= 100e6
    assert found["last_ns"] >= 200e6


def test_fail_fast(start):
    nginx = start(Nginx(server="location /no { return 404; }"))
    driver = Driver(nginx.url + "no", "--fail-fast", connections=4, duration="30s", check=False)
    assert driver.status == 1
    assert driver.result["duration_ns"] < 5e9
    assert driver.result["errors"]["status"] >= 1

    driver = Driver(nginx.url, "--fail-fast", connections=4, count=2000)
    assert driver.result["requests"] == 2000


def test_assertions_set_the_exit_code(start):
    nginx = start(Nginx(server="location /no { return 404; }"))
    good = Driver(nginx.url, "--assert=p99<10s", "--assert=errors<0.1%", "--assert=rate>1",
                  count=500)
    assert good.process.stderr == ""

    bad = Driver(nginx.url, "--assert=p99<1ns", "--assert=requests>=500", count=500, check=False)
    assert bad.status == 1
    assert len(bad.process.stderr.splitlines()) == 1
    assert "'p99<1ns' does not hold: it is" in bad.process.stderr

    # An assertion about errors sets their limit.
    allowed = Driver(nginx.url + "no", "--assert=errors<=100%", count=50, check=False)
    assert allowed.status == 0
    refused = Driver(nginx.url + "no", "--assert=errors<5%", count=50, check=False)
    assert refused.status == 1
    assert "it is 100 %" in refused.process.stderr
    wrong = Driver(nginx.url, "--assert=p98<1ms", count=1, check=False)
    assert wrong.status == 2


def judged(url, *options):
    result = run([DRIVER, url, "--quiet", *options], check=False)
    return result.status, result.stderr


@pytest.mark.parametrize("scheme", ["http", "h2c"])
def test_share_of_errors(start, scheme):
    """Each bad response is one failed request of all, not one of twice as many."""
    http2 = "http2" if scheme == "h2c" else ""
    nginx = start(Nginx(server="location /no { return 404; }", listen_options=http2))
    url = nginx.url.replace("http:", f"{scheme}:")
    status, wrong = judged(url, "-c4", "-n100", "--expect-status=404", "--assert=errors<60%")
    assert status == 1 and "it is 100 %" in wrong
    assert judged(url, "-c4", "-n100", "--expect-status=404", "--assert=errors<=100%") == (0, "")
    status, wrong = judged(url + "no", "-c4", "-n100", "--assert=errors<60%")
    assert status == 1 and "it is 100 %" in wrong
    # Each client sends to both URLs in turn, so half of one client's requests fail, by nginx's own status.
    both = [url, url + "no", "-c1", "-n100", "--quiet", "--expect-status=200"]
    assert run([DRIVER, *both, "--assert=errors<=50%"]).stderr == ""
    ended = run([DRIVER, *both, "--assert=errors<50%"], check=False)
    assert ended.status == 1 and "it is 50 %" in ended.stderr


def test_share_of_uncaptured(start, tmp_path):
    """A response without a value that a later step needs is complete, and one failure."""
    nginx = start(Nginx())
    path = tmp_path / "scenario.yaml"
    path.write_text("steps:\n  - name: one\n    capture:\n      token: {header: X-Token}\n")
    ended = run([DRIVER, "run", path, nginx.url, "-c2", "-n50", "--quiet", "--assert=errors<60%"],
                check=False)
    assert ended.status == 1 and "it is 100 %" in ended.stderr
    assert nginx.status()["requests"] == 50


def test_unanswered_are_in_no_percentile(start):
    """Half of the URLs never answer: the report's head says so, and an assertion on p99, which is unknown, fails."""
    quick, dead = start(Lab()), start(Lab("--service", "30s", model="threads"))
    ended = run([DRIVER, quick.url, dead.url, "-c40", "--rate=60", "-d1s", "--timeout=200ms",
                 "--assert=errors<=60%", "--assert=mean<10s", "--assert=p99<10s"], check=False)
    assert ended.status == 1 and len(ended.stderr.splitlines()) == 1, ended.stderr
    found = re.search(r"'p99<10s' does not hold: it is unknown: (\d+) of the (\d+) requests have no",
                      ended.stderr)
    assert found and 25 <= int(found[1]) <= 35 and 55 <= int(found[2]) <= 65
    head = " ".join(" ".join(ended.stdout.split("\n\n")[:2]).split())
    assert f"note: {found[1]} of the {found[2]} requests failed without a complete response" in head


def test_unsent_are_in_no_percentile(start):
    """The server is stopped during the last fifth of the run: requests due then are never sent."""
    lab = start(Lab())
    halted = start(Process([DRIVER, lab.url, "-c2", "--rate=200", "-d2s", "--assert=p99<10s",
                            "--assert=errors<0.1%", "--assert=unsent<1%"]))
    time.sleep(1.5)
    os.kill(lab.pid, signal.SIGSTOP)
    time.sleep(0.8)
    os.kill(lab.pid, signal.SIGCONT)
    assert halted.wait(seconds=20) == 1
    assert re.search(r"'p99<10s' does not hold: it is unknown: \d+ of the \d+ requests have no",
                     halted.stderr)
    share = re.search(r"'unsent<1%' does not hold: it is ([0-9.]+) %", halted.stderr)
    assert share and 5 < float(share[1]) < 60
    assert "'errors<0.1%'" not in halted.stderr
    assert "were never sent, all connections being busy" in " ".join(halted.stdout.split())


def test_answers_before_the_request_has_left(start, tmp_path):
    """The server reads the rest after its answer, so it knows what has left: a part of the piece that was written."""
    (tmp_path / "body").write_bytes(b"x" * (4 << 20))
    listener = start(socket.create_server(("127.0.0.1", 0)))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    counts = []

    def treat(connection):
        count = 0
        while count < 100_000:
            count += len(connection.recv(100_000 - count))
        time.sleep(0.05)  # it is full
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        time.sleep(0.05)
        while received := connection.recv(1 << 20):
            count += len(received)
        counts.append(count)

    serve_each(listener, treat)
    driver = Driver(f"http://127.0.0.1:{listener.getsockname()[1]}/", f"--body=@{tmp_path}/body", "--send-buffer=100000",
                    connections=2, count=6)
    wait_until(lambda: len(counts) == 6)
    assert driver.result["requests"] == 6 and sum(counts) < 6 * (4 << 20)
    assert driver.result["bytes_out"] == sum(counts)


class Held:
    """Answers all requests. At every fourth one it first stops the driver, which it lets go on after a pause."""

    def __init__(self, pause):
        self.pause, self.driver = pause, None
        self.requests = self.held = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        serve_each(self.listener, self._serve)

    def _serve(self, connection):
        while connection.recv(4096):
            self.requests += 1
            hold = self.requests % 4 == 0
            if hold:
                os.kill(self.driver.pid, signal.SIGSTOP)
                wait_until(lambda: stat_fields(f"/proc/{self.driver.pid}")[0] == "T")
                self.held += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            if hold:
                time.sleep(self.pause)
                os.kill(self.driver.pid, signal.SIGCONT)
        connection.close()

    def close(self):
        self.listener.close()


def test_a_driver_that_was_stopped_reads_before_it_gives_up(start, tmp_path):
    """The answers come within the time limit. The driver, which is stopped for longer, reads them."""
    server = start(Held(pause=0.7))
    server.driver = start(Process([DRIVER, server.url, "-c1", "-n12", "--timeout=500ms", "--json", tmp_path / "run.json"]))
    assert server.driver.wait(seconds=30) == 0, server.driver.stderr
    driver = documents.load(tmp_path / "run.json")["driver"]
    assert driver["requests"] == server.requests == 12 and server.held == 3
    assert not any(driver["errors"].values())
    assert driver["round_trip"]["max_ns"] > 500_000_000
