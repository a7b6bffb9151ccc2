# SPDX-License-Identifier: MIT
"""REST endurance, briefly: exhaustion is named before the first call fails, counted as often as clients met it,
and ended by the remedy."""
import pytest

pytestmark = pytest.mark.timeout(240)

# The exhausted resources: who uses them, the findings that name them, the error of clients or server.
PORTS = {"ports-exhausted-soon", "ports-cliff"}
EXPECTED = [("sojourn-drive", PORTS, "address_unavailable"),
            ("nginx", {"fds-exhausted-soon", "fds-near-limit"}, "Too many open files"),
            ("client.py", PORTS, "Cannot assign requested address"),
            ("client.py", {"close-wait-leak"}, "Cannot assign requested address")]


def check_scene(scene, owner, names, error):
    wrong, right = scene["wrong"], scene["right"]
    assert wrong["failures"] > 0 and error in wrong["first"]
    assert wrong["named"] in names and wrong["owner"] == owner
    assert wrong["named_after"] < wrong["fails_after"]
    assert any(f"  {name}  " in wrong["text"] for name in names), wrong["text"]
    if owner != "nginx":
        assert wrong["failed_calls"] == wrong["counted"]
    assert right["calls"] > 0 and right["failures"] == 0
    if owner == "client.py":
        assert right["opened"] == 1 and right["found"] == []


def shape(result):
    tests, lasting = result.figures["tests"], result.figures["long"]
    for test in (*tests, lasting):
        assert test["requests"] == test["answered"] > 0 and test["errors"] == 0
        # The bracket of the observer's phase may hold requests in flight at its ends.
        assert abs(test["exchanges"] - test["requests"]) <= 2 * test["clients"]
    assert tests[-1]["each"] < tests[0]["each"] / 2
    assert tests[-1]["socket_queue_ns"] > 5 * tests[0]["socket_queue_ns"]
    assert len(result.figures["scenes"]) == len(EXPECTED)
    for scene, expected in zip(result.figures["scenes"], EXPECTED):
        check_scene(scene, *expected)
    assert lasting["clients"] == lasting["connects"] == result.figures["chosen"]
    assert lasting["time_wait_created"] == 0
    assert sum(each["requests"] for each in lasting["methods"].values()) == lasting["requests"]


@pytest.mark.long
@pytest.mark.alone
def test_rest_endurance(experiment):
    experiment("rest-endurance", shape)
