# SPDX-License-Identifier: MIT
"""The tree compiled for arm64 (tools/cross), and run in qemu's user emulation, which has no eBPF. In tools/nightly, as
it takes minutes; tools/check compiles bpf/ for arm64."""
import functools
import json
import os
import re
import subprocess

import pytest

from support import BUILD, ROOT
from support.process import run
from support.programs import Lab

SKIPPED = 77
LIMIT_SECONDS = 1500  # at idle priority
pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), pytest.mark.long]

NOT_EMULATED = r"\.run_hostile$"  # takes minutes there


def ctest(folder, *options):
    return subprocess.run(["ctest", "--test-dir", folder, *options], check=False,
                          capture_output=True, text=True)


@functools.cache
def units():
    """Return the names of the unit tests of the code that both programs share."""
    listed = json.loads(ctest(BUILD, "--show-only=json-v1").stdout)["tests"]
    return [test["name"] for test in listed
            if test["name"].startswith("unit.lib.") and not re.search(NOT_EMULATED, test["name"])]


def target_of(test):
    return test.replace(".", "_")


@functools.cache
def built():
    targets = ["sojourn", "sojourn-drive", *map(target_of, units())]
    return subprocess.run([ROOT / "tools/cross", *targets], check=False, capture_output=True,
                          text=True, timeout=LIMIT_SECONDS)


@pytest.fixture(name="folder")
def _folder():
    """Return the build folder; skip with the reason if there is none."""
    done = built()
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def emulated(folder, program):
    return ["qemu-aarch64", "-L", os.path.join(os.path.dirname(folder), "root"),
            os.path.join(folder, program)]


@pytest.mark.parametrize("program", ["observer/sojourn", "driver/sojourn-drive"])
def test_programs_are_of_that_machine(folder, program):
    with open(os.path.join(folder, program), "rb") as file:
        header = file.read(20)
    assert header[:4] == b"\x7fELF"
    assert int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64
    done = run([*emulated(folder, program), "--version"])
    assert done.stdout == run([BUILD / program, "--version"]).stdout


def test_units(folder):
    done = ctest(folder, "--output-on-failure", "--timeout", "300", "--no-tests=error",
                 "--tests-regex", "^(" + "|".join(map(re.escape, units())) + ")$")
    assert done.returncode == 0, done.stdout
    assert f"out of {len(units())}" in done.stdout


def test_the_driver_counts_what_the_server_counts(folder, start, tmp_path):
    summary, document = tmp_path / "summary.json", tmp_path / "run.json"
    lab = start(Lab("--summary", summary))
    run([*emulated(folder, "driver/sojourn-drive"), lab.url, "-c", "8", "-n", "2000", "--quiet",
         "--json", document], seconds=120)
    lab.stop()
    driver = json.loads(document.read_text())["driver"]
    assert driver["requests"] == 2000
    assert not any(driver["errors"].values())
    assert json.loads(summary.read_text())["exchanges"] == 2000
    # Both machines print the same report of a document.
    texts = [run([*command, "report", document]).stdout
             for command in (emulated(folder, "observer/sojourn"), [BUILD / "observer/sojourn"])]
    assert texts[0] == texts[1]
    assert "2,000 requests" in texts[0]
