# SPDX-License-Identifier: MIT
"""One run by several hosts: network namespaces with an address each, on a bridge in the server's."""
import contextlib
import os
import re
import signal
from pathlib import Path

import pytest

from support import documents
from support.fleet import agents_in
from support.net import Netns, free_port
from support.process import Process, run, wait_until
from support.programs import DRIVER, Lab, Nginx, Observer

HOSTS = 3
SERVER = "10.201.0.1"


@pytest.fixture(scope="module")
def hosts():
    """Yield the server's namespace, which has a bridge, and those of the members."""
    with contextlib.ExitStack() as stack:
        server, *members = [stack.enter_context(Netns(name)) for name in ("server", "a", "b", "c")]
        server.exec(["ip", "link", "add", "bridge", "type", "bridge"])
        server.exec(["ip", "address", "add", f"{SERVER}/24", "dev", "bridge"])
        server.exec(["ip", "link", "set", "bridge", "up"])
        for number, member in enumerate(members):
            run(["ip", "link", "add", f"to{number}", "netns", server.name, "type", "veth", "peer", "name", "eth0",
                 "netns", member.name])
            server.exec(["ip", "link", "set", f"to{number}", "master", "bridge", "up"])
            member.exec(["ip", "address", "add", f"10.201.0.{number + 10}/24", "dev", "eth0"])
            member.exec(["ip", "link", "set", "eth0", "up"])
        yield server, members


def fleet(members, url, *options, own=(), agent=DRIVER, via="ip netns exec {host}"):
    """Return the command line of a run by these namespaces."""
    names = ",".join(getattr(member, "name", member) for member in members)
    return [DRIVER, "fleet", "--via", via, "--agent-program", agent, "--hosts", names, *own, "--", url, *options]


def drive(members, url, *options, status=0, **named):
    """Run to the end. Return the process, and the driver's part of its document."""
    done = run([*fleet(members, url, *options, **named), "--json", "-"], check=False)
    assert done.status == status, done.error(f"ended with status {done.status}")
    return done, documents.parse(done.stdout)["driver"]


def test_counts_are_the_servers_to_the_last_request(start, hosts):
    """nginx counts what all members count together; shares, rows of the merged document and histograms are exact."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    _, result = drive(members, nginx.url, "-c", "7", "-n", "1000", "-t", "2")
    assert result["requests"] == nginx.status()["requests"] == 1000
    assert [member["requests"] for member in result["members"]] == [334, 333, 333]
    assert sum(member["connections"] for member in result["members"]) == result["connections"] == 7
    assert [member["host"] for member in result["members"]] == [member.name for member in members]
    assert not any(member["lost"] for member in result["members"])
    assert result["round_trip"]["count"] == sum(part["requests"] for part in result["parts"]) == 1000
    assert sum(interval["requests"] for interval in result["intervals"]) == 1000
    for member in result["members"]:  # they have one clock
        assert abs(member["clock_offset_ns"]) <= member["clock_uncertainty_ns"]
    assert not any(agents_in(member) for member in members)


def test_rate_of_the_whole(start, hosts):
    """Members take turns in one schedule: the rate gives the number of due requests, and each is counted."""
    server, members = hosts
    lab = start(Lab(netns=server, address=SERVER))
    for rate, due in (("1000", 500), ("500..1500", 500)):
        done, result = drive(members, lab.url, "--rate", rate, "-t", "2", "-d", "500ms", "--timeout", "20s")
        assert result["rate"] == 1000 and abs(result["scheduled"] - due) <= 2
        assert result["requests"] + result["unsent"] == result["scheduled"], done.stderr
        assert sum(member["rate"] for member in result["members"]) == 1000
        assert max(result["members"], key=lambda member: member["requests"])["requests"] <= due / HOSTS + 2


def test_numbers_clients_and_rows_are_divided(start, hosts, tmp_path):
    """Fields have a different value in every request of the whole run, and so have rows of a file."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,), http_block="log_format fields '$request_uri $http_x_row $remote_addr';",
                        server="access_log {folder}/fields.log fields;"))
    rows = tmp_path / "rows"
    rows.write_text("".join(f"row-{number}\n" for number in range(1, 301)))
    _, result = drive(members, nginx.url + "{{counter}}/{{client}}", "-c", "6", "-n", "300", "-H", "X-Row: {{row}}",
                      "--rows", rows)
    assert result["requests"] == 300
    log = Path(nginx.files.name, "fields.log")
    wait_until(lambda: log.read_text().count("\n") == 300)  # a line is written after its response
    lines = log.read_text().splitlines()
    numbers, clients, names, addresses = zip(*(re.match(r"/(\d+)/(\d+) (\S+) (\S+)", line).groups() for line in lines))
    assert sorted(map(int, numbers)) == list(range(1, 301))
    assert set(names) == {f"row-{number}" for number in range(1, 301)}
    assert len(set(addresses)) == HOSTS
    assert {int(client) for client in clients} <= set(range(1, 7))
    assert len(set(zip(clients, addresses))) == len(set(clients)), "a client is of one host"


