# SPDX-License-Identifier: MIT
"""One run by agents that wait at a NATS server. nginx counts the requests."""
import contextlib
import os
import re
import shutil
import signal
import socket
import threading
from pathlib import Path

import pytest

from support import documents
from support.nats import PUBLIC, SEED, Agent, NatsServer, credentials
from support.net import free_port
from support.pki import Pki
from support.process import Process, run, wait_until
from support.programs import DRIVER, Nginx, Observer

pytestmark = pytest.mark.skipif(not shutil.which("nats-server"), reason="nats-server is not installed")

NAMES = ("a", "b", "c", "d")


def fleet(url, members, target, *options, own=()):
    return [DRIVER, "fleet", "--via", url, "--members", members, *own, "--", target, *options]


def drive(*words, status=0, **named):
    """Run to the end. Return the process, and the driver's part of its document."""
    done = run([*fleet(*words, **named), "--json", "-"], check=False)
    assert done.status == status, done.error(f"ended with status {done.status}")
    return done, documents.parse(done.stdout)["driver"]


@pytest.fixture
def server(start):
    return start(NatsServer())


@pytest.fixture
def agents(start, server):
    return [start(Agent(server.url, name, "--allow", "127.0.0.0/8")) for name in NAMES]


def wait_until_free(agents, runs):
    wait_until(lambda: all(agent.ended() >= runs and not agent.child() for agent in agents))


def test_counts_are_the_servers_to_the_last_request(start, server, agents):
    """nginx counts what all members count together; shares, histograms and clocks are as over any channel."""
    nginx = start(Nginx())
    _, result = drive(server.url, 4, nginx.url, "-c", "9", "-n", "1001", "-t", "2")
    assert result["requests"] == nginx.status()["requests"] == 1001
    assert sorted(member["host"] for member in result["members"]) == list(NAMES)
    assert sorted(member["requests"] for member in result["members"]) == [250, 250, 250, 251]
    assert result["round_trip"]["count"] == sum(part["requests"] for part in result["parts"]) == 1001
    assert not any(member["lost"] for member in result["members"])
    for member in result["members"]:  # they have one clock
        assert abs(member["clock_offset_ns"]) <= member["clock_uncertainty_ns"]
    for agent in agents:
        assert re.search(r"run [0-9a-f]{8} is asked for by \S+@\S+, process \d+\n", agent.stderr)


def test_logins_and_certificates(start, tmp_path):
    """An nkey over TLS with the server's own authority; agents may only answer. Others are refused by the server."""
    pki = start(Pki())
    cert, key = pki.issue("server", "IP:127.0.0.1")
    tls = f'tls {{ cert_file: "{cert}", key_file: "{key}", ca_file: "{pki.ca}", verify: true }}\n'
    server = start(NatsServer(tls + f"""authorization {{ users: [
        {{ nkey: {PUBLIC}, permissions: {{ publish: "sojourn.from.>", subscribe: "sojourn.to.>" }} }}
        {{ user: lead, password: "pass:word", permissions: {{ publish: "sojourn.to.>", subscribe: "sojourn.from.>" }} }}
        ] }}""", secure=True))
    own_cert, own_key = pki.issue("client", "DNS:client")
    shown = ["--ca", pki.ca, "--cert", own_cert, "--key", own_key]
    (tmp_path / "agent").mkdir()
    nkey, password = credentials(tmp_path / "agent", SEED), credentials(tmp_path, "lead:pass:word")
    agent = start(Agent(server.url, "secured", *shown, "--credentials", nkey, "--once"))
    nginx = start(Nginx())
    _, result = drive(server.url, 1, nginx.url, "-c", "1", "-n", "10", own=[*shown, "--credentials", password])
    assert result["requests"] == nginx.status()["requests"] == 10
    assert agent.wait() == 0, agent.stderr
    observer = start(Observer(ports=[nginx.port]))
    start(Agent(server.url, "beside", *shown, "--credentials", nkey, "--observer", observer.url))
    done = run([DRIVER, nginx.url, "-n", "10", "--observer", server.url, "--observer-ca", pki.ca, "--observer-cert", own_cert,
                "--observer-key", own_key, "--observer-credentials", password, "--json", "-"])
    observed, = documents.parse(done.stdout)["services"]
    assert observed["exchanges"] == 10 and nginx.status()["requests"] == 20
    wrong = tmp_path / "wrong"
    wrong.write_text("lead:other")
    for own, words in (([*shown, "--credentials", wrong], "the server refuses the login (Authorization Violation) in the file of --credentials"),
                       (["--credentials", password], "TLS failed: unable to get local issuer certificate"),
                       ([*shown, "--credentials", nkey], "Permissions Violation")):
        done = run(fleet(server.url, 1, nginx.url, own=own), check=False)
        assert done.status == 1 and words in done.stderr, done.stderr
        assert "other" not in done.stderr and SEED not in done.stderr
    assert nginx.status()["requests"] == 20


