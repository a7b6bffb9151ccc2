#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include whom: the table below is ARCHITECTURE.md's, executed."""
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import tree
from tree import Example


class Rule(NamedTuple):
    """Files that match `who` include only `only` (None: anything), and never, not even through
    another header of ours, what matches `never`. Headers of ours are written as paths in the tree,
    others as <name>."""

    who: str
    only: tuple = None
    never: tuple = ()
    why: str = ""


BPF_SIDE = ("bpf/*", "<bpf/*", "<linux/bpf.h>", "*.skel.h")
RULES = [
    Rule("include/wire/*", only=("<linux/types.h>", "include/wire/*"),
         why="contracts with the kernel side include only <linux/types.h>"),
    Rule("bpf/*", only=("include/wire/*", "bpf/*", "vmlinux.h", "<vmlinux.h>", "<bpf/*",
                        "<linux/types.h>", "<linux/bpf.h>"),
         why="bpf/ sees only include/wire outside its own folder"),
    Rule("include/sojourn/*", only=("include/*", "<*"), never=("<uv.h>", "<uv/*", *BPF_SIDE),
         why="contracts know neither program"),
    Rule("lib/*", never=("observer/*", "driver/*", "<uv.h>", "<uv/*", *BPF_SIDE),
         why="lib/ sees neither BPF nor libuv nor a program"),
    Rule("observer/*", never=("driver/*", "bpf/*"), why="the programs meet in lib/, never directly"),
    Rule("driver/*", never=("observer/*", *BPF_SIDE),
         why="the programs meet in lib/, never directly"),
    Rule("observer/sink_*", never=("observer/model*", "observer/loader*", "observer/source_*"),
         why="a sink sees snapshot.h, never model or loader"),
    Rule("observer/source_*", never=("observer/sink*",), why="a source never sees a sink"),
    Rule("driver/engine*", never=("driver/stats*",), why="an engine sees engine.h, never stats"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def includes(root, path):
    """Pairs (line number, included): our headers as paths in the tree, others as <name>."""
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, resolve(root, path, match[1], match[2])


def resolve(root, path, quoted, angled):
    name = quoted or angled
    places = ([path.parent] if quoted else []) + [Path("include"), Path(".")]
    for place in places:
        candidate = Path(os.path.normpath(place / name))
        if (root / candidate).is_file():
            return str(candidate)
    return f"<{name}>" if angled else name


def matches(included, patterns):
    return any(fnmatch(included, pattern) for pattern in patterns)


def forbidden(graph, path, never):
    """Chains path → … → header over our own headers that end in something never allowed."""
    for number, first in graph[path]:
        seen, waiting = {path}, [(first,)]
        while waiting:
            chain = waiting.pop()
            if matches(chain[-1], never):
                yield number, chain
            elif chain[-1] in graph and chain[-1] not in seen:
                seen.add(chain[-1])
                waiting += [(*chain, name) for _, name in graph[chain[-1]]]


def problems(root, options):
    del options
    graph = {str(path): list(includes(root, path)) for path in tree.files(root, ".c", ".h")}
    for path in graph:
        for rule in RULES:
            if not fnmatch(path, rule.who):
                continue
            for number, included in graph[path]:
                if rule.only is not None and not matches(included, rule.only):
                    yield f"{path}:{number}: includes {included}: {rule.why}"
            for number, chain in forbidden(graph, path, rule.never):
                yield f"{path}:{number}: includes {' which includes '.join(chain)}: {rule.why}"


def example(name, files, expected):
    return Example(name, {path: "".join(f"#include {what}\n" for what in lines)
                          for path, lines in files.items()}, expected)


EXAMPLES = [
    example("allowed", {
        "include/wire/a.h": ["<linux/types.h>", '"wire/b.h"'], "include/wire/b.h": [],
        "include/sojourn/a.h": ["<stdio.h>", '"wire/a.h"'],
        "bpf/a.bpf.c": ['"vmlinux.h"', "<bpf/bpf_helpers.h>", '"wire/a.h"', '"kernel.h"'],
        "bpf/kernel.h": [],
        "lib/a.c": ['"sojourn/a.h"', "<jansson.h>"],
        "observer/sink_a.c": ['"snapshot.h"'], "observer/snapshot.h": ['"sojourn/a.h"'],
        "observer/source_a.c": ['"model.h"', "<bpf/libbpf.h>"], "observer/model.h": [],
        "driver/engine_a.c": ['"engine.h"', "<uv.h>"], "driver/engine.h": [],
    }, []),
    example("wire includes more", {"include/wire/a.h": ["<stdint.h>", '"sojourn/a.h"'],
                                   "include/sojourn/a.h": []},
            ["a.h:1: includes <stdint.h>", "a.h:2: includes include/sojourn/a.h"]),
    example("bpf sees user space", {"bpf/a.bpf.c": ['"sojourn/a.h"', "<stdio.h>",
                                                    '"../lib/a.h"'],
                                    "include/sojourn/a.h": [], "lib/a.h": []},
            ["includes include/sojourn/a.h", "includes <stdio.h>", "includes lib/a.h"]),
    example("a sink sees the model", {"observer/sink_a.c": ['"model.h"', '"loader.h"'],
                                      "observer/model.h": [], "observer/loader.h": []},
            ["sink_a.c:1", "sink_a.c:2"]),
    example("through another header", {"observer/sink_a.c": ['"a.h"'],
                                       "observer/a.h": ['"b.h"'], "observer/b.h": ['"model.h"'],
                                       "observer/model.h": []},
            ["a.h which includes observer/b.h which includes observer/model.h"]),
    example("a source sees a sink", {"observer/source_a.c": ['"sink.h"'], "observer/sink.h": []},
            ["source_a.c:1"]),
    example("an engine sees stats", {"driver/engine_a.c": ['"stats.h"'], "driver/stats.h": []},
            ["engine_a.c:1"]),
    example("the programs see each other", {"driver/a.c": ['"../observer/a.h"'],
                                            "observer/b.c": ['"driver/b.h"'],
                                            "observer/a.h": [], "driver/b.h": []},
            ["driver/a.c:1", "observer/b.c:1"]),
    example("lib sees BPF and libuv", {"lib/a.c": ["<uv.h>", "<bpf/bpf.h>", '"sojourn.skel.h"']},
            ["lib/a.c:1", "lib/a.c:2", "lib/a.c:3"]),
    example("a contract sees a program", {"include/sojourn/a.h": ['"../../observer/a.h"'],
                                          "observer/a.h": []},
            ["include/sojourn/a.h:1"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
