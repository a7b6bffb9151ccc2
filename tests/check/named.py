#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every file that a comment or a document names exists, because a wrong name misleads readers. NAME in a name,
or *, matches anything: driver/engine_NAME.c needs one such file. Links in documents must lead somewhere,
including their headings."""
import os
import re
import sys
from fnmatch import fnmatch

import reading
import tree
from tree import Example

WORD = re.compile(r"(?<![\w$%*</{}~.-])(?:\.\./)*((?:[\w.*-]+/)*[\w-][\w.*-]*\.(?:c|h|S|py|sh|cmake|md))(?![\w*/-]|\.\w)")
PLACEHOLDER = re.compile(r"\b(?:NAME|FILE|DIR)\b|(?<=_)NAME\b")
# Files of Linux or of a build.
FOREIGN = ("include/net/*", "include/linux/*", "include/uapi/*", "linux/*", "sock_diag.h", "net/*", "kernel/bpf/*", "arch/*",
           "kernel/tracepoint.c", "vmlinux.h", "*.skel.h", "curses.h")
# Other people's texts, and examples of missing files.
SKIPPED = ("LICENSES", "tests/check", "packaging/copyright")


LINK = re.compile(r"\]\(((?![a-z]+:)[^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def lost_links(root, path, text):
    for match in LINK.finditer(text):
        target = root / os.path.normpath(path.parent / match[1]) if match[1] else root / path
        if not target.exists():
            lost = "which is not there"
        elif match[2] and match[2] not in map(anchor, HEADING.findall(target.read_text())):
            lost = "which has no such heading"
        else:
            continue
        yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: links to {match[0][2:-1]}, {lost}"


def is_there(word, paths):
    if any(fnmatch(word, pattern) for pattern in FOREIGN):
        return True
    pattern = PLACEHOLDER.sub("*", word)
    return any(fnmatch(path, pattern) or fnmatch(path, f"*/{pattern}") for path in paths)


def problems(root, options):
    del options
    paths = [str(path) for path in tree.files(root)]
    for path in tree.files(root):
        if tree.under(path, *SKIPPED):
            continue
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        # An experiment's page.md is a template: its links count from docs/experiments/, where the page is written.
        if path.suffix == ".md" and not tree.under(path, "experiments"):
            yield from lost_links(root, path, text)
        for first, said in reading.prose(path, text):
            for number, line in enumerate(said.split("\n"), first):
                for word in WORD.findall(line):
                    if not is_there(word, paths):
                        yield f"{path}:{number}: names {word}, which is not there"


EXAMPLES = [
    Example("links", {"docs/a.md": "# A `b`: c\n[x](a.md#a-b-c) [y](#a-b-c) [z](https://example.org/q) [up](../c.txt)\n", "c.txt": ""}, []),
    Example("lost links", {"docs/a.md": "# A\n[x](#b)\n[y](../c.txt)\n"},
            ["docs/a.md:2: links to #b, which has no such", "docs/a.md:3: links to ../c.txt, which is not"]),
    Example("all there", {
        "lib/run/a.c": '/* See b.h and run/b.h; lib/run/a.c. include/net/tcp.h, <stdio.h> */\nchar *s = "c.h";\n',
        "lib/run/b.h": "// engine_NAME.c\n", "driver/engine_x.c": "int a = b.c;\n",
        "docs/x.md": "See [there](../lib/run/a.c), `/etc/x.py` and https://example.org/a/q.c.\n",
        "tools/t": '#!/usr/bin/env python3\n"""Runs b.h."""\nopen("none.py")  # like a.c\n'}, []),
    Example("gone", {
        "lib/a.c": '#include "gone.h"\n/*\n * See gone.c and\n * old/a.c.\n */\n',
        "docs/x.md": "text\nof `lib/none.h`, option_NAME.c, b_*.c\n",
        "tools/t": '#!/usr/bin/env python3\n"""Runs\nnone.py."""\n', "tools/u.sh": "x=1 # of none.sh\ny=no.sh\n",
        "CMakeLists.txt": "# none.cmake\n"},
        ["lib/a.c:3: names gone.c", "lib/a.c:4: names old/a.c", "x.md:2: names lib/none.h", "names option_NAME.c",
         "names b_*.c",
         "tools/t:3: names none.py", "u.sh:1: names none.sh", "CMakeLists.txt:1: names none.cmake"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
