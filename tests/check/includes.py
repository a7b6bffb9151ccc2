#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dependencies follow two tables: ARROWS between the folders of a program, which ARCHITECTURE.md draws, and RULES from
each part of the tree to the outside. Neither the files nor the arrows form a circle.

A file uses another if it includes its header or calls a function that it defines. Calls are read from the
objects of the build, so circles without an include are found, too. Within a folder only calls count: files of
one subject may share a private header.
"""
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import tree
from tree import Example

# Folder: the folders that it uses. A file beside the folders (driver/main.c) stands for itself. Those of bpf/ are the
# state that all its folders share, and are left out.
ARROWS = {
    "bpf/tcp": ("bpf/protocol", "bpf/tcp/connection", "bpf/tcp/http", "bpf/tcp/state", "bpf/tcp/tls"),
    "bpf/tcp/http": ("bpf/protocol", "bpf/tcp/connection", "bpf/tcp/state"),
    "bpf/tcp/state": ("bpf/protocol",),
    "bpf/tcp/tls": ("bpf/tcp/connection", "bpf/tcp/http", "bpf/tcp/state"),
    "driver/engine": ("driver/payload", "driver/transport"),
    "driver/engine/http": ("driver/engine", "driver/payload"),
    "driver/engine/http2": ("driver/engine", "driver/engine/http", "driver/payload", "driver/transport"),
    "driver/engine/stream": ("driver/engine", "driver/payload", "driver/payload/framing"),
    "driver/engine/udp": ("driver/engine", "driver/payload", "driver/payload/framing", "driver/transport"),
    "driver/engines": ("driver/engine", "driver/engine/http", "driver/engine/http2", "driver/engine/stream",
                       "driver/engine/udp"),
    "driver/fleet": ("driver/fleet/agent", "driver/fleet/channel", "driver/fleet/observers", "driver/load",
                     "driver/nats", "driver/options", "driver/run", "driver/scenario", "driver/sweep",
                     "driver/transport"),
    "driver/fleet/agent": ("driver/engine", "driver/fleet/channel", "driver/load", "driver/nats", "driver/options",
                           "driver/run", "driver/scenario", "driver/transport"),
    "driver/fleet/channel": ("driver/load", "driver/nats", "driver/options", "driver/scenario", "driver/transport"),
    "driver/fleet/observers": ("driver/engine", "driver/fleet/agent", "driver/fleet/channel", "driver/nats",
                               "driver/run", "driver/transport"),
    "driver/host": ("driver/engine", "driver/load", "driver/transport"),
    "driver/load": ("driver/engine", "driver/payload", "driver/stats", "driver/transport"),
    "driver/main": ("driver/engine", "driver/fleet", "driver/fleet/agent", "driver/fleet/observers", "driver/host",
                    "driver/options", "driver/run", "driver/scenario", "driver/sweep"),
    "driver/nats": ("driver/transport",),
    "driver/options": ("driver/engine", "driver/engine/http", "driver/engine/http2", "driver/engines", "driver/load",
                       "driver/payload", "driver/payload/framing", "driver/run", "driver/transport"),
    "driver/payload": ("driver/payload/framing",),
    "driver/run": ("driver/engine", "driver/host", "driver/load", "driver/stats", "driver/transport"),
    "driver/scenario": ("driver/engine", "driver/engine/http", "driver/engines", "driver/options", "driver/payload",
                        "driver/run", "driver/transport"),
    "driver/stats": ("driver/engine",),
    "driver/sweep": ("driver/engine", "driver/load", "driver/run"),
    "lib/check": ("lib/base", "lib/run"),
    "lib/forms": ("lib/base", "lib/json", "lib/report", "lib/report/driver", "lib/report/observed", "lib/report/page",
                  "lib/run"),
    "lib/join": ("lib/base", "lib/run"),
    "lib/json": ("lib/base", "lib/run"),
    "lib/metrics": ("lib/base", "lib/run"),
    "lib/report": ("lib/base", "lib/report/driver", "lib/report/observed", "lib/report/page", "lib/run"),
    "lib/report/driver": ("lib/base", "lib/report/page", "lib/run"),
    "lib/report/observed": ("lib/base", "lib/report/page", "lib/run"),
    "lib/report/page": ("lib/base",),
    "lib/run": ("lib/base",),
    "observer/doctor": ("observer/host/net", "observer/process", "observer/resources"),
    "observer/host": ("observer/host/net",),
    "observer/host/containers": ("observer/host",),
    "observer/kernel": ("observer/host/net", "observer/kernel/running", "observer/kernel/tables",
                        "observer/kernel/tls"),
    "observer/kernel/running": ("observer/host", "observer/host/net"),
    "observer/kernel/tls": ("observer/host/programs",),
    "observer/lacks": ("observer/kernel", "observer/options"),
    "observer/loop": ("observer/model", "observer/sinks"),
    "observer/main": ("observer/doctor", "observer/kernel", "observer/observe", "observer/options", "observer/probe",
                      "observer/report", "observer/sinks/live"),
    "observer/model": ("observer/host", "observer/host/net", "observer/kernel", "observer/model/kept",
                       "observer/model/upstreams", "observer/process", "observer/resources", "observer/sources"),
    "observer/model/upstreams": ("observer/host", "observer/host/net", "observer/kernel", "observer/model/kept",
                                 "observer/sources"),
    "observer/observe": ("observer/host", "observer/host/containers", "observer/host/net", "observer/kernel",
                         "observer/lacks", "observer/loop", "observer/model", "observer/options", "observer/outputs",
                         "observer/process"),
    "observer/options": ("observer/kernel", "observer/kernel/tables", "observer/sinks/http", "observer/sinks/otlp"),
    "observer/outputs": ("observer/options", "observer/process", "observer/sinks", "observer/sinks/http",
                         "observer/sinks/live", "observer/sinks/otlp", "observer/sinks/recording"),
    "observer/probe": ("observer/host", "observer/host/net", "observer/kernel"),
    "observer/report": ("observer/sinks/recording",),
    "observer/resources": ("observer/host", "observer/host/net", "observer/kernel", "observer/process"),
    "observer/sinks": ("observer/model",),
    "observer/sinks/http": ("observer/model", "observer/process", "observer/sinks"),
    "observer/sinks/live": ("observer/model", "observer/sinks", "observer/sinks/recording"),
    "observer/sinks/otlp": ("observer/process", "observer/sinks"),
    "observer/sinks/recording": ("observer/model/kept", "observer/sinks"),
    "observer/sources": ("observer/host", "observer/host/containers", "observer/host/programs", "observer/kernel",
                         "observer/kernel/tables", "observer/kernel/tls"),
}
PROGRAMS = ("bpf", "driver", "observer", "lib")


class Rule(NamedTuple):
    """Files that match `who` include only `only` (None: anything), and never anything that matches `never`,
    even through another header of ours. Our headers are written as paths in the tree, others as <name>."""

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
]
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
OBJECT = re.compile(r"(?:^|/)(driver|observer|lib)/CMakeFiles/[^/]+\.dir/(.+)\.c\.o$")


def includes(root, path):
    """Yield (line number, included): our headers as paths in the tree, others as <name>."""
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, resolve(root, path, match[1], match[2])


def resolve(root, path, quoted, angled):
    name = quoted or angled
    places = ([path.parent] if quoted else []) + [Path("include"), Path(path.parts[0]), Path(".")]
    for place in places:
        candidate = Path(os.path.normpath(place / name))
        if (root / candidate).is_file():
            return str(candidate)
    return f"<{name}>" if angled else name


def matches(included, patterns):
    return any(fnmatch(included, pattern) for pattern in patterns)


def forbidden(graph, path, never):
    """Yield chains path → … → header over our own headers whose end is forbidden."""
    for number, first in graph[path]:
        seen, waiting = {path}, [(first,)]
        while waiting:
            chain = waiting.pop()
            if matches(chain[-1], never):
                yield number, chain
            elif chain[-1] in graph and chain[-1] not in seen:
                seen.add(chain[-1])
                waiting += [(*chain, name) for _, name in graph[chain[-1]]]


def rule_problems(graph):
    for path in graph:
        for rule in RULES:
            if not fnmatch(path, rule.who):
                continue
            for number, included in graph[path]:
                if rule.only is not None and not matches(included, rule.only):
                    yield f"{path}:{number}: includes {included}: {rule.why}"
            for number, chain in forbidden(graph, path, rule.never):
                yield f"{path}:{number}: includes {' which includes '.join(chain)}: {rule.why}"


def unit(path):
    """Return a file's unit: a source and its header are one, such as driver/load/worker."""
    return re.sub(r"(\.bpf)?\.[ch]$", "", path)


