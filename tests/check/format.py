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
    seen = False
    for line in done.stderr.splitlines():
        match = WHERE.match(line)
        if match:
            seen = True
            yield f"{Path(match[1]).relative_to(root)}:{match[2]}: run {TOOL} -i on it"
    if done.returncode != 0 and not seen:
        yield f"{TOOL}: {done.stderr.strip()}"


EXAMPLES = [
    Example("as it should be", {"lib/a.c": "int a(void)\n{\n\treturn 1;\n}\n"}, []),
    Example("spaces for tabs", {"lib/a.c": "int a(void)\n{\n    return 1;\n}\n"}, ["lib/a.c:2"]),
    Example("build folders are not ours", {"build/a.c": "int  a;\n"}, []),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
