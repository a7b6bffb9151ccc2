# SPDX-License-Identifier: MIT
"""Fixtures of all Python tests, and the time limit of each test."""
import collections
import contextlib
import faulthandler
import os
import signal

import pytest

from support import timing
from support.net import Netns
from support.process import Process

DEFAULT_SECONDS = 60
# If even the alarm has no effect, all stacks are printed and pytest ends after this many more.
GRACE_SECONDS = 30

# A property of each test, also in JUnit files: CPU seconds of the test, of its fixtures, and of what they started and
# waited for.
CPU = "cpu_seconds"
CPU_BEFORE = pytest.StashKey()
# Files that the summary names, with the most CPU time first.
DEAREST = 15


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
        # A test that waits for a connection fails with the sockets and the kernel's counts of its network.
        os.system("ss -tanpie; nstat -az | grep -vE ' 0 +0.0$'")
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


def cpu_seconds():
    return sum(os.times()[:4])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.stash[CPU_BEFORE] = cpu_seconds()
    yield


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
    item.user_properties.append((CPU, round(cpu_seconds() - item.stash[CPU_BEFORE], 2)))


def print_dearest(terminalreporter, reports):
    """Print the files whose tests took the most CPU time. Unlike the time that passed, it hardly depends on what runs
    beside."""
    spent, tests = collections.Counter(), collections.Counter()
    for report in reports:
        if report.when == "teardown":
            file = report.nodeid.partition("::")[0]
            spent[file] += dict(report.user_properties).get(CPU, 0)
            tests[file] += 1
    if spent:
        terminalreporter.line(f"CPU time of {sum(tests.values())} tests: {sum(spent.values()):.0f} s, most of it in")
    for file, seconds in spent.most_common(DEAREST):
        terminalreporter.line(f"  {seconds:6.1f} s, {tests[file]:4} tests: {file}")


def pytest_terminal_summary(terminalreporter):
    reports = [report for report in sum(terminalreporter.stats.values(), []) if isinstance(report, pytest.TestReport)]
    print_dearest(terminalreporter, reports)
    for report in reports:
        for name, said in report.user_properties:
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
