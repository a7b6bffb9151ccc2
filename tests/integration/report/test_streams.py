# SPDX-License-Identifier: MIT
"""Standard streams that are closed, full or abandoned, and files larger than memory."""
import os
import resource
import signal
import subprocess

import pytest

from support.programs import DRIVER, OBSERVER, Lab

GIB = 1 << 30


def shell(line, *words):
    return subprocess.run(["sh", "-c", line, "sh", *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", [[OBSERVER, "version"], [OBSERVER, "probe"], [OBSERVER, "observe", "--help"],
                                     [DRIVER, "--help"], [DRIVER, "--version"]])
def test_a_full_device_is_a_failure(command):
    done = shell('"$@" >/dev/full', *command)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


def test_a_summary_that_nobody_can_keep_is_a_failure(start):
    lab = start(Lab())
    done = shell('"$@" >/dev/full', OBSERVER, "observe", "--port", str(lab.port), "--for", "300ms")
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr


@pytest.mark.parametrize("program", ["observer", "driver"])
def test_a_file_that_may_not_get_larger_costs_only_that_file(start, tmp_path, program):
    """Earlier SIGXFSZ ended the program before it had printed anything."""
    lab = start(Lab())
    path = tmp_path / "run.json"
    command = {"observer": [OBSERVER, "observe", "--port", str(lab.port), "--for", "300ms"],
               "driver": [DRIVER, lab.url, "-d", "300ms"]}[program]
    done = shell('ulimit -f 1; "$@"', *command, "--json", path)
    assert done.returncode == 1 and f"cannot write '{path}': File too large" in done.stderr
    assert f"tcp 127.0.0.1:{lab.port}" in done.stdout or "round trip" in done.stdout
    assert not path.exists()


def test_a_command_keeps_the_signal_of_the_limit():
    done = shell('"$@"', OBSERVER, "observe", "--port", "1", "--quiet", "--", "sh", "-c", "grep SigIgn /proc/$$/status")
    assert not int(done.stdout.split()[1], 16) & 1 << (signal.SIGXFSZ - 1)


def test_a_reader_that_has_seen_enough_is_none():
    done = shell('{ "$@"; echo $? >&2; } | head -1', OBSERVER, "observe", "--help")
    assert done.stdout.startswith("Usage") and done.stderr.strip() in ("0", "141")


def test_a_closed_stderr_is_not_in_the_recording(start, tmp_path):
    """Earlier the recording took the free descriptor of stderr, and so got the log."""
    lab = start(Lab())
    path = tmp_path / "run.rec"
    shell('"$@" 2>&- >&- <&-', OBSERVER, "record", "-o", path, "--port", str(lab.port), "--for", "1500ms")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 2 and all(line.startswith('{"schema":"sojourn.') for line in lines)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_change_no_result(start, closed):
    lab = start(Lab())
    done = shell(f'"$@" {closed}', DRIVER, lab.url, "-n", "20", "--json", "-")
    assert done.returncode == 0
    assert '"requests": 20' in done.stdout or '"requests":20' in done.stdout


def test_a_recording_longer_than_memory(tmp_path):
    """A sparse file: its line of zeros is damaged, and costs no memory."""
    path = tmp_path / "sparse.rec"
    path.write_text('{"schema":"sojourn.recording/1"}\n', encoding="ascii")
    os.truncate(path, 3 * GIB)
    done = subprocess.run([OBSERVER, "report", path], capture_output=True, text=True, timeout=60, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB)))
    assert done.returncode in (1, 2) and "without one whole reading" in done.stderr
