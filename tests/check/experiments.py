#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every experiment is complete: script and template, a test of its quick form, its page, its figures and plots,
and a row in the index. No page exists without its experiment."""
import re
import sys
from pathlib import Path

import tree
from tree import Example

FOLDER, PAGES, TESTS = Path("experiments"), Path("docs/experiments"), Path("tests/experiment")
IMAGE = re.compile(r"!\[[^]]*\]\(([^)]+\.svg)\)")


def experiments(known):
    """Return the folders of experiments/, without the shared one."""
    return sorted({path.parts[1] for path in known
                   if tree.under(path, FOLDER) and len(path.parts) > 2} - {"common"})


def parts(name):
    return (FOLDER / name / "experiment.py", FOLDER / name / "page.md", PAGES / f"{name}.md",
            PAGES / f"{name}.json", TESTS / f"test_{name.replace('-', '_')}.py")


def index_problems(root, names):
    index = PAGES / "README.md"
    text = (root / index).read_text() if (root / index).is_file() else ""
    for name in names:
        if f"]({name}.md)" not in text:
            yield f"{index}: does not name {name}"


def problems(root, options):
    del options
    known = set(tree.files(root))
    names = experiments(known)
    for name in names:
        yield from (f"{path}: missing: {name} is not whole" for path in parts(name)
                    if path not in known)
        page = PAGES / f"{name}.md"
        for image in IMAGE.findall((root / page).read_text()) if page in known else ():
            if PAGES / image not in known:
                yield f"{page}: shows {image}, which is not there"
    yield from index_problems(root, names)
    for path in sorted(known):
        if path.parent == PAGES and path.suffix == ".md" and path.stem not in (*names, "README"):
            yield f"{path}: no experiment writes it"


WHOLE = {"experiments/a-b/experiment.py": "", "experiments/a-b/page.md": "",
         "experiments/common/page.py": "", "docs/experiments/a-b.md": "![x](a-b-x.svg)\n",
         "docs/experiments/a-b.json": "", "docs/experiments/a-b-x.svg": "",
         "docs/experiments/README.md": "[a-b](a-b.md)\n", "tests/experiment/test_a_b.py": ""}
EXAMPLES = [
    Example("whole", WHOLE, []),
    Example("only begun", {"experiments/c/page.md": ""},
            ["c/experiment.py: missing", "experiments/c.md: missing", "c.json: missing",
             "test_c.py: missing", "README.md: does not name c"]),
    Example("a lost plot and a page of nobody's",
            {**{path: text for path, text in WHOLE.items() if not path.endswith(".svg")},
             "docs/experiments/old.md": ""},
            ["shows a-b-x.svg, which is not there", "old.md: no experiment writes it"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
