# SPDX-License-Identifier: MIT
"""udp: targets: every request is answered, lost, late or refused, and every datagram is distinguished.

The truth is the servers' own counters, the kernel's, and a server with deliberate faults.
"""
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from ..conftest import kernel_counter
from support.net import free_port
from support.process import Process, ProcessError, stat_fields, wait_until
from support.programs import DRIVER, Driver, Lab
from .test_streams import ask, need

SAMPLE = "x" * 56
QUERY = "0000 0100 0001 0000 0000 0000 " + "04" + b"name".hex() + "04" + b"test".hex() + "00 0001 0001"
OTHER = QUERY.replace(b"name".hex(), b"none".hex())

UDP_SEGMENT = 103  # <linux/udp.h>


class Server:
    """A UDP server within the test. handle(request, answer) is called for every datagram; answer(bytes,
    after=seconds) sends one back."""

    def __init__(self, handle):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.port = self.socket.getsockname()[1]
        self.url = f"udp://127.0.0.1:{self.port}"
        self.handle = handle
        self.requests, self.timers = [], []
        self.thread = threading.Thread(target=self._serve)

    def _serve(self):
        while not self.ended:
            try:
                request, client = self.socket.recvfrom(65536)
            except TimeoutError:
                continue
            self.requests.append(request)
            self.handle(request, lambda reply, after=0, to=client: self._answer(reply, after, to))

    def _answer(self, reply, after, client):
        if not after:
            self.socket.sendto(reply, client)
            return
        timer = threading.Timer(after, lambda: self.socket.sendto(reply, client))
        timer.start()
        self.timers.append(timer)

    def __enter__(self):
        self.ended = False
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.ended = True
        self.thread.join(10)
        for timer in self.timers:
            timer.join(10)
        self.socket.close()


def only(counts, **expected):
    """Whether these are all counters that are not 0."""
    return {name: count for name, count in counts.items() if count} == \
        {name: count for name, count in expected.items() if count}


def test_memcached(start):
    """Eight requests in flight on each socket, distinguished by the id in memcached's frame."""
    need("memcached")
    tcp, udp = free_port(), free_port()
    start(Process(["memcached", "-l", "127.0.0.1", "-p", tcp, "-U", udp, "-u", "root"]))
    ask(tcp, b"version\r\n")
    url, frame = f"udp://127.0.0.1:{udp}", r"\0\0\0\0\0\x01\0\0"
    options = ["--match=id:2", "--outstanding=8"]
    sets = Driver(url, "--payload", frame + r"set k{{counter}} 0 0 2\r\nok\r\n", *options,
                  r"--framing=delimiter:STORED\r\n", connections=4, threads=2, count=2000)
    gets = Driver(url, "--payload", frame + r"get k{{counter}}\r\n", *options,
                  r"--framing=delimiter:END\r\n", connections=4, count=2000)
    stats = dict(re.findall(r"STAT (\w+) (\S+)", ask(tcp, b"stats\r\n")))
    assert sets.result["requests"] == gets.result["requests"] == 2000
    assert int(stats["cmd_set"]) == int(stats["curr_items"]) == 2000
    assert int(stats["cmd_get"]) == int(stats["get_hits"]) == 2000
    assert only(sets.result["datagrams"]) and only(gets.result["datagrams"])
    assert sets.result["connects"] == 4, "a socket for each connection"


def dns_server(start):
    need("dnsmasq")
    port = free_port()
    server = start(Process(["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts",
                            "--port", port, "--listen-address=127.0.0.1", "--bind-interfaces",
                            "--no-resolv", "--user=root", "--pid-file", "--log-facility=-",
                            "--address=/name.test/192.0.2.1"]))
    server.wait_for("started", "stderr")
    server.url = f"udp://127.0.0.1:{port}"
    return server


def answered(server):
    """Return how many queries dnsmasq has answered locally, by its own log."""
    server.send(signal.SIGUSR1)
    time.sleep(0.05)
    server.wait_for(r"queries answered locally \d+", "stderr")
    return int(re.findall(r"queries answered locally (\d+)", server.stderr)[-1])


def test_dns(start):
    server = dns_server(start)
    driver = Driver(server.url, "--payload-hex", QUERY, "--match=id:2", "--outstanding=4",
                    "--framing=dns", connections=4, count=3000)
    assert driver.result["requests"] == 3000
    assert only(driver.result["errors"]) and only(driver.result["datagrams"])
    assert answered(server) == 3000


