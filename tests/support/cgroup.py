# SPDX-License-Identifier: MIT
"""A test's own cgroup, for programs that are attached to one, or with a memory limit; never the root."""
import errno
import itertools
import os
import re
import time
from pathlib import Path


def cgroup2():
    """Return the mount point of cgroups of version 2; None without one."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            if rest.startswith("cgroup2 ") and fields.split()[3] == "/":
                return Path(fields.split()[4])
    return None


def remove(path):
    """Remove a cgroup. Wait up to 5 s: a killed process stays in it until the kernel has finished with it."""
    deadline = time.monotonic() + 5
    while True:
        try:
            path.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


class Cgroup:
    """A cgroup that exists within `with`; the processes started in it must end before.

    Process(netns=…) accepts it instead of a network namespace, and it may contain one.
    """

    _numbers = itertools.count()

    def __init__(self, netns=None):
        self.netns = netns
        self.path = cgroup2() / f"sojourn-test-{os.getpid()}-{next(Cgroup._numbers)}"

    def __enter__(self):
        self.path.mkdir()
        return self

    def __exit__(self, *exception):
        remove(self.path)

    def prefix(self):
        """Return the words before a command; the process keeps its pid."""
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.path / "cgroup.procs"),
                *(self.netns.prefix() if self.netns else [])]

    def processes(self):
        """Return the pids of its processes."""
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]


def controller(name, first_files, second_files):
    """Return (folder for cgroups with this controller, the names of their files by version); None if there is none."""
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    own = dict(line.split(":", 2)[1:] for line in lines)
    first = Path(f"/sys/fs/cgroup/{name}" + own.get(name, ""))
    if name in own and first.is_dir():
        return first, first_files
    second = cgroup2()
    if second and name in (second / "cgroup.subtree_control").read_text().split():
        return second, second_files
    return None


def memory_controller():
    return controller("memory", {"limit": "memory.limit_in_bytes", "now": "memory.usage_in_bytes",
                                 "peak": "memory.max_usage_in_bytes", "kills": "memory.oom_control"},
                      {"limit": "memory.max", "now": "memory.current", "peak": "memory.peak", "kills": "memory.events"})


def cpu_controller():
    return controller("cpu", {"limit": ("cpu.cfs_period_us", "cpu.cfs_quota_us")}, {"limit": ("cpu.max",)})


class CpuCgroup(Cgroup):
    """A Cgroup whose processes get @share of one CPU, by portions of 100 ms. Needs a cpu_controller()."""

    PERIOD_US = 100_000

    def __init__(self, share, netns=None):
        super().__init__(netns)
        folder, files = cpu_controller()
        self.path, self.files, self.quota_us = folder / self.path.name, files["limit"], round(share * self.PERIOD_US)

    def __enter__(self):
        super().__enter__()
        texts = (self.PERIOD_US, self.quota_us) if len(self.files) == 2 else (f"{self.quota_us} {self.PERIOD_US}",)
        for name, text in zip(self.files, texts):
            (self.path / name).write_text(str(text))
        return self

    def take(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def throttled(self):
        """Return in how many periods its processes had to wait for the next one."""
        return int(re.search(r"^nr_throttled (\d+)", (self.path / "cpu.stat").read_text(), re.MULTILINE)[1])


class MemoryCgroup(Cgroup):
    """A Cgroup with a memory limit in bytes. Needs a host whose memory_controller() is not None."""

    def __init__(self, limit, netns=None):
        super().__init__(netns)
        folder, self.files = memory_controller()
        self.path, self.limit = folder / self.path.name, limit

    def __enter__(self):
        super().__enter__()
        try:
            (self.path / self.files["limit"]).write_text(str(self.limit))
        except BaseException:
            self.path.rmdir()
            raise
        return self

    def peak(self):
        """Return the peak of the charged memory in bytes, including the kernel memory of its processes."""
        return int((self.path / self.files["peak"]).read_text())

    def charged(self):
        """Return the charged memory in bytes now."""
        return int((self.path / self.files["now"]).read_text())

    def kills(self):
        """Return how many of its processes the kernel has killed for lack of memory."""
        return int(re.search(r"^oom_kill (\d+)", (self.path / self.files["kills"]).read_text(), re.MULTILINE)[1])
