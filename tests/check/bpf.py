#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every BPF source compiles without a warning for the other architecture with the oldest installed clang. The build
compiles for this machine with the newest. The rule reports if the oldest supported clang is missing, and is skipped
without any.

Making code takes nearly all of the time, and finds what is too much for the stack, say. That is done with --code alone,
which tools/nightly gives."""
import concurrent.futures
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import tree
from tree import Example

ARCHITECTURES = {"x86": ("x86_64",), "arm64": ("aarch64", "arm64")}
# Newest first. 14 is too old: it turns comparisons into calls of memcmp(), which BPF does not have.
CLANGS = ("clang-19", "clang-18", "clang-17", "clang-16")
CODE = "--code" in sys.argv
SELF_TEST = "--self-test" in sys.argv
FLAGS = ("-g", "-O2", "-target", "bpf", "-mcpu=v3", "-std=gnu17", "-Wall", "-Wextra",
         "-Wno-unused-parameter", "-Werror")


def system_headers():
    """Return the multiarch folders of <asm/types.h>, which clang leaves out for other targets."""
    return [str(path.parent.parent) for path in Path("/usr/include").glob("*/asm/types.h")]


def makes_code():
    return CODE or SELF_TEST


def compile_one(root, clang, architecture, source):
    flags = [*FLAGS, f"-D__TARGET_ARCH_{architecture}", f"-I{root / 'include'}", f"-I{root / source.parts[0]}"]
    for folder in system_headers():
        flags += ["-idirafter", folder]
    with tempfile.TemporaryDirectory() as folder:
        makes = ["-c", "-o", Path(folder, "object")] if makes_code() else ["-fsyntax-only"]
        done = tree.run([clang, *flags, *makes, root / source])
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if "error:" in line] or ["failed"]
    return f"{source}: {clang} for {architecture}: {said[0]}"


def problems(root, _options):
    installed = [clang for clang in CLANGS if shutil.which(clang)]
    if not installed:
        raise tree.Skip(f"none of {', '.join(CLANGS)} is installed")
    if CLANGS[-1] not in installed:
        print(f"not compiled with {CLANGS[-1]}, the oldest: it is not installed (tools/setup test)")
    sources = [path for path in tree.files(root, ".c") if path.name.endswith(".bpf.c")]
    others = [name for name, machines in ARCHITECTURES.items() if platform.machine() not in machines]
    work = [(root, installed[-1], architecture, source) for architecture in others for source in sources]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(lambda words: compile_one(*words), work))


HERE = next((name for name, machines in ARCHITECTURES.items() if platform.machine() in machines), "other")
OTHERS = [f"for {name}: " for name in ARCHITECTURES if name != HERE]
ONLY_HERE = f"#if !defined(__TARGET_ARCH_{HERE})\n#error only one\n#endif\nint a;\n"
EXAMPLES = [
    Example("compiles", {"bpf/a.bpf.c": "#include <linux/types.h>\n__u32 a;\n"}, []),
    Example("one architecture", {"bpf/a.bpf.c": ONLY_HERE}, OTHERS),
    Example("a warning", {"bpf/a.bpf.c": "static int a;\n"}, OTHERS),
    Example("too much for the stack", {"bpf/a.bpf.c": "int b(char *at);\nint a(void);\n"
                                                      "int a(void)\n{\n\tchar text[600];\n\n\treturn b(text);\n}\n"}, OTHERS),
]

if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--code"]
    sys.exit(tree.main(problems, EXAMPLES))
