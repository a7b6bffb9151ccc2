# SPDX-License-Identifier: MIT
"""A fleet over NATS whose coordinator is killed, and another one that takes up its run. nginx counts the requests."""
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from support import ROOT, documents
from support.conditions import bpf
from support.nats import Agent, NatsServer
from support.process import Process, run, wait_until
from support.programs import DRIVER, Nginx, Observer

pytestmark = pytest.mark.skipif(not shutil.which("nats-server"), reason="nats-server is not installed")

NAMES = ("a", "b", "c")
KEY = "0123456789abcdef" * 2


@pytest.fixture
def server(start):
    return start(NatsServer(stores=True))


@pytest.fixture
def agents(start, server):
    return [start(Agent(server.url, name)) for name in NAMES]


@pytest.fixture
def nginx(start):
    return start(Nginx())


def fleet(server, nginx, *options, own=()):
    return [DRIVER, "fleet", "--via", server.url, "--members", len(NAMES), *own, "--", nginx.url, *options]


def key_of(driver):
    """Wait for the run's secret, which the first line has."""
    driver.wait_for("its results are kept at", stream="stderr")
    return re.search(r"fleet resume ([0-9a-f]{32}) ", driver.stderr)[1]


def resume(server, key, status=0):
    done = run([DRIVER, "fleet", "resume", key, "--via", server.url], check=False)
    assert done.status == status, done.error(f"ended with status {done.status}")
    return done


def test_killed_in_the_run(start, server, agents, nginx, tmp_path):
    """The next coordinator keeps the members going to the end, and writes the document that the first one was to write."""
    path = tmp_path / "run.json"
    driver = start(Process(fleet(server, nginx, "--rate", "600", "-n", "601", "--json", path)))
    wait_until(lambda: nginx.status()["requests"] >= 100)
    key = key_of(driver)
    driver.kill()
    resume(server, key)
    result = documents.parse(path.read_text())["driver"]
    assert result["requests"] == nginx.status()["requests"] == 601
    assert sum(member["requests"] for member in result["members"]) == result["round_trip"]["count"] == 601
    assert not any(member["lost"] for member in result["members"]) and not result["interrupted"]
    wait_until(lambda: all(agent.ended() == 1 for agent in agents))
    done = resume(server, key, status=1)  # its results are deleted
    assert f"nothing is stored of run {key}" in done.stderr


@bpf
@pytest.mark.parametrize("warmup", [(), ("--warmup", "300ms")])
def test_its_observers_are_taken_up(start, server, agents, nginx, tmp_path, warmup):
    """The phase that the first coordinator began is ended by the next one, so the observers' part is whole, too."""
    assert agents
    observer, path = start(Observer(ports=[nginx.port])), tmp_path / "run.json"
    beside = start(Agent(server.url, "web", "--observer", observer.url))
    driver = start(Process(fleet(server, nginx, "--rate", "300", "-n", "601", *warmup, "--observer", "fleet", "--json", path)))
    beside.wait_for("the observer marks a phase", stream="stderr")
    before = 0 if not warmup else 90
    wait_until(lambda: nginx.status()["requests"] >= before + 200)
    key = key_of(driver)
    driver.kill()
    resume(server, key)
    document = documents.parse(path.read_text())
    result, (service,) = document["driver"], document["services"]
    assert not result["observer_error"] and result["requests"] == service["exchanges"] == 601
    assert document["joined"]["joined"] == 601
    if not warmup:
        assert nginx.status()["requests"] == 601


@bpf
def test_killed_in_the_warm_up(start, server, agents, nginx):
    """Members that rest between warm-up and measured phase get no second start. They end, with nothing to report."""
    assert agents
    observer = start(Observer(ports=[nginx.port]))
    start(Agent(server.url, "web", "--observer", observer.url))
    driver = start(Process(fleet(server, nginx, "--rate", "300", "-n", "601", "--warmup", "1s", "--observer", "fleet")))
    wait_until(lambda: nginx.status()["requests"] >= 10)
    key = key_of(driver)
    driver.kill()
    assert "nothing to report" in resume(server, key, status=1).stderr
    wait_until(lambda: all(agent.ended() == 1 for agent in agents))
    assert nginx.status()["requests"] <= 301


