# SPDX-License-Identifier: MIT
"""The live view as a user has it: in a terminal, by its keys, until it ends one way or another."""
import contextlib
import os
import re
import signal
import socket
import time

import pytest

from support.conditions import needs_program
from support.documents import load, service
from support.process import Process, run
from support.programs import DRIVER, OBSERVER, Doctor, Driver, Lab, Nginx, out_of_descriptors
from support.terminal import Terminal
from ..conftest import open_descriptors, sockets

pytestmark = needs_program("tmux")

TIME = r" +([\d.]+ .?s)"
UNITS = {"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}


@pytest.fixture
def terminal(start):
    return start(Terminal())


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+) (ns|µs|us|ms|s)", text).groups()
    return float(number) * UNITS[unit]


def show(terminal, *options, wait=r"REQ/S"):
    terminal.run(f"clear; {OBSERVER} live --interval 300ms {' '.join(map(str, options))}")
    terminal.wait_for(wait)
    terminal.wait_for(r"in the last")


def rows(terminal):
    """Return the list's rows as words, without the mark of the selected row."""
    lines = [line.lstrip(" >").split() for line in terminal.screen()[4:]]
    return [words for words in lines if words and re.fullmatch(r"\d+u?", words[0])]


def shows(terminal, ports, seconds=5):
    deadline = time.monotonic() + seconds
    while [words[0] for words in rows(terminal)] != ports:
        assert time.monotonic() < deadline, f"{ports} expected: {rows(terminal)}"
        time.sleep(0.05)


def selected(terminal):
    return [line.lstrip(">").split()[0] for line in terminal.screen() if line.startswith(">")]


def leave(terminal):
    terminal.keys("q")
    terminal.wait_for(r"^ready\$ *$")
    assert terminal.ask("alternate_on") == "0"


def stage(terminal, name):
    text = terminal.wait_for(rf"^ . {name} +(\S+){4 * TIME} +<?([\d.]+) %")
    return dict(zip(("count", "mean", "p50", "p99", "max", "share"), text.groups()))


def test_values_are_those_of_the_document(start, terminal, tmp_path):
    nginx, lab = start(Nginx(server="keepalive_requests 1;")), start(Lab("--service", "2ms"))
    document = tmp_path / "run.json"
    show(terminal, "--port", f"{nginx.port},{lab.port}", "--json", document)
    # nginx closes first: the TIME_WAIT sockets are on its port.
    Driver(nginx.url, connections=2, count=300)
    driver = Driver(lab.url, connections=4, count=1000)
    terminal.keys("t", "/")
    terminal.type(str(lab.port))
    terminal.keys("Enter")
    terminal.wait_for(rf"1 of 2 services match {lab.port} · since the start")
    terminal.keys("Enter")
    terminal.wait_for(r"S service +1,000 ")
    # The server's time is known to be 2 ms; the requests are the driver's count.
    shown = {name: stage(terminal, name) for name in ("socket queue", "receive", "service", "respond")}
    assert driver.result["requests"] == 1000
    assert 2e6 <= nanoseconds(shown["service"]["p50"]) < 2e7
    # If the server is late to accept(), that wait has a share, too.
    accept = float(terminal.wait_for(r"^ a accept.* <?([\d.]+) %$")[1])
    assert accept + sum(float(value["share"]) for value in shown.values()) == pytest.approx(100, abs=3)  # each is rounded
    # The list's gauges, against ss and /proc.
    terminal.keys("Escape", "Escape")
    terminal.wait_for(r"2 of 2 services")
    listed = {words[0]: words for words in rows(terminal)}
    waiting = len(sockets("time-wait", f"( sport = :{nginx.port} )"))
    words = listed[str(nginx.port)]
    assert words[1] == "nginx+1" and words[-2] == str(waiting) and waiting > 0
    # nginx+1: the master listens, the worker serves; the one with most descriptors is shown.
    assert int(words[-1]) == max(open_descriptors(pid) for pid in (nginx.pid, *nginx.workers()))
    leave(terminal)

    for name, value in shown.items():
        truth = service(load(document), lab.port)["stages"][name.replace(" ", "_")]
        assert int(value["count"].replace(",", "")) == truth["count"]
        for column in ("mean", "p50", "p99", "max"):
            assert nanoseconds(value[column]) == pytest.approx(truth[f"{column}_ns"], rel=5e-3, abs=1)


def test_rates_are_the_driver_s(start, terminal):
    lab = start(Lab())
    show(terminal, "--port", lab.port)
    driver = start([*f"{OBSERVER.parents[1]}/driver/sojourn-drive {lab.url} -c 4 -d 20s --quiet "
                    "--rate 500".split()])
    time.sleep(2)
    # At this rate 300 ms hold 150 requests, give or take a few by when the clock ticks.
    for _ in range(10):
        time.sleep(0.35)
        found = rows(terminal)
        if found and 400 < float(found[0][2]) < 600:
            break
    else:
        pytest.fail(f"500 requests per second are shown as {found}")
    driver.stop()
    terminal.keys("q")