def test_dns_from_ever_new_ports(start):
    server = dns_server(start)
    driver = Driver(server.url, "--payload-hex", QUERY, "--match=id:2", "--framing=dns",
                    "--new-connections", connections=4, count=500)
    assert driver.result["requests"] == driver.result["connects"] == 500
    assert answered(server) == 500


def test_dns_failure_is_a_bad_status(start):
    """dnsmasq has no upstream, and refuses."""
    driver = Driver(dns_server(start).url, "--payload-hex", OTHER, "--match=id:2", "--framing=dns",
                    count=50, check=False)
    assert driver.result["requests"] == 50
    assert only(driver.result["errors"], status=50)


@pytest.mark.parametrize("options", [
    [],
    ["--framing=echo"],
    ["--match=echo", "--outstanding=16"],
    ["--match=id:4,le,offset=8", "--outstanding=16", "--framing=echo"],
    ["--match=echo", "--outstanding=4", "--rate=2000"],
])
def test_echo(start, options):
    """Driver, server and kernel count the same datagrams."""
    lab = start(Lab(protocol="udp"))
    before = kernel_counter("InDatagrams", table="snmp", row="Udp")
    driver = Driver(f"udp://127.0.0.1:{lab.port}", "--payload", SAMPLE + "{{counter:8}}", *options,
                    connections=8, threads=2, count=2000)
    result = driver.result
    assert result["requests"] == 2000
    assert result["bytes_in"] == result["bytes_out"] == 2000 * 64
    assert only(result["errors"]) and only(result["datagrams"])
    assert kernel_counter("InDatagrams", table="snmp", row="Udp") - before == 4000
    if "--rate=2000" in options:
        assert result["scheduled"] == result["response_time"]["count"] == 2000
        assert result["unsent"] == 0


def faulty(request, answer):
    """Treat each tenth of the first 200 requests, which are numbered, with another fault."""
    number = int(request[2:8])
    fault = number % 10 if number <= 200 else None
    other_id = bytes([request[0] ^ 0x80, request[1]])
    if fault == 0:
        return  # lost
    if fault == 1:
        answer(request, after=1.5)
    elif fault == 2:
        answer(request)
        answer(request)
    elif fault == 3:
        answer(other_id + request[2:])  # garbage
        answer(request)
    elif fault == 4:
        answer(request[:1])  # too short for an identifier
        answer(request)
    elif fault == 5:
        answer(request + b"more")
    elif fault == 6:
        answer(request[:4])
    elif fault == 7:
        answer(request, after=0.05)  # later than the replies to requests sent after it
    else:
        answer(request)


def test_every_fault_is_what_it_is():
    with Server(faulty) as server:
        driver = Driver(server.url, "--payload", "__{{counter:6}}", "--match=id:2",
                        "--outstanding=100", "--framing=fixed:8", "--rate=100", "--timeout=1s",
                        connections=2, count=400, check=False)
    result = driver.result
    assert len(server.requests) == 400
    assert result["requests"] == 400 - 80
    assert only(result["errors"], timeout=40, malformed=40)
    assert only(result["datagrams"], late=20, duplicate=20, unmatched=40)
    assert driver.status == 1
    for text in ("20 late:", "20 duplicate:", "40 unmatched:"):
        assert text in driver.report


def test_by_order_a_late_reply_answers_nothing_else():
    """The next request uses another port, so a late reply is recognised."""
    def handle(request, answer):
        number = int(request)
        answer(request, after=1.5 if number % 10 == 1 and number <= 100 else 0)

    with Server(handle) as server:
        driver = Driver(server.url, "--payload", "{{counter:6}}", "--framing=echo", "--rate=50",
                        "--timeout=1s", connections=20, count=250, check=False)
    result = driver.result
    assert result["requests"] == 240
    assert only(result["errors"], timeout=10), "none was taken for the reply to another"
    assert only(result["datagrams"], late=10)


def test_retransmission():
    """The first copy of every fourth request is lost; some others get their reply twice."""
    seen = set()

    def handle(request, answer):
        number = int(request[2:])
        if number % 4 == 0 and number not in seen:
            seen.add(number)
            return
        answer(request)
        if number % 4 == 1:
            answer(request)

    with Server(handle) as server:
        driver = Driver(server.url, "--payload", "__{{counter:6}}", "--match=id:2",
                        "--retransmit=500ms", "--timeout=10s", "--rate=200", "--outstanding=100",
                        count=200, connections=2)
    result = driver.result
    assert result["requests"] == 200 and only(result["errors"])
    assert only(result["datagrams"], retransmitted=50, duplicate=50)
    assert len(server.requests) == 250
    assert result["bytes_out"] == 250 * 8
    assert result["round_trip"]["max_ns"] > 500e6, "from the first copy on"


