# SPDX-License-Identifier: MIT
"""Comparisons of times, which the machine's noise may fail: they alone are tried again, up to three times,
and each retry is told in the summary and in the JUnit file. Counts, sums and bytes are asked once more by
tools/check alone, when nothing else runs, as any test is."""
import contextlib
import functools
import os
import re

import pytest

TRIES = 3
MS = 1_000_000
US = 1_000

# Of the test that runs: (name, what was said), which tests/conftest.py makes properties of its report.
AGAIN = "tried again"
notes = []


class Untimely(AssertionError):
    """A time is not what it should be, perhaps because something else had the processor just then."""


@contextlib.contextmanager
def timing():
    """What is asserted in it compares times, or depends on how the machine divided its time."""
    try:
        yield
    except AssertionError as error:
        raise Untimely(str(error)) from error


def in_quiet(test):
    """Tries again where only the machine's noise can have failed the test, so it runs alone."""
    @functools.wraps(test)
    def tried(*arguments, **named):
        for left in reversed(range(TRIES)):
            try:
                return test(*arguments, **named)
            except Untimely as error:
                if not left:
                    raise
                notes.append((AGAIN, str(error)))
    return pytest.mark.alone(tried)


def stolen_ns():
    """What a hypervisor has taken from this machine's CPUs since it began. Whoever had one then ran, as far as
    events can tell, but its own count of CPU time is without it."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = int(re.match(r"cpu +(?:\d+ ){7}(\d+)", file.read())[1])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def promised_ns(true_ns):
    """How far a mean may be from the truth: 10 µs or 1 %."""
    return max(10 * US, true_ns * 0.01)


def lies_within(measured_ns, least_ns, most_ns):
    """Give or take what the project promises: where the truth is known only to lie between two calls."""
    slack_ns = promised_ns(most_ns)
    if not least_ns - slack_ns <= measured_ns <= most_ns + slack_ns:
        raise Untimely(f"{measured_ns:,.0f} ns is not within {slack_ns:,.0f} of "
                       f"{least_ns:,.0f} to {most_ns:,.0f}")
    return True


def close_to(measured_ns, true_ns):
    """Within max(10 µs, 1 %) of the truth."""
    return lies_within(measured_ns, true_ns, true_ns)
