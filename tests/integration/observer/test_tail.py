# SPDX-License-Identifier: MIT
"""Samples of both sides, joined: the stage that held the slow requests, and that the parts add up.

The lab server delays one of 100 requests in one stage, and the report's share for requests above p99 must name
that stage. With nginx nearly every sampled exchange is joined, and its parts sum to the client's own time, in
integers.
"""
import re

import pytest

from support.documents import service
from support.programs import Driver, Lab, Nginx, Observer
from support.timing import MS, in_quiet, timing

RESIDENCE = ("accept_queue", "socket_queue", "receive", "service", "respond")
SUMMED = (*RESIDENCE, "transmit_queue")
ONE_IN = ["--one-in", "100"]


def tail(document, per_mille):
    found, = [entry for entry in document["joined"]["tail"] if entry["per_mille"] == per_mille]
    return found


def add_up(parts):
    """A round trip is the sum of its parts, to the nanosecond; none of them is negative."""
    measured = [parts["stages"][name] for name in SUMMED if parts["stages"][name] is not None]
    stages = sum(measured)
    assert len(measured) >= len(RESIDENCE)
    assert parts["round_trip_ns"] == parts["network_ns"] + stages - parts["overhang_ns"]
    assert parts["network_ns"] >= 0 and parts["overhang_ns"] >= 0
    assert all(value >= 0 for value in measured)
    return True


def all_add_up(joined):
    """Each exchange adds up in integers, and the server's parts do not exceed the client's time. A single last
    write may return after the client's read; in the mean that is negligible."""
    with timing():
        assert joined["sum"]["overhang_ns"] <= 0.005 * joined["sum"]["round_trip_ns"]
    return add_up(joined["sum"]) and \
        all(add_up(entry["sum"]) for entry in joined["tail"] if entry["count"]) and \
        all(add_up(entry["parts"]) for entry in joined["slowest"])


def named(report):
    """Return the stage that the report names first for requests above p99, and its percentage."""
    line = re.search(r"^of the requests slower than the client's p99, .*: ([a-z +]+?) +([\d.]+) %",
                     report, re.MULTILINE)
    assert line, report
    return line[1], float(line[2])


@pytest.mark.parametrize("held, lab_options, driver_options", [
    ("service", ["--service", "20ms"], []),
    ("service", ["--service", "20ms", "--mode", "spin"], []),
    ("socket_queue", ["--read-delay", "20ms"], []),
    ("accept_queue", ["--accept-delay", "20ms"], ["--new-connections"]),
], ids=["service", "spin", "socket_queue", "accept_queue"])
@in_quiet
def test_the_tail_is_where_the_delay_is(start, held, lab_options, driver_options):
    lab = start(Lab(*lab_options, *ONE_IN))
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, *driver_options, connections=1, count=2000, observer=observer)
    observer.stop()
    joined, slow = driver.document["joined"], tail(driver.document, 990)

    assert joined["joined"] == driver.result["requests"] == 2000
    assert all_add_up(joined)
    with timing():
        assert 15 <= slow["count"] <= 20
        assert slow["sum"]["round_trip_ns"] >= slow["count"] * 19 * MS
        assert slow["sum"]["stages"][held] >= 0.9 * slow["sum"]["round_trip_ns"]
        words, percent = named(driver.report)
        # accept() is inferred here.
        label = {"accept_queue": "accept or socket queue"}.get(held, held.replace("_", " "))
        assert (words, percent >= 90) == (label, True), driver.report
        # The median does not contain the delay.
        half = tail(driver.document, 500)
        assert half["above_ns"] < 10 * MS
        # A few others may also be slow, because of the machine.
        assert all(entry["parts"]["stages"][held] >= 19 * MS for entry in joined["slowest"][:5])


@pytest.mark.parametrize("options", [[], ["--new-connections"], ["--rate", "4000"]],
                         ids=["kept", "new", "rate"])
@in_quiet
def test_nginx_exchanges_are_joined(start, options):
    """At least 99.9 % of the client's samples are joined: there is no NAT in between."""
    nginx = start(Nginx(workers=2))
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, *options, connections=16, count=8000, observer=observer)
    observer.stop()
    joined = driver.document["joined"]
    sampled = sum(joined[name] for name in ("joined", "driver_only", "ambiguous", "implausible"))

    assert joined["threshold"] == 1 << 32
    assert sampled == driver.result["requests"] == 8000
    assert joined["joined"] >= 0.999 * sampled
    assert all_add_up(joined)
    samples = service(observer.summary(), nginx.port)["samples"]
    assert samples["lost"] == samples["inconsistent"] == 0


@in_quiet
def test_a_choice_is_joined_too(start):
    """More exchanges than are kept: both sides choose the same ones without communicating."""
    nginx = start(Nginx())
    observer = start(Observer("--samples", "1000", ports=[nginx.port]))
    driver = Driver(nginx.url, "--samples", "3000", connections=8, count=20_000, observer=observer)
    observer.stop()
    joined = driver.document["joined"]
    sampled = sum(joined[name] for name in ("joined", "driver_only", "ambiguous", "implausible"))
    share = joined["threshold"] / (1 << 32)

    assert share < 1 / 16
    assert 0.7 * share * 20_000 < sampled < 1.3 * share * 20_000
    assert joined["joined"] >= 0.999 * sampled
    assert all_add_up(joined)


@in_quiet
def test_parts_add_up_without_the_network(start):
    """On loopback, with a service of 100 ms, the stages are the whole round trip, within 0.5 %. The driver's waits for a
    CPU come on top: each is one of up to 8 exchanges."""
    lab = start(Lab("--service", "100ms"))
    observer = start(Observer(ports=[lab.port]))
    driver = Driver(lab.url, connections=8, count=200, observer=observer)
    observer.stop()
    entry = service(driver.document, lab.port)
    round_trip_ns = driver.result["round_trip"]["mean_ns"]
    stages_ns = (sum(entry["stages"][name]["sum_ns"] for name in RESIDENCE[1:]) +
                 entry["accept_delay_ns"]) / entry["exchanges"]
    joined = driver.document["joined"]

    assert entry["exchanges"] == joined["joined"] == driver.result["requests"] == 200
    waited_ns = 8 * driver.result["cpu_wait_ns"] / 200
    with timing():
        assert -0.005 * round_trip_ns < round_trip_ns - stages_ns < 0.005 * round_trip_ns + waited_ns
    assert joined["sum"]["round_trip_ns"] == driver.result["round_trip"]["sum_ns"]
    assert all_add_up(joined)


@in_quiet
def test_means_of_all_and_of_the_joined_agree(start):
    """The stages of all exchanges and the network of the joined ones are the client's mean, to 0.5 % if every
    exchange is joined."""
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, connections=4, count=5000, observer=observer)
    observer.stop()
    entry, joined = service(driver.document, nginx.port), driver.document["joined"]
    stages_ns = (sum(entry["stages"][name]["sum_ns"] for name in RESIDENCE[1:]) +
                 entry["accept_delay_ns"]) / entry["exchanges"]
    network_ns = joined["network"]["sum_ns"] / joined["joined"]
    overhang_ns = joined["sum"]["overhang_ns"] / joined["joined"]
    round_trip_ns = driver.result["round_trip"]["mean_ns"]
    assert entry["exchanges"] == 5000
    assert abs(round_trip_ns - stages_ns - network_ns + overhang_ns) < 0.005 * round_trip_ns
