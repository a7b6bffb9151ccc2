#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every row of tools/mutate is valid: its text is in its file exactly once, its replacement differs, and its
tests exist."""
import ast
import re
import sys

import tree
from tree import Example

TABLE = "tools/mutate"
TESTS = "tests/integration"
IDENTIFIER = re.compile(r"[^\s()]+")
WORDS = ("and", "or", "not")


def mutations(root):
    """Return the rows of the table, without running the tool."""
    for node in ast.parse((root / TABLE).read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "MUTATIONS":
            return ast.literal_eval(node.value)
    return ()


def collected(root):
    """Return the ids of the integration tests, as pytest prints them."""
    settings = root / "tests" / "pytest.ini"
    done = tree.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "--rootdir", root / "tests",
                     "-c", settings if settings.exists() else "/dev/null", root / TESTS], cwd=root)
    if "No module named pytest" in done.stderr:
        raise tree.Skip("pytest is not installed")
    return [line for line in done.stdout.splitlines() if "::" in line]


def selects(expression, name):
    """Evaluate an expression of `pytest -k`: each identifier is true if it is part of the test's name."""
    held = IDENTIFIER.sub(lambda match: match[0] if match[0] in WORDS
                          else str(match[0].lower() in name.lower()), expression)
    return eval(held, {"__builtins__": {}})  # of True, False, and, or, not and parentheses alone


def text_problems(root, file, old, new):
    path = root / file
    count = path.read_text().count(old) if path.is_file() else 0
    if count != 1:
        yield f"its text is in {file} {count} times, not once"
    if old == new:
        yield "it replaces its text by the same"


def problems(root, options):
    del options
    names = collected(root)
    rows = mutations(root)
    if not rows:
        yield f"{TABLE}: has no MUTATIONS"
    for row, file, old, new, tests in rows:
        for problem in text_problems(root, file, old, new):
            yield f"{TABLE}: '{row}': {problem}"
        if not any(selects(tests, name) for name in names):
            yield f"{TABLE}: '{row}': '{tests}' selects no test of {TESTS}"
    for row in sorted({row[0] for row in rows if [other[0] for other in rows].count(row[0]) > 1}):
        yield f"{TABLE}: '{row}' is there more than once"


def table(*rows):
    return {TABLE: f"MUTATIONS = {rows!r}\n", "bpf/a.h": "one();\ntwo();\ntwo();\n",
            "tests/integration/test_x.py": "def test_a():\n\tpass\n\n\ndef test_B():\n\tpass\n"}


EXAMPLES = [
    Example("all in use", table(("r", "bpf/a.h", "one();", "", "test_x and (b or c)"),
                                ("s", "bpf/a.h", "one();\ntwo();", "two();", "not test_a")), []),
    Example("out of date", table(("gone", "bpf/a.h", "three();", "", "test_a"),
                                 ("twice", "bpf/a.h", "two();", "", "test_a"),
                                 ("nowhere", "bpf/b.h", "one();", "", "test_a"),
                                 ("same", "bpf/a.h", "one();", "one();", "test_b"),
                                 ("blind", "bpf/a.h", "one();", "", "test_x and not (a or b)"),
                                 ("blind", "bpf/a.h", "one();", "", "test_c")),
            ["'gone': its text is in bpf/a.h 0 times", "'twice': its text is in bpf/a.h 2 times",
             "'nowhere': its text is in bpf/b.h 0 times", "'same': it replaces its text by the same",
             "'blind': 'test_x and not (a or b)' selects no test", "'blind': 'test_c' selects no test",
             "'blind' is there more than once"]),
    Example("no table", {**table(), TABLE: "RUNS = ()\n"}, ["has no MUTATIONS"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
