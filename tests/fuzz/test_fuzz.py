# SPDX-License-Identifier: MIT
"""Every fuzz target is built, survives its seeds and some hundred fixed inputs made from them, and reaches the
code edges required by tests/fuzz/CMakeLists.txt. Longer runs: tools/fuzz."""
import os
import re
import subprocess

import pytest

from support import ROOT

TOOL = ROOT / "tools" / "fuzz"
NOT_INSTALLED = 77
RUNS = "500"
TARGETS = re.findall(r"^fuzz_target\((\w+) ", (ROOT / "tests/fuzz/CMakeLists.txt").read_text(), re.MULTILINE)
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def told():
    done = subprocess.run([TOOL, "--runs", RUNS], capture_output=True, text=True, check=False)
    if done.returncode == NOT_INSTALLED:
        pytest.skip(done.stdout.strip())
    return done.stdout + done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_target(told, target):
    assert re.search(rf"^{target}: passed, \d+ runs, \d+ edges", told, re.MULTILINE), told


def test_a_floor_can_be_missed(told, tmp_path):
    """A target below its floor fails, with the missing number."""
    assert re.search(r"^\d+ passed, \d+ failed$", told, re.MULTILINE), told
    table = tmp_path / "table"
    table.write_text("fuzz_target(grpc sojourn_drive_core 99999)\n")
    done = subprocess.run([TOOL, "--runs", "1"], env=dict(os.environ, SOJOURN_FUZZ_TABLE=str(table)),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"^grpc: FAILED: reaches \d+ edges, at least 99999 are wanted$", done.stdout,
                     re.MULTILINE), done.stdout


def test_an_input_can_take_too_long(told):
    """The limit is of CPU time: what passes while others have the CPU does not count."""
    assert re.search(r"^\d+ passed, \d+ failed$", told, re.MULTILINE), told
    done = subprocess.run([TOOL, "--runs", "1", "report_forms"], env=dict(os.environ, SOJOURN_FUZZ_LIMIT_MS="1"),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "fuzz: this input takes too much CPU time" in done.stdout
