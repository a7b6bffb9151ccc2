# SPDX-License-Identifier: MIT
"""The doctor's findings in run documents: numbers from the texts of the evidence, and times."""
import datetime
import re

FACT = re.compile(r"(?P<name>.*?): (?P<value>[\d,.]+) ?(?P<unit>.*?) ?\((?P<source>.*)\)")


def facts(finding):
    found = [FACT.fullmatch(text) for text in finding["evidence"] or []]
    return {match["name"]: float(match["value"].replace(",", "")) for match in found}


def evidence(finding, name):
    """Return the value of this fact; 0 if it is absent, as zeros are left out."""
    return facts(finding).get(name, 0)


def seconds_left(entry):
    """Return the seconds until a resource's end; None: it does not end."""
    return None if entry["ends_in_ns"] is None else entry["ends_in_ns"] / 1e9


def growth(look, entry):
    """Return the growth per second of a finding or resource of this reading."""
    found = [each["growth_per_hour"] for each in look["resources"]
             if all(each[key] == entry[key] for key in ("resource", "object", "netns"))]
    assert len(found) == 1, found
    return (found[0] or 0) / 3600


def ended_at(look):
    """Return when the second reading was, in seconds since 1970."""
    begin = datetime.datetime.fromisoformat(look["started_at"].replace("Z", "+00:00"))
    return begin.timestamp() + look["duration_ns"] / 1e9
