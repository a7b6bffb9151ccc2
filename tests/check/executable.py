#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files and modes agree. A file that begins with #! is executable, an executable file begins with #!, and so
does a Python file with a main part."""
import re
import sys

import tree
from tree import Example

FOREIGN = ("LICENSES",)  # other people's texts, unchanged
PROGRAM = re.compile(rb"^if __name__ == .__main__.:$", re.MULTILINE)


def problems(root, options):
    del options
    for path in tree.files(root):
        if tree.under(path, *FOREIGN):
            continue
        text = (root / path).read_bytes()
        executable = (root / path).stat().st_mode & 0o111
        if text.startswith(b"#!") and not executable:
            yield f"{path}: begins with #! and is not executable: chmod +x"
        elif executable and not text.startswith(b"#!"):
            yield f"{path}: is executable and does not begin with #!"
        elif path.suffix == ".py" and PROGRAM.search(text) and not text.startswith(b"#!"):
            yield f"{path}:1: is a program and does not begin with #!"


MAIN = "if __name__ == \"__main__\":\n    main()\n"
EXAMPLES = [
    Example("clean", {"tools/a": "#!/bin/sh\n", "tests/b.py": "#!/usr/bin/env python3\n" + MAIN, "lib/c.py": "A = 1\n"},
            [], executable=("tools/a", "tests/b.py")),
    Example("no mode", {"tests/bench/a.py": "#!/usr/bin/env python3\n" + MAIN}, ["tests/bench/a.py: begins with #!"]),
    Example("no #!", {"tests/bench/a.py": MAIN, "docs/b.md": "text\n"},
            ["tests/bench/a.py:1: is a program", "docs/b.md: is executable"], executable=("docs/b.md",)),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
