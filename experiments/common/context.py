# SPDX-License-Identifier: MIT
"""The surroundings of an experiment: a network of its own, programs that all end with it, and the commands that
its page shows."""
import contextlib
import ctypes
import os
import re
import shlex
import time
from pathlib import Path

from support import BUILD, documents
from support.net import Netns
from support.process import Process, own_folder, run, uninterrupted
from support.programs import DRIVER, Doctor, Observer

from . import FOLDER
from .place import CLIENT, Place, Quota, cpu_hierarchy

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
OBSERVER_NAME, DRIVER_NAME = "sojourn", "sojourn-drive"


def own_network():
    """Move this process, with all that it starts, into a network namespace that ends with it. The
    host's ports, TIME_WAIT sockets and connections are neither in the way nor loaded."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"a network namespace: {os.strerror(error)}")
    run(["ip", "link", "set", "lo", "up"])


class Context:
    """One run of one experiment. At the end of `with` nothing of it is left."""

    def __init__(self, name, folder, quick, long_seconds=None):
        self.name, self.folder, self.quick = name, Path(folder), quick
        self.long_seconds = long_seconds  # the requested length of a run that may take hours; None: usual
        self.source = FOLDER / name
        self.commands = {}  # label: the first command with that label
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.work = Path(self._enter(own_folder("experiment")))
        return self

    def _enter(self, manager):
        """Enter the manager, and leave it with the experiment. No signal comes between entry and record."""
        with uninterrupted():
            return self.stack.enter_context(manager)

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)

    def pick(self, full, quick):
        """Return one of two values: of the full run, or of the quick one."""
        return quick if self.quick else full

    def say(self, text):
        print(f"{time.strftime('%H:%M:%S')} {self.name}: {text}", flush=True)

    # Places

    def netns(self, name):
        """Return another network namespace, support.net.Netns."""
        return self._enter(Netns(name))

    def quota(self, share):
        """Return a Quota of a CPU; None if this host has no cgroups for it."""
        return self._enter(Quota(share)) if cpu_hierarchy() else None

    # Programs

    def start(self, what, place=None, label=None, **options):
        """Start an argv, or keep an object with close(). It ends with the experiment, the last one first, or
        earlier by its own close()."""
        if isinstance(what, (list, tuple)):
            self.note(label, what, place)
        with uninterrupted():
            if isinstance(what, (list, tuple)):
                what = Process(what, netns=place, **options)
            self.stack.callback(what.close)
        return what

    def observe(self, *options, ports, place=CLIENT, label="observer"):
        """Start `sojourn observe`, support.programs.Observer; close() ends it before the experiment does."""
        observer = self.start(Observer(*options, ports=ports, netns=place))
        observer.netns = place.netns  # queried from here, unless it is in another network
        self.note(label, observer.argv, place)
        return observer

    def drive(self, *words, observer=None, place=CLIENT, label=None, seconds=180):
        """Run `sojourn-drive WORDS…` (so also `run FILE` and `sweep URL`) to its end. Return the run document,
        joined with the observer's if one is given. Failed requests are in the document."""
        path = self.work / "driver.json"
        path.unlink(missing_ok=True)
        words = [*words, *(["--observer", observer.url] if observer else [])]
        argv = [DRIVER, *words, "--json", path, "--quiet"]
        ended = run(argv, netns=place, seconds=seconds, check=False)
        if not path.exists():
            raise ended.error(f"ended with status {ended.status} and no result")
        document = documents.load(path)
        missing = (document.get("driver") or {}).get("observer_error")
        if missing:
            raise ended.error(f"the observer's part is missing: {missing}")
        document["messages"] = ended.stderr  # its messages before and during the run: preflight
        self.note(label, [DRIVER, *words], place)
        return document

    def doctor(self, *options, place=None):
        """Run `sojourn doctor` for one reading, support.programs.Doctor."""
        return Doctor(*options, netns=place)

    # Commands

    def note(self, label, argv, place=None):
        """Keep a command for the page, as a user would type it, under a label; the first one stays."""
        if label is None or label in self.commands:
            return
        words = [*(place.pinning() if isinstance(place, Place) else []), *map(str, argv)]
        text = " ".join(_typed(word) for word in words)
        text = text.replace(str(self.work), "/tmp").replace(str(FOLDER), "experiments")
        self.commands[label] = re.sub(r"/tmp/sojourn-\w+\.\w+/", "/tmp/", text)

    def command_lines(self, *labels):
        """Return the commands of these labels (default: all), each below a comment with its label."""
        return [line for label in labels or self.commands
                for line in (f"# {label}", self.commands[label])]


def _typed(word):
    """Return a word of a command, quoted for the shell, our programs by their names."""
    for program in (OBSERVER_NAME, DRIVER_NAME):
        if Path(word).name == program and str(word).startswith(str(BUILD)):
            return program
    return shlex.quote(word)
