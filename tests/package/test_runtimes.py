# SPDX-License-Identifier: MIT
"""Services in containers of Podman and Docker, observed from their host. `tools/package --boot` runs this.

The truths are the runtimes' own words on a container, and the log of the web server in it.
"""
import json
import re

import pytest

from . import machine as emulated

RUNTIMES = ("docker", "podman")
REQUESTS = 40
pytestmark = emulated.LIMIT


@pytest.fixture(scope="module", name="machine")
def machine_fixture(tmp_path_factory):
    return emulated.boot("runtimes.sh", tmp_path_factory.mktemp("machine"))


def served(machine, runtime):
    """Return how many responses the server in the container has logged."""
    _, out, err = machine.said(f"{runtime}.truth")
    return len(re.findall(r"response:200", out + err))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_container_is_observed_by_its_name(machine, runtime):
    document = json.loads(machine.output(f"{runtime}.named"))
    used = [service for service in document["services"] if service["exchanges"]]
    assert [service["port"] for service in used] == [80]
    assert used[0]["exchanges"] == used[0]["accepted"] == REQUESTS
    assert used[0]["container"] == f"web-{runtime}"
    assert used[0]["container_id"] == machine.output(f"{runtime}.id")
    assert used[0]["processes"][0]["pid"] == int(machine.output(f"{runtime}.pid"))


def test_all_containers_are_told_apart(machine):
    document = json.loads(machine.output("both"))
    counts = {service["container"]: service["exchanges"] for service in document["services"] if service["exchanges"]}
    assert counts == {f"web-{runtime}": REQUESTS for runtime in RUNTIMES}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_request_is_one_of_the_servers_log(machine, runtime):
    assert served(machine, runtime) == 2 * REQUESTS


def test_a_name_that_is_none_is_refused_with_the_names_there_are(machine):
    status, _, message = machine.said("wrong")
    assert status == 2
    assert all(f"web-{runtime}" in message for runtime in RUNTIMES), message