def test_messages_of_any_size(start, tmp_path):
    """A server that carries 16 KiB at a time: a file of megabytes arrives in all members, byte by byte."""
    server = start(NatsServer("max_payload: 16384"))
    agents = [start(Agent(server.url, name)) for name in NAMES[:2]]
    nginx = start(Nginx(server="client_max_body_size 9m; location = /put { dav_methods PUT; root {folder}; }"))
    body = tmp_path / "body"
    body.write_bytes(os.urandom(5 << 20))
    _, result = drive(server.url, 2, nginx.url + "put", "-c", "2", "-n", "2", "-X", "PUT", "--body", f"@{body}",
                      "--no-template", "--timeout", "30s")
    assert result["requests"] == 2 and not any(result["errors"].values())
    assert Path(nginx.files.name, "put").read_bytes() == body.read_bytes()
    wait_until_free(agents, 1)


def test_messages_that_come_twice(start):
    """A foreign client repeats each message of a run with observers. Nothing is counted twice. The server carries 16 KiB
    at a time, and the document is longer."""
    server = start(NatsServer("max_payload: 16384"))
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    start(Agent(server.url, "beside", "--observer", observer.url))
    repeated = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client, client.makefile("rb") as lines:
        client.sendall(b'CONNECT {"echo":false}\r\nSUB sojourn.> 1\r\nPING\r\n')
        next(line for line in lines if line == b"PONG\r\n")

        def repeat():
            with contextlib.suppress(OSError):
                for line in lines:
                    if line.startswith(b"MSG "):
                        _, subject, _, length = line.split()
                        payload = lines.read(int(length))
                        client.sendall(b"PUB %b %b\r\n%b\r\n" % (subject, length, payload))
                        repeated.append(len(payload))
        thread = threading.Thread(target=repeat)
        thread.start()
        done = run([DRIVER, nginx.url, "-n", "3000", "--warmup", "100ms", "--observer", server.url, "--json", "-"])
        client.shutdown(socket.SHUT_RDWR)
        thread.join()
    document = documents.parse(done.stdout)
    assert [service["exchanges"] for service in document["services"]] == [3000] == [document["joined"]["joined"]]
    assert sum(repeated) > 100000 and max(repeated) <= 16384, repeated


def test_members_messages_that_come_twice(start, server):
    """A foreign client repeats messages of a member: nothing is counted twice, and the run goes on."""
    start(Agent(server.url, "a"))
    nginx = start(Nginx())
    driver = start(Process([*fleet(server.url, 1, nginx.url, "--rate", "200", "-n", "100"), "--json", "-"]))
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client, client.makefile("rb") as lines:
        client.sendall(b"CONNECT {}\r\nSUB sojourn.from.*.* 1\r\n")
        for _ in range(8):
            _, subject, _, length = next(line for line in lines if line.startswith(b"MSG ")).split()
            client.sendall(b"PUB %b %b\r\n%b\r\n" % (subject, length, lines.read(int(length))))
        assert driver.wait() == 0, driver.stderr
    assert documents.parse(driver.stdout)["driver"]["requests"] == nginx.status()["requests"] == 100


def test_an_agent_is_killed(start, server, agents):
    """It is named with its signal, the others end with their results, and the agent takes the next run."""
    nginx = start(Nginx())
    driver = start(Process([*fleet(server.url, 4, nginx.url, "--rate", "400", "-d", "60s"), "--json", "-"]))
    wait_until(lambda: nginx.status()["requests"] >= 450)  # 1.1 s: each has sent a document
    os.kill(agents[1].child(), signal.SIGKILL)
    assert driver.wait() == 1
    assert re.search(r"\bb was lost: its agent was ended by signal 9", driver.stderr), driver.stderr
    result = documents.parse(driver.stdout)["driver"]
    lost, = [member for member in result["members"] if member["lost"]]
    assert lost["host"] == "b" and lost["requests"] > 0 and result["interrupted"]
    assert sum(member["requests"] for member in result["members"]) == result["requests"] <= nginx.status()["requests"]
    wait_until_free(agents, 1)


