# SPDX-License-Identifier: MIT
"""A recording in the live view: played, stopped, stepped, cut off."""
import os
import shutil
import signal
import tempfile
import time

import pytest

from support.conditions import needs_program
from support.documents import parse, service
from support.process import run
from support.programs import OBSERVER, Driver, Lab
from support.terminal import Terminal

pytestmark = needs_program("tmux")


@pytest.fixture
def terminal(start):
    return start(Terminal())


@pytest.fixture
def recording(start, tmp_path):
    """A recording in intervals of 300 ms, with 400 answered requests in one of them."""
    lab, path = start(Lab()), tmp_path / "a.rec"
    recorder = start([OBSERVER, "record", "-o", path, "--interval", "300ms", "--no-doctor", "--port", lab.port])

    def wait(count):
        deadline = time.monotonic() + 20
        while not path.exists() or path.read_bytes().count(b"\n") < count:
            assert recorder.running() and time.monotonic() < deadline
            time.sleep(0.02)
    wait(4)
    Driver(lab.url, connections=2, count=400)
    wait(path.read_bytes().count(b"\n") + 3)
    assert recorder.stop() == 0
    return path, lab.port


def readings(path, port):
    return [service(parse(line), port)["exchanges"]
            for line in path.read_text().splitlines() if '"sojourn.run/1"' in line[:30]]


def position(terminal):
    return int(terminal.wait_for(r"replay (\d+) of (\d+)")[1])


def shows(terminal, at, counts):
    """Wait for reading @at (from 1), and its difference to the previous one."""
    requests = counts[at - 1] - counts[at - 2]
    terminal.wait_for(rf"replay {at} of {len(counts)} [\s\S]*^   residence +{requests} ")


def leave(terminal):
    terminal.keys("q")
    terminal.wait_for(r"^ready\$ *$")
    assert terminal.ask("alternate_on") == "0"


def test_stepped_forth_and_back(terminal, recording):
    path, port = recording
    counts = readings(path, port)
    assert counts[-1] == 400
    terminal.run(f"clear; {OBSERVER} live --replay {path}")
    terminal.wait_for(r"replay")
    terminal.keys("Space")
    terminal.wait_for("PAUSED")
    terminal.keys("Enter")
    at = position(terminal)
    time.sleep(0.8)
    assert position(terminal) == at
    for _ in range(at - 2):
        terminal.keys(",")
    shows(terminal, 2, counts)
    for at in range(3, len(counts) + 1):
        terminal.keys(".")
        shows(terminal, at, counts)
    terminal.wait_for("END")
    terminal.keys(".")
    shows(terminal, len(counts), counts)
    terminal.keys("t")
    terminal.wait_for(r"^   residence +400 ")
    terminal.keys(",", ",")
    terminal.wait_for(rf"replay {len(counts) - 2} of")
    # Another service, the help, another size: the pages are the live view's.
    terminal.keys("?")
    terminal.wait_for(r"replay: a reading forth, back; faster, slower")
    terminal.resize(60, 15)
    terminal.keys("x", "Escape")
    terminal.wait_for(r"REQ/S")
    leave(terminal)


def test_played_to_its_end_faster(terminal, recording):
    path, port = recording
    terminal.run(f"clear; {OBSERVER} live --replay {path}")
    terminal.wait_for(r"replay \d+ of")
    terminal.keys("+", "+", "+")
    terminal.wait_for(r" x8 ")
    terminal.keys("-")
    terminal.wait_for(r" x4 ")
    count = len(readings(path, port))
    terminal.wait_for(rf"replay {count} of {count} · x4 · END")
    terminal.keys("t")
    terminal.wait_for(rf"^>{port} ")
    leave(terminal)


def test_cut_off_and_by_anybody(terminal, recording):
    """Any user who may read the file may play it: nothing is loaded, no privilege is needed."""
    path, port = recording
    count = len(readings(path, port))
    with tempfile.TemporaryDirectory(prefix="sojourn-replay.") as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(path, folder)
        os.chmod(copy, 0o644)  # recordings belong to their owner, who gives this one away
        os.truncate(copy, path.stat().st_size - 100)
        play_as_nobody(terminal, copy, count)


def play_as_nobody(terminal, path, count):
    nobody = "setpriv --reuid 65534 --clear-groups --bounding-set -all --inh-caps -all"
    terminal.run(f"clear; {nobody} {OBSERVER} live --replay {path}; echo status=$?")
    terminal.wait_for(r"replay|status=")
    if "cannot execute" in "\n".join(terminal.screen()):
        pytest.skip("the build is nobody else's to run")
    terminal.wait_for(rf"replay {count - 1} of {count - 1} .*END")
    child, = terminal.children()
    os.kill(child, signal.SIGTERM)
    terminal.wait_for(r"ready\$ *$")
    assert terminal.ask("alternate_on") == "0"
    terminal.wait_for(r"^status=0$")


def test_what_is_no_recording(terminal, tmp_path):
    (tmp_path / "run.json").write_text('{"schema":"sojourn.run/1"}\n')
    for name, status, words in (("run.json", 2, "not a recording"), ("none", 1, "No such file")):
        terminal.run(f"clear; {OBSERVER} live --replay {tmp_path}/{name}; echo status=$?")
        terminal.wait_for(rf"^status={status}$")
        terminal.wait_for(words)


def test_replay_takes_no_other_option():
    result = run([OBSERVER, "live", "--replay", "a.rec", "--port", "80"], check=False)
    assert result.status == 2 and "--replay" in result.stderr
    assert len(result.stderr.splitlines()) == 1
