# SPDX-License-Identifier: MIT
"""A UDP reply answers the request of the peer it goes to; of several, the one whose first two bytes it repeats.
An unknown match is not timed, and reported.

The truth is the test's own clock around its server's calls.
"""
import json
import random
import select
import socket
import statistics
import subprocess
import threading
import time

import pytest

from support.documents import service
from support.peers import need
from support.process import held_maps
from support.programs import Observer
from support.timing import MS, in_quiet, timing
from .test_stages import stage


class Scene:
    """A server's socket under observation, and a client. @repeats: replies start with their request's first bytes."""

    def __init__(self, start, repeats=True):
        self.repeats = repeats
        self.asked = 0
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.connect(self.server.getsockname())
        self.observer = start(Observer(ports=[f"{self.port}/udp"]))

    def ask(self, count=1):
        for _ in range(count):
            self.client.send(self.asked.to_bytes(2, "big") + b"question")
            self.asked += 1

    def read(self, count=1):
        """Return (time of the read, sender, data) of each."""
        return [(*self.server.recvfrom(100), time.monotonic_ns())[::-1] for _ in range(count)]

    def reply(self, request):
        """Reply, and return the time since the read."""
        read_ns, peer, data = request
        self.server.sendto(data[:2] + b"answer" if self.repeats else b"answer", peer)
        return time.monotonic_ns() - read_ns

    def end(self):
        self.server.close()
        self.client.close()
        self.observer.stop()
        return service(self.observer.summary(), self.port)


def accounted(entry, reads, replies):
    losses = entry["losses"]
    assert entry["exchanges"] + losses["unanswered"] == reads
    assert entry["exchanges"] + losses["unsolicited"] == replies
    assert entry["stages"]["service"].get("count", entry["exchanges"] - losses["untimed"]) + losses["untimed"] == \
        entry["exchanges"]
    assert losses["ambiguous_replies"] == losses["untimed"]
    return True


def times_are(entry, times):
    """Times of all; if the reader polls, a few may be read before their sender is known."""
    with timing():
        assert len(times) - max(3, len(times) // 100) <= stage(entry, "service")["count"] <= len(times)
        assert stage(entry, "service")["mean_ns"] == pytest.approx(statistics.fmean(times), abs=MS)
        assert stage(entry, "service")["max_ns"] == pytest.approx(max(times), abs=2 * MS)
    return True


def unknown(entry):
    """`service` is not known, and the reason names the pattern."""
    found = entry["stages"]["service"]
    assert found["measured"] is False and "count" not in found
    assert "replies cannot be matched: clients have several requests under way from one port" in found["reason"]
    return True


@pytest.mark.parametrize("ignored", [1, 3])
@in_quiet
def test_ignored_requests_delay_no_other(start, ignored):
    """The server never answers the first requests; every other one at once."""
    scene = Scene(start)
    times = []
    scene.ask(ignored)
    scene.read(ignored)
    random.seed(1)
    for _ in range(100):
        time.sleep(random.uniform(0.002, 0.012))
        scene.ask()
        [request] = scene.read()
        times.append(scene.reply(request))
    entry = scene.end()
    assert accounted(entry, 100 + ignored, 100)
    assert entry["losses"]["unanswered"] == ignored
    assert times_are(entry, times)


def test_replies_that_are_not_repeated_are_not_timed(start):
    """The same without repeated bytes: each reply could answer the ignored request."""
    scene = Scene(start, repeats=False)
    scene.ask()
    scene.read()
    for _ in range(100):
        scene.ask()
        [request] = scene.read()
        scene.reply(request)
    entry = scene.end()
    assert accounted(entry, 101, 100)
    assert entry["losses"]["untimed"] == 100
    assert entry["losses"]["unanswered"] == 1
    assert unknown(entry)
    assert "not measured: 100 of 100 replies cannot be" in scene.observer.stdout


@in_quiet
def test_a_port_per_request_tells(start):
    """Ten clients ask at once, and are answered in another order without repeated bytes; one is never answered."""
    scene = Scene(start, repeats=False)
    times = []
    for _ in range(10):
        clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(11)]
        for client in clients:
            client.sendto(b"same question", ("127.0.0.1", scene.port))
        requests = scene.read(len(clients))
        random.shuffle(requests)
        for request in requests[1:]:
            time.sleep(0.002)
            times.append(scene.reply(request))
        for client in clients:
            client.close()
    entry = scene.end()
    assert accounted(entry, 110, 100)
    assert times_are(entry, times)


@pytest.mark.parametrize("count, repeats", [(30, True), (200, False), pytest.param(30, False, marks=pytest.mark.long),
                                            pytest.param(200, True, marks=pytest.mark.long)])
@in_quiet
def test_requests_under_way_are_not_ignored(start, count, repeats):
    """One client asks every 10 ms and is answered after 25 ms. So two or three requests are always open, and
    each reply leaves as many."""
    scene = Scene(start, repeats)
    times = []

    def ask():
        for _ in range(count):
            scene.ask()
            time.sleep(0.01)

    client = threading.Thread(target=ask)
    client.start()
    waiting, left = [], count
    while waiting or left:
        timeout = max(0, waiting[0][0] + 25 * MS - time.monotonic_ns()) / 1e9 if waiting else 5
        if left and select.select([scene.server], [], [], timeout)[0]:
            waiting += scene.read()
            left -= 1
        elif waiting:
            time.sleep(timeout if not left else 0)
            times.append(scene.reply(waiting.pop(0)))
    client.join()
    entry = scene.end()
    assert accounted(entry, count, count)
    assert entry["losses"]["unanswered"] == entry["losses"]["unsolicited"] == 0
    assert times_are(entry, times) if repeats else unknown(entry)


