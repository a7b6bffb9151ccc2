#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every file states its licence and its purpose, and contains nothing of its author's machine. The rule checks
licence line, opening comment, trailing blanks, paths of one machine, and that scripts parse."""
import ast
import os
import re
import shutil
import sys
from pathlib import Path

import tree
from tree import Example

DUAL = ("bpf", "include/wire")
LICENCES = {True: "(MIT OR GPL-2.0-only)", False: "MIT"}
BINARY = (".png", ".svg", ".gz", ".pcap", ".woff2")
FOREIGN = ("LICENSES",)  # other people's texts, unchanged
SPDX = "SPDX-License-Identifier: "
MARKS = {".c": "// %s", ".h": "/* %s */"}  # as in the kernel
# Home folders of some machine. machine_paths() adds the folder of this checkout.
HOMES = re.compile(r"(?<![\w.])/(?:home|Users)/[a-z]\w*|(?<![\w.])/root/\w")
EXAMPLE_HOMES = ("/home/user",)
MIN_COMMENT = 20  # characters that a statement of responsibility has at least


def licence_problems(path, lines):
    expected = LICENCES[tree.under(path, *DUAL)]
    at = 1 if lines and lines[0].startswith("#!") else 0
    line = lines[at] if len(lines) > at else ""
    wanted = SPDX + expected
    if path.suffix in MARKS:
        wanted = MARKS[path.suffix] % wanted
    if wanted not in line:
        yield f"{path}:{at + 1}: wants '{wanted}'"


def comment_problems(path, lines):
    """After the licence line comes a comment on the file's purpose."""
    text = "\n".join(lines[1:]).lstrip()
    match = re.match(r"/\*(.*?)\*/|//([^\n]*)", text, re.DOTALL)
    said = re.sub(r"[\s*]+", " ", (match[1] or match[2] or "") if match else "").strip()
    if len(said) < MIN_COMMENT:
        yield f"{path}:2: wants an opening comment that states the file's responsibility"


def blank_problems(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"{path}:{number}: trailing blank"
    if text and not text.endswith("\n"):
        yield f"{path}: no newline at its end"


def machine_paths(root):
    own = {str(root.resolve()), os.environ.get("HOME", "")}
    return {path for path in own if path.count("/") > 1}


def path_problems(path, text, own):
    for number, line in enumerate(text.split("\n"), 1):
        found = [place for place in own if place in line]
        found += [match for match in HOMES.findall(line) if match not in EXAMPLE_HOMES]
        if found:
            yield f"{path}:{number}: a path of one machine: {found[0]}"


def is_shell(path, lines):
    first = lines[0] if lines else ""
    return path.suffix == ".sh" or (first.startswith("#!") and re.search(r"\b(ba)?sh\b", first))


def is_python(path, lines):
    return path.suffix == ".py" or (lines and re.match(r"#!.*\bpython3?\b", lines[0]))


def shell_problems(root, path):
    done = tree.run(["bash", "-n", root / path])
    if done.returncode != 0:
        yield f"{path}: bash -n: {done.stderr.strip()}"
    elif shutil.which("shellcheck"):
        done = tree.run(["shellcheck", "--format=gcc", "--shell=bash", root / path])
        for line in done.stdout.splitlines():
            yield line.replace(f"{root}/", "") + " (shellcheck)"


def python_problems(path, text):
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        yield f"{path}:{error.lineno}: {error.msg}"
        return
    if module.body and not ast.get_docstring(module):
        yield f"{path}: wants an opening docstring that states the file's responsibility"


def problems(root, options):
    del options
    own = machine_paths(root)
    for path in tree.files(root):
        if path.suffix in BINARY or tree.under(path, *FOREIGN):
            continue
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            yield f"{path}: not UTF-8"
            continue
        lines = text.split("\n")
        yield from blank_problems(path, text)
        yield from path_problems(path, text, own)
        if path.suffix in (".c", ".h"):
            yield from licence_problems(path, lines)
            yield from comment_problems(path, lines)
        elif is_shell(path, lines):
            yield from licence_problems(path, lines)
            yield from shell_problems(root, path)
        elif is_python(path, lines) and text:
            yield from licence_problems(path, lines)
            yield from python_problems(path, text)


OPENING = "// SPDX-License-Identifier: MIT\n/* Counts the things that are to be counted. */\n"
HEADER = OPENING.replace("// ", "/* ", 1).replace("\n", " */\n", 1)
SHELL = "#!/usr/bin/env bash\n# SPDX-License-Identifier: MIT\n"
PYTHON = "#!/usr/bin/env python3\n# SPDX-License-Identifier: MIT\n"
EXAMPLES = [
    Example("clean", {"lib/a.c": OPENING + "int a;\n", "tools/a": SHELL + "echo \"$1\"\n",
                      "tools/b.py": PYTHON + '"""Says what it is for."""\n', "docs/a.md": "text\n",
                      "bpf/a.h": HEADER.replace("MIT", LICENCES[True])}, []),
    Example("licences", {"lib/a.c": OPENING.split("\n", 1)[1], "bpf/a.bpf.c": OPENING,
                         "tools/a": "#!/bin/sh\necho\n"},
            ["lib/a.c:1: wants", "lib/a.c:2: wants", "bpf/a.bpf.c:1: wants", "tools/a:2: wants"]),
    Example("marks", {"lib/a.c": HEADER, "lib/a.h": OPENING},
            ["lib/a.c:1: wants '// SPDX", "lib/a.h:1: wants '/* SPDX"]),
    Example("says nothing", {"lib/a.c": OPENING.split("\n", 1)[0] + "\n/* a */\nint a;\n"},
            ["lib/a.c:2: wants an opening comment"]),
    Example("blanks", {"docs/a.md": "text \nmore\t\nlast"},
            ["a.md:1: trailing", "a.md:2: trailing", "no newline"]),
    Example("machine paths", {"docs/a.md": "see /home" + "/alice/x and /root" + "/notes\n"},
            ["a.md:1: a path of one machine: /home" + "/alice"]),
    Example("broken shell", {"tools/a": SHELL + "if true; then\n"}, ["tools/a: bash -n"]),
    Example("broken python", {"tools/b.py": PYTHON + "def f(:\n", "tools/c.py": PYTHON + "a = 1\n"},
            ["tools/b.py:3:", "tools/c.py: wants an opening docstring"]),
]
if shutil.which("shellcheck"):
    EXAMPLES.append(Example("an unquoted word", {"tools/a": SHELL + "rm -r $1\n"}, ["SC2086"]))

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
