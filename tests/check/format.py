#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every C file is as clang-format 19 with the tree's .clang-format would write it."""
import re
import shutil
import sys
from pathlib import Path

import tree
from tree import Example

TOOL = "clang-format-19"
STYLE = Path(__file__).resolve().parents[2] / ".clang-format"
WHERE = re.compile(r"^(.*?):(\d+):\d+: error: ")


def problems(root, options):
    del options
    names = [root / path for path in tree.files(root, ".c", ".h")]
    if not names:
        return
    if not shutil.which(TOOL):
        raise tree.Skip(f"{TOOL} is not installed")
    done = tree.run([TOOL, f"--style=file:{STYLE}", "--dry-run", "-Werror", *names])
    lines = {}
    for match in map(WHERE.match, done.stderr.splitlines()):
        if match:
            lines.setdefault(Path(match[1]).relative_to(root), []).append(match[2])
    for path, numbers in lines.items():
        yield f"{path}:{numbers[0]}: {len(numbers)} places: run {TOOL} -i on it"
    if done.returncode != 0 and not lines:
        yield f"{TOOL}: {done.stderr.strip()}"


EXAMPLES = [
    Example("as it should be", {"lib/a.c": "int a(void)\n{\n\treturn 1;\n}\n"}, []),
    Example("spaces for tabs", {"lib/a.c": "int a(void)\n{\n    return 1;\n}\n"}, ["lib/a.c:2"]),
    Example("build folders are not ours", {"build/a.c": "int  a;\n"}, []),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