def test_killed_and_left_alone(start, server, agents, nginx, tmp_path):
    """No load outlives its coordinator: the members end it after --lost-after. Their results until then are kept."""
    path = tmp_path / "run.json"
    driver = start(Process(fleet(server, nginx, "-c", "3", "-d", "600s", "--json", path, own=("--lost-after", "1s"))))
    wait_until(lambda: nginx.status()["requests"] >= 100)
    key = key_of(driver)
    os.kill(agents[1].child(), signal.SIGSTOP)  # it cannot report its last interval
    driver.kill()
    wait_until(lambda: agents[0].ended() and agents[2].ended())
    before = nginx.status()["requests"]
    os.kill(agents[1].child(), signal.SIGKILL)
    wait_until(lambda: agents[1].ended())
    done = resume(server, key, status=1)
    result = documents.parse(path.read_text())["driver"]
    assert nginx.status()["requests"] == before >= result["requests"] > 0
    assert [member["host"] for member in result["members"] if member["lost"]] == ["b"]
    assert "b was lost: its agent was ended by signal 9" in done.stderr, done.stderr
    assert result["interrupted"]["duration_ns"] == 600 * 10**9


def test_killed_before_the_start(start, server, agents, nginx):
    """There is nothing to report, and no request was sent."""
    driver = start(Process(fleet(server, nginx, "-n", "300", "--wait-for", "/nowhere/flag")))
    key = key_of(driver)
    driver.kill()
    assert f"run {key} had not begun: nothing was measured" in resume(server, key, status=1).stderr
    assert nginx.status()["requests"] == 0


# ---- a sweep ----

LOADS = (3, 6, 9, 12)


class Sweep:
    """A sweep over four numbers of connections, and what nginx has logged of it: at most one request of each connection is
    of the warm-up."""

    def __init__(self, start, server, path, duration="700ms"):
        self.server, self.path = server, path
        self.nginx = start(Nginx(http_block="log_format timed '$msec $connection';", server="access_log {folder}/timed.log timed;"))
        self.driver = start(Process([
            DRIVER, "fleet", "--via", server.url, "--members", len(NAMES), "--", "sweep", self.nginx.url, "--ladder", "3,6,9,12",
            "--think", "20ms", "-d", duration, "--warmup", "1ms", "--json", path]))
        self.key = key_of(self.driver)
        self.killed = []  # when

    def kill(self, driver, connections):
        """Kill a coordinator once nginx has these connections after the step that it has printed."""
        driver.wait_for(rf"\n *{connections} ", stream="stderr")
        before = self.nginx.status()["accepts"]
        wait_until(lambda: self.nginx.status()["accepts"] > before + connections)
        driver.kill()

    def result(self):
        return documents.parse(self.path.read_text())["sweep"]

    def logged(self):
        """Return each connection's first time, and its requests, in order of the connections."""
        log = Path(self.nginx.files.name, "timed.log")
        wait_until(lambda: log.read_text().count("\n") == self.nginx.status()["requests"])
        found = {}
        for line in log.read_text().splitlines():
            at, number = line.split()
            found.setdefault(int(number), []).append(float(at))
        return [(min(times), len(times)) for _, times in sorted(found.items())]

    def compare(self, first, resumed):
        """The first steps are of the connections before the kill, the others of those after `resumed`."""
        logged, sweep = self.logged(), self.result()
        sides = ([count for at, count in logged if at < resumed], [count for at, count in logged if at >= resumed])
        for side, steps in zip(sides, (sweep["steps"][:first], sweep["steps"][first:])):
            for step in steps:
                for _ in range(step["attempts"]):
                    seen, side = side[:step["load"]], side[step["load"]:]
                assert step["requests"] == step["latency"]["count"] == sum(member["requests"] for member in step["members"]) > 0
                assert 0 <= sum(seen) - step["requests"] <= step["load"] == len(seen)
                assert [member["host"] for member in step["members"]] == [m["host"] for m in sweep["steps"][0]["members"]]
        return sum(sides[0])


def test_a_sweep_goes_on(start, server, agents, tmp_path):
    """Steps that were complete are kept, and none is counted twice. The same members measure the one at work again,
    and the document says after which step that was."""
    sweep = Sweep(start, server, tmp_path / "sweep.json")
    sweep.kill(sweep.driver, 3)
    resumed = time.time()
    done = resume(server, sweep.key)
    assert sweep.result()["resumed"] == "after 1 of 4 steps" and not sweep.result()["stopped"]
    assert [step["load"] for step in sweep.result()["steps"]] == list(LOADS)
    assert re.search("resumed +after 1 of 4 steps", done.stdout), done.stdout
    assert sweep.compare(1, resumed) > 0, "nothing was at work when the coordinator was killed"
    assert f"nothing is stored of run {sweep.key}" in resume(server, sweep.key, status=1).stderr


