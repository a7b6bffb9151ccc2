# SPDX-License-Identifier: MIT
"""A program run by valgrind: memory that is used uninitialised or after its end, or never freed."""
from .process import run

FOUND = 99  # none of our programs uses this status

# Inlined functions in stacks are not worth a sixth of a short test's CPU time.
OPTIONS = ["--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
           "--read-inline-info=no", "--trace-children=yes", "--num-callers=30", f"--error-exitcode={FOUND}"]


def checked(argv, status=0, seconds=60, **options):
    """Return the ended process. Its status must be @status (None: any, but no signal). Fail if valgrind found
    something."""
    done = run(["valgrind", *OPTIONS, *argv], seconds=seconds, check=False, **options)
    if done.status == FOUND or "definitely lost" in done.stderr:
        raise done.error("valgrind found something")
    if done.status < 0 or status not in (None, done.status):
        raise done.error(f"ended with status {done.status} beside valgrind")
    return done
