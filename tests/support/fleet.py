# SPDX-License-Identifier: MIT
"""Agents of a fleet, found by their network namespace."""
import contextlib
import os
from pathlib import Path

from .programs import DRIVER


def agents_in(netns):
    """Return the pids of agents in a namespace, without those that only wait at a NATS server."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if os.path.basename(words[0]) == os.path.basename(bytes(DRIVER)) and words[1] == b"agent" and \
                    b"--fleet" not in words and os.stat(folder / "ns/net").st_ino == netns.inode:
                found.append(int(folder.name))
    return found
