# SPDX-License-Identifier: MIT
"""Key-value writes, briefly: three counts agree, and the curves have the published shape."""
import pytest

pytestmark = pytest.mark.timeout(240)


def shape(result):
    cases = {(case["store"], case["name"]): case for case in result.figures["cases"]}
    plain, traced = cases["redis", "one CPU"], cases["redis", "one CPU, traced"]
    grpc = cases["gRPC store", "one CPU"]
    for case in (plain, grpc):
        assert case["counts"]["driver"] == case["counts"]["server"] == case["counts"]["sojourn"] == 5000
        assert not any(step["lost"] for step in case["steps"])
        one, most = case["steps"][0], case["steps"][-1]
        # The original's first mistake: the inverse of latency is no throughput. It falls with the clients.
        assert most["rate_by_latency"] < most["rate"] / 2
        assert most["rate_by_latency"] < one["rate_by_latency"]
        # A single client only waits, apart from other load on the machine.
        assert one["rate"] < one["rate_by_latency"] * 1.01
    for case in cases.values():
        for step in case["steps"]:
            assert step["requests"] and not step["errors"]
            # The bracket of the observer's phase may hold requests in flight at its ends.
            assert abs(step["exchanges"] - step["requests"]) <= 2 * step["clients"]
            assert 0 < step["socket_queue_ns"] + step["service_ns"] <= step["residence_ns"] + 1
            assert step["residence_ns"] < step["round_trip_ns"] * 1.05
    # MONITOR's line for each command is a write without a request, and costs the server.
    assert sum(step["lost"].get("unsolicited", 0) for step in traced["steps"]) > 0
    assert traced["steps"][-1]["server_cpu_ns"] > plain["steps"][-1]["server_cpu_ns"]
    assert set(plain["cpu"]) == {"running", "runnable", "blocked"} and not grpc["cpu"]


@pytest.mark.long
@pytest.mark.alone
def test_key_value_writes(experiment):
    experiment("key-value-writes", shape)
