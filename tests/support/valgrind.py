# SPDX-License-Identifier: MIT
"""A program run by valgrind: memory that is used without a value, after its end, or never freed."""
from .process import run

FOUND = 99  # no program of ours ends with it
OPTIONS = ["--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
           "--trace-children=yes", "--num-callers=30", f"--error-exitcode={FOUND}"]


def checked(argv, status=0, seconds=60, **options):
    """The ended process, whose status must be this one; None: any, but no signal. Fails if valgrind found something."""
    done = run(["valgrind", *OPTIONS, *argv], seconds=seconds, check=False, **options)
    if done.status == FOUND or "definitely lost" in done.stderr:
        raise done.error("valgrind found something")
    if done.status < 0 or status not in (None, done.status):
        raise done.error(f"ended with status {done.status} beside valgrind")
    return done
