# SPDX-License-Identifier: MIT
"""The unit tests under valgrind, which finds what the sanitizers do not: uninitialised values. In tools/nightly: in
tools/check they run with the sanitizers, and the programs, which are not built with these, under valgrind.

ctest checks their assertions; here a test that waits may be too late.
"""
import functools
import json
import subprocess
from pathlib import Path

import pytest

from support import BUILD
from support.conditions import needs_program
from support.valgrind import checked

pytestmark = [needs_program("valgrind"), pytest.mark.timeout(600), pytest.mark.long]


@functools.cache
def programs():
    """Return {name: (command, folder)} of every program of the label unit."""
    text = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    for test in json.loads(text)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        command = test.get("command", [])
        if "unit" in properties.get("LABELS", []) and is_program(command):
            found[test["name"]] = (command, properties["WORKING_DIRECTORY"])
    return found


def is_program(command):
    """Whether it is a program and no script, whose interpreter would be checked instead."""
    return bool(command) and Path(command[0]).is_relative_to(BUILD)


@pytest.mark.parametrize("name", programs())
def test_unit(name, monkeypatch):
    command, folder = programs()[name]
    monkeypatch.chdir(folder)
    checked(command, status=None, seconds=580)
