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
# Other tests use the programs meanwhile, so nothing is built: this notes what the demo asks of CMake.
CMAKE = """#!/bin/sh
echo "$*" >>"${0%/*}/asked"
"""


def namespaces(demo):
    """Return those that this demo has made: it names them after its process."""
    return [line.split()[0] for line in run(["ip", "netns", "list"]).stdout.splitlines()
            if re.match(rf"sojourn-demo-\w+-{demo.pid}\b", line)]


@pytest.fixture(name="begin")
def begin_fixture(tmp_path):
    cmake = tmp_path / "cmake"
    cmake.write_text(CMAKE)
    cmake.chmod(0o755)
    environment = {**os.environ, "SOJOURN_BUILD": str(BUILD), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    yield lambda *options: subprocess.Popen([*DEMO, *options], cwd=ROOT, env=environment, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (tmp_path / "asked").read_text().splitlines() == [f"-S . -B {BUILD}", f"--build {BUILD} --parallel"]


@pytest.mark.parametrize("options", [[], ["--fleet"]])
def test_it_names_the_stage_that_takes_the_time(begin, options):
    demo = begin(*options)
    report, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, report
    assert re.search(r"service +\d\.\d+ ms .*true server-side latency", report), report
    assert re.search(r"[1-9][\d,]* requests", report), report
    assert ("2 members" in report) == bool(options), report
    assert not namespaces(demo)


def test_a_fleet_that_is_interrupted_leaves_nothing(begin):
    demo = begin("--fleet", "--seconds", "60")
    wait_until(lambda: len(namespaces(demo)) == 3)
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(30) == 1
    assert not namespaces(demo)
