# SPDX-License-Identifier: MIT
"""Fixtures of all Python tests, and the time limit of each test."""
import contextlib
import faulthandler
import signal

import pytest

from support import timing
from support.net import Netns
from support.process import Process

DEFAULT_SECONDS = 60
# If even the alarm has no effect, all stacks are printed and pytest ends after this many more.
GRACE_SECONDS = 30


class Overtime(BaseException):
    """No Exception, so that no test's own handling swallows it."""


def pytest_configure():
    """End like ^C if asked to, so that what tests began is ended. An observer that changed its user would stay.

    A shell's background job ignores ^C, and so would what the tests begin.
    """
    def stop(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # another one would interrupt that
        raise KeyboardInterrupt("SIGTERM")
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def limit(item, phase):
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else DEFAULT_SECONDS

    def expired(*_):
        raise Overtime(f"{phase} took longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    with limit(item, "set-up"):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    timing.notes.clear()
    with limit(item, "the test"):
        yield
    item.user_properties += timing.notes


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    with limit(item, "teardown"):
        yield


def pytest_terminal_summary(terminalreporter):
    for report in sum(terminalreporter.stats.values(), []):
        for name, said in getattr(report, "user_properties", ()):
            if name == timing.AGAIN and report.when == "call":
                terminalreporter.line(f"tried again: {report.nodeid}: {said.splitlines()[0]}")


@pytest.fixture
def start():
    """start(argv or an object with close()): ended with the test, the last one first.

        nginx = start(Nginx())
        sleeper = start(["sleep", "60"])
    """
    with contextlib.ExitStack() as stack:
        def keep(what, **options):
            process = Process(what, **options) if isinstance(what, (list, tuple)) else what
            stack.callback(process.close)
            return process
        yield keep


@pytest.fixture
def netns():
    """netns("client"): a namespace that is deleted at the test's end."""
    with contextlib.ExitStack() as stack:
        yield lambda name="test": stack.enter_context(Netns(name))
