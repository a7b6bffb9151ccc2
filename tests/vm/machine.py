# SPDX-License-Identifier: MIT
"""Boots a kernel once, runs scenes.sh in it, and holds what it said for the tests to look at."""
import csv
import functools
import io
import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from support import ROOT

SKIPPED = 77  # tools/vm: this machine cannot run it
LIMIT_SECONDS = 150
SCENES = Path(__file__).with_name("scenes.sh")


class Scene:
    """One run of lab server, observer and driver: its documents and the lab server's own times."""

    def __init__(self, parts):
        self.status = int(parts["status"])
        self.stderr = parts["stderr"]
        self.run = json.loads(parts["run"])
        self.other = json.loads(parts["other"])["services"][0] if "other" in parts else None
        self.driver = json.loads(parts["drive"])["driver"]
        self.truth = [{name: value if name == "peer" else int(value) for name, value in row.items()}
                      for row in csv.DictReader(io.StringIO(parts["truth"]))]
        assert len(self.run["services"]) == 1, self.run["services"]
        self.service = self.run["services"][0]

    def stage(self, name):
        stage = self.service["stages"][name]
        assert stage.get("measured", True), stage
        return stage

    def mean_truth(self, begin, end):
        return sum(row[end] - row[begin] for row in self.truth) / len(self.truth)


class Machine:
    """A booted kernel's answers, by name; machine.scene("service"), machine.said("probe")"""

    def __init__(self, kernel, text, seconds):
        self.kernel = kernel
        self.seconds = seconds
        pieces = re.split(r"^=== (\S+)\r?\n", text, flags=re.MULTILINE)
        self.parts = {name: body.strip("\n") for name, body in zip(pieces[1::2], pieces[2::2])}

    def said(self, name):
        """(exit status, standard output, standard error)"""
        return (int(self.parts[f"{name}.status"]), self.parts[f"{name}.stdout"],
                self.parts[f"{name}.stderr"])

    @functools.cached_property
    def probe(self):
        return json.loads(self.said("probe")[1])

    def measures(self, *stages):
        return all(self.probe["stages"][stage]["measured"] for stage in stages)

    def scene(self, name):
        return Scene({part: self.parts[f"{name}.{part}"]
                      for part in ("status", "stderr", "run", "drive", "truth", "other")
                      if f"{name}.{part}" in self.parts})


@functools.cache
def booted(kernel, parameters, scenes):
    """The Machine of a kernel; a text if it cannot be run here."""
    begun = time.monotonic()
    done = subprocess.run([ROOT / "tools" / "vm", "--limit", str(LIMIT_SECONDS), "--file", SCENES,
                           "--append", parameters, kernel, "--", "sh", "/scenes.sh", scenes], check=False, capture_output=True,
                          text=True, timeout=LIMIT_SECONDS + 60, stdin=subprocess.DEVNULL)
    if done.returncode == SKIPPED:
        return done.stderr.strip()
    assert done.returncode == 0, f"{done.stderr[-4000:]}\n{done.stdout[-4000:]}"
    return Machine(kernel, done.stdout, time.monotonic() - begun)


def machine(kernel, parameters="", scenes="all"):
    """The same, but skips the test."""
    answer = booted(kernel, parameters, scenes)
    if isinstance(answer, str):
        pytest.skip(answer)
    return answer
