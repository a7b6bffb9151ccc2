# SPDX-License-Identifier: MIT
"""Shared by the tests of experiments. All of them observe and so need BPF; each runs the quick form."""
import json
import os
from pathlib import Path

import pytest

from support import BUILD, ROOT, conditions
from support.process import run

HERE = Path(__file__).parent
TOOL = ROOT / "tools" / "experiment"
SKIPPED = 77  # its sources are unavailable: tools/setup experiment
TWO_CPUS = pytest.mark.skipif(os.cpu_count() < 2, reason="server and driver need a CPU each")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):  # other folders may be in the same run
            item.add_marker(conditions.bpf)
            item.add_marker(TWO_CPUS)


class Result:
    """The files that an experiment wrote."""

    def __init__(self, folder, name):
        self.folder = Path(folder)
        self.document = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        self.page = (self.folder / f"{name}.md").read_text(encoding="utf-8")

    @property
    def figures(self):
        return self.document["figures"]


@pytest.fixture
def experiment(tmp_path):
    """experiment("key-value-writes", shape): run it, and let shape(result) assert. Run it once more on failure,
    which another process of the machine may have caused."""
    def twice(name, shape):
        for last in (False, True):
            folder = tmp_path / str(last)
            done = run([TOOL, name, "--quick", "--no-setup", "--output", folder], seconds=110,
                       env={"SOJOURN_BUILD": str(BUILD)}, check=False)
            if done.status == SKIPPED:
                pytest.skip(done.stderr.strip())
            assert done.status == 0, done.stderr
            result = Result(folder, name)
            assert result.document["quick"] is True and result.document["experiment"] == name
            try:
                return shape(result)
            except AssertionError:
                if last:
                    raise
    return twice