def test_a_sweep_is_taken_up_twice(start, server, agents, tmp_path):
    """A coordinator that took it up stores its steps in turn."""
    sweep = Sweep(start, server, tmp_path / "sweep.json")
    sweep.kill(sweep.driver, 3)
    second = start(Process([DRIVER, "fleet", "resume", sweep.key, "--via", server.url]))
    still = run([DRIVER, "fleet", "resume", KEY, "--via", server.url], check=False)
    assert "nothing is stored" in still.stderr  # of another run
    sweep.kill(second, 6)
    resumed = time.time()
    resume(server, sweep.key)
    assert sweep.result()["resumed"] == "after 1 of 4 steps, after 2 of 4 steps"
    assert [step["load"] for step in sweep.result()["steps"]] == list(LOADS)
    logged = [count for at, count in sweep.logged() if at >= resumed]
    assert sum(step["requests"] for step in sweep.result()["steps"][2:]) <= sum(logged)


def test_a_sweep_that_cannot_go_on(start, server, agents, tmp_path):
    """No other agent takes the place of a member: the sweep ends with the steps that it has, and says why. They stay kept."""
    sweep = Sweep(start, server, tmp_path / "sweep.json", duration="2s")
    sweep.driver.wait_for(r"\n *3 ", stream="stderr")
    refused = resume(server, sweep.key, status=1)
    assert "still has a coordinator" in refused.stderr, refused.stderr
    agents[1].close()
    sweep.driver.kill()
    start(Agent(server.url, "other"))
    resumed = time.time()
    done = resume(server, sweep.key, status=1)
    reason = "2 of its 3 agents answered"
    for said in (reason, "the sweep cannot go on", "it can be taken up again: "):
        assert said in done.stderr, done.stderr
    result = sweep.result()
    assert reason in result["stopped"] and result["resumed"].endswith("of 4 steps")
    assert [step["load"] for step in result["steps"]] == list(LOADS[:len(result["steps"])]) != list(LOADS)
    sweep.compare(len(result["steps"]), resumed)
    again = start(Process([DRIVER, "fleet", "resume", sweep.key, "--via", server.url]))
    assert not again.ends(2), again.stderr  # it waits for the agents once more
    again.stop()
    assert "nothing is stored" not in again.stderr


def test_a_scenario_is_taken_up(start, server, agents, nginx, tmp_path):
    """As any run that is no sweep; the files that it names are needed again for its command line."""
    (tmp_path / "steps.yaml").write_text(
        f"target: {nginx.url}\nload: {{connections: 3, rate: 300, requests: 601}}\nsteps:\n  - {{name: one, path: /1}}\n  - {{name: two, path: /2}}\n")
    path = tmp_path / "run.json"
    driver = start(Process([DRIVER, "fleet", "--via", server.url, "--members", len(NAMES), "--", "run", tmp_path / "steps.yaml", "--json", path]))
    wait_until(lambda: nginx.status()["requests"] >= 100)
    key = key_of(driver)
    driver.kill()
    resume(server, key)
    result = documents.parse(path.read_text())["driver"]
    assert result["requests"] == sum(row["requests"] for row in result["steps"]) == nginx.status()["requests"]


def test_mistakes(start, server):
    """A server without JetStream is said to keep nothing. Bad usage names the word."""
    plain = start(NatsServer())
    start(Agent(plain.url, "a"))
    nginx = start(Nginx())
    words = [DRIVER, "fleet", "--via", plain.url, "--members", "1", "--", nginx.url, "-c", "1", "-n", "3"]
    assert "its results are not kept" in run(words).stderr
    assert nginx.status()["requests"] == 3
    assert "the server has no JetStream" in resume(plain, KEY, status=1).stderr
    assert "nothing is stored of run" in resume(server, KEY, status=1).stderr
    for words, reason in ((["resume", "--via", server.url], "resume: the run's secret is missing"),
                          (["resume", "x*", "--via", server.url], "resume: 'x*' is no run's secret"),
                          (["resume", KEY], "resume: the server that has the run's results is missing"),
                          (["resume", KEY, "--via", server.url, "--members", "2"], "--members: a run that is resumed"),
                          (["resume", KEY, "--via", server.url, "--lost-after", "2s"], "--lost-after: a run that is resumed"),
                          (["resume", KEY, "--via", server.url, "--", "127.0.0.1:1"], "leave out --")):
        done = run([DRIVER, "fleet", *words], check=False)
        assert done.status == 2 and reason in done.stderr, done.stderr


@bpf
@pytest.mark.timeout(120)
def test_each_part_is_killed_in_the_run():
    """The short form of tests/bench/killed.py: a NATS server of a cluster, an observer, a process that drives, the
    coordinator. It says what is not as promised, and ends with 1."""
    done = run([sys.executable, ROOT / "tests" / "bench" / "killed.py", "--short", "--seconds", "1.5"], check=False, seconds=110)
    assert done.status == 0, done.error("what was to be kept is lost")
    assert len(re.findall("^ok ", done.stdout, re.MULTILINE)) == 4, done.stdout
