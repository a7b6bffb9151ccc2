# SPDX-License-Identifier: MIT
"""The commands of README, docs/ and --help. A comment before each block says how it is tested.

    <!-- run -->            this test, in a folder and a network namespace of its own
    <!-- continue -->       this test, after the previous block
    <!-- needs: WHAT -->    not run, for lack of WHAT: only the words are checked against the programs

Blocks run shortened: a load of ten seconds lasts 300 ms. A server at port 8080 answers, unless a block starts
one.
"""
import json
import os
import re
import shlex
import shutil

import pytest

from support import BUILD, ROOT
from support.net import Netns
from support.pki import Pki
from support.process import run
from support.programs import DRIVER, LAB, OBSERVER

# Experiments write their own pages, and have their own tests.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"(sojourn|sojourn-drive|sojourn-lab|tools/\S+|tests/\S+|curl|ssh|docker|kubectl|systemctl|cmake)( |$)")
MARK = re.compile(r"<!-- (run|continue|needs: .+) -->")
FACES = [[OBSERVER], *([OBSERVER, face] for face in ("observe", "live", "serve", "record", "doctor", "report", "probe")),
         [DRIVER], [DRIVER, "run"], [DRIVER, "sweep"], [DRIVER, "fleet"]]


def blocks_of(text):
    """Return (line, mark or None, commands) of each block of commands: lines indented by four."""
    mark, block, at = None, [], 0
    for number, line in enumerate([*text.split("\n"), "end"], 1):
        if line.startswith("    "):
            block.append(line[4:])
            at = at or number
        elif line.strip() or not block:
            if block and (mark or any(COMMAND.match(command) for command in block)):
                yield at, mark, "\n".join(block).replace("\\\n", " ").split("\n")
            found = MARK.fullmatch(line.strip())
            mark = found[1] if found else None if line.strip() or block else mark
            block, at = [], 0


def blocks(path):
    return list(blocks_of(path.read_text()))


def scripts():
    for path in PAGES:
        script = None
        for at, mark, lines in blocks(path):
            if mark == "continue":
                script[1].extend(lines)
            elif mark == "run":
                if script:
                    yield script
                script = (f"{path.name}:{at}", list(lines))
        if script:
            yield script


def test_a_mark_belongs_to_the_block_behind_it():
    text = "<!-- run -->\n\n    sojourn a\n    b \\\n    c\n\ntext\n\n    curl d\n\n    sojourn e\n\n<!-- needs: x -->\n\nno\n\n    sojourn f\n\n" \
        "    output of sojourn\n"
    assert list(blocks_of(text)) == [(3, "run", ["sojourn a", "b  c"]), (9, None, ["curl d", "sojourn e"]),
                                     (17, None, ["sojourn f", "output of sojourn"])]


def test_each_block_is_marked():
    unmarked = [f"{path.relative_to(ROOT)}:{at}" for path in PAGES for at, mark, _ in blocks(path) if not mark]
    assert not unmarked, "who runs these? see " + os.path.basename(__file__)


# ---- words ----

def refused(line, folder):
    """Return the program's error for a refused command; None if it is accepted."""
    words = shlex.split(re.split(r" (?:&|\||>|&&) ?", line + " ")[0], comments=True)
    if words[0] == "sojourn-drive":
        ended = run([DRIVER, *words[1:], "--help" if words[1] == "agent" or "resume" in words else "--check"], check=False, cwd=folder)
    elif words[1:2] and words[1] in ("help", "drive", "version"):
        return None
    else:
        end = words.index("--") if "--" in words else len(words)
        ended = run([OBSERVER, *words[1:end], "--help"], check=False, cwd=folder)
    return None if ended.status == 0 else f"{line}\n    {ended.stderr}"


def checkable(line):
    """Whether the command is free of shell substitutions and placeholders."""
    return re.match("sojourn(-drive)? ", line) and not re.search(r"\$|\[|FILE\b|PID\b", line)


