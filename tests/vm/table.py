#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the tables of docs/kernels.md from each kernel's output of `sojourn probe --json`.

    tests/vm/table.py           prints them, from the emulated kernels and the running one
    tests/vm/table.py --write   puts them into docs/kernels.md
"""
import concurrent.futures
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support import BUILD, ROOT  # pylint: disable=wrong-import-position

DOCUMENT = ROOT / "docs" / "kernels.md"
BEGIN, END = "<!-- tests/vm/table.py: begin -->", "<!-- tests/vm/table.py: end -->"
KERNELS = ("5.15", "6.1", "6.8", "6.12", "7.3")
FOREIGN = "6.12 arm64"  # has the same candidates as on x86-64, and verifies other instructions

COST_HEAD = "program, instructions verified"


def minor(release):
    """Return the major and minor version: 6.12 for 6.12.117+deb12-cloud-amd64."""
    return ".".join(release.split(".")[:2])


def title(answer):
    """Return the heading of a kernel's column in the table of costs: 6.12, 6.12 arm64"""
    return minor(answer["kernel"]) + (" arm64" if answer["kernel"].endswith("-arm64") else "")


def probe(kernel):
    """Return a kernel's probe; None is the running kernel."""
    version, *architecture = kernel.split() if kernel else [None]
    observer = [BUILD / "observer" / "sojourn"] if kernel is None else \
        [ROOT / "tools" / "vm", *(f"--{name}" for name in architecture), version, "--", "sojourn"]
    done = subprocess.run([*observer, "probe", "--json"], check=False, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 3):
        sys.exit(f"kernel {kernel or 'of this host'}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def state(candidate):
    if not candidate["works"]:
        return "refused"
    return "**used**" if candidate["chosen"] else "works"


def column(answer):
    """Return {row of the tables: its cell} of one kernel."""
    cells = {f"`{name}`": "measured" if stage["measured"] else "missing"
             for name, stage in answer["stages"].items()}
    cells.update({f"{candidate['question']} `{candidate['hook']}` (`{candidate['program']}`)":
                  state(candidate) for candidate in answer["candidates"]})
    return cells


def cost(answer):
    """Return {program: instructions that the verifier processed}, for the programs that a kernel accepts."""
    return {f"`{candidate['program']}`": str(candidate["verified_instructions"])
            for candidate in answer["candidates"] if "verified_instructions" in candidate}


def table(head, columns):
    """Return a table with a column per kernel, and a row for every name that occurs."""
    names = list(dict.fromkeys(name for cells in columns.values() for name in cells))
    return rows(head, names, columns)


def rows(head, names, columns):
    kernels = list(columns)
    yield f"| {head} | {' | '.join(kernels)} |"
    yield "|---" * (len(kernels) + 1) + "|"
    for name in names:
        yield f"| {name} | {' | '.join(columns[kernel].get(name, '') for kernel in kernels)} |"


def reasons(answers):
    for answer in answers:
        for candidate in answer["candidates"]:
            if not candidate["works"]:
                yield f"- {minor(answer['kernel'])}, `{candidate['program']}`: {candidate['reason']}"


def render(answers):
    *emulated, host = (answer["kernel"] for answer in answers)
    answers = sorted(answers, key=lambda answer: [int(n) for n in minor(answer["kernel"]).split(".")])
    told = [answer for answer in answers if title(answer) != FOREIGN]
    columns = {title(answer): column(answer) for answer in told}
    names = list(dict.fromkeys(name for cells in columns.values() for name in cells))
    stages = [name for name in names if name.startswith("`")]
    date = datetime.date.today().isoformat()
    asked = f"{', '.join(emulated)}, and a development host's {re.match('[0-9.]*', host)[0]}"
    return "\n".join([f"Asked on {date}: {asked}.", "",
                      *rows("stage", stages, columns), "",
                      *rows("question, hook (program)", [name for name in names
                                                         if name not in stages], columns), "",
                      "Instructions that the verifier went through to accept a program; "
                      "tests/vm fails", "when one has grown by more than a fifth:", "",
                      *table(COST_HEAD, {title(answer): cost(answer)
                                         for answer in answers}), "",
                      "Refused, in the kernel's or libbpf's own words:", "", *reasons(told)])


def read(text, kernel):
    """Return the columns of a kernel in a document's tables, in the form of column() and cost()."""
    cells, costs, at, into = {}, {}, None, {}
    for line in text.splitlines():
        words = [word.strip() for word in line.strip("|").split("|")]
        if not line.startswith("|"):
            at = None
        elif at is None:
            at = words.index(kernel) if kernel in words else 0
            into = costs if words[0] == COST_HEAD else cells
        elif at and not line.startswith("|---") and words[at]:
            into[words[0]] = words[at]
    return cells, costs


def main():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tables = render(list(pool.map(probe, (*KERNELS, FOREIGN, None))))
    if sys.argv[1:] != ["--write"]:
        print(tables)
        return
    text = DOCUMENT.read_text(encoding="utf-8")
    made = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{tables}\n{END}", text, flags=re.DOTALL)
    DOCUMENT.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
