# SPDX-License-Identifier: MIT
"""UDP servers that leave requests without an answer, or answer later and in another order: what cannot
be known is not timed, and said.

The truth is the test's own clock around its server's calls. tools/mutate: "a backlog is unanswered" and
"times do not wait for the round" fail under_way, "unanswered is never found out" ignored and
"open reads are forgotten" the_end.
"""
import random
import select
import socket
import statistics
import threading
import time

import pytest

from support.documents import service
from support.programs import Observer
from support.timing import MS, in_quiet, timing
from test_stages import stage


class Scene:
    """A server's socket under observation, and a client."""

    def __init__(self, start):
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.connect(self.server.getsockname())
        self.observer = start(Observer(ports=[f"{self.server.getsockname()[1]}/udp"]))

    def ask(self, count=1):
        for _ in range(count):
            self.client.send(b"question")

    def read(self, count=1):
        """When each of them was read."""
        times = []
        for _ in range(count):
            self.server.recv(100)
            times.append(time.monotonic_ns())
        return times

    def reply(self, count=1):
        times = []
        for _ in range(count):
            self.server.sendto(b"answer", self.client.getsockname())
            times.append(time.monotonic_ns())
        return times

    def end(self):
        port = self.server.getsockname()[1]
        self.server.close()
        self.client.close()
        self.observer.stop()
        return service(self.observer.summary(), port)


def accounted(entry, reads, replies):
    """Every read and every reply is somewhere."""
    losses = entry["losses"]
    assert entry["exchanges"] + losses["unanswered"] == reads
    assert entry["exchanges"] + losses["unsolicited"] == replies
    assert stage(entry, "service")["count"] + losses["untimed"] == entry["exchanges"]
    return True


@pytest.mark.parametrize("ignored", [1, 3])
@in_quiet
def test_ignored_requests_delay_no_other(start, ignored):
    """The server never answers the first; every other one at once. Each reply could be that to the one
    before, until the times tell: the requests come at any time, the replies right behind them."""
    scene = Scene(start)
    times = []
    scene.ask(ignored)
    scene.read(ignored)
    random.seed(1)
    for _ in range(100):
        time.sleep(random.uniform(0.002, 0.012))
        scene.ask()
        [read] = scene.read()
        times.append(scene.reply()[0] - read)
    entry = scene.end()
    assert accounted(entry, 100 + ignored, 100)
    assert entry["losses"]["unanswered"] == ignored
    assert entry["losses"]["untimed"] >= 16
    with timing():
        assert entry["losses"]["untimed"] <= 60
        assert stage(entry, "service")["max_ns"] < max(times) + MS
        assert stage(entry, "service")["mean_ns"] < statistics.fmean(times) + MS


@pytest.mark.parametrize("count", [30, 200])
@in_quiet
def test_requests_under_way_are_not_ignored(start, count):
    """Answered 25 ms later each, with a request every 10 ms: there are always two or three under way, and
    each reply leaves as many. While that goes on nobody can tell; when it ends, each had its reply."""
    scene = Scene(start)
    times = []

    def ask():
        for _ in range(count):
            scene.ask()
            time.sleep(0.01)

    client = threading.Thread(target=ask)
    client.start()
    waiting, left = [], count
    while waiting or left:
        timeout = max(0, waiting[0] + 25 * MS - time.monotonic_ns()) / 1e9 if waiting else 5
        if left and select.select([scene.server], [], [], timeout)[0]:
            waiting += scene.read()
            left -= 1
        elif waiting:
            time.sleep(timeout if not left else 0)
            times.append(scene.reply()[0] - waiting.pop(0))
    client.join()
    entry = scene.end()
    assert accounted(entry, count, count)
    assert entry["losses"]["unanswered"] == entry["losses"]["unsolicited"] == 0
    if count <= 60:  # of a round that is longer nothing is timed
        assert stage(entry, "service")["count"] == count
        with timing():
            assert stage(entry, "service")["mean_ns"] == pytest.approx(statistics.fmean(times), abs=MS)
    elif stage(entry, "service")["count"]:  # what a pause of the client has made short
        assert stage(entry, "service")["mean_ns"] > 24 * MS


@in_quiet
def test_replies_in_another_order(start):
    """Last read, first answered: of each exchange nobody knows, but the mean is that of all."""
    scene = Scene(start)
    times = []
    for _ in range(5):
        reads = []
        for _ in range(5):
            scene.ask()
            reads += scene.read()
            time.sleep(0.004)
        while reads:
            time.sleep(0.002)
            times.append(scene.reply()[0] - reads.pop())
    entry = scene.end()
    assert accounted(entry, 25, 25)
    assert not any(entry["losses"].values()), entry["losses"]
    with timing():
        assert stage(entry, "service")["mean_ns"] == pytest.approx(statistics.fmean(times), abs=MS)


def test_a_batch_beyond_memory_is_not_timed(start):
    """100 are read before the first reply: they are counted, and the next one is timed again."""
    scene = Scene(start)
    scene.ask(100)
    scene.read(100)
    time.sleep(0.05)
    scene.reply(100)
    for _ in range(3):
        scene.ask()
        scene.read()
        scene.reply()
    entry = scene.end()
    assert accounted(entry, 103, 103)
    assert entry["losses"]["untimed"] == 100
    assert stage(entry, "service")["count"] == 3
    with timing():
        assert stage(entry, "service")["max_ns"] < 50 * MS


def test_what_is_open_at_the_end_is_told(start):
    """Of three requests that were read together one is answered: the reply may be anyone's."""
    scene = Scene(start)
    scene.ask(3)
    scene.read(3)
    scene.reply()
    entry = scene.end()
    assert accounted(entry, 3, 1)
    assert entry["losses"]["unanswered"] == 2
    assert entry["losses"]["untimed"] == 1
    assert "no response before" in scene.observer.stdout
