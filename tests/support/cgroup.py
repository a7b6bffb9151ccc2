# SPDX-License-Identifier: MIT
"""A test's own cgroup, for programs that are attached to one; never the root."""
import errno
import itertools
import os
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
    """A killed process stays in the cgroup until the kernel has finished with it."""
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
    """Removed at the end of `with`, after the processes started in it have ended.

    Stands for a network namespace in Process(netns=…), and may contain one.
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
