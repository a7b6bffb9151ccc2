# SPDX-License-Identifier: MIT
"""A load shared by threads: counted as one, with more descriptors than one table may hold."""
import os
import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from support import documents
from support.process import Process, run, wait_until
from support.programs import DRIVER, Driver, Lab, Nginx


def descriptors(pid):
    """Return how many the tables of a process's threads hold, copies included; 0 if the process is ending."""
    try:
        return sum(len(list(task.glob("fd/*"))) for task in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


@pytest.mark.parametrize("options", [(), ("--new-connections",)])
def test_count_is_exact(start, options):
    nginx = start(Nginx(workers=2))
    result = Driver(nginx.url, "--threads=3", *options, connections=20, count=10007).result
    status = nginx.status()

    assert result["requests"] == status["requests"] == 10007
    assert result["connects"] == status["accepts"]
    assert result["round_trip"]["count"] == 10007
    assert sum(entry["requests"] for entry in result["intervals"]) == 10007
    assert (result["processes"], result["threads"]) == (1, 3)
    if "--new-connections" not in options:
        assert result["connects"] == 20


def test_rate_is_shared(start):
    """The threads share one schedule of arrivals; with one each, the rate would double."""
    nginx = start(Nginx())
    result = Driver(nginx.url, "--rate=1000", "--warmup=200ms", "--threads=2", connections=8,
                    duration="2s").result
    assert abs(result["scheduled"] - 2000) < 60
    assert result["scheduled"] == result["requests"] + result["unsent"]


def test_more_connections_than_descriptors(start):
    """A number beyond one table of descriptors is refused, with the number of threads that it needs."""
    nginx = start(Nginx())
    command = shlex.join([str(DRIVER), nginx.url, "-c150", "-n3000"])
    refused = run(["sh", "-c", f"ulimit -n 128; {command}"], check=False)
    remedy = re.search(r"--threads=\d+", refused.stderr)
    assert refused.status != 0 and nginx.status()["accepts"] == 0
    assert remedy, refused.stderr

    run(["sh", "-c", f"ulimit -n 128; {command} {remedy[0]}"])
    assert nginx.status()["accepts"] == 150
    assert nginx.status()["requests"] == 3000


@pytest.mark.long
def test_twenty_thousand_sockets_and_more(start, tmp_path):
    """24,000 connections, all open at the end, with at most 13,000 per table of descriptors."""
    lab = start(Lab("--service", "4s", "--workers", "4", "--backlog", "4096", model="prefork"))
    path = tmp_path / "run.json"
    command = shlex.join([str(DRIVER), lab.url, "-c24000", "-d7s", "--threads=2", "--quiet",
                          "--connect-rate=8000", "--timeout=30s", "--json", str(path)])
    driver = start(Process(["sh", "-c", f"ulimit -n 13000; exec {command}"]))
    most = 0
    while driver.running():
        most = max(most, descriptors(driver.pid))
        time.sleep(0.2)
    result = documents.load(path)["driver"]
    assert (result["connects"], sum(result["errors"].values())) == (24000, 0)
    assert result["requests"] >= 24000
    assert most > 24000


def test_interrupted(start, tmp_path):
    """The result covers all threads, up to the signal."""
    nginx = start(Nginx())
    path = tmp_path / "run.json"
    driver = start(Process([DRIVER, nginx.url, "-c9", "--threads=3", "-d60s", "--json", path]))
    wait_until(lambda: nginx.status()["requests"] > 1000)
    os.kill(driver.pid, signal.SIGINT)

    assert driver.wait(seconds=20) == 0
    result = documents.load(path)["driver"]
    assert result["requests"] == nginx.status()["requests"]
    assert result["duration_ns"] < 50e9


@pytest.mark.parametrize("threads", [1, 2])
def test_stall_is_in_its_interval(start, threads):
    """0.8 s without a response amid 3 s: these intervals, and no others, are empty."""
    nginx = start(Nginx())
    driver = start(Process([DRIVER, nginx.url, "-c4", "-d3s", f"--threads={threads}",
                            "--interval=200ms", "--json=-"]))
    wait_until(lambda: nginx.status()["requests"] > 10)
    time.sleep(1)
    (worker,) = nginx.workers()
    os.kill(worker, signal.SIGSTOP)
    try:
        time.sleep(0.8)
    finally:
        os.kill(worker, signal.SIGCONT)
    assert driver.wait() == 0
    result = documents.parse(driver.stdout)["driver"]
    counts = [entry["requests"] for entry in result["intervals"]]

    empty = [index for index, count in enumerate(counts) if count == 0]
    assert 2 <= len(empty) <= 5, counts
    assert empty == list(range(empty[0], empty[-1] + 1)), counts
    assert 3 <= empty[0] <= 9, counts
    # The requests that waited for the server end in the following interval.
    slow = [(entry["latency"]["max_ns"] or 0) > 0.5e9 for entry in result["intervals"]]
    assert slow.index(True) == empty[-1] + 1 and sum(slow) == 1
    # Requests in flight at the end are in no interval.
    assert 0 <= result["requests"] - sum(counts) <= 4
    assert [entry["begin_ns"] for entry in result["intervals"]] == [
        index * 200_000_000 for index in range(len(counts))]
