# SPDX-License-Identifier: MIT
"""Calls of gRPC (--http) at servers in other languages, whose libraries frame, acknowledge and schedule in ways of their
own: grpc-go and grpc-netty. They have their own counts, and their own clock at the socket.

tools/mutate: "a stream's service is 3 % too long".
"""
import collections
import statistics
import sys

import pytest

from support import ROOT
from support.documents import service
from support.foreign.grpc import GrpcServer, need_grpcio, needs_grpc
from support.pki import Pki
from support.process import run
from support.programs import Driver, Observer
from support.timing import MS, US, in_quiet, lies_within, timing
from .test_grpc import NAMES, of_grpc
from .test_grpc_kinds import CALLS, kind_of, kinds, messages
from .test_http2 import followed, timed
from .test_statuses import counted
from .test_truth import by_exchange

BOTH = [pytest.param(runtime, marks=needs_grpc(runtime)) for runtime in ("go", "java")]
EARLY = ["Early", "--grpc-messages=1000", "--grpc-replies=any", "--expect-grpc-status=resource_exhausted"]


def call(server, method, *options, **more):
    return Driver(server.url + method, "--grpc", *options, **more)


@pytest.mark.parametrize("runtime", BOTH)
def test_the_server_counts_the_same(start, runtime):
    """Calls of all kinds, many at a time on a connection, and failed ones: by server, driver and observer."""
    server = start(GrpcServer(runtime))
    observer = start(Observer("--route", "/test.Service/Serve", "--samples", "100000", ports=[server.port]))
    truth, drivers = collections.Counter(), []
    for method, calls, options, asked, replies in CALLS:
        drivers.append(call(server, method, "--streams=3", *options, connections=2, count=calls))
        assert drivers[-1].result["grpc"]["ok"] == drivers[-1].result["requests"] == calls
        truth[kind_of(asked, replies, True)] += calls
    missing = call(server, "Missing", "--streams=10", count=70, check=False)
    early = call(server, *EARLY, "--body=x", count=10)
    observer.stop()
    served, entry = server.served(), service(observer.summary(), server.port)
    received = sum(driver.result["messages_received"] for driver in drivers)
    assert {name: served[name] for name in ("Echo", "Missing", "Collect sent", "Serve read")} == \
        {"Echo": 90, "Missing": 70, "Collect sent": 40, "Serve read": 36}
    assert early.result["grpc"]["resource_exhausted"] == 10 and missing.result["grpc"]["not_found"] == 70
    assert received == 90 + sum(count for name, count in served.items() if name.endswith(" sent"))
    assert entry["http2"]["streams"] == entry["exchanges"] == sum(calls for _, calls, *_ in CALLS) + 80
    assert counted(entry) == {200: entry["exchanges"]}
    assert of_grpc(entry) == {"ok": truth.total(), "not_found": 70, "resource_exhausted": 10}
    assert messages(entry)[1] == received
    assert {route["route"]: route["count"] for route in entry["routes"]["list"]} == \
        {"/test.Service/Serve": 36, "other": entry["exchanges"] - 36}
    assert kinds(entry) == truth + collections.Counter(undecided=80)
    sent = sum(driver.result["messages_sent"] for driver in drivers)
    assert sent + 70 + 10 <= messages(entry)[0] <= sent + 70 + early.result["messages_sent"]


@needs_grpc("go")
def test_calls_of_a_foreign_client(start):
    """grpcio's client calls with each status on a connection, with messages and none, and details of all lengths."""
    need_grpcio()
    server = start(GrpcServer("go"))
    observer = start(Observer("--http", ports=[server.port]))
    run([sys.executable, ROOT / "tests/support/grpcclient.py", server.port, 510])
    observer.stop()
    truth, entry = server.served(), service(observer.summary(), server.port)
    assert sum(truth.values()) == 510
    assert of_grpc(entry) == {NAMES[int(name.split()[1])]: count for name, count in truth.items()}
    assert messages(entry) == (sum(1 + at % 2 for at in range(510)), sum(at % 4 for at in range(510)))
    assert followed(entry, 510, 1) and entry["exchanges"] == 510
    # On a busy machine a read may come later than arrivals are kept for, and is then counted as untimed.
    assert 450 < entry["stages"]["service"]["count"] == 510 - entry["losses"]["untimed"]


@pytest.mark.parametrize("runtime", BOTH)
@in_quiet
def test_times_are_those_of_the_servers_clock(start, runtime):
    """Service is from the last read of the request to the first write of the response. That is the handler's time,
    and how long the server's threads took to pass the call on. Single calls and their mean agree with the server's clock."""
    server = start(GrpcServer(runtime))
    observer = start(Observer("--http", "--samples", "100000", ports=[server.port]))
    asked = ((1, 200), (5, 60), (50, 12))
    drivers = [call(server, "Wait", f"--body={milliseconds}ms", connections=1, count=calls, observer=observer)
               for milliseconds, calls in asked]
    observer.stop()
    served, waited, entry = server.served(), server.waited(), service(observer.summary(), server.port)
    assert served["Wait"] == len(waited) == 272 and timed(entry, 272)
    places, services = by_exchange(entry), entry["samples"]["stages"]["service"]
    for driver, (milliseconds, calls) in zip(drivers, asked):
        truth = [one for one in waited if one.port == waited[0].port]
        waited = waited[calls:]
        seen = [services[places[one.port, index]] for index, one in enumerate(truth)]
        joined = driver.document["joined"]
        assert joined["joined"] == len(truth) == calls and joined["sum"]["stages"]["service"] == sum(seen)
        assert min(seen) >= milliseconds * MS
        with timing():
            near = [one.handler <= ns and one.least - 20 * US <= ns <= one.most + max(20 * US, one.most // 100)
                    for one, ns in zip(truth, seen)]
            assert sum(near) >= 0.9 * calls, list(zip(truth, seen))
        for part in (statistics.fmean, statistics.median):
            assert lies_within(part(seen), part(one.least for one in truth), part(one.most for one in truth))


@needs_grpc("go")
def test_in_tls_the_driver_counts_the_same(start):
    """The observer does not look into Go's TLS. It says so, and how many connections those are."""
    pki = start(Pki())
    server = start(GrpcServer("go", *pki.issue("server", "IP:127.0.0.1")))
    observer = start(Observer("--http", ports=[server.port]))
    drivers = [call(server, method, "--streams=3", "--ca", pki.ca, *options, connections=2, count=calls)
               for method, calls, options, *_ in CALLS]
    observer.stop()
    served, entry = server.served(), service(observer.summary(), server.port)
    assert [driver.result["grpc"]["ok"] for driver in drivers] == [calls for _, calls, *_ in CALLS]
    assert {name: served[name] for name in ("Echo", "Collect read", "Serve sent", "Talk sent")} == \
        {"Echo": 90, "Collect read": 1000, "Serve sent": 516, "Talk sent": 240}
    assert entry["losses"]["multiplexed"] == entry["accepted"] == 10 and not entry["exchanges"]
