# SPDX-License-Identifier: MIT
"""tools/experiment: its arguments, its pages, and that nothing of an experiment is left."""
import os
import signal
import time
from pathlib import Path

import pytest

from experiments.common import figures, names, page, place
from experiments.common.context import Context
from support import BUILD, ROOT
from support.process import Process, cpu_seconds, run

TOOL = ROOT / "tools" / "experiment"


def test_words():
    listed = run([TOOL, "list"]).stdout
    assert [line.split()[0] for line in listed.splitlines()] == names()
    wrong = run([TOOL, "nonsense"], check=False)
    assert wrong.status == 2 and "'nonsense'" in wrong.stderr
    assert all(name in wrong.stderr for name in [*names(), "all", "list"])
    assert run([TOOL, "list", "--fast"], check=False).status == 2
    wrong = run([TOOL, "list", "--for", "soon"], check=False)
    assert wrong.status == 2 and "'soon'" in wrong.stderr and "8h" in wrong.stderr


def test_page_has_no_holes():
    assert page.render("a {{one}} b", {"one": 1}) == "a 1 b"
    with pytest.raises(ValueError, match=r"without a value: \['one'\]"):
        page.render("{{one}}", {})
    with pytest.raises(ValueError, match=r"without a field: \['two'\]"):
        page.render("{{one}}", {"one": 1, "two": 2})
    with pytest.raises(ValueError, match="a row of 1 cells"):
        page.table(["a", "b"], [["c"]])


def test_figures():
    assert [figures.time_text(ns) for ns in (None, 12, 1234, 56.7e6, 2e9)] == \
        ["–", "12 ns", "1.23 µs", "56.7 ms", "2.00 s"]
    driver = {"requests": 200, "duration_ns": 2e9, "round_trip": {"count": 200, "sum_ns": 8e9}}
    assert figures.rate(driver) == 100
    assert figures.rate({**driver, "drained": 20}) == 90
    assert figures.rate_by_latency(driver) == 25
    observed = {"exchanges": 50, "first_message_ns": 1e9, "last_message_ns": 1.5e9}
    assert figures.server_rate(observed) == 100
    assert figures.server_rate({**observed, "first_message_ns": 0}) is None


@pytest.mark.skipif(place.cpu_hierarchy() is None, reason="no cgroups that limit CPU time")
def test_quota(tmp_path):
    """The quota limits to a fifth of a CPU, and its cgroup is removed."""
    with Context("key-value-writes", tmp_path, True) as context:
        quota = context.quota(0.2)
        spinner = context.start(["sh", "-c", "while :; do :; done"], place.Place(0, quota))
        time.sleep(1.5)
        assert 0 < cpu_seconds(spinner.pid) < 0.5
        assert quota.path.exists()
    assert not quota.path.exists() and not spinner.running()


def network(pid):
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def running_in(number):
    """Return the commands of all processes in a network namespace, by their pids."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        if network(path.name) == number:
            try:
                found[int(path.name)] = (path / "comm").read_text().strip()
            except OSError:
                pass  # ended meanwhile
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_early(tmp_path, number):
    """All started processes end, and no page is written."""
    env = {"SOJOURN_BUILD": str(BUILD), "TMPDIR": str(tmp_path)}
    with Process([TOOL, "key-value-writes", "--quick", "--no-setup", "--output", tmp_path / "out"],
                 env=env) as tool:
        tool.wait_for("redis, one CPU", seconds=40)
        theirs = network(tool.pid)
        assert theirs != network("self")
        deadline = time.monotonic() + 20
        while "redis-server" not in running_in(theirs).values():
            assert time.monotonic() < deadline, running_in(theirs)
            time.sleep(0.02)
        assert tool.stop(seconds=30, number=number) == 1 and not tool.killed
        assert number.name in tool.stderr
    assert not running_in(theirs)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("sojourn-*"))


def test_index_names_all():
    index = (ROOT / "docs" / "experiments" / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in index for name in names())
