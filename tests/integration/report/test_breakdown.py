# SPDX-License-Identifier: MIT
"""The breakdown of a round trip, while other clients ask the server for slower answers. In every form it covers
the driver's requests only, and claims nothing unknown.

The truth is the lab server's own clock, by the clients' ports; the others are sockets of this test.
"""
import json
import re
import shutil
import socket
import statistics
import threading

import pytest

from support.browser import Page, needs_browser
from support.documents import service
from support.process import run
from support.programs import OBSERVER, Driver, Lab, Observer
from support.timing import MS, US, in_quiet, timing
from ..observer.test_stages import mean, truth_of

STAGES = ("accept queue", "accept or socket queue", "socket queue", "receive", "service", "respond", "transmit queue")
PARTS = ("network + client", *STAGES, "after its end")
UNIT_NS = {"ns": 1, "µs": US, "ms": MS, "s": 1000 * MS}
TIME = r"(-?[\d.]+) (ns|µs|ms|s)"


class Others:
    """Three clients whose requests take so long at the server, until the end of the block."""

    def __init__(self, lab, service_time):
        self.request = f"GET /?service={service_time} HTTP/1.1\r\nHost: lab\r\n\r\n".encode()
        self.sockets = [socket.create_connection((lab.address, lab.port)) for _ in range(3)]
        self.ports = {each.getsockname()[1] for each in self.sockets}
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=[each]) for each in self.sockets]

    def ask(self, client):
        while not self.over.is_set():
            client.sendall(self.request)
            assert client.recv(65536).startswith(b"HTTP/1.1 200")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        for each in self.sockets:
            each.close()


def rows(report):
    """Return the tree's parts with their printed means, in ns."""
    found = re.findall(rf"^[├└] ({'|'.join(map(re.escape, PARTS))}) +{TIME}", report, re.MULTILINE)
    return {name: float(value) * UNIT_NS[unit] for name, value, unit in found}


def shown(tmp_path):
    """Return the page's first table of parts (in its text, cells follow each other), that section's text, and
    the page."""
    page = Page(tmp_path / "report.html", tmp_path / "profile")
    assert page.console == []
    text = page.text[page.text.index("Where a request's time goes"):page.text.index("Latency by percentile")]
    return {name: float(value) * UNIT_NS[unit] for name, value, unit in re.findall(
        rf"({'|'.join(map(re.escape, PARTS))}){TIME}", text)}, text, page


def measure(start, tmp_path, *options, own="2ms", others="50ms"):
    """Return the driver's run, the server's truth of its requests, and the document's path. `own` and `others`
    are the server's times for the driver's requests and the others'."""
    truth_path, path = tmp_path / "truth.csv", tmp_path / "run.json"
    lab = start(Lab("--truth", truth_path, model="threads"))
    observer = start(Observer(*options, ports=[lab.port]))
    with Others(lab, others) as clients:
        driver = Driver(f"{lab.url}?service={own}", connections=1, count=200, observer=observer)
    observer.stop()
    path.write_text(json.dumps(driver.document))
    truth = [row for row in truth_of(lab, truth_path) if int(row["peer"].rpartition(":")[2]) not in clients.ports]
    assert driver.result["requests"] == len(truth) == 200
    entry = service(driver.document, lab.port)
    # There were others, with which the service's mean is no share of the driver's round trip.
    assert entry["exchanges"] > 210
    ratio = entry["stages"]["service"]["mean_ns"] / driver.result["round_trip"]["mean_ns"]
    assert ratio > 1.5 or ratio < 0.7
    return driver, truth, path


def is_true(found, truth, round_trip_ns, rounding_ns):
    """Service equals the server's, and network is the rest of the round trip by its clock. No part is negative,
    and the rounded parts add up."""
    begin_ns = mean(truth, "last_read_end_ns", "first_write_begin_ns")
    end_ns = mean(truth, "last_read_end_ns", "first_write_end_ns")
    with timing():
        assert begin_ns - 20 * US - rounding_ns <= found["service"] <= end_ns + 20 * US + rounding_ns
    assert all(value >= 0 for name, value in found.items() if name != "after its end")
    assert found["network + client"] < round_trip_ns - begin_ns
    assert abs(sum(found.values()) - round_trip_ns) <= len(PARTS) * rounding_ns
    return True


@pytest.mark.parametrize("own, others", [("2ms", "50ms"), pytest.param("8ms", "1ms", marks=pytest.mark.long)],
                         ids=["slower", "faster"])
@in_quiet
def test_only_the_drivers_exchanges(start, tmp_path, own, others):
    driver, truth, path = measure(start, tmp_path, own=own, others=others)
    joined = driver.document["joined"]
    round_trip_ns = driver.result["round_trip"]["mean_ns"]

    assert joined["joined"] == 200 and joined["other_clients"] > 10
    assert "means of the driver's 200 requests, all joined" in driver.report
    assert is_true(rows(driver.report), truth, round_trip_ns, 0.05 * MS)
    # By percentile, of the joined ones: the others' 50 ms are absent.
    median_ns = statistics.median(row["first_write_begin_ns"] - row["last_read_end_ns"] for row in truth)
    shown_ms = re.search(r"^├ service .* p50 +([\d.]+) ms +p99 +[\d.]+ ms", driver.report, re.MULTILINE)
    with timing():
        assert abs(float(shown_ms[1]) * MS - median_ns) < 0.05 * median_ns


def test_nothing_is_claimed_without_samples(start, tmp_path):
    """The service's means, which include others, are all there is: no tree and no verdict."""
    driver, _, path = measure(start, tmp_path, "--samples", "0")

    assert driver.document["joined"]["joined"] == 0
    assert not rows(driver.report)
    said = r"not divided: the observer saw [\d,]+ exchanges at port \d+, the driver completed 200 requests"
    for report in (driver.report, run([OBSERVER, "report", path]).stdout):
        flat = " ".join(report.split())
        assert re.search(f"└ {said}", flat), report
        assert "not known where the time goes: observer and driver did not time the same" in flat, report
        assert not re.search(r"^[├└].* %", report, re.MULTILINE)
    if shutil.which("chromium"):
        run([OBSERVER, "report", path, "-o", tmp_path / "report.html"])
        parts, text, page = shown(tmp_path)
        assert not parts and "%" not in text and re.search(said, text)
        assert 'class="bar"' not in page.html
        assert "not known where the time goes: observer and driver did not time the same requests" in page.text


@needs_browser
def test_the_page_says_the_same(start, tmp_path):
    """As the text, whose times are the server's: test_only_the_drivers_exchanges."""
    driver, _, path = measure(start, tmp_path)
    run([OBSERVER, "report", path, "-o", tmp_path / "report.html"])
    parts, _, _ = shown(tmp_path)
    told = rows(driver.report)
    assert "service" in parts and parts.keys() == told.keys()
    assert all(abs(parts[name] - told[name]) <= 0.051 * MS for name in told)
