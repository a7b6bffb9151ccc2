# SPDX-License-Identifier: MIT
"""Calls to upstreams where people look: on the terminal, on the live page, in the report's page. The truth are the calls that
the test has its front make."""
import re
import threading
import time
from contextlib import ExitStack, closing

import pytest

from support.browser import Page, needs_browser, with_probe
from support.conditions import needs_program
from support.documents import load
from support.process import run
from support.programs import OBSERVER, Lab, Observer
from support.terminal import Terminal

from ..report.test_page import assert_same_as
from .test_calls import Behind, Told, call, flat
from .test_live import TIME, leave, nanoseconds, show
from .test_serve import Serve

CONNECT = "CONNECT a:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"
REASON = "1 of its 1 connections became tunnels (CONNECT, status 101)"


class Fronted:
    """A front with two upstreams: calls to one of them are timed, the connection to the other becomes a tunnel."""

    def __init__(self, start):
        self.front, self.timed, self.tunnel = start(Told()), Behind(), Behind()
        self.places = [f"127.0.0.1:{behind.port}" for behind in (self.timed, self.tunnel)]

    def begin(self, stack):
        self.front.begin()
        for behind in (self.tunnel, self.timed):
            stack.enter_context(closing(behind))
            self.front.do("a", "connect", behind.port)
            self.end = stack.enter_context(closing(behind.accept()))
            if behind is self.tunnel:
                call(self.front, self.end, *CONNECT)

    def call(self, count, wait_s=0.0):
        for _ in range(count):
            self.front.do("a", "write", "GET / HTTP/1.1\r\n\r\n")
            self.end.recv(100)
            time.sleep(wait_s)
            self.end.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            self.front.do("a", "read", 27)

    def fail(self):
        """Make a call that its upstream gives up."""
        self.front.do("a", "write", "GET / HTTP/1.1\r\n\r\n")
        self.end.recv(100)
        self.end.close()
        self.front.do("a", "close")


@needs_program("tmux")
@pytest.mark.parametrize("columns", [80, 160])
def test_on_the_terminal(start, columns):
    """A row per upstream, of the time that is shown; the reason in place of times that are not known. Others have none."""
    fronted, terminal, lab = Fronted(start), start(Terminal(columns, 30)), start(Lab())
    timed, tunnel = map(re.escape, fronted.places)
    show(terminal, "--calls", "--port", f"{fronted.front.port},{lab.port}")
    with ExitStack() as stack:
        fronted.begin(stack)
        fronted.call(5, wait_s=0.02)
        terminal.keys("t", "/", *str(fronted.front.port), "Enter", "Enter")
        terminal.wait_for(r"S service +14 ")  # two connects, and two orders for each of six calls
        terminal.wait_for(r"  c calls  ")
        terminal.keys("c", "c")
        found = terminal.wait_for(rf"^ {timed} +5 +[\d.]+ +0 +0{TIME}{TIME}")
        assert all(20e6 <= nanoseconds(found[i]) < 1e9 for i in (1, 2))
        terminal.wait_for(rf"^ {tunnel} +not known: {re.escape(REASON)[:30]}")
        terminal.wait_for(r"^ 1 connections without calls since the start")
        fronted.fail()
        terminal.wait_for(rf"^ {timed} +5 +[\d.]+ +1 +0{TIME}{TIME}")
        # In the last interval there was none: no time is invented, and what cannot be cut stays unknown.
        terminal.keys("t")
        terminal.wait_for(rf"^ {timed} +0 +0 +0 +0 +- +-")
        terminal.wait_for(rf"^ {tunnel} +not known: ")
        terminal.keys("c")
        terminal.wait_for(r"service p99")
        terminal.keys("Escape", "Escape", "/", *str(lab.port), "Enter", "Enter")
        terminal.wait_for(rf"tcp 127.0.0.1:{lab.port}")
        terminal.keys("c", "c")
        terminal.wait_for(r"service p99")
    leave(terminal)


