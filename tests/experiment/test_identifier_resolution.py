# SPDX-License-Identifier: MIT
"""Identifier resolution, briefly: creates appear in the right place, and ports run out as expected."""
import pytest

pytestmark = pytest.mark.timeout(240)


def shape(result):
    found = result.figures
    assert {(cell["interface"], cell["operation"]) for cell in found["cells"]} == {
        ("TCP", "resolve"), ("UDP", "resolve"), ("HTTP", "resolve"), ("JSON", "resolve"),
        ("TCP", "create"), ("HTTP", "create"), ("JSON", "create")}
    for cell in found["cells"]:
        assert cell["requests"] and cell["errors"] < cell["requests"] / 10, cell
        # The bracket of the observer's phase may hold requests in flight at its ends, given up or not.
        assert 0 <= cell["exchanges"] - cell["requests"] + cell["lost"].get("unanswered", 0) + cell["errors"] \
            <= cell["clients"] * 10 + cell["errors"] * 2, cell
        assert cell["service_ns"] <= cell["residence_ns"]
    for count in found["counts"]:
        assert count["driver"] == count["server"] == count["sojourn"] == 250
    # One short accept queue instead of many.
    assert found["narrow"]["queue"]["overflows"] > 0
    assert any(name.startswith("accept-queue") for name in found["narrow"]["findings"])
    assert all(not cell["queue"]["overflows"] for cell in found["cells"] if cell["interface"] == "HTTP")
    # Port exhaustion is predicted, counted and named, and the remedies work.
    out = found["exhausted"]
    assert out["errors"] > 0 and out["ports"] - 100 < out["requests"] <= out["ports"]
    assert "2,000 source ports" in out["preflight"] and "33/s" in out["explanation"]
    assert out["doctor_status"] == 2 and "ports-exhausted" in out["doctor"]
    assert {way["what"]: (way["requests"], way["no_port"]) for way in found["remedies"]} == {
        way["what"]: (out["ports"] * 3 // 2, 0) for way in found["remedies"]}
    assert len(found["remedies"]) == 4


@pytest.mark.long
@pytest.mark.alone
def test_identifier_resolution(experiment):
    experiment("identifier-resolution", shape)
