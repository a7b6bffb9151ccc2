# SPDX-License-Identifier: MIT
"""Packets that passed while the machine's first process had the CPU, by the kernel's own trace. In some sandboxes' kernels no
tracing program runs for these (docs/kernels.md)."""
import contextlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

SENT, CAME = "net/net_dev_start_xmit", "tcp/tcp_probe"


class FirstProcess:
    """Within `with` its packets are noted. Where the kernel's trace cannot be had there are none."""

    def __enter__(self):
        self.stack, self.trace = contextlib.ExitStack(), None
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            self.trace = self._begin()
        return self

    def _begin(self):
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="sojourn-trace."))
        subprocess.run(["mount", "-t", "tracefs", "tracefs", folder], check=True, capture_output=True)
        self.stack.callback(subprocess.run, ["umount", folder], check=True)
        own = Path(folder, "instances", f"sojourn-{os.getpid()}")
        own.mkdir()
        self.stack.callback(own.rmdir)
        for event in (SENT, CAME):
            tasks = " || ".join(f"common_pid == {task}" for task in os.listdir("/proc/1/task"))
            (own / "events" / event / "filter").write_text(tasks)
            (own / "events" / event / "enable").write_text("1")
        return own / "trace"

    def __exit__(self, *exception):
        self.stack.close()

    def count(self, event, what):
        """Return how many of these events have the text."""
        lines = self.trace.read_text().splitlines() if self.trace else []
        return sum(f" {event.split('/')[1]}: " in line and bool(re.search(what, line)) for line in lines)
