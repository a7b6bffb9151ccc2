# SPDX-License-Identifier: MIT
"""`--trace` of both programs, as read by the Chrome trace-event format. Every event has the members of its
kind, slices of a track nest, and an exchange's drawing equals the document, in integers.
"""
import itertools
import json

import pytest

from support import documents
from support.process import run
from support.programs import DRIVER, OBSERVER, Lab, Observer

COUNT = 300
NETWORK, DUE = "network (half of it)", "due, not sent"


def ns(event, name):
    value = event[name] * 1000
    assert abs(value - round(value)) < 0.01, event
    return round(value)


@pytest.fixture(params=["driver", "report"])
def traced(request, start, tmp_path):
    """Return (trace, document) of some slow and mostly quick requests at a rate. The driver writes the trace,
    or the report does from the driver's document."""
    lab = start(Lab("--service", "4ms", "--one-in", "20"))
    observer = start(Observer("--transmit", "all", ports=[lab.port]))
    path, trace = tmp_path / "run.json", tmp_path / "trace.json"
    options = ["--trace", trace] if request.param == "driver" else []
    run([DRIVER, lab.url, "-c", 3, "-n", COUNT, "--rate", 1000, "--slowest", 40, "--quiet", "--observer", observer.url,
         "--json", path, *options])
    observer.stop()
    if not options:
        run([OBSERVER, "report", path, "--slowest", 40, "--trace", trace, "-o", tmp_path / "report.txt"])
    return json.loads(trace.read_text()), documents.load(path)


def of_kind(trace, phase):
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def exchanges(trace):
    """Yield each whole request's slice with those inside it."""
    slices = of_kind(trace, "X")
    requests = [event for event in slices if event["name"].startswith("request ")]
    for request in requests:
        begin, end = ns(request, "ts"), ns(request, "ts") + ns(request, "dur")
        yield request, [event for event in slices if event["tid"] == request["tid"] and event not in requests
                        and begin <= ns(event, "ts") and ns(event, "ts") + ns(event, "dur") <= end]


def test_the_format(traced):
    trace, document = traced
    assert trace["displayTimeUnit"] in ("ns", "ms")
    assert {event["ph"] for event in trace["traceEvents"]} == {"X", "M", "b", "e"}
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"]
        assert type(event["pid"]) is int and type(event["tid"]) is int and isinstance(event["args"], dict)
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        assert ("dur" in event) == (event["ph"] == "X")
        assert ("id" in event) == (event["ph"] in "be")
    # The process and each track have a name; every asynchronous event ends after its start.
    names = {(event["name"], event["tid"]): event["args"]["name"] for event in of_kind(trace, "M")}
    clients = {exchange["client"] for exchange in document["joined"]["slowest"]}
    assert sorted(name for (kind, _), name in names.items() if kind == "thread_name") == sorted(clients)
    assert {event["tid"] for event in of_kind(trace, "X")} == \
        {tid for kind, tid in names if kind == "thread_name"}
    begun = {(event["cat"], event["id"], event["name"]): event for event in of_kind(trace, "b")}
    ended = {(event["cat"], event["id"], event["name"]): event for event in of_kind(trace, "e")}
    assert begun and set(begun) == set(ended) and len(begun) == len(of_kind(trace, "b"))
    assert all(ended[key]["ts"] >= event["ts"] for key, event in begun.items())


def test_slices_nest(traced):
    """On a track two slices nest or are disjoint: viewers draw partly overlapping ones wrongly."""
    trace, _ = traced
    for tid in {event["tid"] for event in of_kind(trace, "X")}:
        spans = [(ns(event, "ts"), ns(event, "ts") + ns(event, "dur")) for event in of_kind(trace, "X")
                 if event["tid"] == tid]
        for (begin, end), (other_begin, other_end) in itertools.combinations(spans, 2):
            apart = end <= other_begin or other_end <= begin
            within = begin <= other_begin and other_end <= end or other_begin <= begin and end <= other_end
            assert apart or within


def test_what_is_drawn_is_measured(traced):
    """Each of the slowest appears once, with its parts in sequence. Their lengths are the document's, and add
    up to the round trip, less the time after its end."""
    trace, document = traced
    slowest = {(each["client"], each["index"]): each for each in document["joined"]["slowest"]}
    drawn = {(request["args"]["client"], request["args"]["index"]): (request, parts)
             for request, parts in exchanges(trace)}
    assert len(slowest) == 40 and set(drawn) == set(slowest)
    inferred = document["joined"]["stages"]["accept_queue"].get("source") == "inferred"
    accept = "accept or socket queue" if inferred else "accept queue"
    first_ns = min(each["start_ns"] - each["parts"]["wait_ns"] for each in slowest.values())
    waits = {}
    for event in of_kind(trace, "b"):
        if event["name"] == DUE:
            waits.setdefault(event["tid"], set()).add(ns(event, "ts"))
    for key, exchange in slowest.items():
        request, parts = drawn[key]
        of = exchange["parts"]
        assert ns(request, "dur") == request["args"]["round_trip_ns"] == of["round_trip_ns"]
        assert ns(request, "ts") == exchange["start_ns"] - first_ns
        # In sequence, without gaps.
        parts.sort(key=lambda event: ns(event, "ts"))
        at = ns(request, "ts")
        for event in parts:
            assert ns(event, "ts") == at
            at += ns(event, "dur")
        assert at == ns(request, "ts") + of["round_trip_ns"]
        lengths = {}
        for event in parts:
            lengths[event["name"]] = lengths.get(event["name"], 0) + event["args"]["length_ns"]
        expected = {accept if name == "accept_queue" else name.replace("_", " "): value for name, value in of["stages"].items()
                    if value and name != "ack"}
        assert lengths == ({NETWORK: of["network_ns"]} if of["network_ns"] else {}) | expected
        assert sum(lengths.values()) - of["overhang_ns"] == of["round_trip_ns"]
        if of["wait_ns"]:
            assert exchange["start_ns"] - of["wait_ns"] - first_ns in waits[request["tid"]]
    # The server's own delay makes some of them slow.
    assert any(max(parts, key=lambda event: event["dur"])["name"] == "service" for _, parts in drawn.values())
