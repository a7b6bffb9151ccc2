# SPDX-License-Identifier: MIT
"""Slow balancer or slow backend, for the slow requests of nginx in front. The truth are the times in nginx's own log, in ms.
The backend delays the requests that ask for it."""
import re
import threading
from urllib.error import HTTPError

import pytest

from support.http import request
from support.process import wait_until
from support.programs import Lab, Observer
from support.timing import MS, Untimely, in_quiet

from .test_upstreams import Front, upstreams

COUNT = 200
HELD = "limit_req zone=slow burst=1000; proxy_pass http://127.0.0.1:{port};"
SLOWEST = re.compile(r"Of its slowest 1 % \((\d+) from (\S+) ms on\) ([\d.<]+) %(?: to ([\d.]+) %)? was the wait for sojourn-lab")


def at_once(url, count, meanwhile=lambda: None):
    threads = [threading.Thread(target=request, args=(url,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    meanwhile()
    for thread in threads:
        thread.join()


def observe(start, load, *options):
    """Return the row of the upstream after the load, (request, upstream) times of nginx's log, the slowest first, and the report."""
    lab = start(Lab())
    front = start(Front({"call": f"proxy_pass http://127.0.0.1:{lab.port};", "held": HELD.format(port=lab.port),
                        "late": f"proxy_read_timeout 20ms; proxy_pass http://127.0.0.1:{lab.port};"}))
    observer = start(Observer(*options, ports=[front.port, lab.port]))
    count = load(front.url)
    wait_until(lambda: len(front.log()) == count)
    observer.stop()
    logged = sorted(([float(word) * 1000 * MS for word in line.split()[:2]] for line in front.log()), reverse=True)
    return upstreams(observer.summary(), front.port)[lab.port], logged, re.sub(r"\s+", " ", observer.stdout)


def one_after_another(slow):
    """Return a load of COUNT requests, of which each hundredth is a slow one."""
    def load(url):
        for i in range(COUNT):
            request(url + (slow if i % 100 == 60 else "call?service=1ms"))
        return COUNT
    return load


def agree(nested, logged, asked_ns):
    """The wait is at least the asked delay. It is at most nginx's time of its upstream, where nginx may have waited for a CPU.
    Each time of nginx errs by 1 ms: it logs the ms that its clock shows at both ends."""
    slowest = nested["slowest"]
    few = logged[:slowest["count"]]
    whole, called, slack = sum(line[0] for line in few), sum(line[1] for line in few), 2 * MS * len(few)
    assert nested["reason"] is None and len(few) == max(1, len(logged) // 100)
    assert slowest["most_ns"] >= asked_ns * len(few)
    if abs(slowest["service_ns"] - whole) > slack or slowest["least_ns"] > called + slack:
        raise Untimely(f"{slowest} is not {few}")


@in_quiet
def test_the_backend_is_slow(start):
    row, logged, text = observe(start, one_after_another("call?service=50ms"))
    nested = row["nested"]
    agree(nested, logged, 50 * MS)
    assert nested["paired"] == COUNT and nested["outside"] == 0
    assert nested["upstream"]["sum_ns"] + nested["rest"]["sum_ns"] == nested["all"]["service_ns"]
    assert nested["upstream"]["max_ns"] >= 50 * MS > nested["upstream"]["p90_ns"]
    told = SLOWEST.search(text)
    assert told and int(told[1]) == 2 and float(told[2]) >= 50 and float(told[3]) > 90 and not told[4], text


@in_quiet
def test_the_balancer_is_slow(start):
    """Of requests at once nginx holds each back for 10 ms longer than the one before. The backend takes 1 ms for each."""
    def load(url):
        for i in range(COUNT):
            request(url + "call?service=1ms")
            if i % 100 == 60:
                at_once(url + "held?service=1ms", 7)
        return COUNT + 14

    row, logged, text = observe(start, load)
    agree(row["nested"], logged, MS)
    told = SLOWEST.search(text)
    assert told and float(told[2]) > 40, text
    if float(told[4] or told[3]) > 50:
        raise Untimely(f"the backend was slow, too: {logged[:2]}")


@in_quiet
def test_others_in_flight_are_ambiguous(start):
    """While nginx holds requests back, short ones are answered. Their calls may be of those: counted, and the bounds have the truth."""
    def load(url):
        at_once(url + "held?service=1ms", 20, lambda: [request(url + "call?service=5ms") for _ in range(20)])
        return 40

    row, logged, text = observe(start, load)
    nested, slowest = row["nested"], row["nested"]["slowest"]
    assert nested["reason"] is None and nested["alone"] == 0
    assert nested["ambiguous"] > 20 and nested["paired"] + nested["ambiguous"] == 40
    assert nested["upstream"]["count"] == nested["paired"]
    agree(nested, logged, MS)
    assert slowest["most_ns"] > 10 * slowest["least_ns"]
    told = SLOWEST.search(text)
    assert told and told[4] and "other requests were in flight" in text, text


@in_quiet
def test_a_slow_backend_in_spite_of_others(start):
    """Short requests are answered meanwhile. Their calls cannot be told from those of the slow one, and need not be."""
    def load(url):
        for _ in range(2):
            at_once(url + "call?service=100ms", 1, lambda: [request(url + "call?service=1ms") for _ in range(20)])
        for _ in range(COUNT - 42):
            request(url + "call?service=1ms")
        return COUNT

    row, logged, text = observe(start, load)
    nested = row["nested"]
    agree(nested, logged, 100 * MS)
    assert nested["ambiguous"] > 10 and nested["paired"] >= COUNT - 42
    told = SLOWEST.search(text)
    assert told and float(told[3]) > 90, text


@in_quiet
def test_a_call_that_nginx_gives_up(start):
    """The wait until the timeout is in no call's time to its end. It may be the upstream's, or nothing is said."""
    def load(url):
        for i in range(COUNT):
            if i == 60:
                with pytest.raises(HTTPError):
                    request(url + "late?service=60ms")
            else:
                request(url + "call?service=1ms")
        return COUNT

    row, logged, text = observe(start, load)
    nested = row["nested"]
    if nested["reason"]:
        assert nested["reason"] == "1 calls got no answer"
        assert "the slowest ones wait for sojourn-lab is not known" in text or "how long it waits is not known" in text
    else:
        assert nested["outside"] == nested["ambiguous"] == 1
        assert nested["slowest"]["most_ns"] >= sum(called for _, called in logged[:2]) - 4 * MS


def test_not_all_are_sampled(start):
    row, _, text = observe(start, one_after_another("call?service=50ms"), "--samples", 50)
    assert re.match(r"one of (4|8|16) exchanges is sampled", row["nested"]["reason"])
    assert row["nested"]["paired"] == row["nested"]["all"]["count"] == 0
    assert f"the slowest ones wait for sojourn-lab is not known: {row['nested']['reason']}" in text
