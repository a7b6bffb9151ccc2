# SPDX-License-Identifier: MIT
"""The experience server, briefly: three counts agree, sums by step equal Sojourn's own join, and saturation
goes into the queue."""
import pytest

pytestmark = pytest.mark.timeout(240)

STEPS = ["create session", "target session", "commit request", "fail request", "read attribute",
         "write attribute"]


def total(run, name):
    return sum(step[name] for step in run["steps"])


def check_sums(run):
    joined = run["joined_sum"]
    assert total(run, "count") == run["joined"]["joined"] > 0
    assert total(run, "round_trip_ns") == joined["round_trip_ns"]
    assert total(run, "server_ns") == sum(joined["stages"][name] for name in ("receive", "service", "respond"))
    assert total(run, "queue_ns") == joined["stages"]["accept_queue"] + joined["stages"]["socket_queue"]
    assert total(run, "network_ns") == joined["network_ns"] - joined["overhang_ns"]
    for step, own in zip(run["steps"], run["joined_steps"], strict=True):
        assert (step["name"], step["count"]) == (own["name"], own["count"])
        assert step["round_trip_ns"] == own["sum"]["round_trip_ns"]
        assert step["server_ns"] == sum(own["sum"]["stages"][name] for name in
                                        ("receive", "service", "respond"))
        assert step["round_trip_ns"] == step["server_ns"] + step["queue_ns"] + step["network_ns"]
        assert step["foreign"] == 0
        assert 0 < step["running_ns"] and step["divided"] <= step["count"]


def shape(result):
    for size in result.figures["sizes"]:
        for run in (*size["runs"], size["calm"]):
            assert run["requests"] == run["exchanges"] == run["nginx_requests"] > 0
            assert run["errors"] == 0 and [step["name"] for step in run["steps"]] == STEPS
            check_sums(run)
        low, high = size["runs"][0], size["runs"][-1]
        assert high["mean_ns"] > 3 * low["mean_ns"]
        assert total(high, "queue_ns") > total(high, "round_trip_ns") / 2
        # The server's time is constant, so its share falls as the queue grows.
        shares = [total(run, "server_ns") / total(run, "round_trip_ns") for run in (low, high)]
        assert shares[1] < shares[0] / 2, shares
        assert size["calm"]["rate"] < size["plateau"]
    assert "| write attribute |" in result.page


@pytest.mark.long
@pytest.mark.alone
def test_experience_server(experiment):
    experiment("experience-server", shape)
