# SPDX-License-Identifier: MIT
"""Unanswered requests are reported beside the percentiles, and can be asserted. The server itself counts them."""
import re
import shutil
import socket
import threading
import time

import pytest

from support.browser import Page
from support.documents import service
from support.net import serve_each
from support.process import run
from support.programs import OBSERVER, Driver, Observer

MS = 1_000_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Forgetful:
    """Answers all but every @nth request. @closes: it closes after its client gave up, and notes the age."""

    def __init__(self, nth, closes=True):
        self.nth, self.closes = nth, closes
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.lock = threading.Lock()
        self.requests, self.forgotten, self.ages, self.kept = 0, 0, [], []
        serve_each(self.listener, self._serve)

    def _is_forgotten(self):
        with self.lock:
            self.requests += 1
            forgotten = not self.requests % self.nth
            self.forgotten += forgotten
            return forgotten

    def _serve(self, connection):
        while connection.recv(4096):
            read = time.monotonic_ns()
            if not self._is_forgotten():
                connection.sendall(OK)
                continue
            if not self.closes:
                self.kept.append(connection)
                return
            connection.recv(4096)
            self.ages.append(time.monotonic_ns() - read)
            break
        connection.close()

    def close(self):
        self.listener.close()
        for connection in self.kept:
            connection.close()


@pytest.fixture(name="forgetful")
def _forgetful():
    made = []

    def make(*words, **named):
        made.append(Forgetful(*words, **named))
        return made[-1]
    yield make
    for server in made:
        server.close()


def milliseconds(text, unit):
    return float(text) * {"µs": 0.001, "ms": 1, "s": 1000}[unit]


def drive(server, observer, *options, count=200):
    return Driver(server.url, "--timeout=600ms", *options, connections=2, count=count, observer=observer,
                  check=False)


def test_what_was_given_up_stands_beside_the_percentiles(start, forgetful, tmp_path):
    server = forgetful(20)
    observer = start(Observer(ports=[server.port]))
    driver = drive(server, observer)
    forgotten = server.forgotten
    assert server.requests == 200 and forgotten == 10
    assert driver.result["errors"]["timeout"] == forgotten
    observer.stop()
    entry = service(observer.summary(), server.port)
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == forgotten
    for report in (observer.stdout, run([OBSERVER, "report", observer.json]).stdout):
        text = re.sub(r"\s+", " ", report)
        told = re.search(rf"note: {forgotten} of the 200 requests at port {server.port} were never answered: they are "
                         r"in no percentile of a stage; they had waited at least ([\d.]+) (µs|ms|s) \(p50\), "
                         r"([\d.]+) (µs|ms|s) \(p99\)", text)
        assert told, report
        # The server's clock runs from the read's return until its client gives up: nearly all of the wait.
        ages = sorted(age / MS for age in server.ages)
        assert milliseconds(told[1], told[2]) > ages[4] * 0.98 - 1
        assert milliseconds(told[3], told[4]) > ages[-1] * 0.98 - 1
        assert milliseconds(told[3], told[4]) < ages[-1] * 1.02 + 100
    if shutil.which("chromium"):
        run([OBSERVER, "report", observer.json, "-o", tmp_path / "report.html"])
        page = Page(tmp_path / "report.html", tmp_path / "profile")
        assert page.console == []
        assert f"{forgotten} of the 200 requests at port {server.port} were never answered" in page.text


def test_a_server_that_answers_has_no_such_note(start, forgetful):
    server = forgetful(10**9)
    observer = start(Observer(ports=[server.port]))
    driver = drive(server, observer, "--assert=unanswered<1", "--assert=timeouts<1")
    observer.stop()
    assert driver.status == 0, driver.process.stderr
    assert "never answered" not in observer.stdout + driver.report


@pytest.mark.parametrize("closes", [True, False], ids=["closes", "hangs"])
def test_it_can_be_asserted(start, forgetful, closes):
    """A hung server keeps its connections: the observer has seen none of these requests end."""
    server = forgetful(20, closes=closes)
    observer = start(Observer(ports=[server.port]))
    kept = drive(server, observer, "--assert=unanswered<=5%", "--assert=unanswered<=5", "--assert=timeouts<=5%", count=100)
    assert server.forgotten == 5
    assert kept.status == 0, kept.process.stderr
    entry = service(kept.document, server.port)
    unanswered, still_open = entry["losses"].get("unanswered", 0), entry["open"]["read"]
    assert unanswered + still_open == 5
    # The server may not have closed the last of either connection yet.
    assert unanswered >= 3 if closes else unanswered == 0
    broken = drive(server, observer, "--assert=timeouts<5", "--assert=errors<1000", count=100)
    assert broken.status == 1
    assert "'timeouts<5' does not hold: it is 5" in broken.process.stderr
    broken = drive(server, observer, "--assert=unanswered<5", "--assert=errors<1000", count=100)
    assert server.forgotten == 15
    assert broken.status == 1
    found = int(re.search(r"'unanswered<5' does not hold: it is (\d+)", broken.process.stderr)[1])
    # Requests that hang from the earlier runs are still open at the end of this one; so may be those closed late.
    assert 5 <= found <= 7 if closes else found == 15


def test_without_an_observer_nobody_counts_at_the_server():
    refused = Driver("http://127.0.0.1:1/", "--assert=unanswered<1", check=False)
    assert refused.status == 2
    assert "--assert: 'unanswered<1' is about the observer's count; add --observer=URL" in refused.process.stderr


def test_time_outs_alone_are_allowed(forgetful):
    server = forgetful(20)
    allowed = drive(server, None, "--assert=timeouts<=5%", count=100)
    assert allowed.status == 0, allowed.process.stderr
    assert allowed.result["errors"]["timeout"] == server.forgotten == 5
    assert drive(server, None, count=20).status == 1
