# SPDX-License-Identifier: MIT
"""Sweeps: a server with a known limit, one with none within reach, and the ends of a sweep."""
import os
import re
import signal
import sys
import threading
import time

import pytest

from support import documents
from support.process import Process, run, wait_until
from support.programs import DRIVER, OBSERVER, Lab, Nginx, Observer
from support.terminal import Terminal
from support.timing import in_quiet, timing

from ..observer.test_stages import truth_of


def sweep(url, path, *options, check=True):
    result = run([DRIVER, "sweep", url, "--json", path, "-d600ms", "--warmup=200ms", *options],
                 check=check, seconds=120)
    return result, documents.load(path) if path.exists() else None


def served(lab, path, found):
    """Return the server's own rates beyond the knee, in requests per second by its log: the least and the most of a step. Each
    step has connections of its own, none of which is older than the end of all before."""
    last, runs, clients = {}, [], []
    rows = sorted(truth_of(lab, path), key=lambda row: row["last_write_end_ns"])
    for row in rows:
        last[row["peer"]] = row["last_write_end_ns"]
    goes_on_ns = 0
    for row in rows:
        end_ns = row["last_write_end_ns"]
        if end_ns > goes_on_ns:
            runs.append([])
            clients.append(set())
        runs[-1].append(end_ns)
        clients[-1].add(row["peer"])
        goes_on_ns = max(goes_on_ns, last[row["peer"]])
    rates = [(len(run) - 1) / (run[-1] - run[0]) * 1e9 if len(run) > 10 else 0 for run in runs]
    beyond = sorted(rates)[-sum(step["load"] > 1.05 * found["knee"] for step in found["steps"]):]
    if found["over"] != "rate":  # then the load is the number of clients
        beyond = [rate for rate, own in zip(rates, clients) if len(own) > 1.05 * found["knee"]]
    return min(beyond), max(beyond)


@pytest.mark.alone
def test_knee_of_connections(start, tmp_path):
    """One loop of 5 ms per request, clients that think for 50 ms. By the operational laws the knee is at 11."""
    lab = start(Lab("--service", "5ms", "--block", "--truth", tmp_path / "truth.csv"))
    result, document = sweep(lab.url, tmp_path / "sweep.json", "--think=50ms", "-d400ms", "--warmup=100ms",
                             "--ladder=2,4,6,8,12,16,24,32,48")
    found = document["sweep"]
    least, most = served(lab, tmp_path / "truth.csv", found)  # on a busy machine less than 200, and the knee is lower
    assert 0.9 * least < found["plateau"] < 1.1 * most
    assert 0.75 * (1 + 0.05 * least) < found["knee"] < 1.25 * (1 + 0.05 * most)
    assert found["stopped"].startswith("more load only queues")
    assert len(found["steps"]) < 9
    loads = [step["load"] for step in found["steps"]]
    assert loads == [2, 4, 6, 8, 12, 16, 24, 32, 48][:len(loads)]
    assert all(step["requests"] and step["latency"]["count"] for step in found["steps"])
    three = found["three_quarters"]
    assert three["load"] == int(found["plateau"] * 0.75)
    assert 0.8 < three["requests"] / three["duration_ns"] * 1e9 / three["load"] < 1.2
    # Below the knee there is hardly a queue, above it there is one.
    assert three["latency"]["p50_ns"] < found["steps"][-1]["latency"]["p50_ns"] / 2
    assert document.get("driver") is None
    shown = run([OBSERVER, "report", tmp_path / "sweep.json"]).stdout
    assert shown == result.stdout
    assert f"plateau        {found['plateau']:,} requests/s" in shown


@pytest.mark.long
@pytest.mark.alone
def test_knee_of_rates(start, tmp_path):
    lab = start(Lab("--service", "5ms", "--block", "--truth", tmp_path / "truth.csv"))
    found = sweep(lab.url, tmp_path / "sweep.json", "-c50", "--ladder=rate:60..540+60")[1]["sweep"]
    least, most = served(lab, tmp_path / "truth.csv", found)
    assert 0.9 * least < found["plateau"] < 1.1 * most
    assert 0.85 * least < found["knee"] < 1.1 * most
    assert found["over"] == "rate" and found["connections"] == 50


@pytest.mark.alone
def test_no_plateau_within_reach(start, tmp_path):
    """Every client has its own sleeping thread: throughput is proportional to clients."""
    lab = start(Lab("--service", "20ms", model="threads"))
    result, document = sweep(lab.url, tmp_path / "sweep.json", "--ladder=1..16", "-d400ms", "--warmup=100ms")
    found = document["sweep"]
    assert found["plateau"] is None and found["knee"] is None and found["three_quarters"] is None
    assert "still grew" in found["unfitted"] and "still grew" in result.stdout
    assert found["stopped"] is None and len(found["steps"]) == 5


