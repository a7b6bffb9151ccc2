# SPDX-License-Identifier: MIT
"""An unknown time is shown as such everywhere, and waiting requests are the most prominent.

The truth is the test's own server: its replies and its silence.
"""
import re
import shutil
import socket
import threading
import time

import pytest

from support.browser import Page
from support.conditions import needs_program
from support.documents import parse
from support.programs import OBSERVER
from support.terminal import Terminal
from support.timing import MS
from .scene import Scene
from .test_live import leave, nanoseconds, rows, show
from .test_otlp import Collector, metrics_of
from .test_serve import Serve

TIME = r"[\d.]+ .?s"  # as the live view prints it


class Datagrams:
    """A server that answers after a time. With `tells`, each reply repeats its request; else one request was
    ignored, and each reply could be its answer."""

    def __init__(self, tells):
        self.tells = tells
        self.times = []
        self.asked = 0
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.connect(self.server.getsockname())

    def _read(self):
        self.client.send(self.asked.to_bytes(2, "big") + b"question")
        self.asked += 1
        data, peer = self.server.recvfrom(100)
        return time.monotonic_ns(), data, peer

    def ignore(self):
        if not self.tells:
            self._read()

    def exchange(self, count):
        for _ in range(count):
            read_ns, data, peer = self._read()
            time.sleep(0.002)
            self.server.sendto((data[:2] if self.tells else b"") + b"answer", peer)
            self.times.append(time.monotonic_ns() - read_ns)

    def close(self):
        self.server.close()
        self.client.close()


@pytest.fixture(name="pair")
def _pair():
    servers = Datagrams(True), Datagrams(False)
    yield servers
    for server in servers:
        server.close()


def run_both(pair, count):
    for server in pair:
        server.exchange(count)


def run_partly(pair):
    """Of the server that ignores one, a fifth can be matched: a figure of these alone would mislead."""
    run_both(pair, 20)
    for server in pair:
        server.ignore()
    run_both(pair, 80)


def ports_of(pair):
    return ",".join(f"{server.port}/udp" for server in pair)


def service_counts(text):
    """Return {port: count} of sojourn_stage_seconds for the stage `service`, as in Prometheus."""
    return {int(port): int(count) for port, count in re.findall(
        r'^sojourn_stage_seconds_count\{(?=.*stage="service").*?port="(\d+)".*\} (\d+)$', text, re.MULTILINE)}


def page_rows(page):
    return {int(cells[1]): cells[0] for cells in
            re.findall(r'(<tr role="row">(?:(?!</tr>).)*data-member="exchanges (\d+)".*?</tr>)', page)}


def test_not_known_over_http(start, tmp_path, pair):
    known, unknown = pair
    serve = start(Serve(ports_of(pair)))
    run_partly(pair)
    metrics = serve.get("/metrics")
    assert service_counts(metrics) == {known.port: 100}
    assert re.search(rf'sojourn_coverage_total\{{(?=.*what="ambiguous_replies").*port="{unknown.port}".*\}} 80', metrics)
    services = {entry["port"]: entry for entry in parse(serve.get("/v1/services"))["services"]}
    assert services[known.port]["stages"]["service"]["count"] == 100
    found = services[unknown.port]["stages"]["service"]
    assert found["measured"] is False and "count" not in found and "p99_ns" not in found
    assert found["reason"] == "80 of 100 replies cannot be matched to their requests"
    if shutil.which("chromium"):
        shown = page_rows(Page(serve.url + "/", tmp_path).html)
        assert shown[unknown.port].count(">not known<") == 2  # its stages and its service
        assert "not known" not in shown[known.port]


def collected(document):
    points = metrics_of(document).get("sojourn_stage_seconds", {"dataPoints": []})["dataPoints"]
    return {(int(labels["port"]), labels["stage"]): int(point["count"]) for point in points
            for labels in [{a["key"]: a["value"]["stringValue"] for a in point["attributes"]}]}


def test_not_known_to_a_collector(start, pair):
    """During the observation and at its end."""
    known, unknown = pair
    collector = Collector()
    try:
        serve = start(Serve(ports_of(pair), "--otlp", collector.url, "--otlp-interval", "1s"))
        run_partly(pair)
        sent = len(collector.requests)
        collector.wait(sent + 2)
        last = len(collector.requests)
        serve.stop()
        collector.wait(last + 1)
        for document in (collector.requests[last - 1][2], collector.requests[-1][2]):
            counts = collected(document)
            assert counts[known.port, "service"] == 100
            assert (unknown.port, "service") not in counts
            assert counts[unknown.port, "socket_queue"] > 0
    finally:
        collector.close()


