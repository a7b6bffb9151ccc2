#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Both built programs are hardened as with Debian's hardening=+all: position-independent, relocated before
main() and then read-only, no executable stack. They have the stack protector, the checked C library, and CET on
x86-64."""
import os
import re
import sys

import tree
from tree import Example

PROGRAMS = ("observer/sojourn", "driver/sojourn-drive")
CHECKED = re.compile(r"\b__(?:v?f?printf|v?s?n?printf|memcpy|memmove|memset|read|recv|poll|fdelt|str\w+)_chk\b")


def readelf(option, program):
    done = tree.run(["readelf", "--wide", option, program], env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        raise tree.Skip(f"readelf cannot read {program}")
    return done.stdout


def begins_with_endbr64(program, symbols):
    """Whether main() begins with endbr64, the instruction that CET wants where an indirect jump lands."""
    place = re.search(r"^\s*\d+: ([0-9a-f]+)\s+\d+ FUNC\s+\w+\s+\w+\s+\d+ main$", symbols, re.MULTILINE)
    if not place:
        return True  # stripped
    at = int(place[1], 16)
    done = tree.run(["objdump", "--disassemble", f"--start-address={at}", f"--stop-address={at + 4}", program])
    return "endbr64" in done.stdout


def lacks(program):
    header, segments = readelf("--file-header", program), readelf("--segments", program)
    dynamic, symbols = readelf("--dynamic", program), readelf("--symbols", program)
    stack = re.search(r"GNU_STACK.*?\b(R\w*) ", segments)
    checks = {
        "is not position-independent": re.search(r"Type:\s+DYN", header) and re.search(r"FLAGS_1\).*\bPIE\b", dynamic),
        "has no read-only relocations": "GNU_RELRO" in segments,
        "resolves symbols lazily": re.search(r"FLAGS(?:_1)?\).*\b(?:BIND_)?NOW\b", dynamic),
        "has an executable stack": stack and "E" not in stack[1],
        "has no stack protector": "__stack_chk_fail" in symbols,
        "calls the C library unchecked": CHECKED.search(symbols),
    }
    if "X86-64" in header:
        checks["has no CET"] = begins_with_endbr64(program, symbols)
    return [words for words, holds in checks.items() if not holds]


def problems(_root, options):
    cache = options.build / "CMakeCache.txt"
    settings = cache.read_text() if cache.exists() else ""
    if re.search(r"^SOJOURN_SANITIZE:BOOL=ON$|^CMAKE_BUILD_TYPE:\w+=Debug$", settings, re.MULTILINE):
        raise tree.Skip(f"{options.build} is built to find errors, not to be used")
    found = [name for name in PROGRAMS if (options.build / name).exists()]
    if not found:
        raise tree.Skip(f"there is no program in {options.build}")
    for name in found:
        for words in lacks(options.build / name):
            yield f"{name}: {words}"
        if "SOJOURN_STATIC:BOOL=ON" in settings and "INTERP" in readelf("--segments", options.build / name):
            yield f"{name}: is not static"


def built(root, options):
    tree.compile_examples(root, options.build)
    yield from problems(root, options)


BODY = """
#include <stdio.h>
int main(int count, char **words)
{
	char text[16];
	return sprintf(text, "%s", words[count - 1]);
}
"""
HARD = "// -O2 -fPIE -pie -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now"
CET = " -fcf-protection" if os.uname().machine == "x86_64" else ""
BARE = "// -O0 -no-pie -fno-stack-protector -fcf-protection=none -U_FORTIFY_SOURCE -Wl,-z,norelro,-z,lazy,-z,execstack"
LAZY = "// -O2 -fPIE -pie -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,lazy"
EXAMPLES = [
    Example("hardened", {"observer/sojourn.c": HARD + CET + BODY, "driver/sojourn-drive.c": HARD + CET + BODY}, []),
    Example("lazy", {"driver/sojourn-drive.c": LAZY + CET + BODY}, ["drive: resolves symbols lazily"]),
    Example("not static", {"build/CMakeCache.txt": "SOJOURN_STATIC:BOOL=ON\n", "driver/sojourn-drive.c": HARD + CET + BODY},
            ["drive: is not static"]),
    Example("bare", {"driver/sojourn-drive.c": BARE.replace(" -fcf-protection=none", CET and " -fcf-protection=none") + BODY},
            ["is not position-independent", "no read-only relocations", "resolves symbols lazily",
             "executable stack", "no stack protector", "unchecked"] + (["has no CET"] if CET else [])),
]

if __name__ == "__main__":
    sys.exit(tree.main(built if "--self-test" in sys.argv else problems, EXAMPLES))
