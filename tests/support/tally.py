#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up JUnit files of ctest and pytest: failures, skips with their reasons, one last line.

Usage: tally.py [--failed TEXT]... [--again FILE]... FILE...
       tally.py --list-failed FILE...

An unreadable file counts as one failure, and so does each --failed (a broken build, an interrupted run). A
failed test that is in a later file of --again, too, counts as it does there. Tests that passed then are listed
with their first message.

With --list-failed the tool prints the failed tests of pytest as arguments for pytest. A test whose program is
missing, which ctest marks as "skipped", counts as a failure. The exit status is 0 only if something ran and
nothing failed.
"""
import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# How ctest's reason begins if the test skipped itself. Other reasons, such as a missing program, are failures.
CTEST_SKIPS = ("SKIP_RETURN_CODE=", "SKIP_REGULAR_EXPRESSION_MATCHED")


class Tally:
    """Counts of tests, and lines about those that did not pass."""

    def __init__(self):
        self.again = set()  # names of tests whose failures count elsewhere
        self.first = {}  # their messages at the first failure
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_file(self, path):
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            self.failed.append(f"{path}: no result: {error}")
            return
        for case in root.iter("testcase"):
            if has_failed(case) and case_name(case) in self.again:
                self.first.setdefault(case_name(case), what_failed(case))
            else:
                self.add_case(case)

    def passed_again(self):
        """Return the tests that failed at first and passed when repeated, each with its first message."""
        failed = {line.split(": ", 1)[0] for line in self.failed}
        return [f"{name}: {said}" for name, said in self.first.items() if name not in failed]

    def add_case(self, case):
        name = case_name(case)
        if has_failed(case):
            self.failed.append(f"{name}: {what_failed(case)}")
            return
        skip = case.find("skipped")
        if skip is not None:
            self.add_skip(name, skip.get("message") or "", case.findtext("system-out") or "")
        elif case.get("status") == "disabled":
            self.skipped.append(f"{name}: disabled")
        else:
            self.passed += 1

    def add_skip(self, name, message, output):
        if message.startswith(CTEST_SKIPS):
            self.skipped.append(f"{name}: {last_line(output) or 'no reason given'}")
        elif message.startswith(("Unable to find", "Failed to start", "Fixture dependency")):
            self.failed.append(f"{name}: {message}")
        else:
            self.skipped.append(f"{name}: {first_line(message) or 'no reason given'}")


def cases_of(path):
    """Return a file's test cases; none if it cannot be read."""
    try:
        return list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def has_failed(case):
    return case.find("failure") is not None or case.find("error") is not None


def what_failed(case):
    problem = case.find("failure") if case.find("failure") is not None else case.find("error")
    return first_line(problem.get("message")) or last_line(case.findtext("system-out")) or \
        "failed or ran out of time, no output"


def asked_again(files):
    """Return pytest's ids of the failed tests."""
    cases = [case for path in files for case in cases_of(path) if has_failed(case)]
    return dict.fromkeys(map(node_of, cases))


def node_of(case):
    """Return pytest's id: integration.observer.test_counts::test_y[z] is
    tests/integration/observer/test_counts.py::test_y[z]."""
    return f"tests/{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def case_name(case):
    name = case.get("name", "?")
    group = case.get("classname", "")
    return name if group in ("", name) else f"{group}::{name}"


def first_line(text):
    return (text or "").strip().split("\n", 1)[0]


def last_line(text):
    lines = (text or "").strip().splitlines()
    return lines[-1].strip() if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--failed", action="append", default=[], metavar="TEXT")
    parser.add_argument("--again", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--list-failed", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_intermixed_args()
    if options.list_failed:
        print("\n".join(asked_again(options.files)))
        return 0

    tally = Tally()
    tally.failed += options.failed
    for paths, later in [(options.files, options.again)] + [([path], options.again[i + 1:])
                                                            for i, path in enumerate(options.again)]:
        tally.again = {case_name(case) for again in later for case in cases_of(again)}
        for path in paths:
            tally.add_file(path)

    for title, lines in (("skipped", tally.skipped), ("passed only when asked again", tally.passed_again()),
                         ("FAILED", tally.failed)):
        if lines:
            print(f"\n{title}:")
            for line in lines:
                print(f"  {line}")
    if tally.passed + len(tally.failed) == 0:
        print("\nno test ran")
    print()
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