@pytest.fixture(name="folder")
def fixture_folder(start, tmp_path):
    pki = start(Pki())
    for path, name in zip((pki.ca, *pki.issue("client", "DNS:example.test")), ("authority.pem", "client.pem", "client.key")):
        shutil.copy(path, tmp_path / name)
    for name in ("message.bin", "query.bin"):
        (tmp_path / name).write_bytes(bytes(12))
    (tmp_path / "token").write_text("0123456789abcdefghijklmnopqr\n")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "sessions.yaml").symlink_to(ROOT / "docs/examples/sessions.yaml")
    return tmp_path


def test_the_words_are_taken(folder):
    wrong = [said for path in PAGES for _, _, lines in blocks(path)
             for said in [refused(line, folder) for line in lines if checkable(line)] if said]
    assert not wrong, "\n".join(wrong)
    assert refused("sojourn observe --prot 80", folder) and refused("sojourn-drive http://127.0.0.1/ --warp 9", folder)


def test_the_words_of_helps_are_taken(folder):
    for face in FACES:
        text = run([*face, "--help"]).stdout.split("\nExamples:\n")[1]
        lines = re.findall(r"^  \$ (.*)$", text, re.MULTILINE)
        wrong = [said for said in [refused(line, folder) for line in lines if checkable(line)] if said]
        assert lines and not wrong, wrong


# ---- behaviour ----

def shortened(line):
    """Return the command with a shorter duration; background programs are waited for until they answer."""
    line = re.sub(r" +#.*", "", line)
    line = re.sub(r"(?<= -d )\d+s|(?<= --cool-down )\d+s", "300ms", re.sub(r"(?<= --for )\d+s", "300ms", line))
    program = " ".join(line.split()[:2])
    background = line.endswith(" &")
    if program == "kill %1;":
        line += " || true"  # the status of a server that was ended
    elif program == "sojourn doctor":
        line += " || [ $? -le 2 ]"  # findings about this host are not part of the example
    elif program in ("sojourn live", "sojourn serve", "sojourn record"):
        line += " --for 300ms"
    elif line.startswith("sojourn-drive ") and " -d " not in line:
        line += " -d 300ms"
    if program == "sojourn live":
        line = f"script -qec '{line}' live.log </dev/null >/dev/null"
    if background and re.match("sojourn(-lab)? ", line):
        line = f": >log; {line[:-1]} >log 2>&1 &\nuntil grep -q 'listening on' log; do kill -0 $!; sleep 0.05; done"
    return line


def execute(start, folder, lines):
    prefix = ["set -e", "trap 'trap - EXIT; kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT", f"ln -sfn {BUILD} build"]
    path = ":".join(str(program.parent) for program in (OBSERVER, DRIVER, LAB))
    with Netns("examples") as netns:
        if not any("sojourn-lab" in line for line in lines):
            start([LAB, "--listen", "127.0.0.1:8080"], netns=netns).wait_for("listening on")
        shell = start(["bash", "-c", "\n".join(prefix + [shortened(line) for line in lines])], netns=netns, cwd=folder,
                      env={"PATH": f"{path}:{os.environ['PATH']}", "TERM": "xterm"})
        assert shell.wait(60) == 0, f"{shell.stdout}\n{shell.stderr}"
        return shell.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name, lines", scripts(), ids=lambda value: value if isinstance(value, str) else "")
def test_it_runs(start, tmp_path, name, lines):
    if any("run.json" in line for line in lines) and not any("--json run.json" in line for line in lines):
        execute(start, tmp_path, ["sojourn-drive 127.0.0.1:8080 -d 1s --quiet --json run.json"])
    output = execute(start, tmp_path, lines)
    if name.startswith("diagnose.md"):
        before, after = (json.loads((tmp_path / f"{which}.json").read_text())["joined"] for which in ("before", "after"))
        assert before["sum"]["stages"]["socket_queue"] > before["sum"]["stages"]["service"], "one request after the other"
        assert before["sum"]["stages"]["socket_queue"] * after["joined"] > \
            after["sum"]["stages"]["socket_queue"] * before["joined"], "a thread for each"
        assert "socket queue" in output and "service" in output
