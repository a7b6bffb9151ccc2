#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Built files name neither their source folder nor their build folder, as two builds would differ.
The rule finds the usual difference in a second; tools/reproducible compares whole builds."""
import gzip
import re
import sys

import tree
from tree import Example

PROGRAMS = ("observer/sojourn", "driver/sojourn-drive")
REST = ("bpf/*.linked.o", "docs/*.1.gz", "docs/completions/*", "docs/run.schema.json", "*.spdx.json", "NOTICES")


def problems(root, options):
    if not any((options.build / name).exists() for name in PROGRAMS):
        raise tree.Skip(f"there is no program in {options.build}")
    folders = b"|".join(re.escape(str(path.resolve()).encode()) for path in (root, options.build))
    told = re.compile(rb"(?:" + folders + rb")(?!\w)[\x20-\x7e]*")
    for pattern in PROGRAMS + REST:
        for path in sorted(options.build.glob(pattern)):
            data = path.read_bytes()
            match = told.search(gzip.decompress(data) if path.suffix == ".gz" else data)
            if match:
                yield f"{path.relative_to(options.build)}: names a folder of this build: {match[0].decode()}"


def built(root, options):
    tree.compile_examples(root, options.build)
    yield from problems(root, options)


BODY = "int main(void)\n{\n\treturn sizeof(__FILE__) - 1;\n}\n"
EXAMPLES = [
    Example("mapped", {"observer/sojourn.c": "// -g -ffile-prefix-map={root}=.\n" + BODY}, []),
    Example("not mapped", {"observer/sojourn.c": "// -g\n" + BODY}, ["observer/sojourn: names a folder"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(built if "--self-test" in sys.argv else problems, EXAMPLES))
