# SPDX-License-Identifier: MIT
"""Scenarios: the servers' records of their requests are the truth, step by step."""
import collections
import json
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from support import ROOT
from support.conditions import needs_program
from support.net import free_port
from support.process import Process, run
from support.programs import DRIVER, OBSERVER, Driver, Lab, Nginx, Observer
from support.recorder import Recorder
from support.slapd import Slapd
from support.terminal import Terminal

SESSION = """\
steps:
- name: create
  path: /sessions
  body: '{"n": {{counter}}}'
  capture:
    id: {json: /session/id}
    tag: {header: X-Tag}
- name: read
  path: /sessions/{{var:id}}
  headers: {If-Match: '{{var:tag}}'}
- name: delete
  method: DELETE
  path: /sessions/{{var:id}}
"""


@pytest.fixture(name="scenario")
def _scenario(tmp_path):
    def drive(text, *words, connections=None, **options):
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        return Driver("run", path, *words, connections=connections, **options)
    return drive


def steps(driver):
    return {step["name"]: step for step in driver.result["steps"]}


def errors(step):
    return {kind: count for kind, count in step["errors"].items() if count}


class Sessions:
    """Gives every session an id; `fails(request)` selects the requests that it refuses."""

    def __init__(self, fails=lambda request: False):
        self.count = 0
        self.fails = fails

    def __call__(self, request):
        if self.fails(request):
            return 503
        if request.method != "POST":
            return 200
        self.count += 1
        return (201, json.dumps({"session": {"id": f"s{self.count}"}}).encode(),
                [("X-Tag", f"tag {self.count}")])


def test_each_client_goes_its_own_way(scenario):
    """Steps come in order on each connection, with the values that this connection got."""
    with Recorder(Sessions()) as server:
        driver = scenario(SESSION, server.url, connections=4, threads=2, count=600)
        clients = server.by_connection()
    assert driver.result["requests"] == 600 and driver.result["connects"] == len(clients) == 4
    seen = collections.Counter()
    for requests in clients:
        assert [request.method for request in requests] == \
            (["POST", "GET", "DELETE"] * 600)[:len(requests)]
        for create, read, delete in zip(requests[::3], requests[1::3], requests[2::3]):
            assert json.loads(create.body)["n"] > 0
            number = re.fullmatch(r"/sessions/s(\d+)", read.path)[1]
            assert read.headers.get("If-Match") == f"tag {number}"
            assert delete.path == read.path
            seen[number] += 1
    assert set(seen.values()) == {1}, "no session belongs to two clients"
    methods = collections.Counter(request.method for requests in clients for request in requests)
    assert {name: step["requests"] for name, step in steps(driver).items()} == \
        {"create": methods["POST"], "read": methods["GET"], "delete": methods["DELETE"]}


def test_a_step_is_counted_as_nginx_counts_it(scenario, start):
    nginx = start(Nginx(server="access_log {folder}/access.log;"
                               "location /no { return 404; }"))
    driver = scenario("""\
load: {connections: 8, threads: 2, requests: 4000}
on-failure: next
steps:
- {name: a, path: '/a?n={{counter}}'}
- {name: b, path: /b, method: POST, body: 'x', expect-body: ok}
- {name: missing, path: /no}
- {name: found, path: /no, expect-status: 404}
- {name: wrong, path: /c, expect-body: other}
""", nginx.url, check=False)
    nginx.stop()
    log = Path(nginx.files.name, "access.log").read_text()
    asked = collections.Counter(re.findall(r'"(?:GET|POST) (/\w+)', log))
    found = steps(driver)
    assert driver.status == 1 and driver.result["requests"] == 4000 == sum(asked.values())
    assert found["a"]["requests"] == asked["/a"] and found["b"]["requests"] == asked["/b"]
    assert found["missing"]["requests"] + found["found"]["requests"] == asked["/no"]
    assert [errors(step) for step in found.values()] == [
        {}, {}, {"status": found["missing"]["requests"]}, {},
        {"unexpected": found["wrong"]["requests"]}]
    assert found["missing"]["status"]["4xx"] == found["missing"]["requests"]
    assert max(step["requests"] for step in found.values()) - \
        min(step["requests"] for step in found.values()) <= 8, "each client is within its cycle"
    assert sum(step["round_trip"]["count"] for step in found.values()) == \
        driver.result["round_trip"]["count"]
    assert sum(step["round_trip"]["sum_ns"] for step in found.values()) == \
        driver.result["round_trip"]["sum_ns"]
    assert re.search(r"^ +wrong · .*errors \d+ · unexpected \d+", driver.report, re.MULTILINE)


