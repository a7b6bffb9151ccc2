# SPDX-License-Identifier: MIT
"""A doctor that runs beside a client that exhausts something: its findings, their times, and its report."""
import json
import time

from support.findings import ended_at
from support.process import run
from support.programs import OBSERVER


class Watch:
    """`sojourn doctor --watch --json` in a place, in `with`; `ours` selects the relevant findings."""

    def __init__(self, context, *options, place, interval, ours=lambda finding: True, label=None):
        self.place, self.options, self.ours = place, options, ours
        self.process = context.start([OBSERVER, "doctor", "--json", "--interval", interval, *options],
                                     place, label=label)
        self.process.wait_for("\n", seconds=30)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.close()

    def looks(self):
        """Return all its readings so far, one document each."""
        lines = self.process.stdout.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def firsts(self):
        """Return {id: the finding as it first appeared, with that time as `at` in seconds since 1970}, in their order."""
        found = {}
        for look in self.looks():
            for finding in look["findings"]:
                if self.ours(finding):
                    found.setdefault(finding["id"], {"at": ended_at(look), **finding})
        return found

    def until(self, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition(self.firsts()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def text(self):
        """Return the output for a user who runs the doctor now."""
        return run([OBSERVER, "doctor", *self.options], netns=self.place, check=False).stdout