def symbols(root, build):
    """Return the names that each unit defines and calls: {unit: ({name}, {name})}, from the build's objects."""
    objects = {}
    for path in sorted(build.rglob("*.c.o")) if build.is_dir() else ():
        match = OBJECT.search(str(path.relative_to(build)))
        name = f"{match[1]}/{match[2]}" if match else ""
        if (root / f"{name}.c").is_file():
            objects[str(path)] = name
    found = {name: (set(), set()) for name in objects.values()}
    # One nm reads all: a process for each object took most of this rule's time.
    for line in tree.run(["nm", "--print-file-name", *objects]).stdout.splitlines() if objects else ():
        path, _, symbol = line.rpartition(":")
        words = symbol.split()
        defined, called = found[objects[path]]
        if words[-2] in "TDBRVWC":
            defined.add(words[-1])
        elif words[-2] == "U":
            called.add(words[-1])
    return found


def uses(graph, known):
    """Return which unit of a program uses which other one, and how: {(unit, unit): words}."""
    found = {}
    for path, included in graph.items():
        for number, name in included:
            if path.split("/")[0] in PROGRAMS and name.split("/")[0] in PROGRAMS and \
                    "bpf" not in (os.path.dirname(path), os.path.dirname(name)) and \
                    folder(unit(name)) != folder(unit(path)):
                found.setdefault((unit(path), unit(name)), f"{path}:{number} includes {name}")
    owners = {name: where for where, (defined, _) in known.items() for name in defined}
    for where, (_, called) in known.items():
        for name in sorted(called):
            if owners.get(name, where) != where:
                found.setdefault((where, owners[name]), f"{where}.c calls {name}() of {owners[name]}.c")
    return found


