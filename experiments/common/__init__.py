# SPDX-License-Identifier: MIT
"""Code shared by the experiments; this file lists and loads them."""
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments"

# support: helpers of the Python tests, with which experiments also start programs.
for _path in (ROOT, ROOT / "tests"):
    if str(_path) not in sys.path:
        sys.path.insert(0, str(_path))


def names():
    return sorted(path.parent.name for path in FOLDER.glob("*/experiment.py"))


def load(name):
    """Return the module of an experiment. It has PACKAGES (of Debian, whose versions the page names),
    TITLE and run(context), which returns a page.Page. UNPACKED names packages that are not installed."""
    path = FOLDER / name / "experiment.py"
    spec = importlib.util.spec_from_file_location("experiment_" + name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