@needs_program("tmux")
def test_not_known_in_the_live_view(start, pair):
    known, unknown = pair
    terminal = start(Terminal())
    show(terminal, "--port", ports_of(pair))
    run_partly(pair)
    terminal.keys("t")
    terminal.wait_for("since the start")
    terminal.wait_for(rf"{unknown.port}u .* unknown +unknown ")
    listed = {words[0]: " ".join(words[1:]) for words in rows(terminal)}
    assert re.match(rf"\S+ \S+ \S+ {TIME} {TIME} unknown unknown ", listed[f"{unknown.port}u"])
    p50 = re.match(rf"\S+ \S+ \S+ {TIME} {TIME} ({TIME}) ", listed[f"{known.port}u"])[1]
    assert min(known.times) * 0.99 <= nanoseconds(p50) <= max(known.times) * 1.02
    terminal.keys("/")
    terminal.type(str(unknown.port))
    terminal.keys("Enter", "Enter")
    terminal.wait_for(r"S service +not measured: 80 of 100 replies cannot be")
    assert "S service   " in terminal.wait_for(r".*S service .*")[0]
    assert not re.search(r"socket_queue .*100.0 %", "\n".join(terminal.screen())), "a share of what is not known"
    # The interval's own figure: new exchanges are as unknown, and earlier known ones do not help.
    terminal.keys("Escape", "Escape", "t")
    stop = threading.Event()
    traffic = threading.Thread(target=lambda: [run_both(pair, 5) for _ in iter(stop.is_set, True)])
    traffic.start()
    try:
        terminal.wait_for(rf"{unknown.port}u +\S+ +\d\S* +- +{TIME} +{TIME} +unknown +unknown")
        terminal.wait_for(rf"{known.port}u +\S+ +\d\S* +- +{TIME} +{TIME} +[\d.]+ ms +[\d.]+ ms")
    finally:
        stop.set()
        traffic.join()
    leave(terminal)


def hung_line(terminal, seconds=15):
    return terminal.wait_for(r"^ HUNG: (\d+) .* nothing answered for ([\d.]+) (m?s)\b", seconds)


def style_at(screen, pattern):
    """Return the attributes and colour of the text; in tmux they continue over lines."""
    style = set()
    for codes in re.findall(r"\x1b\[([\d;]*)m", screen[:re.search(pattern, screen).start()]):
        for code in codes.split(";"):
            ends = {"22": {"1", "2"}, "27": {"7"}, "39": {"31", "33"}}.get(code, style if code in ("", "0") else set())
            style = style - ends | {code}
    return style


@needs_program("tmux")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_hung_server_is_the_loudest(start, columns):
    """The server reads three requests, leaves two unread, and answers none; its own clock measures since when."""
    scene, calm = Scene(start, observe=False), Scene(start, observe=False)
    terminal = start(Terminal(columns=columns))
    show(terminal, "--port", f"{scene.port},{calm.port}")
    pairs = [scene.connect() for _ in range(5)]
    for client, connection in pairs:
        client.sendall(b"request")
        connection.recv(100)
        connection.sendall(b"answer")
        client.recv(100)
    since = time.monotonic_ns()
    for i, (client, connection) in enumerate(pairs):
        client.sendall(b"request")
        if i < 3:
            connection.recv(100)
    terminal.wait_for(r"open 5, oldest")
    found = hung_line(terminal)
    # At least three seconds, and no longer than the server has been silent.
    silent = float(found[2]) * (1e9 if found[3] == "s" else MS)
    assert int(found[1]) == scene.port
    assert 3e9 <= silent <= time.monotonic_ns() - since
    screen = "\n".join(terminal.screen(styles=True))
    assert {"1", "7", "31"} <= style_at(screen, rf"{scene.port}  python3"), "bold, reverse, red"
    assert "31" not in style_at(screen, rf"{calm.port}  python3")
    findings = [line for line in terminal.screen() if line.startswith("! ")]
    assert f"{scene.port}" in findings[0] and "nothing answered for" in findings[0]
    assert "3 read, 2 unread" in findings[0]
    if columns >= 94:
        words = next(words for words in rows(terminal) if words[0] == str(scene.port))
        assert words[8] == "5" and nanoseconds(" ".join(words[9:11])) >= 3e9
    # The server resumes: all requests are answered, and nothing is highlighted any more.
    for i, (client, connection) in enumerate(pairs):
        if i >= 3:
            connection.recv(100)
        connection.sendall(b"answer")
        client.recv(100)
    terminal.wait_for(r"2 of 2 services . in the last [\d.]+ ms *$")
    leave(terminal)
    for end in (*scene.ends, scene.listener, *calm.ends, calm.listener):
        end.close()


@needs_program("tmux")
def test_one_slow_request_among_others_is_no_hang(start):
    """While others are answered, an old request is shown, and nothing more."""
    scene = Scene(start, observe=False)
    terminal = start(Terminal())
    show(terminal, "--port", scene.port)
    slow, other = scene.connect(), scene.connect()
    slow[0].sendall(b"request")
    slow[1].recv(100)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        other[0].sendall(b"request")
        other[1].recv(100)
        other[1].sendall(b"answer")
        other[0].recv(100)
        assert "HUNG" not in "\n".join(terminal.screen())
        time.sleep(0.05)
    assert re.search(r"^- \d+ \S+ is slow to answer: 1 read, 0 unread, oldest ", "\n".join(terminal.screen()), re.MULTILINE)
    leave(terminal)
    for end in (*scene.ends, scene.listener):
        end.close()
