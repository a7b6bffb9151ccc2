#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of docs/run-document.md are those of the JSON Schema, and each member has its line in lib/json/meanings.txt.

    tests/check/members.py           prints differences
    tests/check/members.py --write   puts the tables into docs/run-document.md

A table has the members of one structure, and goes between two comments:

    <!-- members: service -->
    <!-- end of members -->

A structure without a table of its own is part of the tables of those that have it.
"""
import difflib
import json
import re
import sys
from pathlib import Path

import tree
from tree import Example

DOCUMENT = "docs/run-document.md"
MEANINGS = "lib/json/meanings.txt"
SCHEMA = "docs/run.schema.json"  # in the build
ROOT_TYPE = "document"
BLOCK = re.compile(r"(?m)^<!-- members: (\w+) -->\n(?s:.*?)^<!-- end of members -->\n")
HEADING = re.compile(r"(?m)^#+ (.*)$")
PAGE = re.compile(r"docs/([a-z-]+\.md)(#[\w-]+)?")
HEAD = "| member | unit | meaning |\n|---|---|---|\n"
VALUES = ("histogram", "stage")  # structures whose values have a unit
MOST_PLACES = 6  # that are named above a table


def without_null(schema):
    """Return the schema of a member that is not null."""
    return schema["anyOf"][0] if "anyOf" in schema else schema


def is_list(schema):
    return schema.get("type") in ("array", ["array", "null"])


def element(schema):
    """Return the schema of a member, or of a list's elements."""
    schema = without_null(schema)
    return without_null(schema["items"]) if is_list(schema) else schema


def referred(schema):
    """Return the name of the structure that a member is or has; None: a number or text."""
    return element(schema).get("$ref", "").rpartition("/")[2] or None


def is_nullable(schema):
    return "anyOf" in schema or "null" in schema.get("type", ())


def is_optional(structure, name):
    """Whether a member may be null or absent. Of a set of names each may be absent, which says nothing."""
    return is_nullable(structure["properties"][name]) or name not in structure.get("required", structure["properties"])


def link(page):
    """Return the link to a page of docs/ that a description names."""
    return f"[below]({page[2]})" if page[0].startswith(DOCUMENT) else f"[{page[1]}]({page[1]}{page[2] or ''})"


class Tables:
    """The tables of one schema, for one document."""

    def __init__(self, schema, text):
        self.types = {ROOT_TYPE: schema, **schema["$defs"]}
        self.sets = {frozenset(each["properties"]) for each in self.types.values() if "required" not in each}
        self.anchors = dict(self.headings(text))
        self.shown = set(self.anchors)
        self.places = {name: [] for name in self.types}
        self.find_places(schema, "")

    @staticmethod
    def headings(text):
        """Yield each structure with a table, and the anchor of the heading above it."""
        for block in BLOCK.finditer(text):
            heading = HEADING.findall(text, 0, block.start())[-1]
            yield block[1], re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")

    def find_places(self, structure, prefix):
        """Note the path of each structure, from the document on."""
        for name, schema in structure["properties"].items():
            path = prefix + name + ("[]" if is_list(without_null(schema)) else "")
            kind = referred(schema)
            if kind:
                self.places[kind].append(path)
                self.find_places(self.types[kind], path + ".")

    @staticmethod
    def row(path, schema, optional, unit, meaning):
        if "const" in schema:
            meaning = f"`{schema['const']}`: {meaning}"
        if meaning.startswith("derived"):
            meaning = meaning.replace("derived", "*derived*", 1)
        elif optional:
            meaning = f"*optional*: {meaning}"
        if "maxLength" in schema:
            unit += f", ≤ {schema['maxLength']} bytes"
        return f"| `{path}` | {unit} | {PAGE.sub(link, meaning)} |\n"

    def rows(self, structure, prefix):
        """Yield a row for each member of a structure, and for those of structures without a table."""
        for name, schema in structure["properties"].items():
            path = prefix + name + ("[]" if is_list(without_null(schema)) else "")
            kind, inner = referred(schema), element(schema)
            unit, meaning, optional = "", schema["description"], is_optional(structure, name)
            if kind in VALUES or not (kind or "properties" in inner) or self.is_named(inner) and ": " in meaning:
                unit, meaning = meaning.split(": ", 1)
            if kind in self.anchors:
                table = f"[{kind.replace('_', ' ')}](#{self.anchors[kind]})"
                unit = f"{table} of {unit}" if unit else table
            if self.is_named(inner):
                yield from self.named_rows(path, schema, optional, unit, meaning)
                continue
            yield self.row(path, schema, optional, unit, meaning)
            if kind and kind not in self.anchors:
                self.shown.add(kind)
                yield from self.rows(self.types[kind], path + ".")
            elif "properties" in inner:
                yield from self.rows(inner, path + ".")

    def is_named(self, schema):
        """Whether an object has a member for each name of a set, as those of stages."""
        return frozenset(schema.get("properties", ())) in self.sets

    def named_rows(self, path, schema, optional, unit, meaning):
        """Yield one row for all names of a set, or one for each member that they have."""
        one = next(iter(schema["properties"].values()))
        if "properties" in one:
            yield self.row(path, schema, optional, unit, meaning)
            yield from self.rows(one, path + ".NAME.")
        else:
            end = "[]" if is_list(one) else ""
            yield self.row(f"{path}.NAME{end}", schema, optional or is_nullable(one), unit, meaning)

    def table(self, kind):
        """Return the table of a structure, with whole paths if it is at one place."""
        places = self.places[kind]
        several = len(places) > 1
        prefix = "" if several or kind == ROOT_TYPE else places[0] + "."
        head = ""
        if several and len(places) <= MOST_PLACES:
            head = "Of " + ", ".join(f"`{place}`" for place in places[:-1]) + f" and `{places[-1]}`:\n\n"
        return head + HEAD + "".join(self.rows(self.types[kind], prefix))

    def fill(self, text):
        """Return the document with its tables."""
        return BLOCK.sub(lambda block: f"<!-- members: {block[1]} -->\n\n{self.table(block[1])}\n"
                         "<!-- end of members -->\n", text)


