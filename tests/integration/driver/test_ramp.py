# SPDX-License-Identifier: MIT
"""Connections that change with time: their number is the server's own."""
import threading
import time

import pytest

from support.process import run
from support.programs import DRIVER, Driver, Nginx


class Watch:
    """Samples the server's number of connections: [(seconds since the start, number)]"""

    def __init__(self, nginx):
        self.nginx, self.seen, self.over = nginx, [], threading.Event()
        self.begin = time.monotonic()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self.over.wait(0.02):
            before = time.monotonic()
            self.seen.append((before - self.begin, self.nginx.status()["active"]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def numbers(self):
        """Return the numbers seen at least twice in a row, without repetitions: no transient ones."""
        kept = [now for (_, before), (_, now) in zip(self.seen, self.seen[1:]) if before == now]
        return [number for i, number in enumerate(kept) if not i or kept[i - 1] != number]


@pytest.mark.alone
@pytest.mark.parametrize("options", [pytest.param(("-t1",), marks=pytest.mark.long), ("-t3",),
                                     ("--think=5ms",), ("--warmup=300ms",)])
def test_steps_up_and_down(start, options):
    nginx = start(Nginx())
    for attempt in range(3):
        with Watch(nginx) as watch:
            driver = Driver(nginx.url, *options, connections="3:500ms,9:500ms,4:500ms")
            time.sleep(0.1)
        numbers = [number for number in watch.numbers() if number]
        if numbers == [3, 9, 4]:
            break
        assert attempt < 2, watch.seen
    assert driver.result["connections"] == 9
    assert driver.result["connects"] == (6 if "--warmup=300ms" in options else 9)
    assert abs(driver.result["duration_ns"] - 1.5e9) < 0.4e9
    assert driver.result["arrival"] == "closed, connections along 3:500ms,9:500ms,4:500ms"
    assert not sum(driver.result["errors"].values())
    assert driver.result["requests"] <= nginx.status()["requests"]


@pytest.mark.alone
def test_a_ramp_passes_every_number(start):
    nginx = start(Nginx())
    for attempt in range(3):
        with Watch(nginx) as watch:
            driver = Driver(nginx.url, connections="1..6", duration="1800ms")
        numbers = [number for number in watch.numbers() if number]
        if numbers == [1, 2, 3, 4, 5, 6]:
            break
        assert attempt < 2, watch.seen
    assert driver.result["connects"] == 6
    assert "connections along 1..6" in driver.report


def test_clients_of_a_scenario_go_with_it(start):
    """With two targets the connections to the second one follow the ramp, too."""
    servers = [start(Nginx()), start(Nginx())]
    for attempt in range(3):
        with Watch(servers[1]) as watch:
            Driver(servers[0].url, servers[1].url, connections="4,1", duration="1600ms")
        numbers = [number for number in watch.numbers() if number]
        if numbers == [4, 1]:
            break
        assert attempt < 2, watch.seen


def test_preflight_knows_the_largest(start):
    nginx = start(Nginx())
    refused = run(["prlimit", "--nofile=200:200", DRIVER, "-c", "1..500", "-d1s", nginx.url],
                  check=False)
    assert refused.status == 1 and "500 connections" in refused.stderr
    assert nginx.status()["requests"] == 0
