#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy finds nothing in our user-space C files, with the few checks of .clang-tidy."""
import json
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tree
from tree import Example

TOOL = "clang-tidy-19"
JOBS = 2
WHERE = ("lib", "observer", "driver", "tests")
SETTINGS = Path(__file__).resolve().parents[2] / ".clang-tidy"
FINDING = re.compile(r"^(.*?:\d+):\d+: (?:warning|error): (.*)$")


def sources(root, options):
    """Our files that the build compiles, each once."""
    database = options.build / "compile_commands.json"
    if not database.exists():
        raise tree.Skip(f"{database} is not there: configure the build first")
    compiled = {Path(entry["directory"], entry["file"]).resolve()
                for entry in json.loads(database.read_text())}
    return [path for path in tree.files(root, ".c")
            if tree.under(path, *WHERE) and (root / path).resolve() in compiled]


def tidy(root, options, path):
    done = tree.run([TOOL, f"--config-file={SETTINGS}", "--quiet", "-p", options.build,
                     # gcc's own warning options are no concern of clang's
                     "--extra-arg=-Wno-unknown-warning-option", root / path])
    found = []
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            found.append(f"{match[1].replace(f'{root.resolve()}/', '')}: {match[2]}")
    if done.returncode != 0 and not found:
        found.append(f"{path}: {TOOL} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return found


def problems(root, options):
    if not shutil.which(TOOL):
        raise tree.Skip(f"{TOOL} is not installed")
    seen = set()
    with ThreadPoolExecutor(JOBS) as pool:
        for found in pool.map(lambda path: tidy(root, options, path), sources(root, options)):
            yield from (line for line in found if not (line in seen or seen.add(line)))


def with_database(root, options):
    """As problems(), for an example: every C file of it is compiled."""
    options.build.mkdir()
    entries = [{"directory": str(root), "file": str(root / path),
                "command": f"cc -c {root / path}"} for path in tree.files(root, ".c")]
    (options.build / "compile_commands.json").write_text(json.dumps(entries))
    yield from problems(root, options)


EXAMPLES = [
    Example("nothing to find", {"lib/a.c": "int a(int x);\nint a(int x)\n{\n\treturn x + 1;\n}\n"},
            []),
    Example("a null pointer", {"lib/a.c": "int a(int x);\nint a(int x)\n{\n\tint *p = 0;\n\n"
                                          "\treturn x ? *p : 0;\n}\n"},
            ["[clang-analyzer-core.NullDereference"]),
    Example("a stray semicolon", {"driver/a.c": "int a(int x);\nint a(int x)\n{\n\tif (x);\n"
                                                "\t\tx++;\n\treturn x;\n}\n"},
            ["bugprone-suspicious-semicolon"]),
    Example("does not compile", {"lib/a.c": "int a(void) { return b; }\n"}, ["clang-diagnostic"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(with_database if "--self-test" in sys.argv else problems, EXAMPLES))