SHOWN = """
const until = async (what) => { for (let i = 0; i < 50 && !what(); i++) { await pass(); await sleep(200); } return what(); };
const rows = () => [...detail.statuses.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
await until(() => state.now);
location.hash = "tcp:PORT";
await until(() => detail.key && state.before && rows().length === 2 && rows().some((row) => parseFloat(row[1]) > 0));
const heads = [...detail.statuses.querySelectorAll("th")].map((head) => head.textContent);
location.hash = "tcp:OTHER";
await until(() => detail.key && detail.key.startsWith("tcp:OTHER"));
const none = detail.statuses.textContent;
location.hash = "tcp:PORT";
await until(() => detail.key && detail.key.startsWith("tcp:PORT") && rows().length === 2 && parseFloat(rows()[0][1]) > 0);
return {heads, none, rows: rows(), impaired: await impaired(), overflow: document.documentElement.scrollWidth - innerWidth};
"""


@needs_browser
@pytest.mark.parametrize("width", [1280, 500])
def test_on_the_live_page(start, tmp_path, width):
    fronted, lab = Fronted(start), start(Lab())
    serve = start(Serve(f"{fronted.front.port},{lab.port}", "--calls"))
    over = threading.Event()
    with ExitStack() as stack:
        fronted.begin(stack)
        fronted.call(5, wait_s=0.02)

        def go_on():
            while not over.wait(0.05):
                fronted.call(1, wait_s=0.02)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            with with_probe(serve.url, SHOWN.replace("PORT", str(fronted.front.port)).replace("OTHER", str(lab.port))) as url:
                page = Page(url + "/", tmp_path, width, milliseconds=20000)
        finally:
            over.set()
            thread.join()
    assert page.console == []
    found = page.probe
    assert found["heads"] == ["upstream", "calls/s", "calls", "failed", "open", "not timed", "wait mean", "wait p50", "wait p99"]
    assert not found["none"] and found["overflow"] <= 0 and not found["impaired"]
    timed, tunnel = found["rows"]
    # Calls are 70 ms apart, or more: one more than that may be in the second, or longer, that a rate covers.
    assert timed[0] == fronted.places[0] and 0 < float(timed[1]) <= 1 / 0.07 + 1 and int(timed[2]) > 5
    assert timed[3] == "0" and timed[4] in "01" and timed[5] == "0"
    assert all(20e6 <= nanoseconds(text) < 1e9 for text in timed[6:])
    assert tunnel == [f"{fronted.places[1]}: not known: {REASON}", "–", "–", "0", "0", "0", "–", "–", "–"]


@needs_browser
def test_on_the_page_of_a_report(start, tmp_path):
    """It shows the document's values, and says in the text report's words what is not known."""
    fronted = Fronted(start)
    observer = start(Observer("--calls", "--json", tmp_path / "run.json", ports=[fronted.front.port]))
    with ExitStack() as stack:
        fronted.begin(stack)
        fronted.call(5, wait_s=0.02)
        fronted.fail()
        observer.stop()
    run([OBSERVER, "report", tmp_path / "run.json", "-o", tmp_path / "run.html"])
    page = Page(tmp_path / "run.html", tmp_path / "profile", 1280, "return {impaired: await impaired()};")
    assert page.console == [] and not page.probe["impaired"]
    assert_same_as(page, [load(tmp_path / "run.json")])
    of_calls = {name.split(".", 2)[2]: values for name, values in page.cells.items() if "timed_calls" in name}
    assert of_calls["timed_calls.0.calls"] == ["5"] and of_calls["timed_calls.0.failed"] == ["1"]
    assert float(of_calls["timed_calls.0.wait.p50_ns"][0]) >= 20e6
    assert "timed_calls.1.calls" not in of_calls and "timed_calls.1.wait.p50_ns" not in of_calls
    told = f"times not known: {REASON}"
    assert told in page.text and told in flat(observer.stdout)
