# SPDX-License-Identifier: MIT
"""tools/demo, the README's first command, and its fleet of two hosts in network namespaces."""
import os
import re
import signal
import subprocess

import pytest

from support import BUILD, ROOT
from support.process import run, wait_until

DEMO = ["tools/demo", "--no-setup", "--seconds", "1", "--service", "2ms"]


def namespaces():
    """Return those that a demo has made."""
    return [line.split()[0] for line in run(["ip", "netns", "list"]).stdout.splitlines()
            if line.startswith("sojourn-demo-")]


def begin(*options):
    return subprocess.Popen([*DEMO, *options], cwd=ROOT, env={**os.environ, "SOJOURN_BUILD": str(BUILD)},
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("options", [[], ["--fleet"]])
def test_it_names_the_stage_that_takes_the_time(options):
    demo = begin(*options)
    report, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, report
    assert re.search(r"service +\d\.\d+ ms .*true server-side latency", report), report
    assert re.search(r"[1-9][\d,]* requests", report), report
    assert ("2 members" in report) == bool(options), report
    assert not namespaces()


def test_a_fleet_that_is_interrupted_leaves_nothing():
    demo = begin("--fleet", "--seconds", "60")
    wait_until(lambda: len(namespaces()) == 3)
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(30) == 1
    assert not namespaces()
