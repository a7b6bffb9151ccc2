# SPDX-License-Identifier: MIT
"""The driver's live view in a terminal: during the load, and until it ends one way or another."""
import os
import re
import signal
import threading

from support.conditions import needs_program
from support.process import run
from support.programs import DRIVER, Lab
from support.recorder import Recorder
from support.terminal import Terminal
from support.timing import in_time, timing

pytestmark = needs_program("tmux")

MS = {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+) (ns|µs|ms|s)", text).groups()
    return float(number) * MS[unit]


def show(terminal, *words):
    terminal.run(f"clear; {DRIVER} {' '.join(map(str, words))}")
    is_shown(terminal)


def is_shown(terminal):
    terminal.wait_for(r"^ sojourn-drive · ")
    terminal.wait_for(r"p99 ")
    assert terminal.ask("alternate_on") == "1" and terminal.ask("cursor_flag") == "0"


def given_back(terminal):
    terminal.wait_for(r"ready\$ *$")
    assert terminal.ask("alternate_on") == "0" and terminal.ask("cursor_flag") == "1"


def sixty_answers(release):
    """A server that answers 60 requests, each 20th with 503, and no more before the release."""
    def answer(_):
        if len(server.requests) > 60:
            release.wait(60)
        return 503 if len(server.requests) % 20 == 0 else 200

    server = Recorder(answer)
    return server


def test_what_it_shows_is_what_the_server_did(start):
    """The server answers 60 requests, each 20th with 503, and then no more: the screen stays the same."""
    release, terminal = threading.Event(), start(Terminal())
    with sixty_answers(release) as server:
        try:
            show(terminal, server.url, "-c 1 -d 1h --timeout 1h")
            terminal.wait_for(r"requests/s +0 ")
            assert len(server.requests) == 61
            terminal.wait_for(r"2xx 57 · 5xx 3")
            terminal.wait_for(r"errors +3 ")
            terminal.wait_for(re.escape(server.url) + r" .* of 3600 s")
            terminal.wait_for(r" p50 +- ")  # of the last second, which had no responses
            quantiles = terminal.wait_for(r"round trip: p50 (\S+ \S+) · p90 (\S+ \S+) · p99 (\S+ \S+) ")
            in_order = [milliseconds(text) for text in quantiles.groups()]
            assert in_order == sorted(in_order) and in_order[0] > 0
            counts = [int(line.split()[3]) for line in terminal.screen()
                      if re.match(r" to \S+ \S+ +\d+ ", line)]
            assert sum(counts) == 60, terminal.screen()
            terminal.keys("C-c")
        finally:
            release.set()
        given_back(terminal)
        assert "interrupted" in "\n".join(terminal.screen())


@in_time
def test_rates_and_times_are_the_server_s(start):
    lab, terminal = start(Lab()), start(Terminal(120, 30))
    show(terminal, f"'{lab.url}?service=20ms'", "--rate 100 -c 8 -d 1h")
    p50, p99 = terminal.wait_for(r"response time: p50 (\S+ \S+) · .* p99 (\S+ \S+) ·").groups()
    assert milliseconds(p50) >= 19.5 and milliseconds(p99) >= milliseconds(p50)
    with timing():
        assert 60 < float(terminal.wait_for(r"requests/s +([\d.,]+) ")[1]) < 140
        assert milliseconds(p50) < 100
    terminal.keys("C-c")
    given_back(terminal)


def test_a_fleet_is_seen_as_one(start):
    """Of three members the server answers 60 requests in all, each 20th with 503, and then no more. Counts and the merged
    distribution are the server's, and a row names each member."""
    release, terminal = threading.Event(), start(Terminal(100, 40))
    with sixty_answers(release) as server:
        try:
            show(terminal, f"fleet --via 'sh -c' --agent-program {DRIVER} --hosts one,two,three --", server.url,
                 "-c 3 -d 1h --timeout 1h")
            terminal.wait_for(r"requests/s +0 ")
            assert len(server.requests) == 61  # the other two wait for its lock
            terminal.wait_for(r"2xx 57 · 5xx 3|errors +3 ")
            terminal.wait_for(re.escape(server.url) + r" from 3 hosts .* of 3600 s")
            counts = [int(line.split()[3]) for line in terminal.screen() if re.match(r" to \S+ \S+ +\d+ ", line)]
            assert sum(counts) == 60, terminal.screen()
            for name in ("one", "two", "three"):
                terminal.wait_for(rf"^ {name} +0/s")
            terminal.keys("C-c")
        finally:
            release.set()
        given_back(terminal)
        shown = "\n".join(terminal.screen())
        assert "interrupted" in shown and "3 members" in shown, shown


