# SPDX-License-Identifier: MIT
"""Run documents as tests read them."""
import json
import subprocess

from . import BUILD

SCHEMA = "sojourn.run/1"
CHECKER = BUILD / "observer" / "sojourn"


def broken(text):
    """The invariants that a run document breaks, a sentence each (docs/run-document.md, Invariants)."""
    done = subprocess.run([CHECKER, "report", "--check", "-"], input=text, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), f"--check: status {done.returncode}: {done.stderr}"
    return done.stdout.splitlines() if done.returncode else []


def parse(text):
    """A run document from its text; fails if it is not one, or breaks an invariant."""
    document = json.loads(text)
    assert document.get("schema") == SCHEMA, f"schema is {document.get('schema')!r}"
    wrong = broken(text)
    assert not wrong, "the document contradicts itself:\n" + "\n".join(wrong)
    return document


def load(path):
    """The same from a file."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def service(document, port):
    """The document's only service on this port."""
    found = [entry for entry in document["services"] if entry["port"] == port]
    assert len(found) == 1, f"{len(found)} services on port {port}: " \
        f"{[entry['port'] for entry in document['services']]}"
    return found[0]