def test_server_side_throughput(start, tmp_path):
    """The observer's count of each step is the driver's, apart from a few requests within its bracket."""
    lab = start(Lab("--service", "5ms", model="threads"))
    observer = start(Observer(ports=[lab.port]))
    found = sweep(lab.url, tmp_path / "sweep.json", "--ladder=1,2,4",
                  "--observer", observer.url)[1]["sweep"]
    for step in found["steps"]:
        assert abs(step["server_exchanges"] - step["requests"]) <= step["load"]
        assert step["server_duration_ns"] == step["duration_ns"]


def test_interrupted(start, tmp_path):
    """The completed steps are reported, the current one is not."""
    lab = start(Lab("--service", "5ms", model="threads"))
    path = tmp_path / "sweep.json"
    driver = start(Process([DRIVER, "sweep", lab.url, "-d500ms", "--warmup=100ms", "--json", path,
                            "--ladder=1..64"]))
    time.sleep(2.2)
    os.kill(driver.pid, signal.SIGINT)
    assert driver.wait(seconds=20) == 0, driver.stderr
    found = documents.load(path)["sweep"]
    assert found["stopped"] == "interrupted" and 1 <= len(found["steps"]) <= 4


def test_nobody_answers(tmp_path):
    result, document = sweep("http://127.0.0.1:1/", tmp_path / "sweep.json", "--ladder=1,2,4",
                             check=False)
    assert result.status == 1 and "no request was answered" in result.stderr
    assert document["sweep"]["stopped"] == "no request was answered"
    assert document["sweep"]["plateau"] is None and len(document["sweep"]["steps"]) == 1


# One lock, held for 5 ms by each request. With "thrash", from 4 waiting requests on, (waiting / 4)² times as
# long.
LOCKED = """
import socket, sys, threading, time
lock, count, waiting = threading.Lock(), threading.Lock(), 0

def serve(client):
    global waiting
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while client.recv(4096):
        with count:
            waiting += 1
        with lock:
            time.sleep(0.005 * (max(1, (waiting / 4) ** 2) if "thrash" in sys.argv else 1))
        with count:
            waiting -= 1
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")

server = socket.create_server(("127.0.0.1", 0), backlog=512)
print("listening on %d" % server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def start_locked(start, *options):
    server = start(Process([sys.executable, "-c", LOCKED, *options]))
    return f"http://127.0.0.1:{server.wait_for(r'listening on ([0-9]+)')[1]}/"


@in_quiet
def test_a_lock_is_a_plateau(start, tmp_path):
    """The lock admits at most one request in 5 ms; clients that think for 20 ms leave room for five."""
    url = start_locked(start)
    result, document = sweep(url, tmp_path / "sweep.json", "--think=20ms", "-d400ms", "--warmup=100ms",
                             "--ladder=1,2,3,4,6,8,12,16,24")
    found = document["sweep"]
    for step in found["steps"]:
        assert step["requests"] <= step["duration_ns"] / 5e6 + step["load"] + 1
    with timing():
        assert 170 < found["plateau"] <= 205 and 4 <= found["knee"] <= 7
        assert found["misfit_per_mille"] < 100
    verdict, table = (result.stdout.find(text) for text in (f"\nplateau        {found['plateau']} requests/s from ",
                                                            "\nconnections "))
    assert 0 < verdict < table


@in_quiet
def test_a_collapse_is_no_plateau(start, tmp_path):
    """With 16 clients each request holds the lock 16 times as long as with 4. So 200/s become 12.5/s, and no line
    through that is reported as a plateau."""
    url = start_locked(start, "thrash")
    result, document = sweep(url, tmp_path / "sweep.json", "--ladder=1,2,4,8,16")
    found = document["sweep"]
    rates = [step["good"] / step["duration_ns"] * 1e9 for step in found["steps"]]
    with timing():
        assert rates[0] > 150 and rates[-1] < 0.5 * rates[0]
    assert found["plateau"] is None and found["knee"] is None and found["three_quarters"] is None
    assert found["unfitted"].startswith("throughput fell by more than 30 %: ")
    assert "plateau        none: throughput fell by more than 30 %: " in result.stdout
    assert "still grew" not in result.stdout


@in_quiet
def test_steps_too_small(start, tmp_path):
    """Each client that thinks adds as much as the previous one: a ladder that ends there only shows growth."""
    url = start_locked(start)
    found = sweep(url, tmp_path / "sweep.json", "--think=100ms", "--ladder=1,2,3,4")[1]["sweep"]
    with timing():
        assert re.fullmatch(r"throughput still grew at the last step, by (2[5-9]|3\d|4[0-2]) %: go further with "
                            r"--ladder", found["unfitted"])
    assert found["plateau"] is None


class Hindrance(threading.Thread):
    """Stops a process for half of the time, between two lines of another one's standard error."""

    def __init__(self, pid, driver, first, last):
        super().__init__(daemon=True)
        self.pid, self.driver, self.first, self.last, self.rounds = pid, driver, first, last, 0

    def run(self):
        wait_until(lambda: self.first in self.driver.stderr, seconds=60)
        while self.last not in self.driver.stderr and self.driver.popen.poll() is None:
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(0.06)
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(0.02)
            self.rounds += 1