def redis_server(start, folder):
    port = free_port()
    server = start(Process(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                            "--dir", folder, "--unixsocket", folder / "socket"]))
    server.wait_for("Ready to accept connections")
    server.port = port
    return server


def redis_calls(server):
    text = run(["redis-cli", "-p", server.port, "info", "commandstats"]).stdout
    return {name: int(calls) for name, calls in re.findall(r"cmdstat_(\w+):calls=(\d+)", text)}


MIX = """\
order: mix
defaults: {framing: resp}
steps:
- {name: set, weight: 1, payload: 'SET k{{counter}} v\\r\\n'}
- {name: get, weight: 3, payload: 'GET k1\\r\\n'}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_mix(scenario, start, tmp_path, threads):
    """Redis counts each command; the shares are those of the weights, within five deviations."""
    redis = redis_server(start, tmp_path)
    driver = scenario(MIX, f"tcp://127.0.0.1:{redis.port}", "--threads", threads,
                      connections=8, count=20000)
    calls, found = redis_calls(redis), steps(driver)
    assert found["set"]["requests"] == calls["set"] and found["get"]["requests"] == calls["get"]
    assert calls["set"] + calls["get"] == 20000
    assert abs(calls["set"] - 5000) < 5 * (20000 * 0.25 * 0.75) ** 0.5
    size = int(re.search(r"\d+", run(["redis-cli", "-p", redis.port, "dbsize"]).stdout)[0])
    assert size == calls["set"], "its counter goes on over all threads"


def test_several_servers(scenario, start, tmp_path):
    """A client has a connection to each server; a value from one goes to the other."""
    redis = redis_server(start, tmp_path)
    with Recorder() as server:
        driver = scenario(f"""\
load: {{connections: 3, requests: 300}}
steps:
- name: count
  target: unix:{tmp_path}/socket
  payload: 'INCR n\\r\\n'
  framing: resp
  capture: {{n: {{regex: ':([0-9]+)'}}, sign: {{bytes: 0+1}}}}
- {{name: tell, target: '{server.url}', path: '/{{{{var:n}}}}', body: '{{{{var:sign}}}}'}}
""")
        told = sorted(int(request.path[1:]) for request in server.requests)
        assert {request.body for request in server.requests} == {b":"}
    found = steps(driver)
    assert driver.result["connects"] == 6
    assert found["count"]["requests"] == redis_calls(redis)["incr"]
    assert len(told) == found["tell"]["requests"] and len(set(told)) == len(told)
    assert found["count"]["method"] is None and found["tell"]["method"] == "POST"


class Tickets:
    """A UDP server: it answers `new` with `wait` and then `id=N`, all else with `ok`, and keeps its requests."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.url = f"udp://127.0.0.1:{self.socket.getsockname()[1]}"
        self.given, self.used = [], []
        self.thread = threading.Thread(target=self._serve)

    def _serve(self):
        while (message := self.socket.recvfrom(2048))[0] != b"end":
            request, client = message
            if request == b"new":
                self.given.append((client, len(self.given)))
                self.socket.sendto(b"wait", client)
                self.socket.sendto(b"id=%d;" % self.given[-1][1], client)
            else:
                self.used.append((client, int(request.removeprefix(b"use "))))
                self.socket.sendto(b"ok", client)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.sendto(b"end", self.socket.getsockname())
        self.thread.join()
        self.socket.close()


def test_values_are_taken_from_datagrams(scenario):
    """Each client's socket returns its own ticket, whichever reply held it."""
    with Tickets() as server:
        driver = scenario("""\
steps:
- {name: take, payload: new, replies: 2, capture: {id: {regex: 'id=([0-9]+);'}}}
- {name: give, payload: 'use {{var:id}}'}
""", server.url, connections=4, threads=2, count=400)
        assert steps(driver)["take"]["requests"] == len(server.given)
        assert steps(driver)["give"]["requests"] == len(server.used)
        tickets = dict(zip((number for _, number in server.given),
                           (client for client, _ in server.given)))
        users = collections.Counter(number for _, number in server.used)
        assert set(users.values()) == {1} and set(users) <= set(tickets)
        missing = scenario("""\
on-failure: next
steps:
- {name: take, payload: new, replies: 2, capture: {id: {regex: 'none=([0-9]+);'}}}
""", server.url, count=20, check=False)
    assert missing.status == 1 and errors(steps(missing)["take"]) == {"unexpected": 20}
    assert missing.result["requests"] == 20