@pytest.mark.parametrize("options", [[], ["--match=id:2", "--outstanding=8"], ["--rate=500"]])
def test_refused(options):
    driver = Driver(f"udp://127.0.0.1:{free_port()}", "--payload", "12345678", *options,
                    connections=2, count=30, check=False)
    assert driver.status == 1
    assert driver.result["requests"] == 0
    assert only(driver.result["errors"], refused=30)
    assert "ICMP" in driver.report


def test_what_the_drivers_own_buffer_drops():
    """The kernel counts datagrams for which a socket had no room. One call sends all replies to a request, else
    the driver could read each before the next."""
    def handle(request, answer):
        answer((request[:2] + bytes(1998)) * 8)

    before = kernel_counter("RcvbufErrors", table="snmp", row="Udp")
    with Server(handle) as server:
        server.socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 2000)
        driver = Driver(server.url, "--payload", "1234", "--match=id:2", "--replies=8",
                        "--receive-buffer=2048", "--timeout=300ms", count=6, check=False)
    dropped = kernel_counter("RcvbufErrors", table="snmp", row="Udp") - before
    assert dropped > 0
    assert driver.result["datagrams"]["dropped"] == dropped
    assert driver.result["errors"]["timeout"] > 0


def test_exchanges_are_not_joined(start):
    """UDP exchanges are not joined, and the document says so."""
    lab = start(Lab(protocol="udp"))
    driver = Driver(f"udp://127.0.0.1:{lab.port}", "--payload", "x", count=10)
    assert "UDP" in driver.result["unsampled"]
    assert not driver.result.get("samples")


def test_a_stopped_driver_reads_all_replies_before_it_gives_up(start):
    """More replies come in time than one system call reads, while the driver is stopped for longer than the limit."""
    several, held = [], []

    def handle(request, answer):
        several.append((request, answer))
        if len(several) < 200:
            return
        os.kill(driver.pid, signal.SIGSTOP)
        wait_until(lambda: stat_fields(f"/proc/{driver.pid}")[0] == "T")
        for waiting, reply in several:
            reply(waiting)
        several.clear()
        held.append(1)
        time.sleep(0.7)
        os.kill(driver.pid, signal.SIGCONT)

    with Server(handle) as server:
        driver = start(Process([DRIVER, server.url, "-c1", "-n600", "--payload=1234", "--match=id:2", "--outstanding=200",
                                "--timeout=500ms", "--json=-"]))
        assert driver.wait(seconds=30) == 0, driver.stderr
    result = json.loads(driver.stdout)["driver"]
    assert result["requests"] == len(server.requests) == 600 and len(held) == 3
    assert only(result["datagrams"]) and not any(result["errors"].values())
    assert result["round_trip"]["max_ns"] > 500_000_000


def test_several_replies(start):
    def handle(request, answer):
        for _ in range(3):
            answer(request)

    with Server(handle) as server:
        driver = Driver(server.url, "--payload", "__{{counter}}", "--match=id:2", "--replies=3",
                        "--outstanding=2", count=100)
    assert driver.result["requests"] == 100
    assert driver.result["bytes_in"] == 3 * driver.result["bytes_out"]
    assert only(driver.result["datagrams"])


@pytest.mark.parametrize("options, words", [
    (["--outstanding=2"], ["--outstanding", "--match=order"]),
    (["--match=echo"], ["--match", "{{counter}}"]),
    (["--match=id:8"], ["--match", "byte 8", "only 1"]),
    (["--match=id:1", "--outstanding=200"], ["--outstanding", "id:2", "128"]),
    (["--framing=close"], ["--framing"]),
    (["--close=rst"], ["--close"]),
    (["--payload-hex", "00" * 65510], ["--payload", "65507"]),
    (["--match=id:1", "--outstanding=2", "--new-connections"], ["--outstanding"]),
])
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(ProcessError) as caught:
        request = [] if "--payload-hex" in options else ["--payload", "x"]
        Driver(f"udp://127.0.0.1:{free_port()}", *request, *options)
    text = str(caught.value)
    assert "status 2" in text
    for word in words:
        assert word in text


def test_other_targets_have_no_datagrams():
    with pytest.raises(ProcessError, match="udp:"):
        Driver("tcp://127.0.0.1:1", "--payload=x", "--framing=echo", "--match=echo")
