# SPDX-License-Identifier: MIT
"""Where a process of an experiment runs: on which CPU, with which share of it, in which network."""
import itertools
import os
from pathlib import Path

from support.cgroup import remove

SERVER_CPU, CLIENT_CPU = 0, 1
# Short, so that a share of a CPU is a slower CPU rather than one that is away for long.
PERIOD_US = 10000


class Place:
    """Takes the place of a network namespace in support.process.Process(netns=…)."""

    def __init__(self, cpu=None, quota=None, netns=None):
        self.cpu, self.quota, self.netns = cpu, quota, netns

    def prefix(self):
        """What to put before a command; the process keeps the pid it was started with."""
        return [*(self.quota.prefix() if self.quota else []), *self.pinning(),
                *(self.netns.prefix() if self.netns else [])]

    def pinning(self):
        """The part of the prefix that a page shows."""
        return [] if self.cpu is None else ["taskset", "-c", str(self.cpu)]


SERVER, CLIENT = Place(SERVER_CPU), Place(CLIENT_CPU)


def _mounts():
    """(mount point, type of the file system, its options) of every mount."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split()[:3]
            yield Path(left.split()[4]), kind, options.split(",")


def cpu_hierarchy():
    """(folder, version) in which cgroups get a share of the CPUs; None if this host has none."""
    for path, kind, options in _mounts():
        if kind == "cgroup" and "cpu" in options:
            return path, 1
        if kind == "cgroup2":
            control = path / "cgroup.subtree_control"
            if control.exists() and "cpu" in control.read_text().split():
                return path, 2
    return None


class Quota:
    """A cgroup whose processes get this share of one CPU (0.5: half of each 10 ms); removed at the end
    of `with`, when the processes that were started in it have ended."""

    _numbers = itertools.count()

    def __init__(self, share):
        folder, version = cpu_hierarchy()
        self.path = folder / f"sojourn-experiment-{os.getpid()}-{next(Quota._numbers)}"
        quota = int(share * PERIOD_US)
        self.files = {"cpu.max": f"{quota} {PERIOD_US}"} if version == 2 else \
            {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota)}

    def __enter__(self):
        self.path.mkdir()
        for name, value in self.files.items():
            (self.path / name).write_text(value)
        return self

    def __exit__(self, *exception):
        remove(self.path)

    def prefix(self):
        """As Place.prefix()."""
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.path / "cgroup.procs")]
