# SPDX-License-Identifier: MIT
"""A fleet over NATS whose coordinator is killed, and another one that takes up its run. nginx counts the requests."""
import os
import re
import shutil
import signal
import sys

import pytest

from support import ROOT, documents
from support.conditions import bpf
from support.nats import Agent, NatsServer
from support.process import Process, run, wait_until
from support.programs import DRIVER, Nginx

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