@in_quiet
def test_replies_in_another_order(start):
    """The last request read is the first answered, all to one client."""
    scene = Scene(start)
    times = []
    for _ in range(5):
        requests = []
        for _ in range(5):
            scene.ask()
            requests += scene.read()
            time.sleep(0.004)
        while requests:
            time.sleep(0.002)
            times.append(scene.reply(requests.pop()))
    entry = scene.end()
    assert accounted(entry, 25, 25)
    assert not any(entry["losses"].values()), entry["losses"]
    assert times_are(entry, times)


@in_quiet
def test_a_request_that_is_sent_again(start):
    """A client repeats a request, and both are answered: the replies cannot be distinguished."""
    scene = Scene(start)
    for _ in range(10):
        scene.ask()
        scene.asked -= 1
        scene.ask()
        for request in scene.read(2):
            scene.reply(request)
        scene.ask()
        [request] = scene.read()
        scene.reply(request)
    entry = scene.end()
    assert accounted(entry, 30, 30)
    assert entry["losses"]["untimed"] == 20


@in_quiet
def test_a_large_batch(start):
    """100 datagrams of one client are read before the first reply."""
    scene = Scene(start)
    scene.ask(100)
    requests = scene.read(100)
    time.sleep(0.05)
    times = [scene.reply(request) for request in requests]
    entry = scene.end()
    assert accounted(entry, 100, 100)
    assert not any(entry["losses"].values()), entry["losses"]
    assert times_are(entry, times)


def test_more_than_are_remembered(start):
    """17,000 clients are never answered. Those beyond the table's size are reported; a reply to one of them is
    counted, not timed."""
    scene = Scene(start)
    for number in range(17_000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
            client.sendto(b"question", ("127.0.0.1", scene.port))
            [request] = scene.read()
    scene.reply(request)
    entry = scene.end()
    assert accounted(entry, 17_000, 1)
    assert entry["losses"]["untracked"] == 17_000 - 16_384
    assert entry["losses"]["untimed"] == 1


def test_what_is_open_at_the_end_is_told(start):
    """Three requests are read together, and one is answered."""
    scene = Scene(start)
    scene.ask(3)
    requests = scene.read(3)
    scene.reply(requests[1])
    entry = scene.end()
    assert accounted(entry, 3, 1)
    assert entry["losses"]["unanswered"] == 2
    assert entry["losses"]["untimed"] == 0
    assert "no response before" in scene.observer.stdout


def gauges_of(observer):
    """Return the observer's gauges of open requests, by service (include/wire/config.h)."""
    need("bpftool")
    held = held_maps(observer.pid)
    maps = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], check=True, capture_output=True).stdout)
    [number] = [each["id"] for each in maps if each.get("name") == "opens" and each["id"] in held]
    dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(number)], check=True, capture_output=True)
    return [each["formatted"]["value"] if "formatted" in each else each["value"] for each in json.loads(dump.stdout)]


def gauge_becomes(observer, wanted, seconds=10):
    """Return the gauge of the only service once `wanted` accepts it; each reading of the document makes a pass."""
    deadline = time.monotonic() + seconds
    while True:
        observer.document()
        [gauge] = gauges_of(observer)
        if wanted(gauge):
            return gauge
        assert time.monotonic() < deadline, gauge
        time.sleep(0.1)


def test_open_requests_are_gauges(start):
    """Three requests are read but not answered, two wait unread; then the server's socket is closed."""
    scene = Scene(start)
    scene.ask(5)
    begin_ns = time.monotonic_ns()
    scene.read(3)
    time.sleep(0.5)
    gauge = gauge_becomes(scene.observer, lambda gauge: gauge["read"])
    assert (gauge["read"], gauge["unread"]) == (3, 2)
    assert 500 * MS <= gauge["oldest_ns"] <= time.monotonic_ns() - begin_ns
    assert sum(gauge["ages"]) == 4  # of the unread ones only the oldest has an age
    scene.server.close()
    gauge = gauge_becomes(scene.observer, lambda gauge: not gauge["read"])
    assert (gauge["unread"], gauge["oldest_ns"]) == (0, 0)
    entry = scene.end()
    assert entry["losses"]["unanswered"] == 3


@in_quiet
def test_a_closed_socket_leaves_nothing(start):
    """Twenty times a server's socket is closed with a request unanswered. The last socket has the same port and
    client, perhaps the same memory, and ten exchanges of 10 ms."""
    scene = Scene(start, repeats=False)
    times = []
    for _ in range(20):
        scene.ask()
        scene.read()
        scene.server.close()
        time.sleep(0.03)
        scene.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        scene.server.bind(("127.0.0.1", scene.port))
    for _ in range(10):
        scene.ask()
        [request] = scene.read()
        time.sleep(0.01)
        times.append(scene.reply(request))
    entry = scene.end()
    assert accounted(entry, 30, 10)
    assert entry["losses"]["unanswered"] == 20
    assert times_are(entry, times)
