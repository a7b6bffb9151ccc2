# SPDX-License-Identifier: MIT
"""Arrivals at a rate, and latency that a stalled server cannot hide."""
import csv
import os
import signal
import sys
import threading
import time

import pytest

from support import documents
from support.net import free_port
from support.process import Process, cpu_seconds, run, wait_until
from support.programs import DRIVER, Driver, Lab, Nginx
from support.timing import in_quiet, timing


def stall(pids, after, seconds):
    time.sleep(after)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("arrival", ["constant", pytest.param("poisson", marks=pytest.mark.long)])
@in_quiet
def test_stall_is_seen(start, arrival):
    """A stall of 0.5 s in 3 s delays a sixth of the requests by up to 0.5 s. So p90 is 0.2 s and p99 0.47 s. A tool
    that counts from the actual send reports some milliseconds for both."""
    nginx = start(Nginx())
    thread = threading.Thread(target=stall, args=(nginx.workers(), 1, 0.5))
    thread.start()
    driver = Driver(nginx.url, "--rate", "5000", "--arrival", arrival, connections=64,
                    duration="3s")
    thread.join()
    result = driver.result

    assert 0.15e9 < result["response_time"]["p90_ns"]
    assert 0.42e9 < result["response_time"]["p99_ns"]
    with timing():  # on a busy machine the server is continued late
        assert result["response_time"]["p90_ns"] < 0.33e9
        assert result["response_time"]["p99_ns"] < 0.56e9
        assert result["round_trip"]["p90_ns"] < 0.1e9
    assert result["response_time"]["count"] == result["requests"] == nginx.status()["requests"]
    assert abs(result["requests"] - 15000) < (100 if arrival == "constant" else 600)
    assert result["arrival"] == arrival
    assert result["rate"] == 5000
    assert "response time" in driver.report
    # The server's stall is not the driver's fault, even if a busy machine makes the driver late by some milliseconds.
    assert not result["limited"] or result["limited"]["by"] != "schedule", result["limited"]


@in_quiet
def test_the_drivers_own_absence_is_its_delay(start, tmp_path):
    """The driver is stopped for 0.5 s of 2 s. A quarter of the requests is late because of the driver alone,
    however many connections it has, and the report says so."""
    nginx = start(Nginx())
    path = tmp_path / "run.json"
    driver = start(Process([DRIVER, nginx.url, "--rate", "1000", "-c", "4", "-d", "2s", "--json", path]))
    wait_until(lambda: nginx.status()["requests"])  # its program may first have to be read from disk
    stall([driver.pid], 0.5, 0.5)
    driver.wait(30)
    result = documents.load(path)["driver"]
    delay = result["schedule_delay"]
    late = 0.5 * 0.5 * 1000 / 2  # the sum in seconds, falling from 0.5 s to 0
    with timing():
        assert delay["p99_ns"] > 100e6
        assert 0.8 * late < delay["sum_ns"] / 1e9 < 1.3 * late
    assert result["limited"]["by"] == "schedule"


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_rate_is_kept(start, threads):
    nginx = start(Nginx())
    result = Driver(nginx.url, "--rate=4k", connections=10, threads=threads,
                    duration="1s").result

    assert result["duration_ns"] == 1_000_000_000
    assert result["scheduled"] == 4000
    assert result["connects"] == 10  # used in turn
    assert result["schedule_delay"]["count"] == result["requests"]
    assert result["scheduled"] == result["requests"] + result["unsent"]
    # Two of three requests leave promptly even on a busy machine; with a millisecond timer they would not.
    assert result["schedule_delay"]["p50_ns"] < 500_000


@pytest.mark.parametrize("threads", [1, 2])
def test_a_driver_that_sleeps_through_the_end(start, threads):
    """Each request due before the phase's end is accounted for: sent, however late, or reported."""
    nginx = start(Nginx())
    driver = start(Process([DRIVER, nginx.url, "--rate=1000", "-c10", f"-t{threads}", "-d600ms", "--json=-"]))
    wait_until(lambda: nginx.status()["requests"])
    stall([driver.pid], 0.4, 0.5)
    assert driver.wait() == 0
    result = documents.parse(driver.stdout)["driver"]

    assert result["duration_ns"] == 600_000_000
    assert result["scheduled"] == result["requests"] + result["unsent"] == 600
    assert result["schedule_delay"]["count"] == result["requests"] == nginx.status()["requests"]


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_rate_of_slow_responses(start, tmp_path, threads):
    """The phase ends amid responses; still the rate is the one that follows from the server's own clock."""
    lab = start(Lab("--service", "300ms", "--truth", tmp_path / "truth.csv"))
    driver = Driver(lab.url, f"--threads={threads}", connections=4, duration="1s")
    lab.stop()
    with open(tmp_path / "truth.csv", encoding="ascii") as file:
        truth = [int(row["last_write_end_ns"]) - int(row["first_read_end_ns"]) for row in csv.DictReader(file)]
    result = driver.result

    assert result["duration_ns"] == 1_000_000_000
    assert result["requests"] == len(truth) == 16
    assert sum(interval["requests"] for interval in result["intervals"]) == 12
    assert abs(result["requests"] - result["drained"] - 4e9 / (sum(truth) / len(truth))) <= 1
    assert "not all of them in the rate" in " ".join(driver.report.split())