def test_sorts_filters_selects(start, terminal):
    servers = [start(Lab()) for _ in range(3)]
    for server, count in zip(servers, (100, 3000, 900)):
        Driver(server.url, connections=1, count=1)
        server.count = count
    show(terminal, "--all-listeners")
    for server in servers:
        Driver(server.url, connections=1, count=server.count)
    terminal.keys("t")
    terminal.wait_for("since the start")
    busy, ports = [str(servers[i].port) for i in (1, 2, 0)], sorted(str(s.port) for s in servers)
    shows(terminal, busy)
    terminal.keys("r")
    terminal.wait_for("REQ/S▲")
    shows(terminal, busy[::-1])
    terminal.keys("Left", "Left")
    terminal.wait_for("PORT▲")
    shows(terminal, ports)
    # The mark stays with its service, whatever the order.
    terminal.keys("Home", "Down")
    time.sleep(0.4)
    assert selected(terminal) == [ports[1]]
    terminal.keys("r")
    terminal.wait_for("PORT▼")
    shows(terminal, ports[::-1])
    assert selected(terminal) == [ports[1]]
    terminal.keys("Down", "Down", "Down")
    time.sleep(0.4)
    assert selected(terminal) == [ports[0]]
    terminal.keys("/")
    terminal.type("nothing like it")
    terminal.wait_for(r"0 of 3 services match nothing like it")
    terminal.keys("Escape")
    terminal.wait_for(r"3 of 3 services")
    terminal.keys("?")
    terminal.wait_for("PROCESS +who serves it")
    terminal.keys("x")
    terminal.wait_for("3 of 3 services")
    leave(terminal)


def test_pause_stops_the_screen_and_loses_nothing(start, terminal, tmp_path):
    lab = start(Lab())
    show(terminal, "--port", lab.port, "--json", tmp_path / "run.json")
    terminal.keys("p")
    terminal.wait_for("PAUSED")
    before = terminal.screen()
    Driver(lab.url, connections=1, count=500)
    time.sleep(0.8)
    assert terminal.screen() == before
    terminal.keys("p", "Enter")
    # Requests during the pause count in the next interval.
    terminal.wait_for(r"S service +500 ")
    leave(terminal)


@pytest.mark.parametrize("columns, lines", [(80, 24), (132, 50), (40, 10), (20, 5), (2, 2)])
def test_every_size_and_resizing(start, terminal, columns, lines):
    lab = start(Lab())
    show(terminal, "--port", lab.port)
    terminal.resize(columns, lines)
    for keys in (("Enter",), ("?",), ("x",), ("Escape",)):
        time.sleep(0.35)
        terminal.keys(*keys)
    time.sleep(0.7)
    screen = terminal.screen()
    assert max(map(len, screen)) <= columns
    assert screen[0].startswith(" sojourn live"[:max(columns - 12, 1)])
    if columns >= 80:
        assert [words[0] for words in rows(terminal)] == [str(lab.port)]
        assert ("ROOM" in "\n".join(screen)) == (columns > 80)
        assert "q quit" in screen[lines - 1]
    terminal.resize(80, 24)
    terminal.wait_for(r"REQ/S.*FDS$")
    leave(terminal)


@pytest.mark.parametrize("columns", [60, 70])
def test_no_time_loses_its_unit(start, columns):
    """On a narrow screen columns are left out, and a cut text ends with an ellipsis. The server takes 2 ms."""
    lab, terminal = start(Lab("--service", "2ms")), start(Terminal(columns, 14))
    driver = start(Process([DRIVER, lab.url, "-c", "2", "-d", "60s", "--quiet"]))
    show(terminal, "--port", lab.port)
    row = terminal.wait_for(rf"^>{lab.port} .*[1-9].* (\d[\d.]* ms) (\d[\d.]* ms)( +\d+)?$")
    assert nanoseconds(row[1]) >= 2e6 and nanoseconds(row[2]) >= 2e6
    terminal.wait_for(r"p pause  q quit$|…$")
    leave(terminal)
    driver.stop()


