# SPDX-License-Identifier: MIT
"""A front with --calls, and its upstream on another host with an observer of its own. The front's service divides into its own
time, the upstream's, and the time between both. The truth are the path's rate and the times that the lab server is asked for."""
import re

import pytest

from support.documents import service
from support.net import Host, veth
from support.programs import Driver, Lab, Observer
from support.timing import MS, in_quiet, lies_within

from .test_far_upstreams import report
from .test_upstreams import KEEP, Front, means

COUNT = 100
UNITS = {"ns": 1, "µs": 1000, "ms": MS, "s": 1000 * MS}
REST = re.compile(r"calls of ([\d.]+) (\S+) per request\. ([\d.]+) (\S+) are its own, and ([\d.]+) (\S+) passed between both")
SLOW = 18 * MS  # 25,000 bytes at 10 Mbit/s, of which 5 kB pass at once


def observe(start, host, port, *options):
    return start(Observer(*options, "--listen", f"{host.address}:0", "--open", ports=[port], netns=host))


@pytest.mark.parametrize("slow", [True, False])
@in_quiet
def test_the_network_between_both(start, slow):
    """Requests of 25,000 bytes take their time where the path is slow. Own time, the upstream's and the rest sum to service."""
    with Host("front", "10.205.0.1") as ahead, Host("behind", "10.205.0.2") as behind:
        veth(ahead, behind, (f"{ahead.address}/24", f"{behind.address}/24"))
        if slow:
            ahead.exec(["tc", "qdisc", "replace", "dev", "veth0", "root", "tbf", "rate", "10mbit", "burst", "5kb", "latency", "2s"])
        lab = start(Lab("--service", "5ms", address=behind.address, netns=behind))
        front = start(Front({"call": KEEP % f"{lab.address}:{lab.port}" + "client_body_buffer_size 64k;"}, host=ahead))
        observers = [observe(start, ahead, front.port, "--calls"), observe(start, behind, lab.port)]
        Driver(front.url + "call", "--body", "b" * (25_000 if slow else 10), connections=1, count=COUNT, netns=ahead)
        for observer in observers:
            observer.stop()
        said, entry = report(*(one.json for one in observers)), service(observers[0].summary(), front.port)
    row, = entry["timed_calls"]
    assert row["calls"] == COUNT
    found = REST.search(said)
    assert found, said
    upstream_ns, own_ns, between_ns = (float(found[at]) * UNITS[found[at + 1]] for at in (1, 3, 5))
    lies_within(upstream_ns + own_ns + between_ns, means(entry, "service") * 0.99, means(entry, "service") * 1.01)
    lies_within(upstream_ns, 5 * MS, 6 * MS)
    lies_within(between_ns, *((SLOW - 5 * MS, SLOW + 5 * MS) if slow else (0, 2 * MS)))
