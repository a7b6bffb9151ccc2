# SPDX-License-Identifier: MIT
"""Drivers that start together, at a time or on a signal, and not before."""
import os
import signal
import time
from datetime import datetime, timezone

import pytest

from support import documents
from support.net import free_port
from support.process import Process, run
from support.programs import DRIVER, OBSERVER, Nginx


def drive(start, nginx, path, *options):
    return start(Process([DRIVER, nginx.url, "-c4", "-n400", "--quiet", "--json", path, *options]))


def result(driver, path):
    assert driver.wait(seconds=20) == 0, driver.stderr
    return documents.load(path)["driver"]


@pytest.mark.alone
@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.long), ("--rate=2000",),
                                     ("--threads=2",)])
def test_two_drivers_start_at_a_time(start, tmp_path, options):
    """Neither sends before; at a rate both start at that very time; their documents add up."""
    nginx = start(Nginx())
    at = time.time() + 1
    written = [f"{at:.6f}", datetime.fromtimestamp(at, timezone.utc).isoformat()]
    paths = [tmp_path / f"{index}.json" for index in range(2)]
    drivers = [drive(start, nginx, path, "--start-at", text, *options)
               for path, text in zip(paths, written)]
    time.sleep(max(0, at - 0.4 - time.time()))
    seen = nginx.status()["requests"]
    assert time.time() > at or seen == 0
    results = [result(driver, path) for driver, path in zip(drivers, paths)]

    assert nginx.status()["requests"] == 800
    for each in results:
        assert -0.001e9 < each["begin_ns"] - at * 1e9 < 1e9
        if options == ("--rate=2000",):
            assert abs(each["begin_ns"] - at * 1e9) < 0.001e9
    merged = documents.parse(run([OBSERVER, "report", "--json", "-", *paths]).stdout)["driver"]
    assert merged["requests"] == 800
    assert sum(entry["requests"] for entry in merged["intervals"]) == 800
    assert merged["processes"] == sum(each["processes"] for each in results)
    assert merged["round_trip"]["sum_ns"] == sum(each["round_trip"]["sum_ns"] for each in results)
    assert merged["round_trip"]["max_ns"] == max(each["round_trip"]["max_ns"] for each in results)


def test_time_that_has_passed(start, tmp_path):
    nginx = start(Nginx())
    driver = drive(start, nginx, tmp_path / "run.json", "--start-at", f"{time.time() - 5:.0f}")
    assert driver.wait(seconds=20) == 1
    assert "--start-at: that time passed" in driver.stderr
    assert nginx.status()["requests"] == 0


def test_waits_for_a_file(start, tmp_path):
    nginx = start(Nginx())
    flag, path = tmp_path / "green", tmp_path / "run.json"
    driver = drive(start, nginx, path, "--wait-for", flag)
    time.sleep(0.5)
    assert driver.running() and nginx.status()["requests"] == 0
    flag.touch()
    assert result(driver, path)["requests"] == nginx.status()["requests"] == 400


def test_waits_for_a_descriptor(start, tmp_path):
    """All holders of one pipe's reading end start when the writer closes it."""
    nginx = start(Nginx())
    fifo, paths = tmp_path / "green", [tmp_path / "0.json", tmp_path / "1.json"]
    os.mkfifo(fifo)
    holder = os.open(fifo, os.O_RDWR)
    try:
        drivers = [start(Process(["sh", "-c", f'exec "$0" "$@" 3<{fifo}', DRIVER, nginx.url, "-c4",
                                  "-n400", "--quiet", "--json", path, "--wait-for=fd:3"]))
                   for path in paths]
        time.sleep(0.5)
        assert all(driver.running() for driver in drivers) and nginx.status()["requests"] == 0
    finally:
        os.close(holder)
    assert [result(*pair)["requests"] for pair in zip(drivers, paths)] == [400, 400]


def test_waits_for_a_url(start, tmp_path):
    """A server that does not run yet is waited for."""
    nginx, path, port = start(Nginx()), tmp_path / "run.json", free_port()
    driver = drive(start, nginx, path, "--wait-for", f"http://127.0.0.1:{port}/")
    time.sleep(0.5)
    assert driver.running() and nginx.status()["requests"] == 0
    start(Nginx(port=port))
    assert result(driver, path)["requests"] == 400


@pytest.mark.parametrize("options", [("--start-at", "4000000000"), ("--wait-for", "/nowhere/at/all")])
def test_interrupted_while_waiting(start, tmp_path, options):
    nginx = start(Nginx())
    driver = drive(start, nginx, tmp_path / "run.json", *options)
    time.sleep(0.3)
    os.kill(driver.pid, signal.SIGINT)
    assert driver.wait(seconds=10) == 1
    assert "interrupted before the start" in driver.stderr
    assert nginx.status()["requests"] == 0


@pytest.mark.parametrize("option, text", [("--start-at=soon", "seconds since 1970"),
                                          ("--wait-for=fd:x", "write it like fd:3"),
                                          ("--wait-for=fd:77", "is not open")])
def test_refusals(option, text):
    refused = run([DRIVER, "http://127.0.0.1:1/", option], check=False)
    assert refused.status == 2 and text in refused.stderr
