# SPDX-License-Identifier: MIT
"""What the doctor found, as run documents have it: numbers out of the texts of the evidence, and times."""
import datetime
import re

FACT = re.compile(r"(?P<name>.*?): (?P<value>[\d,.]+) ?(?P<unit>.*?) ?\((?P<source>.*)\)")


def facts(finding):
    """{name: value} of the evidence."""
    found = [FACT.fullmatch(text) for text in finding["evidence"] or []]
    return {match["name"]: float(match["value"].replace(",", "")) for match in found}


def evidence(finding, name):
    """The value of this fact; 0 where it is left out, as those are that are 0."""
    return facts(finding).get(name, 0)


def seconds_left(entry):
    """Until a resource's end; None: it does not end."""
    return None if entry["ends_in_ns"] is None else entry["ends_in_ns"] / 1e9


def growth(look, entry):
    """Per second, of a finding or resource of this look."""
    found = [each["growth_per_hour"] for each in look["resources"]
             if all(each[key] == entry[key] for key in ("resource", "object", "netns"))]
    assert len(found) == 1, found
    return (found[0] or 0) / 3600


def ended_at(look):
    """When the second reading was, in seconds since 1970."""
    begin = datetime.datetime.fromisoformat(look["started_at"].replace("Z", "+00:00"))
    return begin.timestamp() + look["duration_ns"] / 1e9