WAYS_OUT = {
    "q": (None, 0), "control-c": (None, 0), "for": (None, 0),
    "term": (signal.SIGTERM, 0), "hup": (signal.SIGHUP, 0),
    # The shell's exit status for a program that a signal ended.
    "quit": (signal.SIGQUIT, 131), "abort": (signal.SIGABRT, 134), "fault": (signal.SIGSEGV, 139),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_the_terminal_is_given_back(start, terminal, way):
    lab = start(Lab())
    number, status = WAYS_OUT[way]
    terminal.run("ulimit -c 0; stty -a > /dev/null; clear; stty -a | md5sum")
    modes = terminal.wait_for(r"^([0-9a-f]{32})  -")[1]
    show(terminal, "--port", lab.port, *(["--for", "1s"] if way == "for" else []))
    assert terminal.ask("alternate_on") == "1" and terminal.ask("cursor_flag") == "0"
    if number:
        child, = terminal.children()
        os.kill(child, number)
    elif way == "q":
        terminal.keys("q")
    elif way == "control-c":
        terminal.keys("C-c")
    terminal.wait_for(r"ready\$ *$")
    assert terminal.ask("alternate_on") == "0" and terminal.ask("cursor_flag") == "1"
    terminal.run("echo status=$?; stty -a | md5sum")
    terminal.wait_for(rf"^status={status}$")
    assert terminal.wait_for(r"^status=\d+\n([0-9a-f]{32})  -")[1] == modes


def test_stop_and_continue(start, terminal):
    lab = start(Lab())
    show(terminal, "--port", lab.port)
    terminal.keys("C-z")
    terminal.wait_for(r"Stopped")
    assert terminal.ask("alternate_on") == "0"
    terminal.run("fg")
    terminal.wait_for(r"REQ/S")
    leave(terminal)


def test_readable_without_colour_and_without_utf8(start):
    lab = start(Lab("--service", "1ms"))
    for environment, bar in (({"NO_COLOR": "1"}, "S{40}"), ({"TERM": "vt100", "LC_ALL": "C"}, "S{40}")):
        terminal = start(Terminal(env=environment))
        show(terminal, "--port", lab.port)
        Driver(lab.url, connections=2, count=200)
        terminal.keys("t")
        time.sleep(0.4)
        assert selected(terminal) == [str(lab.port)]
        terminal.keys("Enter")
        terminal.wait_for(bar)
        text = "\n".join(terminal.screen(styles=True))
        assert not re.search(r"\x1b\[[\d;]*\b[349][0-7]\b", text), "colours"
        if "LC_ALL" in environment:
            assert "\n".join(terminal.screen()).isascii()
            terminal.wait_for(r"S service .*ms")
        leave(terminal)


def test_a_process_cannot_write_to_the_terminal_by_its_name(start, terminal):
    code = ("import ctypes, socket, time\n"
            "ctypes.CDLL(None).prctl(15, b'\\x1b[2Jevil\\x07', 0, 0, 0)\n"
            "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
            "time.sleep(60)\n")
    server = start(["/usr/bin/python3", "-c", code])
    port = server.wait_for(r"^(\d+)$")[1]
    show(terminal, "--port", port)
    terminal.wait_for(rf"^>{port} +\?\[2Jevil")
    leave(terminal)


def test_alone_on_a_terminal_it_is_live(start, terminal):
    start(Lab())
    terminal.run(f"clear; {OBSERVER}")
    terminal.wait_for(r"^ sojourn live")
    leave(terminal)


@pytest.mark.parametrize("environment, words", [
    ({"TERM": "dumb"}, "TERM=dumb"), ({"TERM": "nonsense"}, "TERM=nonsense")])
def test_a_terminal_that_cannot_is_named(start, environment, words):
    terminal = start(Terminal())
    name, value = environment.popitem()
    terminal.run(f"clear; {name}={value} {OBSERVER} live; echo status=$?")
    terminal.wait_for(rf"{words}\) cannot be drawn on")
    terminal.wait_for(r"^status=1$")


def test_without_a_terminal_it_says_what_to_use():
    result = run([OBSERVER, "live"], check=False)
    assert result.status == 1
    assert "must be a terminal" in result.stderr and len(result.stderr.splitlines()) == 1
    assert run([OBSERVER], check=False).status == 2


@pytest.mark.parametrize("options, words", [
    (["--port", "0"], ["--port", "'0'"]), (["--json", "-"], ["--json", "'-'"]),
    (["wrk"], ["'wrk'"]), (["--pid", "1", "--port", "80"], ["only one"]),
    (["--listen", "80"], ["--listen", "unknown"])])
def test_wrong_options_are_one_line_and_exit_2(options, words):
    result = run([OBSERVER, "live", *options], check=False)
    assert result.status == 2 and len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_what_the_doctor_finds_is_shown(start, terminal):
    """Findings about unobserved services are shown, too; a service's page has only its own."""
    lab = start(Lab())
    hungry = start(out_of_descriptors())
    hungry.wait_for("^full$")
    finding, = [entry for entry in Doctor("--sample", "0").document["findings"]
                if str(hungry.pid) in entry["object"]]
    show(terminal, "--port", lab.port)
    beginning = f"{finding['object']}: {finding['what']}"[:60]
    terminal.wait_for(re.escape(beginning))
    terminal.wait_for(r"^Findings: \d+")
    terminal.keys("Enter")
    terminal.wait_for(r"residence")
    assert beginning not in "\n".join(terminal.screen())
    terminal.keys("Escape")
    terminal.wait_for(re.escape(beginning))
    hungry.stop()
    deadline = time.monotonic() + 15
    while beginning in "\n".join(terminal.screen()):
        assert time.monotonic() < deadline, "a finding of what has ended stays"
        time.sleep(0.2)
    leave(terminal)


def test_messages_are_shown(terminal):
    """A service of WebSocket has a line of its own: in no stage is there a message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        show(terminal, "--http", "--port", listener.getsockname()[1])
        terminal.keys("Enter")
        terminal.wait_for("residence")
        assert "WebSocket" not in "".join(terminal.screen())
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n")
            server.recv(4096)
            server.sendall(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x81\x01a\x81\x01b")
            client.recv(4096)
            for _ in range(3):
                client.sendall(b"\x81\x81\0\0\0\0c")
                server.recv(4096)
            terminal.keys("t")
            terminal.wait_for(r"WebSocket messages in 3, out 2 · server-sent events 0 · given up 0")
    leave(terminal)


def test_who_is_connected(start, terminal):
    """A service's clients by address, the busiest first, as in ss."""
    lab = start(Lab(address="0.0.0.0"))
    with contextlib.ExitStack() as stack:
        for last, count in ((2, 3), (3, 12), (4, 7)):
            for _ in range(count):
                stack.enter_context(socket.create_connection(
                    ("127.0.0.1", lab.port), source_address=(f"127.0.0.{last}", 0)))
        show(terminal, "--port", lab.port)
        terminal.keys("Enter")
        terminal.wait_for("residence")
        terminal.keys("c")
        total = len(sockets("established", f"( sport = :{lab.port} )"))
        assert total == 22
        terminal.wait_for(r"clients now: 3 addresses, 22 connections\n"
                          r" 127\.0\.0\.3 +12 +54\.5 %.*\n 127\.0\.0\.4 +7 +31\.8 %.*\n"
                          r" 127\.0\.0\.2 +3 +13\.6 %")
    terminal.wait_for(r"clients now: 0 addresses")
    terminal.keys("c")
    terminal.wait_for(r"socket queue p99")
    leave(terminal)


def test_a_wide_screen_is_filled(start):
    """Stages as bars, distributions on one axis, charts side by side, and the parts of service."""
    lab, terminal = start(Lab("--service", "2ms")), start(Terminal(200, 50))
    show(terminal, "--port", lab.port, "--cpu")
    Driver(lab.url, connections=1, count=300)
    terminal.keys("t")
    terminal.wait_for(r"since the start")
    terminal.wait_for(rf"^>{lab.port} .* 100% +█{{40}} ")  # nearly all of the time is service
    terminal.keys("Enter")
    terminal.wait_for(r"S service +300 ")
    terminal.wait_for(r"^ █{198}$")
    terminal.wait_for(r"^ requests/s .* max .* accepts/s .* max ")
    # The server sleeps for 2 ms: it is neither on a CPU nor waiting for one.
    blocked = terminal.wait_for(r"^ +blocked +(\d+)" + TIME)
    assert int(blocked[1]) <= 300 and 1.9e6 <= nanoseconds(blocked[2]) < 2e7
    axis, service = (next(line for line in terminal.screen() if re.search(words, line))
                     for words in (r"1 µs .* 1 ms", r"S service "))
    assert service.index("█") > axis.index(" 1 ms")
    leave(terminal)


def test_only_a_wait_that_matters_is_warned_of(start):
    """The server is held while requests come, which wait for far more than 5 ms."""
    lab, terminal = start(Lab()), start(Terminal(120, 24))
    show(terminal, "--port", lab.port, "--no-doctor")
    terminal.keys("t")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", lab.port)))
                   for _ in range(20)]

        def ask():
            for client in clients:
                client.sendall(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")

        def take():
            for client in clients:
                assert client.recv(65536).startswith(b"HTTP/1.1 200")

        ask()
        take()
        os.kill(lab.pid, signal.SIGSTOP)
        try:
            ask()
            terminal.wait_for(r" open 20, oldest \d")
            time.sleep(0.1)  # twenty times the limit of the warning
        finally:
            os.kill(lab.pid, signal.SIGCONT)
        take()
    found = terminal.wait_for(r"- \d+: requests wait longer \(p99 (\S+ \S+)\) than they are worked on")
    assert nanoseconds(found[1]) > 5e6
    leave(terminal)
