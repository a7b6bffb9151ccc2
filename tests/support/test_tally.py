# SPDX-License-Identifier: MIT
"""The last line of tools/check agrees with the output of ctest and pytest."""
import subprocess
import sys

import pytest

from support import ROOT

PASSED = '<testcase name="a" classname="a" status="run"><system-out>x</system-out></testcase>'
FAILED = '<testcase name="b" status="fail"><failure message="boom"/></testcase>'
CTEST_FAILED = '<testcase name="b" status="fail"><failure message=""/>' \
    '<system-out>running\nline 3 is wrong\n</system-out></testcase>'
ERROR = '<testcase name="c" classname="m"><error message="in teardown"/></testcase>'
SKIPPED = '<testcase name="d" classname="m"><skipped message="no BPF">long</skipped></testcase>'
CTEST_SKIPPED = '<testcase name="e" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>' \
    '<system-out>checking\nskipped: no tool\n</system-out></testcase>'
NOT_BUILT = '<testcase name="f" status="notrun"><skipped message="Unable to find executable: f"/>' \
    '</testcase>'
OTHER_FAILED = '<testcase classname="m" name="g"><failure message="slow"/></testcase>'
PASSED_AGAIN = '<testcase classname="m" name="c"/>'
STILL_FAILED = '<testcase classname="m" name="g"><failure message="still"/></testcase>'


def tally(tmp_path, cases, *options):
    path = tmp_path / "result.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return subprocess.run([sys.executable, ROOT / "tests" / "support" / "tally.py", path, *options],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("cases, last, said", [
    ([PASSED], "1 passed, 0 failed, 0 skipped", ""),
    ([PASSED, FAILED], "1 passed, 1 failed, 0 skipped", "b: boom"),
    ([PASSED, CTEST_FAILED], "1 passed, 1 failed, 0 skipped", "b: line 3 is wrong"),
    ([PASSED, ERROR], "1 passed, 1 failed, 0 skipped", "m::c: in teardown"),
    ([PASSED, SKIPPED], "1 passed, 0 failed, 1 skipped", "m::d: no BPF"),
    ([PASSED, CTEST_SKIPPED], "1 passed, 0 failed, 1 skipped", "e: skipped: no tool"),
    ([PASSED, NOT_BUILT], "1 passed, 1 failed, 0 skipped", "f: Unable to find"),
    ([SKIPPED], "0 passed, 0 failed, 1 skipped", "no test ran"),
    ([], "0 passed, 0 failed, 0 skipped", "no test ran"),
])
def test_counts(tmp_path, cases, last, said):
    done = tally(tmp_path, cases)
    assert done.stdout.splitlines()[-1] == last
    assert said in done.stdout
    assert (done.returncode == 0) == (last.startswith("1 passed, 0"))


def test_broken_builds_and_files_are_failures(tmp_path):
    done = tally(tmp_path, [PASSED], "--failed", "build: clang", str(tmp_path / "absent.xml"))
    assert done.stdout.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"
    assert done.returncode == 1


def test_what_was_asked_again_counts_as_it_was_then(tmp_path):
    """Only failures count again: a test that passed or was skipped counts once; one that failed again is a
    failure."""
    again = tmp_path / "again.xml"
    again.write_text(f"<testsuites><testsuite>{PASSED_AGAIN}{STILL_FAILED}</testsuite></testsuites>")
    done = tally(tmp_path, [PASSED, ERROR, OTHER_FAILED, SKIPPED], "--again", str(again))
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"
    assert "m::g: still" in done.stdout
    assert "passed only when asked again:\n  m::c: in teardown" in done.stdout
    once_more = tmp_path / "once_more.xml"
    once_more.write_text(f"<testsuites><testsuite>{STILL_FAILED.split('<failure')[0]}</testcase></testsuite></testsuites>")
    done = tally(tmp_path, [PASSED, ERROR, OTHER_FAILED], "--again", str(again), "--again", str(once_more))
    assert done.stdout.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    gone = tally(tmp_path, [PASSED, ERROR], "--again", str(tmp_path / "absent.xml"))
    assert gone.stdout.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"


def test_what_failed_is_named_as_pytest_wants_it(tmp_path):
    done = tally(tmp_path, [PASSED, ERROR, OTHER_FAILED, SKIPPED], "--list-failed")
    assert done.stdout.splitlines() == ["tests/m.py::c", "tests/m.py::g"]
    assert tally(tmp_path, [PASSED], "--list-failed").stdout.strip() == ""
