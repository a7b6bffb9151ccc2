#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every header compiles alone: with gcc, those that BPF sees also with clang -target bpf. Of gcc it is known if a source
of the build begins with the header: nothing is before it there either."""
import json
import os
import platform
import re
import shlex
import shutil
import sys
from pathlib import Path

import tree
from tree import Example

USER = ("include", "lib", "observer", "driver", "tests")
KERNEL = ("include/wire", "bpf")
WARNINGS = ["-std=gnu17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wundef",
            "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]
# An include with nothing but comments and empty lines before it.
FIRST = re.compile(r'\A(?:(?:/[/*]| \*).*\n|\n)*#include "([^"]+)"')
CLANGS = ("clang-19", "clang-18", "clang-17", "clang-16", "clang")


def clang():
    return next((name for name in CLANGS if shutil.which(name)), CLANGS[0])


def folders(root, options):
    """Return -I for our headers and for generated ones."""
    places = [root / "include", options.build, *sorted(options.build.glob("bpf"))]
    return [f"-I{place}" for place in places] + [f"-isystem{place}" for place in options.include]


def own_folders(root, path):
    """Headers include each other by their paths within their program; unit tests include the headers under test."""
    programs = path.parts[:1] if path.parts[0] != "tests" else ("tests/unit", "driver", "observer")
    return [f"-I{root / program}" for program in programs]


def user_command(root, options, path):
    return ["gcc", *WARNINGS, "-D_GNU_SOURCE", '-DSOJOURN_VERSION="0"', *folders(root, options),
            *own_folders(root, path)]


def kernel_command(root, options, path):
    machine = platform.machine()
    target = {"x86_64": "x86", "aarch64": "arm64"}.get(machine, machine)
    return [clang(), "-target", "bpf", *WARNINGS, "-Wno-unused-function",
            f"-D__TARGET_ARCH_{target}", f"-isystem/usr/include/{machine}-linux-gnu",
            *folders(root, options), *own_folders(root, path)]


def compile_alone(command, root, path):
    """Return the compiler's first complaint about a file that includes only this header."""
    done = tree.run(["sh", "-c", 'printf "#include \\"%s\\"\\n" "$1" | { shift; exec "$@" -x c -; }',
                     "sh", root / path, *command])
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line] or \
        done.stderr.splitlines() or [f"status {done.returncode}"]
    return lines[0].replace(f"{root}/", "")


def first_header(source, words, directory):
    """Return the path of our header with which a source begins that was compiled by these words; None if there is none."""
    match = FIRST.search(source.read_text())
    if not match:
        return None
    given = [after if word == "-I" else word[2:] for word, after in zip(words, words[1:] + [""]) if word.startswith("-I")]
    places = [Path(directory, folder, match[1]) for folder in (source.parent, *given)]
    return next((place.resolve() for place in places if place.is_file()), None)


def compiled_first(root, options):
    """Return the headers with which sources of the build begin, if those were compiled since both were written."""
    found = set()
    database = options.build / "compile_commands.json"
    for entry in json.loads(database.read_text()) if database.exists() else ():
        words, source = shlex.split(entry["command"]), Path(entry["directory"], entry["file"])
        if "-o" not in words or not source.is_relative_to(root.resolve()):
            continue
        made = Path(entry["directory"], words[words.index("-o") + 1])
        header = first_header(source, words, entry["directory"]) if made.is_file() else None
        if header and max(source.stat().st_mtime, header.stat().st_mtime) <= made.stat().st_mtime:
            found.add(header)
    return found


def problems(root, options):
    known = compiled_first(root, options)
    for path in tree.files(root, ".h"):
        for name, where, command in (("gcc", USER, user_command),
                                     ("clang -target bpf", KERNEL, kernel_command)):
            if name == "gcc" and (root / path).resolve() in known:
                continue
            if tree.under(path, *where):
                error = compile_alone(command(root, options, path), root, path)
                if error:
                    yield f"{path}: does not compile alone ({name}): {error}"


def built(root, options):
    """Like problems(), for an example whose sources a build has compiled, as far as they can be. A header's change after
    that is noticed."""
    options.build.mkdir()
    entries = []
    for path in tree.files(root, ".c"):
        words = ["cc", "-c", "-o", f"{path.stem}.o", str(root.resolve() / path)]
        tree.run(words, cwd=options.build)
        entries.append({"directory": str(options.build), "file": words[-1], "command": shlex.join(words)})
    (options.build / "compile_commands.json").write_text(json.dumps(entries))
    yield from problems(root, options)
    for header in compiled_first(root, options):
        header.write_text("uint64_t later(void);\n")
        os.utime(header, (header.stat().st_mtime + 1,) * 2)
        if not any("does not compile alone (gcc)" in line for line in problems(root, options)):
            yield "a changed header is not compiled again"


GOOD = "#include <linux/types.h>\nstatic inline __u64 twice(__u64 n)\n{\n\treturn 2 * n;\n}\n"
EXAMPLES = [
    Example("complete", {"include/wire/a.h": GOOD, "lib/b.h": '#include "wire/a.h"\n__u64 b(void);\n'},
            []),
    Example("a type without its header", {"lib/a.h": "uint64_t a(void);\n"},
            ["lib/a.h: does not compile alone (gcc)"]),
    Example("only gcc accepts it", {"include/wire/a.h": "#include <assert.h>\n#ifdef __bpf__\n"
                                                        "bool a(void);\n#endif\n"},
            ["include/wire/a.h: does not compile alone (clang -target bpf)"]),
    Example("from another folder", {"lib/a/a.h": '#include "b/b.h"\n__u64 a(void);\n', "lib/b/b.h": GOOD}, []),
    Example("a source begins with it", {"lib/a.h": GOOD, "lib/a.c": '/* a\n * b\n */\n#include "a.h"\n'}, []),
    Example("after another header", {"lib/a.h": "uint64_t a(void);\n", "lib/a.c": '#include <stdint.h>\n#include "a.h"\n'},
            ["lib/a.h: does not compile alone (gcc)"]),
    Example("after a type", {"lib/a.h": "u a(void);\n", "lib/a.c": 'typedef int u;\n#include "a.h"\n'},
            ["lib/a.h: does not compile alone (gcc)"]),
    Example("not compiled", {"lib/a.h": "u a(void);\n", "lib/a.c": '#include "a.h"\n'},
            ["lib/a.h: does not compile alone (gcc)"]),
    Example("not ours to check", {"docs/a.h": "nonsense\n"}, []),
]

if __name__ == "__main__":
    sys.exit(tree.main(built if "--self-test" in sys.argv else problems, EXAMPLES))
