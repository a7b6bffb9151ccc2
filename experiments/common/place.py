# SPDX-License-Identifier: MIT
"""Where a process of an experiment runs: on which CPU, with which share of it, in which network."""
import itertools
import os
from pathlib import Path

from support.cgroup import remove

SERVER_CPU, CLIENT_CPU = 0, 1
# Short, so that a share is like a slower CPU rather than one with long pauses.
PERIOD_US = 10000


class Place:
    """A CPU, a quota and a namespace. support.process.Process(netns=…) accepts it instead of a network namespace."""

    def __init__(self, cpu=None, quota=None, netns=None):
        self.cpu, self.quota, self.netns = cpu, quota, netns

    def prefix(self):
        """Return the words before a command; the process keeps its pid."""
        return [*(self.quota.prefix() if self.quota else []), *self.pinning(),
                *(self.netns.prefix() if self.netns else [])]

    def pinning(self):
        """Return the part of the prefix that a page shows."""
        return [] if self.cpu is None else ["taskset", "-c", str(self.cpu)]


SERVER, CLIENT = Place(SERVER_CPU), Place(CLIENT_CPU)


def _mounts():
    """Yield (mount point, type of the file system, its options) of every mount."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split()[:3]
            yield Path(left.split()[4]), kind, options.split(",")


def cpu_hierarchy():
    """Return (folder, version) in which cgroups get a share of the CPUs; None if this host has none."""
    for path, kind, options in _mounts():
        if kind == "cgroup" and "cpu" in options:
            return path, 1
        if kind == "cgroup2":
            control = path / "cgroup.subtree_control"
            if control.exists() and "cpu" in control.read_text().split():
                return path, 2
    return None


class Quota:
    """A cgroup whose processes get this share of one CPU (0.5: half of each 10 ms). It exists within `with`; the
    processes started in it must end before."""

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
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.path / "cgroup.procs")]