def folder(name):
    """Return a unit's folder: driver/load for driver/load/worker; driver/main stands for itself."""
    parent = os.path.dirname(name)
    return name if parent in PROGRAMS else parent


def circles(arrows):
    """Return the sets of names that reach each other."""
    reached = {}
    for start in {end for arrow in arrows for end in arrow}:
        seen, waiting = set(), [start]
        while waiting:
            at = waiting.pop()
            for here, there in arrows:
                if here == at and there not in seen:
                    seen.add(there)
                    waiting.append(there)
        reached[start] = seen
    return sorted({tuple(sorted(other for other in reached if start in reached[other] and other in reached[start]))
                   for start in reached if start in reached[start]})


def arrow_problems(found):
    drawn = {(here, there) for here, ends in ARROWS.items() for there in ends}
    for (here, there), how in sorted(found.items()):
        pair = folder(here), folder(there)
        same_program = here.split("/")[0] == there.split("/")[0]
        if same_program and pair[0] != pair[1] and pair not in drawn:
            yield f"{pair[0]} → {pair[1]}: {how}, and no arrow of this rule allows it"
    for circle in circles(set(found)):
        yield f"a circle of files: {', '.join(circle)}"


def picture_problems(found):
    """Check the arrows themselves: none in a circle, none unused."""
    for circle in circles({(here, there) for here, ends in ARROWS.items() for there in ends}):
        yield f"the arrows of this rule run in a circle: {', '.join(circle)}"
    used = {(folder(here), folder(there)) for here, there in found}
    for here, ends in ARROWS.items():
        for there in ends:
            if (here, there) not in used:
                yield f"{here} → {there}: nothing uses this arrow of the rule any more"


def pictures(text):
    """Return the arrows of ARCHITECTURE.md: a heading "### driver/…", below it rows "| run | host load | words |"."""
    program, drawn = None, set()
    for line in text.splitlines():
        heading = re.match(r"### (\w+)/", line)
        picture = re.match(r"\| (\S+) \|([\w/ ]+)\| ", line)
        program = heading[1] if heading else None if line.startswith("#") else program
        if program and picture:
            drawn |= {(f"{program}/{picture[1]}", f"{program}/{there}") for there in picture[2].split()}
    return drawn


def drawing_problems(text, arrows):
    drawn, ruled = pictures(text), {(here, there) for here, ends in arrows.items() for there in ends}
    for here, there in sorted(drawn - ruled):
        yield f"ARCHITECTURE.md draws {here} → {there}, which no rule allows"
    for here, there in sorted(ruled - drawn):
        yield f"ARCHITECTURE.md does not draw {here} → {there}"


def problems(root, options):
    graph = {str(path): list(includes(root, path)) for path in tree.files(root, ".c", ".h")}
    found = uses(graph, symbols(root, options.build))
    yield from rule_problems(graph)
    yield from arrow_problems(found)
    if (root / "ARCHITECTURE.md").exists():
        yield from picture_problems(found)
        yield from drawing_problems((root / "ARCHITECTURE.md").read_text(), ARROWS)


def example(name, files, expected):
    return Example(name, {path: "".join(f"#include {what}\n" for what in lines)
                          for path, lines in files.items()}, expected)


