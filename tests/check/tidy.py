#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy finds nothing in our user-space C files, with the few checks of .clang-tidy and clang's own warnings.

Findings are kept in the build folder under a hash of all files that clang-tidy read, so that only changed files
are analysed again. The path-sensitive analyzer takes most of the time and runs with --paths alone, which
tools/nightly gives. Unit tests skip it: each of them also runs under ASan and UBSan. They are looked at with --paths
alone, too: the build for the sanitizers compiles them with clang and its warnings.
"""
import functools
import hashlib
import json
import re
import shlex
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tree
from tree import Example

TOOL = "clang-tidy-19"
JOBS = 2
WHERE = ("lib", "observer", "driver", "tests")
UNIT_TESTS = ("tests/unit",)
PATHS = "--paths" in sys.argv
SELF_TEST = "--self-test" in sys.argv
SETTINGS = Path(__file__).resolve().parents[2] / ".clang-tidy"
# Options of GCC that clang refuses.
GCC_ONLY = re.compile(r" -mmemset-strategy=\S+")

FINDING = re.compile(r"^(.*?:\d+):\d+: (?:warning|error): (.*)$")


def compiled(root, options):
    """Return how the build compiles each of our files: {path in the tree: entry of the database}.

    A file of several targets has several entries, each of which clang-tidy would analyse.
    """
    database = options.build / "compile_commands.json"
    if not database.exists():
        raise tree.Skip(f"{database} is not there: configure the build first")
    ours = {(root / path).resolve(): path
            for path in tree.files(root, ".c")
            if tree.under(path, *WHERE) and (PATHS or SELF_TEST or not tree.under(path, *UNIT_TESTS))}
    entries = {}
    for entry in json.loads(database.read_text()):
        path = ours.get(Path(entry["directory"], entry["file"]).resolve())
        if path:
            entry["command"] = GCC_ONLY.sub("", entry["command"])
            entries.setdefault(path, entry)
    return entries


def follows_paths(path):
    return (PATHS or SELF_TEST) and not tree.under(path, *UNIT_TESTS)


def command_of(root, path, folder):
    """Return the command for a file, with placeholders for the database's folder and the tree's root."""
    checks = [] if follows_paths(path) else ["--checks=-clang-analyzer-*"]
    return [TOOL, f"--config-file={SETTINGS}", "--quiet", *checks, "-p", folder,
            # clang does not know all of gcc's warning options
            "--extra-arg=-Wno-unknown-warning-option", root / path]


@functools.cache
def tool_version():
    return tree.run([TOOL, "--version"]).stdout + SETTINGS.read_text() + Path(__file__).read_text()


@functools.cache
def noted(build):
    """Return what the compiler has read for each object of a build, as ninja noted it: {object: files}"""
    found, name = {}, None
    done = tree.run(["ninja", "-C", build, "-t", "deps"]) if (build / "build.ninja").exists() else None
    for line in done.stdout.splitlines() if done else ():
        if not line.startswith(" "):
            name = line.partition(": #deps")[0] if line.endswith("(VALID)") else None
        elif name:
            found.setdefault(name, []).append(line.strip())
    return found


def inputs(entry):
    """Return all files that the compiler reads for an entry, or None if they are unknown."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    if "-o" in words:
        at = words.index("-o")
        names = noted(Path(entry["directory"])).get(words[at + 1])
        if names:
            return [Path(entry["directory"], name) for name in names]
        words = words[:at] + words[at + 2:]
    done = tree.run([*(word for word in words if word != "-c"), "-M", "-MT", "x"],
                    cwd=entry["directory"])
    if done.returncode != 0:
        return None
    names = done.stdout.replace("\\\n", " ").partition(":")[2]
    return [Path(entry["directory"], name) for name in shlex.split(names)]


@functools.cache
def hash_of(path):
    return hashlib.sha256(path.read_bytes()).digest()


def key_of(path, entry):
    """Return a hash that changes with everything that could change the findings."""
    read = inputs(entry)
    if read is None:
        return None
    digest = hashlib.sha256(repr((tool_version(), str(path), follows_paths(path), entry)).encode())
    for name in read:
        digest.update(f"\0{name}\0".encode())
        digest.update(hash_of(name))
    return digest.hexdigest()


def analyse(root, folder, path):
    done = tree.run(command_of(root, path, folder))
    found = []
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            found.append(f"{match[1].replace(f'{root.resolve()}/', '')}: {match[2]}")
    if done.returncode != 0 and not found:
        found.append(f"{path}: {TOOL} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return found


def tidy(root, folder, path, entry):
    """Return the findings in one file: the kept ones if nothing has changed, else those of a new analysis."""
    key = key_of(path, entry)
    known = folder / f"{str(path).replace('/', '_')}{'.paths' if follows_paths(path) else ''}.json"
    if key and known.exists():
        try:
            old = json.loads(known.read_text())
            if old["key"] == key:
                return old["found"]
        except (ValueError, KeyError):
            pass  # half written by an interrupted run
    found = analyse(root, folder, path)
    if key:
        known.write_text(json.dumps({"key": key, "found": found}))
    return found


def problems(root, options):
    if not shutil.which(TOOL):
        raise tree.Skip(f"{TOOL} is not installed")
    entries = compiled(root, options)
    hash_of.cache_clear()
    folder = (options.build / "tidy").resolve()
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    seen = set()
    with ThreadPoolExecutor(JOBS) as pool:
        for found in pool.map(lambda path: tidy(root, folder, path, entries[path]), entries):
            yield from (line for line in found if not (line in seen or seen.add(line)))


def with_database(root, options):
    """Like problems(), for an example whose C files are all compiled."""
    options.build.mkdir()
    entries = [{"directory": str(root), "file": str(root / path),
                "command": f"cc -c {root / path}"} for path in tree.files(root, ".c")]
    (options.build / "compile_commands.json").write_text(json.dumps(entries))
    first = list(problems(root, options))
    yield from first
    yield from again(root, options, first)


def again(root, options, first):
    """Yield a line if a second run differs, or if the findings of a changed file are not renewed."""
    if list(problems(root, options)) != first:
        yield "a second run does not find the same"
    for path in tree.files(root, ".c"):
        (root / path).write_text((root / path).read_text() + "int broken = missing;\n")
    if not any("missing" in line for line in problems(root, options)):
        yield "a changed file is not analysed again"


EXAMPLES = [
    Example("nothing to find", {"lib/a.c": "int a(int x);\nint a(int x)\n{\n\treturn x + 1;\n}\n"},
            []),
    Example("a null pointer", {"lib/a.c": "int a(int x);\nint a(int x)\n{\n\tint *p = 0;\n\n"
                                          "\treturn x ? *p : 0;\n}\n"},
            ["[clang-analyzer-core.NullDereference"]),
    Example("unit tests: no paths, but slips", {
        "tests/unit/a.c": "int a(int x);\nint a(int x)\n{\n\tint *p = 0;\n\n\tif (x);\n"
                          "\t\tx++;\n\treturn x ? *p : 0;\n}\n"},
            ["bugprone-suspicious-semicolon", "clang-diagnostic-empty-body"]),
    Example("a stray semicolon", {"driver/a.c": "int a(int x);\nint a(int x)\n{\n\tif (x);\n"
                                                "\t\tx++;\n\treturn x;\n}\n"},
            ["bugprone-suspicious-semicolon", "clang-diagnostic-empty-body"]),
    Example("does not compile", {"lib/a.c": "int a(void) { return b; }\n"}, ["clang-diagnostic"]),
]

if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--paths"]
    sys.exit(tree.main(with_database if "--self-test" in sys.argv else problems, EXAMPLES))