@in_time
def test_the_rates_of_a_fleet(start):
    """Three members share one rate: the screen has its sum, and a third of it for each. Percentiles are those of all."""
    lab, terminal = start(Lab()), start(Terminal(120, 40))
    show(terminal, f"fleet --via 'sh -c' --agent-program {DRIVER} --hosts one,two,three --", f"'{lab.url}?service=20ms'",
         "--rate 90 -c 9 -d 1h")
    p50, = terminal.wait_for(r"response time: p50 (\S+ \S+) ·").groups()
    assert milliseconds(p50) >= 19.5
    with timing():
        assert milliseconds(p50) < 100
        assert 60 < float(terminal.wait_for(r"requests/s +([\d.,]+) ")[1]) < 120
        for name in ("one", "two", "three"):
            assert 15 < float(terminal.wait_for(rf"^ {name} +([\d.,]+)/s")[1]) < 45
    terminal.keys("C-c")
    given_back(terminal)


def test_every_size_and_resizing(start):
    lab = start(Lab())
    sizes = {size: start(Terminal()) for size in ((200, 60), (20, 5), (2, 2))}
    for (columns, lines), terminal in sizes.items():
        terminal.run(f"clear; {DRIVER} {lab.url} --rate 200 -c 2 -d 1h")
    for (columns, lines), terminal in sizes.items():
        terminal.wait_for(r"p99 ")
        terminal.resize(columns, lines)
    for (columns, lines), terminal in sizes.items():
        if columns >= 20:
            terminal.wait_for(r"requests/s +[\d,]+")
        if columns > 80:
            terminal.wait_for(r"█{100}")  # as wide as the screen
        screen = terminal.screen()
        assert max(map(len, screen)) <= columns and len(screen) <= lines + 1
        terminal.resize(60, 24)
        terminal.wait_for(r"^ response time: p50 .* [nµm]?s$")  # without what has no room, but with all units
        terminal.resize(80, 24)
        terminal.wait_for(r"^ Ctrl-C ends the run")
        terminal.keys("C-c")
        given_back(terminal)


# The shell's status for each signal: an interrupted run has a report, a fatal signal leaves none.
WAYS_OUT = {"term": (signal.SIGTERM, 0), "abort": (signal.SIGABRT, 134)}


def test_the_terminal_is_given_back(start):
    lab = start(Lab())
    terminals = {way: start(Terminal()) for way in WAYS_OUT}
    modes = {}
    for way, terminal in terminals.items():
        terminal.run("ulimit -c 0; stty -a > /dev/null; clear; stty -a | md5sum")
        modes[way] = terminal.wait_for(r"^([0-9a-f]{32})  -")[1]
        terminal.run(f"clear; {DRIVER} {lab.url} --rate 100 -c 1 -d 1h")
    for way, (number, status) in WAYS_OUT.items():
        terminal = terminals[way]
        is_shown(terminal)
        child, = terminal.children()
        os.kill(child, number)
        given_back(terminal)
        terminal.run("echo status=$?; stty -a | md5sum")
        terminal.wait_for(rf"^status={status}$")
        assert terminal.wait_for(r"^status=\d+\n([0-9a-f]{32})  -")[1] == modes[way]


def test_elsewhere_it_is_a_line(start):
    """With the option, in a pipe, where it cannot be drawn, and in the background, where it would be stopped."""
    lab = start(Lab())
    terminals = {command: start(Terminal()) for command in
                 ("DRIVER --no-tui", "DRIVER | cat", "TERM=dumb DRIVER", "DRIVER &")}
    for command, terminal in terminals.items():
        terminal.run("clear; " + command.replace("DRIVER", f"{DRIVER} {lab.url} --rate 100 -c 1 -d 1h"))
    for command, terminal in terminals.items():
        terminal.wait_for(r"\d s  \d+ requests/s  p99 \S+ \S+  errors 0  .* left")
        assert terminal.ask("alternate_on") == "0"
        if command.endswith("&"):
            child, = terminal.children()
            os.kill(child, signal.SIGINT)
        else:
            terminal.keys("C-c")
        terminal.wait_for(r"interrupted")


def test_without_colour_and_without_utf8(start):
    lab = start(Lab())
    plain, ascii = start(Terminal(env={"NO_COLOR": "1"})), start(Terminal(env={"TERM": "vt100", "LC_ALL": "C"}))
    for terminal in (plain, ascii):
        terminal.run(f"clear; {DRIVER} {lab.url} --rate 200 -c 1 -d 1h")
    for terminal, bar in ((plain, "█"), (ascii, "#")):
        terminal.wait_for(r"requests/s +\d+ .* max")
        text = "\n".join(terminal.screen(styles=True))
        assert not re.search(r"\x1b\[[\d;]*\b[349][0-7]\b", text), "colours"
        assert bar in text and (bar == "█" or "\n".join(terminal.screen()).isascii())
        terminal.keys("C-c")
        given_back(terminal)


def test_no_terminal_no_progress():
    with Recorder() as server:
        result = run([DRIVER, server.url, "-c", "1", "-d", "1200ms"])
    assert "requests/s" not in result.stderr and "\x1b" not in result.stdout + result.stderr