def test_no_load_without_its_coordinator(start, server, agents):
    """If the coordinator is silent, the load ends, and the agents wait. Its later messages are no part of the next run."""
    nginx = start(Nginx())
    driver = start(Process(fleet(server.url, 4, nginx.url, "-c", "4", "-d", "600s", own=("--lost-after", "1s"))))
    wait_until(lambda: nginx.status()["requests"] >= 100)
    driver.send(signal.SIGSTOP)
    wait_until_free(agents, 1)
    assert all("the coordinator was silent for 1 s" in agent.stderr for agent in agents)
    before = nginx.status()["requests"]
    next_one = start(Process([*fleet(server.url, 4, nginx.url, "--rate", "400", "-d", "500ms", "--timeout", "20s"), "--json", "-"]))
    wait_until(lambda: nginx.status()["requests"] > before)
    driver.send(signal.SIGCONT)
    assert driver.wait() == 1 and "a was lost: its agent ended with status 1" in driver.stderr
    assert next_one.wait() == 0, next_one.stderr
    result = documents.parse(next_one.stdout)["driver"]
    assert result["requests"] == nginx.status()["requests"] - before and not result["interrupted"]


def test_the_server_is_killed(start, server, agents):
    """Coordinator and agents notice at once; the agents wait at the next server."""
    nginx = start(Nginx())
    driver = start(Process(fleet(server.url, 4, nginx.url, "-c", "4", "-d", "600s")))
    wait_until(lambda: nginx.status()["requests"] >= 100)
    server.kill()
    assert driver.wait() == 1
    assert f": the connection to {server.url}: the server has ended the connection" in driver.stderr
    wait_until_free(agents, 1)
    before = nginx.status()["requests"]
    start(NatsServer(port=server.port))
    wait_until(lambda: all(agent.waits() == 2 for agent in agents))
    _, result = drive(server.url, 4, nginx.url, "-c", "4", "-n", "40")
    assert result["requests"] == nginx.status()["requests"] - before == 40


def test_agents_that_are_not_there(start, server):
    """No server, no agent, too few, busy ones, one that refuses: one line names each, and nothing is sent."""
    nginx = start(Nginx())
    soon = ("--gather", "300ms")
    nowhere = f"nats://127.0.0.1:{free_port()}"
    expected = f"sojourn-drive: --via: {nowhere}: cannot connect: Connection refused\n"
    assert run(fleet(nowhere, 1, nginx.url), check=False).stderr == expected
    assert run([DRIVER, "agent", "--fleet", nowhere], check=False).stderr == expected.replace("--via", "--fleet")
    done = run(fleet(server.url, 2, nginx.url, own=soon), check=False)
    assert done.status == 1 and f"0 of 2 agents answered at {server.url} within 300 ms" in done.stderr, done.stderr
    start(Agent(server.url, "same", "--allow", "127.0.0.0/8"))
    limited = start(Agent(server.url, "same", "--max-rate", "50"))
    done = run(fleet(server.url, 2, nginx.url, "--rate", "200"), check=False)
    assert done.status == 1 and re.search(r"same( \(2\))?: it refuses the plan: a rate of 100 is above its --max-rate 50",
                                          done.stderr), done.stderr
    limited.stop()
    wait_until(lambda: "it refuses the plan: '10.9.9.9" in run(fleet(server.url, 1, "10.9.9.9", own=soon), check=False).stderr)
    driver = start(Process(fleet(server.url, 1, nginx.url + "busy", "-c", "1", "-d", "60s")))
    wait_until(lambda: nginx.status()["requests"] > 0)
    wait_until(lambda: "; 1 other is busy with another run" in run(fleet(server.url, 1, nginx.url, own=soon), check=False).stderr)
    driver.send(signal.SIGINT)
    assert driver.wait() == 0, driver.stderr


def test_mistakes(tmp_path):
    """Bad usage names the option, and quotes no secret."""
    empty = credentials(tmp_path, "")
    for own, words in (
            (["--via", "nats://u:secret@h", "--members", "2"], "--via: others can see a login in the URL"),
            (["--via", "nats://", "--members", "2"], "--via: 'nats://' has no host"),
            (["--via", "nats://h:70000", "--members", "2"], "has no port from 1 to 65535"),
            (["--via", "http://h", "--members", "2"], "--via: 'http://h' is no NATS server"),
            (["--via", "nats://h"], "--members: how many agents to take is missing"),
            (["--via", "nats://h", "--members", "2", "--hosts", "a,b"], "--hosts: over NATS, agents are there"),
            (["--hosts", "a,b", "--members", "2"], "--members: agents wait at a NATS server"),
            (["--hosts", "a", "--credentials", tmp_path / "none"], "--credentials: cannot open"),
            (["--hosts", "a", "--credentials", empty], "its first line is empty"),
            (["--via", "nats://h", "--members", "2", "--ca", "x"], "--ca: 'nats://h' may be without TLS"),
            (["--via", "tls://h", "--members", "2", "--key", "x"], "--key: there is no certificate for it")):
        done = run([DRIVER, "fleet", *own, "--", "127.0.0.1:1"], check=False)
        assert done.status == 2 and words in done.stderr and "secret" not in done.stderr, done.stderr
    done = run([DRIVER, "agent", "--once"], check=False)
    assert done.status == 2 and "--once: it is for agents that wait" in done.stderr
