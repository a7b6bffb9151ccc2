# SPDX-License-Identifier: MIT
"""Proxies with HTTP/2 in front (--http, --tls), against their own logs and clocks: haproxy and Envoy. They pass requests on in
HTTP/1.1, and gRPC.

tools/mutate: "a stream's service is 3 % too long", "a write in TLS ends with its call".
"""
import collections
import statistics
from typing import NamedTuple

import pytest

from support.conditions import needs_program
from support.documents import service
from support.foreign.grpc import GrpcServer, needs_grpc
from support.foreign.proxies import Envoy, Haproxy, needs_envoy, needs_haproxy
from support.packets import Packets
from support.pki import Pki
from support.process import run
from support.programs import Driver, Lab, Nginx, Observer
from support.timing import MS, in_quiet, lies_within
from .test_grpc import of_grpc
from .test_grpc_kinds import CALLS, kind_of, kinds, messages
from .test_http2 import followed, timed
from .test_stages import truth_of
from .test_statuses import counted
from .test_truth import by_exchange

BOTH = [pytest.param(Haproxy, marks=needs_haproxy), pytest.param(Envoy, marks=needs_envoy)]


def patient(start):
    """Return an nginx that reads the body at /b before it answers. A proxy that has a whole answer resets a stream whose
    request is not whole, and curl fails."""
    lab = start(Lab())
    return start(Nginx(server=f"location /b {{ proxy_pass {lab.url}; }}"))


def asked_by_all(url, tls=()):
    """Return how many requests h2load, nghttp, curl and our driver have sent."""
    run(["h2load", "-n", 600, "-c", 3, "-m", 20, url, f"{url}missing"])
    run(["nghttp", "-n", f"{url}a", f"{url}missing"])
    version = ["--insecure", "--http2"] if tls else ["--http2-prior-knowledge"]
    run(["curl", "--silent", *version, "--data", "a" * 30000, f"{url}b"])
    for _ in range(2):
        run(["curl", "--silent", *version, f"{url}gone"])
    scheme = "h2" if tls else "h2c"
    driver = Driver(url.replace(url.split(":")[0], scheme) + "c", *tls, "--streams=8", connections=2, count=300)
    assert driver.result["status"]["2xx"] == 300
    return 600 + 2 + 3 + 300


@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
@needs_program("nginx")
@needs_grpc("go")
@pytest.mark.parametrize("kind", BOTH)
def test_a_proxy_logs_the_same(start, kind):
    """Streams, statuses and messages in front, by the proxy's log; the requests behind, by nginx's count."""
    calls = start(GrpcServer("go"))
    nginx = patient(start)
    proxy = start(kind(nginx.port, calls.port))
    observer = start(Observer("--route", "/test.Service/*", ports=[proxy.port, nginx.port, calls.port]))
    count = asked_by_all(f"http://127.0.0.1:{proxy.port}/")
    truth, drivers = collections.Counter(), []
    for method, number, options, asked, replies in CALLS:
        drivers.append(Driver(f"h2c://127.0.0.1:{proxy.port}/test.Service/{method}", "--grpc", "--streams=3", *options,
                              connections=2, count=number))
        truth[kind_of(asked, replies, True)] += number
    log = proxy.log(count + truth.total())
    observer.stop()
    calls.stop()
    front, plain, behind = (service(observer.summary(), port) for port in (proxy.port, nginx.port, calls.port))
    statuses = collections.Counter(one.status for one in log)
    assert statuses == {200: statuses[200], 404: 301, 503: 2} and statuses.total() == count + truth.total()
    assert front["exchanges"] == front["http2"]["streams"] == statuses.total()
    assert counted(front) == statuses
    assert {route["route"]: route["count"] for route in front["routes"]["list"]} == \
        {"/test.Service/*": truth.total(), "other": count}
    assert plain["exchanges"] == nginx.status()["requests"] == count - 301 - 2
    assert behind["http2"]["streams"] == truth.total()
    sums = tuple(sum(driver.result[f"messages_{way}"] for driver in drivers) for way in ("sent", "received"))
    for entry in (front, behind):
        assert of_grpc(entry) == {"ok": truth.total()}
        assert kinds(entry) == truth and messages(entry) == sums


class Exchange(NamedTuple):
    """Times of a stream, in ns."""

    queue: int
    service: int
    logged: int  # by the proxy's clock
    behind: int  # service of the server that is asked
    wire: int  # from the arrival of the request's packet to the departure of the response's