def took(times, least_ns):
    """Return how many are in a bucket that begins there or later."""
    return sum(count for index, count in times["buckets"] if (64 + index % 64) << (index // 64 - 1) >= least_ns)


@pytest.mark.alone
def test_one_in_fifty_is_slow(start):
    """The slow ones neither extend the phase nor lower the rate of the others. The last of these is due 20 ms before the
    end. On a busy machine its response may take longer."""
    lab = start(Lab("--service", "1s", "--one-in", "50"))
    result = Driver(lab.url, "--rate=100", connections=20, duration="1s").result

    assert result["duration_ns"] == 1_000_000_000
    assert len(result["intervals"]) == 1
    assert result["scheduled"] == result["requests"] == 100
    late = took(result["response_time"], 19e6) - took(result["round_trip"], 0.9e9)
    assert took(result["round_trip"], 0.9e9) == 2
    assert result["intervals"][0]["requests"] == 100 - result["drained"]
    assert 98 - late <= result["intervals"][0]["requests"] <= 98


def test_refused_at_first(start):
    """Nothing listens for the first half: the phase is just as long."""
    port = free_port()
    driver = start(Process([DRIVER, f"http://127.0.0.1:{port}/", "-c4", "--rate=100", "-d2s", "--keep-trying",
                            "--json=-"]))
    time.sleep(1)
    start(Lab("--listen", f"127.0.0.1:{port}"))
    assert driver.wait() == 1
    result = documents.parse(driver.stdout)["driver"]

    assert result["duration_ns"] == 2_000_000_000
    assert result["scheduled"] == 200
    assert 0 < result["requests"] < 150
    (failure,) = result["failures"]
    assert failure["kind"] == "refused"
    assert failure["last_ns"] < result["duration_ns"]


@pytest.mark.alone
def test_count_at_a_rate(start):
    nginx = start(Nginx())
    result = Driver(nginx.url, "--rate=1000", connections=4, threads=2, count=500).result

    assert result["requests"] == nginx.status()["requests"] == 500
    assert 0.45e9 < result["duration_ns"] < 0.8e9


@pytest.mark.alone
def test_queued_requests_keep_their_intended_start(start):
    """One connection and 10 ms of service at 200 requests/s: half can be sent, and the last of them waited for
    half of the run. The rest are counted as unsent, without a time."""
    lab = start(Lab("--service", "10ms"))
    result = Driver(lab.url, "--rate=200", connections=1, duration="1s").result

    assert 75 < result["requests"] <= 100
    assert abs(result["scheduled"] - 200) <= 5
    assert result["unsent"] == result["scheduled"] - result["requests"]
    assert 0.4e9 < result["response_time"]["max_ns"] < 0.75e9
    assert result["round_trip"]["p50_ns"] < 30e6
    # The server causes the queue, so the driver has no delay.
    assert result["schedule_delay"]["p90_ns"] < 1e6


@pytest.mark.alone
def test_think_time(start):
    nginx = start(Nginx())
    result = Driver(nginx.url, "--think=20ms", connections=20, duration="1s").result
    assert 750 < result["requests"] <= 1020
    assert result["think_ns"] == 20_000_000
    assert result["response_time"]["count"] == 0

    result = Driver(nginx.url, "--think=20ms", "--think-distribution=exponential", connections=20,
                    duration="1s").result
    assert 750 < result["requests"] < 1250


def test_warm_up_and_cool_down_are_not_counted(start):
    nginx = start(Nginx())
    begin = time.monotonic()
    result = Driver(nginx.url, "--rate=1000", "--warmup=500ms", "--cool-down=700ms", connections=4,
                    count=500).result

    assert time.monotonic() - begin > 1.6
    assert result["requests"] == 500
    assert result["cooldown_ns"] == 700_000_000
    assert 1500 < nginx.status()["requests"] <= 1720


@in_quiet
def test_null_engine_is_limited_by_its_cpu():
    """Without a server the driver is always the bottleneck, whether it runs or waits for a CPU. It does not
    know of time that a hypervisor takes."""
    driver = Driver("null://", connections=1, duration="500ms")
    with timing():
        assert driver.result["limited"] and driver.result["limited"]["by"] == "cpu"
    assert driver.report.splitlines()[0].startswith("LIMITED BY THE DRIVER")


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_waiting_for_a_cpu_is_told(start, threads):
    """A program spins on the driver's only CPU: the driver waits for the time that it takes."""
    cpu = min(os.sched_getaffinity(0))
    spinning = start(Process(["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]))
    before = cpu_seconds(spinning.pid)
    process = run(["taskset", "-c", cpu, DRIVER, "null://", "-c", threads, "-d", "1s",
                   f"--threads={threads}", "--json", "-"])
    taken = cpu_seconds(spinning.pid) - before
    result = documents.parse(process.stdout)["driver"]
    used = (result["cpu_user_ns"] + result["cpu_system_ns"]) / 1e9
    waited = result["cpu_wait_ns"] / 1e9
    assert waited > 0.7 * taken > 0.1
    assert used + waited > 0.95 * threads * result["duration_ns"] / 1e9
    assert result["limited"]["by"] == "cpu"
    assert "others had the CPU" in result["limited"]["why"]


@pytest.mark.alone
@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.long), 2])
def test_rate_follows_its_shape(start, threads):
    """A ramp from 0, a pause, a step: the server's count in each part is the rate's integral."""
    nginx = start(Nginx())
    result = Driver(nginx.url, "--rate=0..1600:1s,0:500ms,400", "--interval=500ms", "--warmup=100ms",
                    f"--threads={threads}", connections=8, duration="2500ms").result
    assert abs(result["scheduled"] - 1200) <= 2
    assert nginx.status()["requests"] >= result["requests"]
    counts = [entry["requests"] for entry in result["intervals"]][:5]
    for count, wanted in zip(counts, [200, 600, 0, 200, 200]):
        assert abs(count - wanted) <= 60, counts
    assert result["arrival"] == "constant along 0..1600:1s,0:500ms,400"
    assert result["rate"] == 480
