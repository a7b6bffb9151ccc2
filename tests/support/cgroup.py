# SPDX-License-Identifier: MIT
"""A cgroup of a test's own, for programs that are attached to one; never the root."""
import errno
import itertools
import os
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
