#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every header compiles alone: with gcc, those that BPF sees also with clang -target bpf."""
import platform
import shutil
import sys

import tree
from tree import Example

USER = ("include", "lib", "observer", "driver", "tests")
KERNEL = ("include/wire", "bpf")
WARNINGS = ["-std=gnu17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wundef",
            "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]
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


def problems(root, options):
    for path in tree.files(root, ".h"):
        for name, where, command in (("gcc", USER, user_command),
                                     ("clang -target bpf", KERNEL, kernel_command)):
            if tree.under(path, *where):
                error = compile_alone(command(root, options, path), root, path)
                if error:
                    yield f"{path}: does not compile alone ({name}): {error}"


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
    Example("not ours to check", {"docs/a.h": "nonsense\n"}, []),
]

if __name__ == "__main__":
    sys.exit(tree.main(problems, EXAMPLES))