def runs_in(lines, loads):
    """Divide lines of "CONNECTION ADDRESS" into runs with so many connections each, which nginx numbers in turn."""
    by_connection = {}
    for line in lines:
        number, address = line.split()
        by_connection.setdefault(int(number), []).append(address)
    numbers = sorted(by_connection)
    assert len(numbers) == sum(loads)
    for load in loads:
        yield [by_connection[number] for number in numbers[:load]]
        numbers = numbers[load:]


def test_each_step_of_a_sweep_is_divided(start, hosts):
    """nginx sees each step's connections from the members that have them, and one request more at most, of the warm-up.
    The observer counts what the members measure."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,), http_block="log_format runs '$connection $remote_addr';",
                        server="access_log {folder}/runs.log runs;"))
    observer = start(Observer(ports=[nginx.port], netns=server))
    words = fleet(members, nginx.url, "--ladder=2,7,12", "--think=20ms", "-d600ms", "--warmup=1ms", "-t2", "--json", "-",
                  "--observer", observer.url)
    words.insert(words.index("--") + 1, "sweep")
    sweep = documents.parse(run(words, netns=server).stdout)["sweep"]
    log = Path(nginx.files.name, "runs.log")
    wait_until(lambda: log.read_text().count("\n") == nginx.status()["requests"])
    steps = [step for step in sweep["steps"] for _ in range(step["attempts"])]
    runs = list(runs_in(log.read_text().splitlines(), [step["load"] for step in steps]))
    assert [step["load"] for step in sweep["steps"]] == [2, 7, 12]
    assert [[member["connections"] for member in step["members"]] for step in sweep["steps"]] == [[1, 1], [3, 2, 2], [4, 4, 4]]
    for number, step in enumerate(steps):
        if step in steps[number + 1:]:
            continue  # it was not steady
        for member, host in zip(step["members"], range(HOSTS)):
            seen = [len(addresses) for addresses in runs[number] if set(addresses) == {f"10.201.0.{host + 10}"}]
            assert len(seen) == member["connections"]
            assert 0 <= sum(seen) - member["requests"] <= len(seen)
        assert sum(member["requests"] for member in step["members"]) == step["requests"] == step["latency"]["count"]
        assert step["server_exchanges"] == step["requests"]


def test_the_loss_of_a_member_ends_a_sweep(start, hosts):
    """The member is named, the step in which it was lost is no result, and those before it are."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    words = fleet(members, nginx.url, "--ladder=3,6,9,12", "--think=20ms", "-d400ms", "--warmup=50ms", "--json", "-")
    words.insert(words.index("--") + 1, "sweep")
    driver = start(Process(words))
    wait_until(lambda: nginx.status()["accepts"] > 3 * 3)  # the first step was made three times at most
    agent, = agents_in(members[1])
    os.kill(agent, signal.SIGKILL)
    assert driver.wait() == 1
    assert f"{members[1].name} was lost: " in driver.stderr and "signal 9" in driver.stderr
    sweep = documents.parse(driver.stdout)["sweep"]
    assert sweep["stopped"].startswith(f"{members[1].name} was lost: ") and "signal 9" in sweep["stopped"]
    assert 1 <= len(sweep["steps"]) < 4 and sweep["plateau"] is None
    wait_until(lambda: not any(agents_in(member) for member in members))


SCENARIO = """\
name: shop
target: {url}
load: {{connections: 7, requests: 600, threads: 2}}
defaults:
  rows: rows
steps:
  - name: write
    path: /write/{{{{counter}}}}
    headers: {{X-Row: '{{{{row}}}}'}}
    body: '@body'
  - name: read
    path: /read/{{{{var:key}}}}
    set: {{key: '{{{{counter}}}}'}}
    headers: {{X-Row: '{{{{row}}}}'}}
"""


