# SPDX-License-Identifier: MIT
"""Run documents as tests read them."""
import json

SCHEMA = "sojourn.run/1"


def parse(text):
    """A run document from its text; fails if it is not one."""
    document = json.loads(text)
    assert document.get("schema") == SCHEMA, f"schema is {document.get('schema')!r}"
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
