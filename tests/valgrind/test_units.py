# SPDX-License-Identifier: MIT
"""The unit tests under valgrind, which finds what the sanitizers do not: uninitialised values.

ctest checks their assertions; here a test that waits may be too late.
"""
import json
import subprocess
from pathlib import Path

import pytest

from support import BUILD
from support.conditions import needs_program
from support.valgrind import checked

pytestmark = [needs_program("valgrind"), pytest.mark.timeout(600)]

# Tests of 2 s and more under valgrind, up to a minute: by --label only.
LONG = {"unit.driver.scenario", "unit.lib.run_file", "unit.lib.run_hostile", "unit.lib.run_json",
        "unit.lib.run_samples", "unit.lib.trace", "unit.observer.http_abuse", "unit.observer.http_requests",
        "unit.observer.live", "unit.observer.player", "unit.observer.recording"}


def units():
    """Yield name, command and folder of every program of the label unit."""
    text = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    for test in json.loads(text)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        command = test.get("command", [])
        if "unit" in properties.get("LABELS", []) and is_program(command):
            marks = [pytest.mark.long] if test["name"] in LONG else []
            yield pytest.param(command, properties["WORKING_DIRECTORY"], id=test["name"], marks=marks)


def is_program(command):
    """Whether it is a program and no script, whose interpreter would be checked instead."""
    return bool(command) and Path(command[0]).is_relative_to(BUILD)


@pytest.mark.parametrize("command, folder", units())
def test_unit(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    checked(command, status=None, seconds=580)