def without_meaning(structure, path):
    """Yield members that lack a description."""
    for name, schema in structure["properties"].items():
        if "description" not in schema:
            yield f"{path}.{name}"
        if "properties" in schema:
            yield from without_meaning(schema, f"{path}.{name}")


def is_member(types, path):
    """Whether a line of meanings.txt is of a member; the names of a set may be left out of its path."""
    kind, *names = path.split(".")
    found = [types.get(kind, {})]
    for name in names:
        below = [each.get("properties", {}) for each in found]
        found = [each[name] for each in below if name in each] or \
            [each["properties"][name] for inner in below for each in inner.values() if name in each.get("properties", {})]
    return bool(found)


def wrong_lines(text, types):
    """Yield the lines of meanings.txt that describe nothing."""
    before = set()
    for number, line in enumerate(text.splitlines(), 1):
        path, *rest = line.split(" | ")
        if not line or line.startswith("#"):
            continue
        if len(rest) != 2 or not all(rest):
            yield f"{MEANINGS}:{number}: is not STRUCTURE.MEMBER | UNIT | MEANING"
        elif not is_member(types, path):
            yield f"{MEANINGS}:{number}: {path} is no member of the run document"
        elif path in before:
            yield f"{MEANINGS}:{number}: {path} has another line before"
        before.add(path)


def problems(root, options):
    built = options.build / SCHEMA
    if not built.exists():
        raise tree.Skip(f"{built} is not there: this build makes no documentation")
    schema, text = json.loads(built.read_text()), (root / DOCUMENT).read_text()
    types = {ROOT_TYPE: schema, **schema["$defs"]}
    lacking = [path for kind, structure in types.items() for path in without_meaning(structure, kind)]
    yield from (f"{MEANINGS}: no line for {path}" for path in lacking)
    yield from wrong_lines((root / MEANINGS).read_text(), types)
    unknown = [name for name in BLOCK.findall(text) if name not in types]
    yield from (f"{DOCUMENT}: has a table of {name}, which is no structure of the run document" for name in unknown)
    if lacking or unknown:
        return
    tables = Tables(schema, text)
    wanted = tables.fill(text)
    yield from (f"{DOCUMENT}: no table has the members of {name}" for name in types if name not in tables.shown)
    for line in difflib.unified_diff(text.splitlines(), wanted.splitlines(), n=0, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            yield f"{DOCUMENT}: tests/check/members.py --write changes: {line}"


def write():
    root = Path(__file__).resolve().parents[2]
    document = root / DOCUMENT
    text = document.read_text()
    document.write_text(Tables(json.loads((root / "build" / SCHEMA).read_text()), text).fill(text))


NUMBER = {"type": "integer", "description": "ns: how long"}
SMALL = {"properties": {
    "a": NUMBER, "b": {"type": ["string", "null"], "maxLength": 7, "description": "text: which"},
    "c": {"type": "array", "items": {"$ref": "#/$defs/d"}, "description": "many"}},
    "required": ["a", "c"], "$defs": {"d": {"properties": {"e": NUMBER}, "required": ["e"]}}}
LINES = "document.a | ns | how long\ndocument.b | text | which\ndocument.c | - | many\nd.e | ns | how long\n"
ROWS = ("| `a` | ns | how long |", "| `b` | text, ≤ 7 bytes | *optional*: which |", "| `c[]` |  | many |", "| `c[].e` | ns | how long |")
PAGE_OF = "# A\n\n<!-- members: document -->\n\n{}{}\n<!-- end of members -->\n"


def example(name, expected, rows=ROWS, lines=LINES, schema=None, kind="document"):
    text = PAGE_OF.format(HEAD, "".join(f"{row}\n" for row in rows)).replace("document", kind)
    return Example(name, {f"build/{SCHEMA}": json.dumps(schema or SMALL), DOCUMENT: text, MEANINGS: lines}, expected)


EXAMPLES = [
    example("the same", []),
    example("another row", ["-| `a` | s | how long |", "+| `a` | ns | how long |"], rows=("| `a` | s | how long |", *ROWS[1:])),
    example("a member is missing", ["+| `c[].e` | ns | how long |"], rows=ROWS[:-1]),
    example("no meaning", ["no line for document.a"], schema={**SMALL, "properties": {**SMALL["properties"], "a": {}}}),
    example("no member", ["meanings.txt:5: d.f is no member"], lines=LINES + "d.f | ns | how long\n"),
    example("a line without a unit", ["meanings.txt:5: is not STRUCTURE"], lines=LINES + "d.e | how long\n"),
    example("two lines", ["meanings.txt:5: d.e has another line before"], lines=LINES + "d.e | s | how long\n"),
    example("no structure", ["a table of x, which is no structure"], kind="x"),
    example("no table", ["no table has the members of document", "-| `a`", "-| `b`", "-| `c[]`"], kind="d"),
]

if __name__ == "__main__":
    sys.exit(write() if sys.argv[1:] == ["--write"] else tree.main(problems, EXAMPLES))