EXAMPLES = ROOT / "docs" / "examples"


def test_directory(start, tmp_path):
    """The example against slapd, which counts binds and searches."""
    slapd = start(Slapd(tmp_path))
    binds, searches = slapd.completed("Bind"), slapd.completed("Search")
    driver = Driver("run", EXAMPLES / "directory.yaml", slapd.url, connections=4, count=900)
    found = steps(driver)
    assert sum(step["requests"] for step in found.values()) == 900
    # Each query of ours is a bind and a search, too; the search in progress is not completed.
    assert slapd.completed("Bind") - binds == found["bind"]["requests"] + 2
    assert slapd.completed("Search") - searches == \
        found["search"]["requests"] + found["search again"]["requests"] + 2


@pytest.mark.parametrize("policy, after", [("restart", "create"), ("next", "delete")])
def test_what_follows_a_failure(scenario, policy, after):
    with Recorder(Sessions(lambda request: request.method == "GET")) as server:
        driver = scenario(f"on-failure: {policy}\n{SESSION}", server.url, connections=2, count=60,
                          check=False)
        names = {"POST": "create", "GET": "read", "DELETE": "delete"}
        follows = set()
        for requests in server.by_connection():
            order = [names[request.method] for request in requests]
            follows |= {order[i + 1] for i, name in enumerate(order[:-1]) if name == "read"}
        assert follows == {after}
    found = steps(driver)
    assert driver.status == 1
    assert errors(found["read"]) == {"status": found["read"]["requests"]}
    assert not errors(found["create"]) and not errors(found["delete"])


def test_a_value_that_is_missing(scenario):
    """A response without the value fails its own step; after a restart no client sends an empty value."""
    with Recorder(lambda request: (200, b"{}")) as server:
        driver = scenario(SESSION, server.url, connections=2, count=40, check=False)
        assert {request.path for request in server.requests} == {"/sessions"}
    assert driver.status == 1
    assert errors(steps(driver)["create"]) == {"unexpected": 40}


def test_rate(scenario):
    """At a rate every step has its response time, and together they are the whole's."""
    with Recorder(Sessions()) as server:
        driver = scenario(SESSION, server.url, "--rate", 200, connections=8, duration="1500ms")
    found = steps(driver).values()
    assert all(step["response_time"]["count"] == step["requests"] > 0 for step in found)
    assert sum(step["response_time"]["sum_ns"] for step in found) == \
        driver.result["response_time"]["sum_ns"]


def test_think_time_of_a_step(scenario):
    """The client waits after the step with a think time, and nowhere else."""
    arrivals = []

    def answer(request):
        arrivals.append((time.monotonic(), request.path))
        return 200
    with Recorder(answer) as server:
        scenario("""\
steps:
- {name: a, path: /a, think: 150ms}
- {name: b, path: /b}
- {name: c, path: /c}
""", server.url, connections=1, count=12)
    waits = collections.defaultdict(list)
    for (before, path), (after, _) in zip(arrivals, arrivals[1:]):
        waits[path].append(after - before)
    assert min(waits["/a"]) >= 0.149
    assert min(waits["/b"]) < 0.1 and min(waits["/c"]) < 0.1, "the quickest of several"


def test_warm_up_is_not_counted(scenario):
    with Recorder(Sessions()) as server:
        driver = scenario(SESSION, server.url, "--warmup", "300ms", connections=2, count=30)
        assert len(server.requests) > 30
    assert sum(step["requests"] for step in steps(driver).values()) == 30


def test_drivers_are_merged_by_step(scenario, tmp_path):
    documents = []
    with Recorder(Sessions()) as server:
        for count in (30, 60):
            scenario("name: shop\n" + SESSION, server.url, "--json",
                     tmp_path / f"{count}.json", connections=1, count=count)
            documents.append(tmp_path / f"{count}.json")
    report = run([OBSERVER, "report", "-v", *documents]).stdout
    assert re.search(r"scenario shop", report)
    for name in ("create", "read", "delete"):
        assert re.search(rf"\b{name} · 30 ·", report), report