def exchanges_in_order(front, log, rows, packets):
    """Return an Exchange for each line of the log. There was one at a time."""
    places, stages, numbers = by_exchange(front), front["samples"]["stages"], collections.Counter()
    arrivals, departures, exchanges = packets.arrivals(), packets.departures(), []
    for one, row in zip(log, rows):
        place = places[one.port, numbers[one.port]]
        numbers[one.port] += 1
        came = [packet.at_ns for packet in arrivals[one.port] if packet.at_ns < row["last_read_end_ns"]][-1]
        left = next(packet.at_ns for packet in departures[one.port] if packet.at_ns > row["first_write_begin_ns"])
        exchanges.append(Exchange(stages["socket_queue"][place], stages["service"][place], one.ns,
                                  row["first_write_begin_ns"] - row["last_read_end_ns"], left - came))
    return exchanges


@pytest.mark.parametrize("kind, tls", [pytest.param(Haproxy, False, marks=needs_haproxy),
                                       pytest.param(Haproxy, True, marks=needs_haproxy),
                                       pytest.param(Envoy, False, marks=[needs_envoy, pytest.mark.long])])
@in_quiet
def test_times_are_those_of_the_proxys_clock(start, tmp_path, kind, tls):
    """The server behind waits 1, 5 and 50 ms. No service of the proxy is shorter than that server's, by its clock. It is the
    time by the proxy's clock, and until the proxy's loop has read and written: no longer than by the packets."""
    lab = start(Lab("--truth", tmp_path / "truth.csv"))
    proxy = start(kind(lab.port, 1, *([start(Pki()).issue("server", "IP:127.0.0.1")] if tls else [])))
    port, scheme, options = (proxy.tls_port, "h2", ["--insecure"]) if tls else (proxy.port, "h2c", [])
    observer = start(Observer("--tls" if tls else "--http", "--samples", "100000", ports=[port, lab.port]))
    asked = ((1, 200), (5, 60), (50, 12))
    with Packets(port) as packets:
        drivers = [Driver(f"{scheme}://127.0.0.1:{port}/?service={milliseconds}ms", *options, connections=1, count=count,
                          observer=observer) for milliseconds, count in asked]
    log = proxy.log(272)
    observer.stop()
    front, behind = (service(observer.summary(), port) for port in (port, lab.port))
    rows = truth_of(lab, tmp_path / "truth.csv")
    assert len(log) == len(rows) == behind["exchanges"] == 272 and timed(front, 272)
    seen = exchanges_in_order(front, log, rows, packets)
    for driver, (milliseconds, count) in zip(drivers, asked):
        those, seen = seen[:count], seen[count:]
        assert driver.document["joined"]["joined"] == count
        assert driver.document["joined"]["sum"]["stages"]["service"] == sum(one.service for one in those)
        assert all(milliseconds * MS <= one.behind < one.service for one in those)
        for part in (statistics.fmean, statistics.median):
            assert lies_within(part(one.service for one in those), part(one.logged for one in those),
                               part(one.wire - one.queue for one in those))


@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
@needs_program("nginx")
@needs_grpc("go")
@needs_haproxy
def test_in_tls(start):
    """haproxy gives OpenSSL a source and a sink of its own."""
    pki, calls, nginx = start(Pki()), start(GrpcServer("go")), patient(start)
    proxy = start(Haproxy(nginx.port, calls.port, pki.issue("server", "IP:127.0.0.1")))
    observer = start(Observer("--tls", "--route", "/missing", ports=[proxy.tls_port]))
    url = f"https://127.0.0.1:{proxy.tls_port}/"
    count = asked_by_all(url, ["--insecure"])
    called = Driver(f"{url.replace('https', 'h2')}test.Service/Talk", "--insecure", "--grpc", "--body=x", "--streams=3",
                    "--grpc-messages=7", "--grpc-replies=any", connections=2, count=50)
    log = proxy.log(count + 50)
    observer.stop()
    entry = service(observer.summary(), proxy.tls_port)
    assert counted(entry) == collections.Counter(one.status for one in log)
    assert followed(entry, count + 50)
    assert of_grpc(entry) == {"ok": 50} and messages(entry) == (350, 350) == (
        called.result["messages_sent"], called.result["messages_received"])
