# SPDX-License-Identifier: MIT
"""Completions offer the commands and options that the programs' help has."""
import shutil
import subprocess

import pytest

from support.programs import BUILD

FOLDER = BUILD / "docs" / "completions"
COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sojourn "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words):
    """Return what bash offers for the last word."""
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", FOLDER / "sojourn.bash", *words], check=True,
                          capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("words, offered", [
    (["sojourn", "do"], {"doctor"}),
    (["sojourn", "observe", "--all-n"], {"--all-netns"}),
    (["sojourn-drive", "fl"], {"fleet"}),
    (["sojourn-drive", "fleet", "--ho"], {"--hosts"}),
    (["sojourn", "drive", "fleet", "--ho"], {"--hosts"}),
    (["sojourn", "drive", "a"], {"agent"}),
    (["/usr/bin/sojourn-drive", "--arri"], {"--arrival"}),
    (["sojourn-drive", "http://127.0.0.1/", "--arri"], {"--arrival"}),
    (["sojourn-drive", "fleet", "--arri"], set()),
    (["sojourn-drive", "--via"], set())], ids=" ".join)
def test_bash(words, offered):
    assert completed(*words) == offered


@pytest.mark.parametrize("shell, file", [("zsh", "_sojourn"), ("fish", "sojourn.fish")])
def test_other_shells_can_read_theirs(shell, file):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n", FOLDER / file], check=True)
