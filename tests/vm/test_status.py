# SPDX-License-Identifier: MIT
"""tools/vm ends with the status of the machine's command: a script that broke off must not count as passed. And it leaves
no machine behind.
"""
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import ROOT
from support.process import stat_fields, wait_until

SKIPPED = 77  # tools/vm: this machine cannot run it


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_status_is_the_commands():
    done = subprocess.run([ROOT / "tools" / "vm", "--limit", "240", "6.1", "--", "sh", "-c", "echo said; exit 7"],
                          check=False, capture_output=True, text=True)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stdout.strip()) == (7, "said"), done.stderr


def machines(session):
    """Return the emulators of that session that run a kernel."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            program, *words = (process / "cmdline").read_bytes().split(b"\0")
            if b"qemu" in program and b"-kernel" in words and int(stat_fields(process)[3]) == session:
                found.append(process.name)
    return found


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_machine_ends_with_its_group():
    """As tests/vm/machine.py ends it when somebody interrupts the tests."""
    with subprocess.Popen([ROOT / "tools" / "vm", "--limit", "240", "6.1", "--", "sleep", "200"], start_new_session=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: machines(process.pid) or process.poll() is not None, seconds=120)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
    if process.returncode == SKIPPED:
        pytest.skip("tools/vm cannot run here")
    assert process.returncode == -signal.SIGTERM
    wait_until(lambda: not machines(process.pid), seconds=10)
