# SPDX-License-Identifier: MIT
"""Comparisons of times, which the machine's noise may fail. Only these are tried up to three times. Each retry is in
the summary and in the JUnit file. Wrong counts, sums and bytes are repeated once by tools/check, when nothing else
runs, like every failed test."""
import contextlib
import functools
import os
import re

import pytest

TRIES = 3
MS = 1_000_000
US = 1_000

# Notes (name, text) of the current test, which tests/conftest.py makes properties of its report.
AGAIN = "tried again"
notes = []


class Untimely(AssertionError):
    """A time is wrong, perhaps because another process had the CPU."""


@contextlib.contextmanager
def timing():
    """Assertions within compare times, or depend on how the machine divided its time."""
    try:
        yield
    except AssertionError as error:
        raise Untimely(str(error)) from error


def in_time(test):
    """Repeat the test if only the machine's noise can have failed it. Others run beside it: its bounds are wide."""
    @functools.wraps(test)
    def tried(*arguments, **named):
        for left in reversed(range(TRIES)):
            try:
                return test(*arguments, **named)
            except Untimely as error:
                if not left:
                    raise
                notes.append((AGAIN, str(error)))
    return tried


def in_quiet(test):
    """The same for a test that runs alone."""
    return pytest.mark.alone(in_time(test))


def stolen_ns():
    """Return the time that a hypervisor has taken from this machine's CPUs since boot. By the kernel's events an
    interrupted process runs meanwhile, but its CPU time does not include this time."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = int(re.match(r"cpu +(?:\d+ ){7}(\d+)", file.read())[1])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def promised_ns(true_ns):
    """Return the allowed error of a mean: 10 µs or 1 %."""
    return max(10 * US, true_ns * 0.01)


def lies_within(measured_ns, least_ns, most_ns):
    """Whether the time is in these bounds or misses them by the promised error. The truth is between the bounds."""
    slack_ns = promised_ns(most_ns)
    if not least_ns - slack_ns <= measured_ns <= most_ns + slack_ns:
        raise Untimely(f"{measured_ns:,.0f} ns is not within {slack_ns:,.0f} of "
                       f"{least_ns:,.0f} to {most_ns:,.0f}")
    return True


def close_to(measured_ns, true_ns):
    """Whether it is within max(10 µs, 1 %) of the truth."""
    return lies_within(measured_ns, true_ns, true_ns)
