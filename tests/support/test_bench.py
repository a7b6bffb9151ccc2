# SPDX-License-Identifier: MIT
"""Invalid options of the benchmarks are refused before anything runs, without a traceback."""
import sys
from pathlib import Path

import pytest

from . import ROOT
from .process import run


@pytest.mark.parametrize("bench, option, value", [
    ("observer", "--tails", "1"), ("observer", "--rounds", "1"), ("observer", "--window", "0"),
    ("counts", "--requests", "0"), ("counts", "--connections", "-1"), ("doctor", "--rounds", "1"),
    ("doctor", "--sockets", "0"), ("driver", "--rounds", "1"), ("driver", "--seconds", "half"),
    ("soak", "--seconds", "9"), ("schedule", "--seconds", "61"), ("schedule", "--rounds", "1"), ("syscalls", "--rounds", "1"), ("peers", "--windows", "0"), ("syscalls", "--count", "0")])
def test_refused(bench, option, value):
    done = run([sys.executable, ROOT / "tests" / "bench" / f"{bench}.py", f"{option}={value}"], check=False)
    assert done.status == 2
    assert f"argument {option}: '{value}' is not allowed: a " in done.stderr
    assert "Traceback" not in done.stderr and not done.stdout


def test_figures_name_the_host():
    """A BPF program's cost depends on the host: figures without their host mean nothing on another one."""
    done = run([sys.executable, "-c", "import common; print(common.machine())"], env={"PYTHONPATH": str(ROOT / "tests" / "bench")})
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text(encoding="ascii").strip()
    assert f"clock source: {clock};" in done.stdout
    assert "mitigations: " in done.stdout and "virtualisation: " in done.stdout