@pytest.mark.long
@in_quiet
def test_an_outlier_is_measured_again(start, tmp_path):
    """The server is stopped most of the time during the step of 4 clients. That outlier is measured once more
    at the end, and both figures are reported."""
    lab = start(Lab("--service", "10ms", model="threads"))
    path = tmp_path / "sweep.json"
    driver = start(Process([DRIVER, "sweep", lab.url, "-d600ms", "--warmup=200ms", "--json", path,
                            "--ladder=1,2,4,8,16"]))
    hindrance = Hindrance(lab.pid, driver, "2 connections: ", "\n4 connections: ")
    hindrance.start()
    assert driver.wait(seconds=120) == 0, driver.stderr
    hindrance.join()
    assert hindrance.rounds > 5
    steps = documents.load(path)["sweep"]["steps"]
    hindered = steps[2]
    assert [step["load"] for step in steps] == [1, 2, 4, 8, 16]
    rates = [step["good"] / step["duration_ns"] * 1e9 for step in steps]
    with timing():
        assert hindered["first_throughput"] is not None
        assert hindered["first_throughput"] < 0.85 * rates[2]
        assert 300 < rates[2] < 410  # 4 clients, slightly over 10 ms each
        assert all(step["first_throughput"] is None for step in steps if step is not hindered)
    told = f"measured again, {hindered['first_throughput']:,}/s at first"
    assert told in driver.stdout
    # Once when it ended, once when it was measured again, after the last one.
    lines = [line for line in driver.stderr.splitlines() if " connection" in line]
    assert [int(line.split()[0]) for line in lines] == [1, 2, 4, 8, 16, 4]
    assert lines[5].endswith(told) and told not in lines[2]


def test_steps_are_told_as_they_end(start, tmp_path):
    """Steps are printed to standard error as they end, before the report; with --quiet none."""
    lab = start(Lab("--service", "5ms", model="threads"))
    driver = start(Process([DRIVER, "sweep", lab.url, "-d300ms", "--warmup=100ms", "--ladder=1,2,4,8,16,32"]))
    wait_until(lambda: re.search(r"^2 connections: [\d,]+/s, p50 .* p99 ", driver.stderr, re.MULTILINE))
    assert driver.stdout == "" and "32 connections" not in driver.stderr
    assert driver.wait(seconds=60) == 0
    assert driver.stdout
    quiet = run([DRIVER, "sweep", lab.url, "-d200ms", "--warmup=100ms", "--ladder=1,2,4", "--quiet"], seconds=60)
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_steps_on_a_terminal(start):
    """Each step stays on the screen above the line that is rewritten; the report comes after them."""
    lab = start(Lab("--service", "5ms", model="threads"))
    terminal = start(Terminal(columns=120, rows=40))
    terminal.run(f"{DRIVER} sweep {lab.url} -d1200ms --warmup=200ms --ladder=1,2,4,8")
    terminal.wait_for(r"^2 connections: [\d,]+/s, p50", seconds=60)
    assert not any(line.startswith("plateau") for line in terminal.screen())
    terminal.wait_for(r"^plateau +none: throughput still grew", seconds=60)
    terminal.wait_for(r"^ +8 +[\d,]+ ")
    screen = terminal.screen()
    told = [line.split()[0] for line in screen if re.match(r"\d+ connections?: ", line)]
    assert told[:4] == ["1", "2", "4", "8"]


def test_a_narrow_terminal(start, tmp_path):
    """Columns that follow from others are dropped first; figures keep their units, and lines fit."""
    lab = start(Lab("--service", "5ms", model="threads"))
    sweep(lab.url, tmp_path / "sweep.json", "--ladder=1,2,4", "-d200ms", "--warmup=100ms")
    terminal = start(Terminal(columns=60, rows=40))
    terminal.run(f"{OBSERVER} report {tmp_path}/sweep.json | cat; tput cols; {OBSERVER} report {tmp_path}/sweep.json")
    terminal.wait_for(r"^60$")
    terminal.wait_for(r"^connections +good/s +p50 +p99 +errors$")
    terminal.wait_for(r"^ +4 +[\d,]+ +[\d.]+ .s +[\d.]+ .s +0")