DIVIDED = """\
steps:
- {name: quick, path: /}
- {name: slow, path: '/?service=40ms', expect-status: 201}
- {name: never, path: /}
"""


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_joined_exchanges_are_divided_by_step(scenario, start, threads):
    """After a failure the cycle restarts, so an exchange's index on its connection does not give its step."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    driver = scenario(DIVIDED, lab.url, "--threads", threads, "--keep-samples", connections=2,
                      count=40, observer=observer, check=False)
    joined, of = driver.document["joined"], steps(driver)
    assert [(step["name"], step["count"]) for step in joined["steps"]] == \
        [("quick", 20), ("slow", 20), ("never", 0)]
    assert [of[name]["requests"] for name in ("quick", "slow", "never")] == [20, 20, 0]
    service = [step["sum"]["stages"]["service"] for step in joined["steps"]]
    assert service[1] > 20 * 40e6 and service[0] < service[1] / 2 and not service[2]
    assert [sum(step["sum"][name] for step in joined["steps"]) for name in
            ("round_trip_ns", "network_ns", "overhang_ns")] == \
        [joined["sum"][name] for name in ("round_trip_ns", "network_ns", "overhang_ns")]
    assert sum(step["sum"]["round_trip_ns"] for step in joined["steps"]) == \
        sum(step["round_trip"]["sum_ns"] for step in of.values())
    assert collections.Counter(driver.result["samples"]["step"]) == {0: 20, 1: 20}
    assert re.search(r"20 joined: mean \S+ ms, of it service (9\d(\.\d)?|100) %", driver.report), driver.report


def test_check_sends_nothing(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SESSION)
    with Recorder() as server:
        done = run([DRIVER, "run", path, server.url, "--check"])
        assert "is valid: 3 steps, cycle" in done.stdout
        path.write_text(SESSION + "  pth: /\n")
        done = run([DRIVER, "run", path, server.url], check=False)
        assert done.status == 2
        assert re.fullmatch(rf"sojourn-drive: {path}:\d+:3: 'pth' is not a key .*\n", done.stderr)
        assert not server.requests
    for words in (["run"], ["run", path, "a", "b"], ["run", path, "--method", "PUT"],
                  ["run", tmp_path / "none"]):
        assert run([DRIVER, *words], check=False).status == 2


def answer_example(request):
    if request.path == "/sessions":
        return (201, b'{"id": "abc"}')
    if request.path.endswith("/target"):
        return (200, b"", [("X-Request", "r1")])
    return 200


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples(start, tmp_path, path):
    """Each runs, except directory.yaml, which test_directory() covers."""
    assert "is valid" in run([DRIVER, "run", path, "--check"]).stdout
    text = path.read_text()
    if "framing: ldap" in text:
        return
    if "framing: resp" in text:
        url = f"tcp://127.0.0.1:{redis_server(start, tmp_path).port}"
        driver = Driver("run", path, url, duration="300ms")
    else:
        with Recorder(answer_example) as server:
            driver = Driver("run", path, server.url, "--warmup", "0", count=600)
    assert driver.status == 0
    assert all(step["requests"] > 0 for step in driver.result["steps"])


@pytest.mark.alone
@needs_program("tmux")
def test_progress_has_each_steps_rate(start, tmp_path):
    """As many as the terminal has room for: a line that wraps could not be rewritten."""
    nginx = start(Nginx())
    path = tmp_path / "scenario.yaml"
    path.write_text("steps:\n- {name: create, path: /a}\n- {name: read, path: /b}\n")
    terminal = start(Terminal(columns=120))
    terminal.run(f"{DRIVER} run {path} {nginx.url} --no-tui --rate 1k -d 30s -c4")
    found = terminal.wait_for(r"^2 s  .* left  create ([\d.,]+)/s  read ([\d.,]+)/s")
    assert all(300 < float(rate.replace(",", "")) < 700 for rate in found.groups()), found[0]
    terminal.keys("C-c")
    terminal.wait_for(r"^-v prints more")
    terminal.run("clear")
    terminal.resize(64, 24)
    terminal.run(f"{DRIVER} run {path} {nginx.url} --no-tui --rate 1k -d 30s -c4")
    terminal.wait_for(r"^[1-4] s  .* left")
    lines = [line for line in terminal.screen() if re.search(r"requests/s|^ *create|^ *read ", line)]
    assert len(lines) == 1 and "create" not in lines[0], lines
    terminal.keys("C-c")
    terminal.wait_for(r"^-v prints more")
