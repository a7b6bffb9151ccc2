#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subjects of commits are `area: imperative` of at most 60 characters, and changes of 30 lines or more have a body.
Only descendants of the commit that added this file are judged: older commits are not, nor are branches from before it
that are merged later. Merges have no rule."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tree

RULE = "tests/check/commits.py"
LONGEST = 60
WANTS_BODY = 30  # changed lines
SUBJECT = re.compile(r"^(?:Revert \"|[\w.,/ -]+: (?P<verb>[a-z]+)\b)")
VERBS = set("""
accept adapt add align allow announce answer apply ask assert attach attack avoid begin bind bound break bring build bump cache call carve change
check choose clean clear close collect combine compare compile compute convert copy correct count cover cut deal declare decode
define delete deprecate derive describe detach detect disable distinguish divide document drain draw drop emulate empty enable encode
end enforce enter exclude expect explain export expose extend extract factor fail fetch fill filter find finish fit fix flush
fold follow forbid format forward free fuzz gather generate give group guard handle harden hash hide hint hold honour ignore implement
import improve include increase infer initialise inline insert install introduce invert isolate join judge keep kill know label lay
leave let lift limit link list load lock log look lower make map mark match measure mend merge migrate mirror mock mount move
name narrow note notify observe omit open optimise order pad parse pass pause permit pick pin place poll prefer prepare prevent
print probe prove provide publish pull push put query quote raise randomise read rebuild record recover reduce refactor refer
refuse register rehearse reject relax release rely remember remove rename render renew reorder repair repeat replace replay report request
require reserve reset reshape resize resolve respect restore restrict resume retry return reuse revert reword rewrite rotate
round route run sample satisfy save say scale scan schedule search select send separate serve set settle share shorten show shrink
silence simplify size skip sleep sort specify split start state stop store stream strip substitute suggest sum support survive
swap switch sync take teach tell test throttle tidy tie time trace track translate treat trim try tune turn type unify update
upgrade unset use validate verify wait wake walk warn watch weaken widen wrap write""".split())


def faults(subject, body, changed):
    if len(subject) > LONGEST:
        yield f"{len(subject)} characters in the subject, at most {LONGEST}"
    found = SUBJECT.match(subject)
    if not found:
        yield "write the subject as 'area: imperative'"
    elif found["verb"] and found["verb"] not in VERBS:
        yield f"'{found['verb']}' is no imperative in VERBS of {RULE}"
    if changed >= WANTS_BODY and not body.strip():
        yield f"{changed} changed lines and no body"


def git(root, *words):
    """Return the output; a folder without git, or of another user, is a reason to skip."""
    done = tree.run(["git", "-C", root, *words])
    if done.returncode:
        raise tree.Skip(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def judged(root):
    """Yield (hash, subject, body, changed lines) of each commit that the rule is about."""
    if not (root / ".git").exists():
        raise tree.Skip("this tree has no history of commits")
    if git(root, "rev-parse", "--is-shallow-repository").strip() != "false":
        raise tree.Skip("this clone is shallow: it does not show when the rule was added")
    added = git(root, "log", "--diff-filter=A", "--format=%H", "--", RULE).split()
    if not added:
        raise tree.Skip("the rule is not committed yet")
    log = git(root, "log", "--no-merges", "--ancestry-path", "--shortstat", "--format=%x01%h%x02%s%x02%b%x02", f"{added[-1]}..HEAD")
    for entry in log.split("\x01")[1:]:
        name, subject, body, rest = entry.split("\x02")
        yield name, subject, body, sum(map(int, re.findall(r"(\d+) (?:insertion|deletion)", rest)))


def problems(root, options):
    del options
    for name, subject, body, changed in judged(root):
        for fault in faults(subject, body, changed):
            yield f"{name} {subject}: {fault}"


# subject, body, changed lines, a part of each fault
EXAMPLES = [
    ("bpf: skip the clock read for unobserved sockets", "", 29, []),
    ("tests/unit: add a table", "All rules read it.", 3000, []),
    ("Revert \"bpf: a faster clock\"", "", 1, []),
    ("bpf: skip the clock read for unobserved sockets", "\n", 30, ["30 changed lines"]),
    ("bpf: what is not observed costs no reading of a clock", "", 1, ["'what' is no imperative"]),
    ("Fixes", "", 1, ["write the subject"]),
    ("bpf: skip " + "x" * 51, "", 1, ["61 characters"]),
]


def commit(root, subject, path="file"):
    with open(root / path, "a", encoding="utf-8") as file:
        file.write(subject + "\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", subject)


def history(root):
    """Make a repository with bad subjects before the rule, beside it, and after it."""
    (root / "tests/check").mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "Before the rule")
    git(root, "branch", "beside")
    commit(root, "tests: add a rule", RULE)
    git(root, "checkout", "--quiet", "beside")
    commit(root, "Beside the rule", "other")
    git(root, "checkout", "--quiet", "main")
    git(root, "merge", "--quiet", "--message", "Merge of both", "beside")
    commit(root, "After the rule")


def skips(root):
    with contextlib.suppress(tree.Skip):
        return list(problems(root, None))
    return None


def self_test():
    wrong = [f"example '{subject}': {found}" for subject, body, changed, expected in EXAMPLES
             for found in [list(faults(subject, body, changed))]
             if len(found) != len(expected) or any(part not in line for part, line in zip(expected, found))]
    os.environ.update({f"GIT_{who}_{what}": "rule@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
                      GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
    with tempfile.TemporaryDirectory(prefix="sojourn-rule.") as folder:
        root, shallow, bare = (Path(folder, name) for name in ("whole", "shallow", "bare"))
        bare.mkdir()
        history(root)
        found = skips(root)
        if not found or len(found) != 1 or "After the rule" not in found[0]:
            wrong.append(f"history: {found}")
        subprocess.run(["git", "clone", "--quiet", "--depth", "2", f"file://{root}", str(shallow)], check=True, timeout=300)
        wrong += [f"not skipped: {each.name}" for each in (shallow, bare) if skips(each) is not None]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def main():
    if "--self-test" not in sys.argv:
        return tree.main(problems, ())
    try:
        return self_test()
    except tree.Skip as reason:
        print(f"skipped: {reason}")
        return tree.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