BUSY = "limit_req_zone $server_addr zone=one:1m rate=50r/s;"
BUSY_SERVER = """
	location /busy { limit_req zone=one burst=5 nodelay; try_files /none @good; }
	location @good { return 200 ok; }
"""


def test_failures_are_no_throughput(start, tmp_path):
    """A server answers 50 requests a second and refuses the others at once. More load is no more throughput,
    and the sweep ends once most requests fail."""
    nginx = start(Nginx(http_block=BUSY, server=BUSY_SERVER))
    result, document = sweep(nginx.url + "busy", tmp_path / "sweep.json", "-c20",
                             "--ladder=rate:25,50,75,100,200,400")
    found = document["sweep"]
    assert found["stopped"] == "most requests failed" and len(found["steps"]) < 6
    for step in found["steps"]:
        seconds = step["duration_ns"] / 1e9
        assert step["good"] == step["requests"] - step["errors"]
        # The server's own limit, its burst, and the first one's part of a second.
        assert step["good"] <= 50 * seconds + 7
    last = found["steps"][-1]
    assert last["errors"] > last["good"] and last["load"] <= 200
    shown = re.search(rf"^ +{last['load']} +(\d+) ", result.stdout, re.MULTILINE)
    assert abs(int(shown[1]) - last["good"] / last["duration_ns"] * 1e9) <= 1


def test_nothing_is_good(start, tmp_path):
    nginx = start(Nginx(server="location /no { return 404; }"))
    result, document = sweep(nginx.url + "no", tmp_path / "sweep.json", "--ladder=1,2,4", check=False)
    assert result.status == 1 and "no response was good" in result.stderr
    (step,) = document["sweep"]["steps"]
    assert step["good"] == 0 and step["errors"] == step["requests"] > 0
    assert document["sweep"]["stopped"] == "most requests failed"


def test_nothing_was_due(start, tmp_path):
    """Independent arrivals, one a second, for a tenth of a second: mostly none, which ends nothing."""
    lab = start(Lab())
    _, document = sweep(lab.url, tmp_path / "sweep.json", "--ladder=rate:1,2,500",
                        "--arrival=poisson", "-d100ms")
    assert len(document["sweep"]["steps"]) == 3 and document["sweep"]["stopped"] is None


@pytest.mark.parametrize("option, text", [
    ("--ladder=5..1", "write rising steps"), ("-n100", "--requests: a sweep has none"),
    ("--rate=5", "--rate: a sweep has none"), ("-d50ms", "at least 100ms")])
def test_refusals(option, text):
    refused = run([DRIVER, "sweep", "http://127.0.0.1:1/", option], check=False)
    assert refused.status == 2 and text in refused.stderr


def test_ladder_without_sweep():
    refused = run([DRIVER, "--ladder=1..8", "http://127.0.0.1:1/"], check=False)
    assert refused.status == 2 and "it is for sojourn-drive sweep" in refused.stderr


def test_several_targets(start, tmp_path):
    """Two servers in turn, one of them 10 ms slower: the rows by target are each server's own count, and add up
    to the step's."""
    quick, slow = start(Lab()), start(Lab("--service", "10ms", model="threads"))
    result = run([DRIVER, "sweep", quick.url, slow.url, "--ladder=1,2,4", "-d600ms", "--warmup=100ms",
                  "--json", tmp_path / "sweep.json", "--csv", tmp_path / "sweep.csv"], seconds=120)
    found = documents.load(tmp_path / "sweep.json")["sweep"]
    assert found["target"] is None and found["method"] == "GET" and len(found["steps"]) == 3
    for step in found["steps"]:
        rows = step["targets"]
        assert [row["name"] for row in rows] == [quick.url, slow.url]
        assert sum(row["requests"] for row in rows) == step["requests"] == step["latency"]["count"]
        assert sum(row["latency"]["sum_ns"] for row in rows) == step["latency"]["sum_ns"]
        # In turn: equally often, within the number of clients.
        assert abs(rows[0]["requests"] - rows[1]["requests"]) <= step["load"]
        assert rows[1]["latency"]["p50_ns"] > rows[0]["latency"]["p50_ns"] + 5e6
    assert "GET of 2 targets in turn" in result.stdout
    assert len(re.findall(rf"^ +{re.escape(slow.url)} · ", result.stdout, re.MULTILINE)) >= 3
    text = (tmp_path / "sweep.csv").read_text()
    asked = [line.split(",") for line in text.splitlines() if line.startswith("step_target,")]
    assert [(line[1], int(line[4])) for line in asked] == [
        (str(step["load"]), row["requests"]) for step in found["steps"] for row in step["targets"]]
