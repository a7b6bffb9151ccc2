#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No test is forgotten: ctest runs or pytest collects every test source, and every test of ctest has a label
for tools/check."""
import json
import re
import shlex
import sys
from pathlib import Path

import tree
from tree import Example

PYTHON_SUITES = ("tests/experiment", "tests/fuzz", "tests/integration", "tests/lab", "tests/support", "tests/valgrind",
                 "tests/vm", "tests/package", "tests/cluster")  # the last two by tools/package and tools/cluster
RULES = "tests/check"
LABELS = {"unit", "check", "lab", "kernel"}  # those of tools/check --label
TARGET = re.compile(r"CMakeFiles/([^/]+)\.dir/")


def ctest(options):
    """Return the tests that ctest knows, each with its command."""
    done = tree.run(["ctest", "--test-dir", options.build, "--show-only=json-v1"])
    if done.returncode != 0:
        raise tree.Skip(f"ctest cannot read {options.build}: configure it first")
    return json.loads(done.stdout)["tests"]


def targets(root, options):
    """Return the targets that compile each source: {path in the tree: {target}}."""
    found = {}
    database = options.build / "compile_commands.json"
    for entry in json.loads(database.read_text()) if database.exists() else []:
        source = Path(entry["directory"], entry["file"]).resolve()
        if not source.is_relative_to(root.resolve()):
            continue
        output = entry.get("output") or entry.get("command", "")
        match = TARGET.search(output)
        if match:
            found.setdefault(source.relative_to(root.resolve()), set()).add(match[1])
    return found


def label_problems(tests):
    """Yield tests without any of LABELS: neither tools/check --label nor the build with sanitizers runs them."""
    for test in tests:
        labels = next((item["value"] for item in test.get("properties", [])
                       if item["name"] == "LABELS"), [])
        if not LABELS & set(labels):
            yield f"test {test['name']}: has none of the labels {', '.join(sorted(LABELS))}"


def is_unit(path):
    """Whether it is a unit test, or a file that calls itself a test; not their shared code."""
    return not tree.under(path, "tests/unit/support") and \
        (tree.under(path, "tests/unit") or path.name.startswith("test_") or
         (path.parts[0] != "tests" and "tests" in path.parent.parts))


def unit_problems(root, options, commands):
    sources = [path for path in tree.files(root, ".c") if is_unit(path)]
    compiled = targets(root, options)
    programs = {Path(word).name for command in commands for word in command}
    for path in sources:
        if path not in compiled:
            yield f"{path}: no target compiles it"
        elif not compiled[path] & programs:
            yield f"{path}: no test runs {', '.join(sorted(compiled[path]))}"


def script_problems(root, commands):
    """ctest runs rules and shell tests by their file name."""
    words = {Path(word).name for command in commands for word in command}
    for path in tree.files(root, ".py", ".sh"):
        is_rule = tree.under(path, RULES) and "tree.main(" in (root / path).read_text()
        is_shell_test = tree.under(path, "tests") and path.name.startswith("test_") \
            and path.suffix == ".sh"
        if (is_rule or is_shell_test) and path.name not in words:
            yield f"{path}: no test of ctest runs it"


def pytest_problems(root, commands):
    """pytest collects every test_*.py, and no test hides in another file that ctest does not run."""
    words = {Path(word).name for command in commands for word in command}
    paths = [path for path in tree.files(root, ".py")
             if path.parts[0] == "tests" and not tree.under(path, RULES)]
    for path in paths:
        has_tests = re.search(r"^def test_|^class Test", (root / path).read_text(), re.MULTILINE)
        if has_tests and not path.name.startswith("test_") and path.name not in words:
            yield f"{path}: holds tests, but pytest only collects test_*.py"
        if path.name.startswith("test_") and not tree.under(path, *PYTHON_SUITES):
            yield f"{path}: tools/check runs only {', '.join(PYTHON_SUITES)}"
    wanted = [path for path in paths
              if path.name.startswith("test_") and tree.under(path, *PYTHON_SUITES)]
    if wanted:
        yield from uncollected(root, wanted)


def uncollected(root, wanted):
    settings = root / "tests" / "pytest.ini"
    done = tree.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "--rootdir",
                     root / "tests", "-c", settings if settings.exists() else "/dev/null",
                     *[root / path for path in wanted]], cwd=root)
    if "No module named pytest" in done.stderr:
        raise tree.Skip("pytest is not installed")
    collected = {line.split("::", 1)[0] for line in done.stdout.splitlines() if "::" in line}
    for path in wanted:
        if str(path.relative_to("tests")) not in collected:
            yield f"{path}: pytest collects no test from it"


def problems(root, options):
    tests = ctest(options)
    commands = [test.get("command", []) for test in tests]
    yield from label_problems(tests)
    yield from unit_problems(root, options, commands)
    yield from script_problems(root, commands)
    yield from pytest_problems(root, commands)


def project(body):
    return "cmake_minimum_required(VERSION 3.25)\nproject(example C)\nenable_testing()\n" + body


def built(root, options):
    """Like problems(), for an example that CMake has to build first."""
    for command in (["cmake", "-S", root, "-B", options.build,
                     "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"], ["cmake", "--build", options.build]):
        done = tree.run(command)
        if done.returncode != 0:
            yield f"cmake: {done.stdout.strip()} {done.stderr.strip()}"
            return
    yield from problems(root, options)


MAIN = "int main(void) { return 0; }\n"
EXAMPLES = [
    Example("all registered", {
        "CMakeLists.txt": project("add_executable(test_a tests/unit/test_a.c tests/unit/help.c)\n"
                                  "add_test(NAME a COMMAND test_a)\n"
                                  "add_test(NAME s COMMAND sh tests/test_s.sh)\n"
                                  "set_tests_properties(a s PROPERTIES LABELS \"unit;slow\")\n"),
        "tests/unit/test_a.c": MAIN, "tests/unit/help.c": "int help;\n", "tests/test_s.sh": "",
        "tests/integration/test_x.py": "def test_x():\n\tpass\n"}, []),
    Example("forgotten", {
        "CMakeLists.txt": project("add_executable(test_b tests/unit/test_b.c)\n"
                                  "add_test(NAME n COMMAND true)\n"
                                  "add_test(NAME w COMMAND true)\n"
                                  "set_tests_properties(w PROPERTIES LABELS slow)\n"),
        "tests/unit/test_a.c": MAIN, "tests/unit/test_b.c": MAIN, "tests/test_s.sh": "",
        "driver/tests/other.c": MAIN, "lib/test_c.c": MAIN,
        "tests/check/rule.py": "tree.main(\n",
        "tests/integration/test_empty.py": "import os\n",
        "tests/integration/broken.py": "def test_x():\n\tpass\n",
        "tests/elsewhere/test_y.py": "def test_y():\n\tpass\n"},
        ["test n: has none of the labels", "test w: has none of the labels",
         "tests/unit/test_a.c: no target compiles it", "tests/unit/test_b.c: no test runs test_b",
         "driver/tests/other.c: no target", "lib/test_c.c: no target",
         "tests/test_s.sh: no test of ctest", "tests/check/rule.py: no test of ctest",
         "test_empty.py: pytest collects no test", "broken.py: holds tests",
         "test_y.py: tools/check runs only"]),
]

if __name__ == "__main__":
    sys.exit(tree.main(built if "--self-test" in sys.argv else problems, EXAMPLES))