def test_a_scenario_is_divided(start, hosts, tmp_path):
    """Its files are sent along; nginx has each step's requests, each with numbers and a row of its own."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,),
                        http_block="log_format fields '$request_uri $http_x_row $content_length $remote_addr';",
                        server="access_log {folder}/fields.log fields;"))
    (tmp_path / "shop.yaml").write_text(SCENARIO.format(url=nginx.url))
    (tmp_path / "rows").write_text("".join(f"row-{number}\n" for number in range(1, 601)))
    (tmp_path / "body").write_bytes(bytes(range(256)) * 4)
    words = fleet(members, tmp_path / "shop.yaml", "--json", "-")
    words.insert(words.index("--") + 1, "run")
    result = documents.parse(run(words).stdout)["driver"]
    log = Path(nginx.files.name, "fields.log")
    wait_until(lambda: log.read_text().count("\n") == 600)
    fields = [line.split() for line in log.read_text().splitlines()]
    assert result["requests"] == 600 and result["scenario"] == "shop"
    assert [member["requests"] for member in result["members"]] == [200, 200, 200]
    assert len({address for _, _, _, address in fields}) == HOSTS
    for step, length in (("write", "1024"), ("read", "-")):
        of_step = [field for field in fields if field[0].startswith(f"/{step}/")]
        row, = (row for row in result["steps"] if row["name"] == step)
        assert row["requests"] == row["round_trip"]["count"] == len(of_step)
        assert {field[2] for field in of_step} == {length}
        assert len({field[0] for field in of_step}) == len({field[1] for field in of_step}) == len(of_step)


def forced(folder, *ceilings):
    """An agent as a command that sshd forces, behind a shell that greets first, and not with whole lines."""
    agent = folder / "agent"
    agent.write_text(f"#!/bin/sh\nprintf 'Welcome\\nLast login: '\nexec {DRIVER} agent {' '.join(ceilings)}\n")
    agent.chmod(0o755)
    return agent


def due_of_two(seconds):
    """Return how many requests of 300/s for 5 s are due at two of three members. They share all requests after @seconds."""
    first = int(300 * seconds) + 1
    return sum(number >= first or number % 3 != 1 for number in range(1500))


@pytest.mark.parametrize("ceilings, said", (
    ((), "the others have its share of the rate from ([0-9.]+) s on"),
    (("--max-rate=100",), "no member took over its share: --max-rate of "),
), ids=("taken over", "above a ceiling"))
def test_the_rate_of_a_lost_member(start, hosts, tmp_path, ceilings, said):
    """Of a killed member the last document counts. The others send its part, each request of the schedule once."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    driver = start(Process(fleet(members, nginx.url, "--rate", "300", "-d", "5s", "--json", "-", "--timeout", "20s",
                                 own=("--on-loss", "continue"), agent=forced(tmp_path, *ceilings))))
    wait_until(lambda: nginx.status()["requests"] >= 330)  # 1.1 s: each has sent a document
    agent, = agents_in(members[1])
    os.kill(agent, signal.SIGKILL)
    assert driver.wait() == 1
    assert f"{members[1].name} was lost: " in driver.stderr and "signal 9" in driver.stderr
    result = documents.parse(driver.stdout)["driver"]
    lost = result["members"][1]
    assert [member["lost"] for member in result["members"]] == [False, True, False]
    assert 0 < lost["requests"] and sum(member["requests"] for member in result["members"]) == result["requests"]
    assert result["requests"] <= nginx.status()["requests"]
    match = re.search(said, lost["reason"])
    assert match, lost["reason"]
    others = result["requests"] - lost["requests"] + result["unsent"]
    if ceilings:
        assert others == 1000
    else:
        assert abs(others - due_of_two(float(match[1]))) <= 4, lost["reason"]  # it is rounded to 10 ms
    wait_until(lambda: not any(agents_in(member) for member in members))


