#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Length limits: files 800 lines, with a warning above 650, functions 80, main() 60. A file is one subject: it
is not split for its length, but above 650 lines it is seldom only one."""
import re
import sys

import tree
from tree import Example

FILE_LINES = 800
WARNED_LINES = 650
FUNCTION_LINES = 80
MAIN_LINES = 60
TEXT = (".c", ".h", ".py", ".sh", ".cmake", "")  # "": scripts without a suffix
PROSE = ("LICENSE", "LICENSES", "docs")

# Comments, strings and characters, and directives with their continuation lines.
BLANKED = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' |
                     ^[ \t]*\#(?:\\\n|[^\n])*""", re.DOTALL | re.MULTILINE | re.VERBOSE)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\bSEC\s*\(\s*\)", re.DOTALL)
# Macros that wrap a function's name: BPF_PROG(name, arguments).
WRAPPED = re.compile(r"\b(?:BPF_[A-Z0-9_]+|[A-Z][A-Z0-9_]+)\s*\(\s*(\w+)")
NAMED = re.compile(r"(\w+)\s*\(")


def blank(text):
    return BLANKED.sub(lambda match: "\n" * match[0].count("\n"), text)


def functions(text):
    """Yield (name, first line, number of lines) of the functions defined in a C text."""
    code = blank(text)
    depth = line = 0
    start = begin = 0  # offset of the declaration's text, line of its first word
    head = None
    line = 1
    for offset, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            if depth == 0:
                head = function_name(code[start:offset])
                begin = line - code[start:offset].lstrip().count("\n")
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and head:
                yield head, begin, line - begin + 1
            if depth == 0:
                head, start = None, offset + 1
        elif char == ";" and depth == 0:
            start = offset + 1


def function_name(declaration):
    """Return the name if the text before a brace declares a function, else None."""
    text = ATTRIBUTE.sub("", declaration).strip()
    if not text.endswith(")") or "=" in text:
        return None
    match = WRAPPED.search(text) or NAMED.search(text)
    return match[1] if match else None


def problems(root, options):
    del options
    for path in tree.files(root):
        if path.suffix not in TEXT or tree.under(path, *PROSE) or path.name.startswith("."):
            continue
        text = (root / path).read_text(errors="replace")
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield f"{path}: {lines} lines, {FILE_LINES} are allowed"
        elif lines > WARNED_LINES:
            yield tree.Warned(f"{path}: {lines} lines: is it still one subject?")
        if path.suffix not in (".c", ".h"):
            continue
        for name, first, length in functions(text):
            limit = MAIN_LINES if name == "main" else FUNCTION_LINES
            if length > limit:
                yield f"{path}:{first}: {name}() has {length} lines, {limit} are allowed"


def sized(head, length):
    """Return a function of exactly so many lines, full of traps for a counter of braces."""
    body = ["\tif (x == '{') { /* } */", '\t\tputs("}}");', "\t}"]
    body += ["\tx++; // {"] * (length - len(head.splitlines()) - 2 - len(body))
    return "\n".join([head, "{", *body, "}"]) + "\n"


MACRO = "#define M(x) \\\n\tdo { \\\n\t\tx; {\\\n"
TABLE = "static const struct row rows[] = {\n" + "\t{ 1, F(2) },\n" * 90 + "};\n"
EXAMPLES = [
    Example("at the limit", {"lib/a.c": MACRO + "\n" + TABLE + sized("int f(int x)", 80)
                             + sized("int main(void)", 60)}, []),
    Example("a function over it", {"lib/a.c": "\n" + sized("static int\nlong_one(int x)", 81)},
            ["lib/a.c:2: long_one() has 81 lines"]),
    Example("the second one", {"lib/a.c": sized("int f(int x)", 10) + TABLE
                               + sized("int g(int (*x)(void))", 90)}, ["g() has 90 lines"]),
    Example("main", {"driver/main.c": sized("int main(int argc, char **argv)", 61)},
            ["main() has 61 lines"]),
    Example("a BPF program", {"bpf/a.bpf.c": sized('SEC("tp_btf/x")\nint BPF_PROG(on_x, int x)', 85)},
            ["on_x() has 85 lines"]),
    Example("attributes", {"lib/a.h": sized("__attribute__((format(printf, 1, 2))) void say(int x)",
                                            85)}, ["say() has 85 lines"]),
    Example("a file", {"lib/a.c": "int a;\n" * 801, "tools/b": "\n" * 801, "tools/c": "\n" * 650,
                       "docs/d.md": "\n" * 900},
            ["lib/a.c: 801 lines, 800", "tools/b: 801 lines, 800"]),
    Example("a file that is warned of", {"lib/a.c": "int a;\n" * 651, "tools/b": "\n" * 800},
            ["lib/a.c: 651 lines: is", "tools/b: 800 lines: is"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
