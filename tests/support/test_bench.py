# SPDX-License-Identifier: MIT
"""Invalid options of the benchmarks are refused before anything runs, without a traceback."""
import sys
from pathlib import Path

import pytest

from . import ROOT
from .process import run


@pytest.mark.parametrize("bench, option, value", [
    ("observer", "--tails", "1"), ("observer", "--burden", "91"), ("observer", "--rounds", "1"), ("observer", "--window", "0"),
    ("counts", "--requests", "0"), ("counts", "--connections", "-1"), ("doctor", "--rounds", "1"),
    ("doctor", "--sockets", "0"), ("driver", "--rounds", "1"), ("driver", "--seconds", "half"),
    ("soak", "--seconds", "9"), ("start", "--rounds", "1"), ("schedule", "--seconds", "61"), ("schedule", "--rounds", "1"), ("syscalls", "--rounds", "1"), ("peers", "--windows", "0"), ("syscalls", "--count", "0")])
def test_refused(bench, option, value):
    done = run([sys.executable, ROOT / "tests" / "bench" / f"{bench}.py", f"{option}={value}"], check=False)
    assert done.status == 2
    assert f"argument {option}: '{value}' is not allowed: a " in done.stderr
    assert "Traceback" not in done.stderr and not done.stdout


JUDGED = """
import random, sys, paired
def window(slower):
    counts = {}
    for _ in range(1000):
        bucket = paired.bucket(random.lognormvariate(13, 0.5) * slower)
        counts[bucket] = counts.get(bucket, 0) + 1
    return counts
random.seed(20)
for slower in 1, 1.1:
    found = paired.Verdict([(window(1), window(slower)) for _ in range(200)])
    print(found.probability < 0.001, found.least < 1 < found.most, found.pooled)
"""


def test_slower_tail_is_found():
    """Requests that take 1.1 times as long have a p99 that is 1.1 times as high; equal ones do not differ."""
    done = run([sys.executable, "-c", JUDGED], env={"PYTHONPATH": str(ROOT / "tests" / "bench")})
    equal, slower = (line.split() for line in done.stdout.splitlines())
    assert equal[:2] == ["False", "True"] and 0.97 < float(equal[2]) < 1.03
    assert slower[:2] == ["True", "False"] and 1.06 < float(slower[2]) < 1.14


def test_figures_name_the_host():
    """A BPF program's cost depends on the host: figures without their host mean nothing on another one."""
    done = run([sys.executable, "-c", "import common; print(common.machine())"], env={"PYTHONPATH": str(ROOT / "tests" / "bench")})
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text(encoding="ascii").strip()
    assert f"clock source: {clock};" in done.stdout
    assert "mitigations: " in done.stdout and "virtualisation: " in done.stdout