def test_a_silent_member_ends_the_run(start, hosts):
    """A stopped member is named, and the others end with their results, and the observer with its own."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    observer = start(Observer(ports=[nginx.port], netns=server))
    driver = start(Process(fleet(members, nginx.url, "--rate", "300", "-d", "60s", "--json", "-", "--observer", observer.url,
                                 own=("--lost-after", "2s")), netns=server))
    wait_until(lambda: nginx.status()["requests"] >= 330)
    agent, = agents_in(members[1])
    os.kill(agent, signal.SIGSTOP)
    assert driver.wait() == 1
    assert f"{members[1].name} was lost: nothing was heard of it for 2 s" in driver.stderr
    document = documents.parse(driver.stdout)
    result = document["driver"]
    assert [member["lost"] for member in result["members"]] == [False, True, False]
    assert result["requests"] < 18000 and result["interrupted"]
    assert document["services"][0]["exchanges"] == nginx.status()["requests"] and result["observer_error"] is None
    wait_until(lambda: not any(agents_in(member) for member in members))


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGSTOP), ids=("killed", "held"))
def test_no_load_without_its_coordinator(start, hosts, number):
    """If the coordinator is killed or falls silent, the agents end, and their load with them."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    driver = start(Process(fleet(members, nginx.url, "-c", "3", "-d", "600s", own=("--lost-after", "2s"))))
    wait_until(lambda: nginx.status()["requests"] >= 300)
    driver.send(number)
    wait_until(lambda: not any(agents_in(member) for member in members))
    if number == signal.SIGSTOP:
        driver.send(signal.SIGCONT)
        assert driver.wait() == 1 and "the coordinator was silent for 2 s" in driver.stderr


