# SPDX-License-Identifier: MIT
"""A cgroup of a test's own, for programs that are attached to one, or with a limit of memory; never the root."""
import errno
import itertools
import os
import re
import time
from pathlib import Path


def cgroup2():
    """Where cgroups of version 2 are mounted; None if they are not."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            if rest.startswith("cgroup2 ") and fields.split()[3] == "/":
                return Path(fields.split()[4])
    return None


def remove(path):
    """A process that was killed is in it until the kernel is done with it."""
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
    """Removed at the end of `with`, when the processes that were started in it have ended.

    Takes the place of a network namespace in Process(netns=…), and may stand around one."""

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
        """What to put before a command; the process keeps the pid it was started with."""
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.path / "cgroup.procs"),
                *(self.netns.prefix() if self.netns else [])]

    def processes(self):
        """The pids that are in it."""
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]


def memory_controller():
    """(folder in which a cgroup can be made that limits memory, its files' names); None if there is none."""
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    own = dict(line.split(":", 2)[1:] for line in lines)
    first = Path("/sys/fs/cgroup/memory" + own.get("memory", ""))
    if "memory" in own and first.is_dir():
        return first, {"limit": "memory.limit_in_bytes", "peak": "memory.max_usage_in_bytes", "kills": "memory.oom_control"}
    second = cgroup2()
    if second and "memory" in (second / "cgroup.subtree_control").read_text().split():
        return second, {"limit": "memory.max", "peak": "memory.peak", "kills": "memory.events"}
    return None


class MemoryCgroup(Cgroup):
    """The same with at most so many bytes of memory; where memory_controller() is not None."""

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
        """The most bytes that were charged to it at a time, the kernel's for it among them."""
        return int((self.path / self.files["peak"]).read_text())

    def kills(self):
        """How many of its processes the kernel has killed for want of memory."""
        return int(re.search(r"^oom_kill (\d+)", (self.path / self.files["kills"]).read_text(), re.MULTILINE)[1])
