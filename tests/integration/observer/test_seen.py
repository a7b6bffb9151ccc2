# SPDX-License-Identifier: MIT
"""Does a tracing program run for every event? docs/kernels.md lists the kernels on which it does not.

sojourn-seen counts packets twice. One program is in their path, so no packet passes without it; the other is on
a tracepoint after it. In a sandbox's kernel the second does not run for packets that interrupt the sandbox's
first process. On other kernels it runs for all.
"""
import re

import pytest

from support import BUILD
from support.net import Netns, veth
from support.process import Process
from support.programs import Driver, Lab

SEEN = BUILD / "tests" / "seen" / "sojourn-seen"
FIRST = 1  # the process that the kernel starts


@pytest.fixture(name="pair")
def pair_fixture():
    with Netns("server") as server, Netns("client") as client:
        veth(server, client)
        # A queued packet leaves when a timer fires, whichever process has the CPU then.
        server.exec(["tc", "qdisc", "replace", "dev", "veth0", "root", "tbf", "rate", "200mbit",
                     "burst", "20kb", "latency", "2s"])
        yield server, client


def test_every_packet_or_none(pair):
    server, client = pair
    with Process([SEEN, "veth0"], netns=client) as seen, \
            Lab(address="10.200.0.1", netns=server) as lab:
        seen.wait_for("^counting$")
        Driver(f"{lab.url}?size=1000000", connections=4, count=60, netns=client)
        assert seen.stop() == 0
        text = seen.stdout
    tasks = {int(pid): (int(passed), int(traced)) for pid, passed, traced in
             re.findall(r"^(\d+) (\d+) (\d+)$", text, re.MULTILINE)}
    skipped = {pid for pid, (passed, traced) in tasks.items() if passed and not traced}
    assert sum(passed for passed, _ in tasks.values()) > 10_000
    assert re.search(r"^misses 0$", text, re.MULTILINE), "a recursion miss is another reason"
    assert {pid: counts for pid, counts in tasks.items()
            if pid not in skipped and counts[0] != counts[1]} == {}
    assert skipped <= {FIRST}
