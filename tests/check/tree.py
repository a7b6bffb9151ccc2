# SPDX-License-Identifier: MIT
"""Code shared by all rules: the files of the tree, the command line, and the proof that a rule can fail.

A rule is a module with `problems(root, options)`, which yields one line per violation, and `EXAMPLES`: small
trees with the problems that it must find. `--self-test` writes each example to a temporary folder and compares,
so a rule that finds nothing is detected.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SKIPPED = 77  # exit status that ctest counts as skipped
GENERATED = ("build", ".git", ".cache", "__pycache__")


class Skip(Exception):
    """This machine lacks something that the rule needs, named in the text."""


class Warned(str):
    """A line that a rule prints without failing."""


class Example(NamedTuple):
    """A tree, and a part of the line of each problem that the rule must find in it."""

    name: str
    files: dict
    expected: list
    executable: tuple = ()


def files(root, *suffixes):
    """Return sorted paths relative to root that git knows or would add; without git, all."""
    known = git_files(root)
    if known is None:
        known = walk(root)
    return [path for path in sorted(known)
            if (not suffixes or path.suffix in suffixes) and (root / path).is_file()]


def git_files(root):
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None  # no git, or another user's folder
    return {Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}


def walk(root):
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(GENERATED)]
        found |= {Path(folder, name).relative_to(root) for name in names}
    return found


def under(path, *folders):
    """Whether path lies in one of the folders ("a/b" included)."""
    return any(path.is_relative_to(folder) for folder in folders)


def run(command, **options):
    """Return the finished process; a missing program is a reason to skip, a hang is an error."""
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              errors="replace", timeout=300, stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError as error:
        raise Skip(f"{command[0]} is not installed") from error


def compile_examples(root, build):
    """Compile examples into programs of the build. A source's first line has the compiler's options; {root} is replaced."""
    for source in sorted(root.glob("**/*.c")):
        words = source.read_text().splitlines()[0].removeprefix("// ").format(root=root).split()
        target = build / source.relative_to(root).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        done = run(["cc", *words, "-o", target, source])
        if done.returncode:
            raise Skip(f"cc: {done.stderr.strip()}")


def main(problems, examples):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=Path, help="build folder (default: ROOT/build)")
    parser.add_argument("--include", type=Path, action="append", default=[],
                        help="one more folder for headers that are not ours")
    parser.add_argument("--self-test", action="store_true",
                        help="show on small examples that the rule finds what it should")
    options = parser.parse_args()
    options.build = options.build or options.root / "build"
    try:
        if options.self_test:
            found = [line for example in examples for line in try_example(problems, example)]
        else:
            found = list(problems(options.root, options))
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    for line in found:
        print(line)
    return 1 if any(not isinstance(line, Warned) for line in found) else 0


def try_example(problems, example):
    """Write an example to a folder and check it; yield a line for each wrong or missing finding."""
    with tempfile.TemporaryDirectory(prefix="sojourn-rule.") as folder:
        root = Path(folder)
        for name, text in example.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if name in example.executable:
                path.chmod(0o755)
        options = argparse.Namespace(root=root, build=root / "build", include=[])
        found = list(problems(root, options))
    unexpected = list(found)
    for part in example.expected:
        match = next((line for line in unexpected if part in line), None)
        if match is None:
            yield f"example '{example.name}': not found: {part}"
        else:
            unexpected.remove(match)
    for line in unexpected:
        yield f"example '{example.name}': wrongly found: {line}"