def test_members_that_cannot_start(start, hosts, tmp_path):
    """A missing host, or a plan above a ceiling: the error names the member, and nothing is sent."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    done = run(fleet([*members[:2], "nowhere"], nginx.url), check=False)
    assert done.status == 1 and "nowhere: its process ended" in done.stderr
    assert 'Cannot open network namespace "nowhere"' in done.stderr
    for ceiling, options, reason in (
            ("--allow=10.202.0.0/16,[::1]:80", (), "is not among the targets of its --allow"),
            ("--max-rate=99", ("--rate=300",), "a rate of 100 is above its --max-rate 99"),
            ("--max-rate=99", (), "a closed loop sends as fast as"),
            ("--max-connections=4", ("-c", "15"), "5 connections are above its --max-connections 4"),
            ("--max-duration=1s", ("-d", "1s", "--warmup", "1ms"), "are above its --max-duration 1 s")):
        agent = forced(tmp_path, "--allow=10.201.0.0/16", ceiling)
        done = run(fleet(members, nginx.url, *options, agent=agent), check=False)
        assert done.status == 1 and "it refuses the plan" in done.stderr and reason in done.stderr, done.stderr
    own = forced(tmp_path, "--max-rate=100")
    done = run(fleet(("one", "two"), nginx.url, "--rate=100", agent=own, via=f"ip netns exec {members[0].name}"), check=False)
    assert done.status == 1 and "another agent of its user runs on this host" in done.stderr, done.stderr
    assert nginx.status()["requests"] == 0


# A member that is none: plays the part named by its first argument.
STRANGER = """\
import json, os, sys, time
def say(**message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()
part, hello = sys.argv[1], json.load(open(sys.argv[2]))
if part == "other":
    hello["version"] = "9.9\\x1b[31m"
say(**hello)
if part == "noise":
    os.write(1, b"no \\x1b[31m\\xff message\\n")
elif part == "closed":
    os.close(1)
for line in sys.stdin:
    message = json.loads(line)
    if part == "closed":
        continue
    if message["type"] == "plan":
        say(type="ready", max_rate=0)
    elif message["type"] == "ping":
        say(type="pong", number=message["number"], wall_ns=-2**63 if part == "clock" else time.time_ns())
    elif message["type"] == "start":
        say(type="document", final=False, last=True, text="{")
        say(type="document", final=True, last=True, text="{}")
"""


@pytest.mark.parametrize("part, reason", (
    ("other", "its sojourn-drive is version 9.9 [31m, protocol"),
    ("noise", "it sent no valid message: 'no  [31m  message'"),
    ("closed", "its output has ended, and its process goes on for 2 s"),
    ("clock", "its clock cannot be: -9223372036854775808 ns since 1970"),
    ("document", "its document cannot be read"),
), ids=("version", "noise", "closed", "clock", "document"))
def test_members_that_are_none(tmp_path, part, reason):
    """A stranger in place of an agent: the error names it and what it did, without its control characters."""
    stranger = tmp_path / "stranger"
    stranger.write_text(STRANGER)
    agent = run(["sh", "-c", f"exec {DRIVER} agent </dev/null"]).stdout.split()
    hello = tmp_path / "hello"
    hello.write_text(next(line for line in agent if "hello" in line))
    done = run(fleet(("one", "two"), "127.0.0.1:1", "-c", "2", via=f"/usr/bin/python3 {stranger} {part} {hello}",
                     own=("--lost-after", "60s")), check=False)
    assert done.status == 1 and re.search(r"\b(one|two): ", done.stderr) and reason in done.stderr, done.stderr


def test_open_files_of_many_members(start, hosts):
    """The coordinator raises its soft limit of open files for its members, and names one that cannot be raised."""
    server, _ = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    names = tuple(str(number) for number in range(8))
    enough = 64 + 3 * len(names)
    for soft, hard, status in ((enough - 20, enough, 0), (enough - 20, enough - 1, 1)):
        done = run(["prlimit", f"--nofile={soft}:{hard}", *fleet(names, nginx.url, "-c", "8", "-n", "8", via="sh -c")],
                   check=False, netns=server)
        assert done.status == status, done.stderr
    assert f"8 members need {enough} open files, but the hard limit is {enough - 1}" in done.stderr
    assert nginx.status()["requests"] == 8


def test_is_ended_as_one(start, hosts):
    """Ctrl-C ends all members, each with its result; all that the server answered is in the sum."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,)))
    driver = start(Process(fleet(members, nginx.url, "-c", "3", "-d", "60s", "--json", "-")))
    wait_until(lambda: nginx.status()["requests"] >= 300)
    driver.send(signal.SIGINT)
    assert driver.wait() == 0, driver.stderr
    result = documents.parse(driver.stdout)["driver"]
    assert result["interrupted"]["duration_ns"] == 60_000_000_000
    assert result["requests"] == nginx.status()["requests"]
    assert not any(member["lost"] for member in result["members"])


def test_the_first_failure_ends_all(start, hosts):
    """--fail-fast at one member ends the whole run; --assert is judged on the sums."""
    server, members = hosts
    nginx = start(Nginx(netns=server, addresses=(SERVER,), server="location = /101 { return 503; }"))
    _, result = drive(members, nginx.url + "{{counter}}", "-d", "60s", "--rate", "300", "--fail-fast", status=1)
    assert result["errors"]["status"] == 1 and not result["interrupted"] and result["duration_ns"] < 30e9
    done, _ = drive(members, nginx.url, "-n", "30", "--assert", "requests>=31", status=1)
    assert "'requests>=31' does not hold: it is 30" in done.stderr


def test_observer_at_the_coordinator(start, hosts):
    """The observer brackets the run of all members, and their exchanges are joined."""
    server, members = hosts
    lab = start(Lab(netns=server, address=SERVER))
    observer = start(Observer(ports=[lab.port], netns=server))
    done = run([*fleet(members, lab.url, "-n", "600", "--observer", observer.url), "--json", "-"], netns=server)
    document = documents.parse(done.stdout)
    assert document["services"][0]["exchanges"] == document["driver"]["requests"] == 600
    assert document["joined"]["joined"] == 600


def test_source_addresses_are_divided(start, hosts, tmp_path):
    """Each member uses its slice of the list: the server's own log has every address, and none from two members."""
    server, members = hosts
    log = tmp_path / "from.log"
    nginx = start(Nginx(netns=server, addresses=(SERVER,), http_block="log_format who '$remote_addr $http_member';",
                        server=f"location /from {{ access_log {log} who; return 200; }}"))
    for number, member in enumerate(members):
        for last in range(2):
            member.exec(["ip", "address", "add", f"10.201.0.{100 + 10 * number + last}/24", "dev", "eth0"])
    slices = (["10.201.0.100", "10.201.0.101"], ["10.201.0.110", "10.201.0.111"], ["10.201.0.120", "10.201.0.121"])
    options = ["--new-connections", "-c", "6", "-n", "600", "--header", "member: {{client}}"]
    _, result = drive(members, nginx.url + "from", *options, "--source", "10.201.0.100-10.201.0.101,"
                      "10.201.0.110-10.201.0.111,10.201.0.120-10.201.0.121")
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == result["requests"] == 600
    clients = {address: {client for seen, client in lines if seen == address} for address, _ in lines}
    assert sorted(clients) == sorted(sum(slices, []))
    assert [member["sources"] for member in result["members"]] == [["-".join(slice)] for slice in slices]
    for one, other in ((a, b) for a in slices for b in slices if a is not b):
        assert not set().union(*(clients[address] for address in one)) & set().union(*(clients[address] for address in other))

    done = run(fleet(members, nginx.url, *options, "--source", "10.201.0.100,10.201.0.120,10.201.0.110"), check=False)
    assert done.status != 0
    # Two members have none of theirs; the one that answers first is named.
    refused = "|".join(rf"{members[number].name}.*--source: '10.201.0.{last}' cannot be used: Cannot assign"
                       for number, last in ((1, 120), (2, 110)))
    assert re.search(refused, done.stderr), done.stderr
    assert nginx.status()["requests"] == 600, "nothing is sent"


def test_members_are_told_apart_by_their_addresses(start, hosts):
    """nginx logs each member's requests from the addresses that the document names for it."""
    server, members = hosts
    members[1].exec(["ip", "address", "add", "10.201.0.99/24", "dev", "eth0"])  # no route chooses it
    nginx = start(Nginx(netns=server, addresses=(SERVER,), http_block="log_format addresses '$remote_addr';",
                        server="access_log {folder}/addresses.log addresses;"))
    _, result = drive(members, nginx.url, "-c", "3", "-n", "60")
    log = Path(nginx.files.name, "addresses.log")
    wait_until(lambda: log.read_text().count("\n") == 60)
    assert [member["sources"] for member in result["members"]] == [["10.201.0.10"], ["10.201.0.11"], ["10.201.0.12"]]
    seen = log.read_text().splitlines()
    assert [seen.count(member["sources"][0]) for member in result["members"]] == \
        [member["requests"] for member in result["members"]] == [20, 20, 20]
    assert result["sources"] is None  # of several drivers


def test_how_to_reach_a_driver_is_said():
    """The program is missing on a host, or the command is the same for all hosts: the message names the option."""
    for own, words in ((["--via", "env HOST={host} sh -c"], "not found; --agent-program says where the driver is"),
                       (["--via", "false"], "nothing was started; --via has no {host}")):
        done = run([DRIVER, "fleet", "--hosts", "a,b", *own, "--agent-program", "no-such-driver", "--", "127.0.0.1:1", "-c", "2"],
                   check=False)
        assert done.status == 1 and words in done.stderr, done.stderr


def test_members_without_a_response_have_no_percentiles():
    """A time of nothing is not printed as 0."""
    done = run([DRIVER, "fleet", "--via", "env HOST={host} sh -c", "--agent-program", DRIVER, "--hosts", "a,b", "--",
                f"127.0.0.1:{free_port()}", "-c", "2", "-n", "2"], check=False)
    assert done.status == 1 and "p50" not in done.stdout, done.stdout
    assert len(re.findall("[ab] · 1 connection .* no request was completed", done.stdout)) == 2, done.stdout


def test_what_cannot_be_divided():
    """Bad usage is refused before anything starts."""
    for options, words in (
            (["127.0.0.1:1", "--source", "127.0.0.1,127.0.0.2"], "--source: 2 addresses cannot be divided between 3 members"),
            (["127.0.0.1:1", "-c", "2"], "--connections: 2 cannot be divided between 3 members"),
            (["127.0.0.1:1", "-n", "2"], "--requests: 2 cannot be divided between 3 members"),
            (["127.0.0.1:1", "--rate", "2"], "--rate: 2 cannot be divided between 3 members"),
            (["127.0.0.1:1", "--body", "@/dev/null"], "--body: '/dev/null' is no regular file"),
            (["sweep", "127.0.0.1:1", "--ladder", "0,1,2"], "'0,1,2' is no ladder"),
            (["sweep", "127.0.0.1:1", "--ladder", "rate:1,2,3", "-c", "2"], "--connections: 2 cannot be divided"),
            (["127.0.0.1:1", "--observer", "9180", "--cool-down", "1s"], "--observer: with --cool-down the coordinator does not know"),
            (["run", "/dev/null"], "/dev/null:1:1: the file is empty"),
            (["127.0.0.1:1", "--on-loss=stop"], "'--on-loss=stop' is an option of fleet, before --"),
            (["127.0.0.1:1", "--rte", "2"], "unknown option '--rte'")):
        done = run([DRIVER, "fleet", "--via", "false", "--hosts", "a,b,c", "--", *options], check=False)
        assert done.status == 2 and words in done.stderr, done.stderr
    for own, words in ((["--via", "nats:127.0.0.1"], "--via: 'nats:127.0.0.1' is no NATS server"),
                       (["--hosts", "a,a"], "'a' is given twice"), ([], "--hosts: none are given"),
                       (["--hosts", "a", "--on-loss", "x"], "--on-loss: 'x' is not known"),
                       (["--hosts", "a", "--on-loss", "continue"], "the sweep ends at the loss of one")):
        done = run([DRIVER, "fleet", *own, "--", "sweep", "127.0.0.1:1"], check=False)
        assert done.status == 2 and words in done.stderr, done.stderr
