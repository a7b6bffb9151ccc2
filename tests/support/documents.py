# SPDX-License-Identifier: MIT
"""Run documents as tests read them."""
import functools
import json
import subprocess

import jsonschema

from . import BUILD

SCHEMA = "sojourn.run/1"
CHECKER = BUILD / "observer" / "sojourn"


def broken(text):
    """Return the invariants that a run document breaks, a sentence each (docs/run-document.md, Invariants)."""
    done = subprocess.run([CHECKER, "report", "--check", "-"], input=text, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), f"--check: status {done.returncode}: {done.stderr}"
    return done.stdout.splitlines() if done.returncode else []


# Checked elements of a long array: its first and its last ones, of values and of objects such as services.
ENDS, ENDS_OF_OBJECTS = 3, 8


def closed(schema):
    """Return the schema with unnamed members forbidden: readers ignore them, but our programs write none."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    return {**inner, "additionalProperties": False} if schema.get("type") in ("object", ["object", "null"]) else inner


@functools.cache
def validator():
    """Return a validator for the schema that the program prints for its own output."""
    printed = subprocess.run([CHECKER, "report", "--schema"], capture_output=True, text=True, timeout=60, check=True)
    schema = json.loads(printed.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


def shortened(value):
    """Return the value with long arrays cut: their elements are alike, and take seconds to check."""
    if isinstance(value, dict):
        return {name: shortened(member) for name, member in value.items()}
    if isinstance(value, list):
        ends = ENDS_OF_OBJECTS if value and isinstance(value[0], dict) else ENDS
        if len(value) > 2 * ends:
            value = value[:ends] + value[-ends:]
        return [shortened(element) for element in value]
    return value


def causes(error):
    """Return the errors in a structure that may be null: that it is not null either says nothing."""
    if error.validator != "anyOf":
        return [error]
    return [cause for each in error.context if each.relative_schema_path[0] == 0 for cause in causes(each)]


def violations(document):
    """Return where a document violates the JSON Schema, a sentence each."""
    errors = [cause for error in validator().iter_errors(shortened(document)) for cause in causes(error)]
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def parse(text):
    """Parse a run document; fail if it is none, breaks an invariant, or violates the JSON Schema."""
    document = json.loads(text)
    assert document.get("schema") == SCHEMA, f"schema is {document.get('schema')!r}"
    assert not violations(document), "not as `sojourn report --schema` says:\n" + "\n".join(violations(document))
    wrong = broken(text)
    assert not wrong, "the document contradicts itself:\n" + "\n".join(wrong)
    return document


def load(path):
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def service(document, port):
    found = [entry for entry in document["services"] if entry["port"] == port]
    assert len(found) == 1, f"{len(found)} services on port {port}: " \
        f"{[entry['port'] for entry in document['services']]}"
    return found[0]