EXAMPLES = [
    example("allowed", {
        "include/wire/a.h": ["<linux/types.h>", '"wire/b.h"'], "include/wire/b.h": [],
        "include/sojourn/a.h": ["<stdio.h>", '"wire/a.h"'],
        "bpf/a.bpf.c": ['"vmlinux.h"', "<bpf/bpf_helpers.h>", '"wire/a.h"', '"kernel.h"'],
        "bpf/kernel.h": [],
        "lib/run/a.c": ['"sojourn/a.h"', "<jansson.h>", '"base/a.h"'], "lib/base/a.h": [],
        "observer/sinks/a.c": ['"model/snapshot.h"'], "observer/model/snapshot.h": ['"sojourn/a.h"'],
        "driver/engine/http/a.c": ['"engine/engine.h"', "<uv.h>"], "driver/engine/engine.h": [],
    }, []),
    example("wire includes more", {"include/wire/a.h": ["<stdint.h>", '"sojourn/a.h"'],
                                   "include/sojourn/a.h": []},
            ["a.h:1: includes <stdint.h>", "a.h:2: includes include/sojourn/a.h"]),
    example("bpf sees user space", {"bpf/a.bpf.c": ['"sojourn/a.h"', "<stdio.h>",
                                                    '"../lib/a.h"'],
                                    "include/sojourn/a.h": [], "lib/a.h": []},
            ["includes include/sojourn/a.h", "includes <stdio.h>", "includes lib/a.h"]),
    example("the programs see each other", {"driver/run/a.c": ['"../../observer/host/a.h"'],
                                            "observer/host/b.c": ['"driver/run/b.h"'],
                                            "observer/host/a.h": [], "driver/run/b.h": []},
            ["driver/run/a.c:1", "observer/host/b.c:1"]),
    example("through another header", {"lib/run/a.c": ['"base/a.h"'], "lib/base/a.h": ['"b.h"'],
                                       "lib/base/b.h": ["<uv.h>"]},
            ["run/a.c:1: includes lib/base/a.h which includes lib/base/b.h which includes <uv.h>",
             "base/a.h:1: includes lib/base/b.h which includes <uv.h>", "base/b.h:1: includes <uv.h>"]),
    example("against the arrows", {"observer/sources/a.c": ['"sinks/a.h"'], "observer/sinks/a.h": [],
                                   "driver/engine/a.c": ['"stats/stats.h"'], "driver/stats/stats.h": []},
            ["observer/sources → observer/sinks: observer/sources/a.c:1", "driver/engine → driver/stats"]),
    example("files in a circle", {"lib/run/a.h": ['"base/b.h"'], "lib/base/b.c": ['"base/c.h"', '"json/c.h"'],
                                  "lib/base/b.h": [], "lib/json/c.c": ['"run/a.h"'], "lib/json/c.h": [],
                                  "lib/base/c.h": []},
            ["a circle of files: lib/base/b, lib/json/c, lib/run/a", "lib/base → lib/json"]),
    example("lib sees BPF and libuv", {"lib/run/a.c": ["<uv.h>", "<bpf/bpf.h>", '"sojourn.skel.h"']},
            ["lib/run/a.c:1", "lib/run/a.c:2", "lib/run/a.c:3"]),
    example("a contract sees a program", {"include/sojourn/a.h": ['"../../observer/host/a.h"'],
                                          "observer/host/a.h": []},
            ["include/sojourn/a.h:1"]),
]
# Objects of a build in which a calls b and b calls a, though neither includes the other.
CALLS = {"lib/run/a": ({"a"}, {"b"}), "lib/run/b": ({"b"}, {"a", "puts"})}


def call_example():
    """Calls are found without an include; the C library's names have no unit."""
    found = [line for line in arrow_problems(uses({}, CALLS)) if "circle of files" in line]
    return [] if found == ["a circle of files: lib/run/a, lib/run/b"] else [f"example 'calls': found {found}"]


def drawing_example():
    text = "### lib/: words\n\n| run | base | a |\n| json | run base | b |\n| base | | c |\n## more\n| run | join | d |\n"
    found = list(drawing_problems(text, {"lib/run": ("lib/base",), "lib/json": ("lib/run", "lib/join")}))
    expected = ["ARCHITECTURE.md draws lib/json → lib/base, which no rule allows",
                "ARCHITECTURE.md does not draw lib/json → lib/join"]
    return [] if found == expected else [f"example 'drawing': found {found}"]


if __name__ == "__main__":
    wrong = call_example() + drawing_example() if "--self-test" in sys.argv else []
    for complaint in wrong:
        print(complaint)
    sys.exit(tree.main(problems, EXAMPLES) or bool(wrong))
