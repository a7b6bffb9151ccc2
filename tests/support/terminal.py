# SPDX-License-Identifier: MIT
"""A test's own terminal: tmux, whose server ends with the test."""
import itertools
import os
import re
import subprocess
import tempfile
import time


class Terminal:
    """A shell on a screen: Terminal().type("top\\n"), then .wait_for("load average")."""

    _numbers = itertools.count()

    def __init__(self, columns=80, rows=24, env=None):
        self.folder = tempfile.TemporaryDirectory(prefix="sojourn-terminal.")
        self.socket = os.path.join(self.folder.name, "tmux")
        words = [f"{name}={value}" for name, value in
                 {"LC_ALL": "C.UTF-8", "PS1": "ready$ ", **(env or {})}.items()]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows,
                  "env", "-u", "NO_COLOR", *words, "bash", "--norc", "--noprofile")
        self.pid = int(self.ask("pid"))
        self.wait_for(r"ready\$")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *(str(word) for word in words)],
                              check=True, capture_output=True, text=True).stdout

    def ask(self, name):
        """Return one of tmux's formats: "alternate_on", "cursor_flag", "pane_pid"."""
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def keys(self, *names):
        """Send keys by tmux's names: keys("Enter"), keys("Down", "q")."""
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def run(self, command):
        self.type(command)
        self.keys("Enter")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def screen(self, styles=False):
        """Return the screen's lines, on request with the escape sequences of their styles."""
        return self.tmux("capture-pane", "-p", *(["-e"] if styles else [])).split("\n")

    def wait_for(self, pattern, seconds=15):
        """Return the match of the pattern on the screen; fail if it does not come."""
        deadline = time.monotonic() + seconds
        while True:
            text = "\n".join(self.screen())
            match = re.search(pattern, text, re.MULTILINE)
            if match:
                return match
            if time.monotonic() > deadline:
                raise AssertionError(f"'{pattern}' is not on the screen:\n{text}")
            time.sleep(0.05)

    def children(self):
        shell = self.ask("pane_pid")
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False,
                       capture_output=True)
        self.folder.cleanup()
