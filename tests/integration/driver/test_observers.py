# SPDX-License-Identifier: MIT
"""Observers on several hosts: namespaces with a host name and an nginx each, whose counts are the truth."""
import contextlib
import re
import shutil
import signal
import socket

import pytest

from support import documents
from support.nats import Agent, NatsServer
from support.net import Host, Netns, free_port, serve_each
from support.process import Process, run, wait_until
from support.programs import DRIVER, OBSERVER, Lab, Nginx, Observer


@pytest.fixture(scope="module")
def net():
    """Yield the coordinator's namespace, which has a bridge, and four hosts on it: two servers, two clients."""
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(Netns("switch"))
        hosts = [stack.enter_context(Host(name, f"10.202.0.{number}"))
                 for number, name in ((11, "web-1"), (12, "web-2"), (21, "one"), (22, "two"))]
        switch.exec(["ip", "link", "add", "bridge", "type", "bridge"])
        switch.exec(["ip", "address", "add", "10.202.0.1/24", "dev", "bridge"])
        switch.exec(["ip", "link", "set", "bridge", "up"])
        for host in hosts:
            run(["ip", "link", "add", f"to-{host.host}", "netns", switch.name, "type", "veth", "peer", "name", "eth0",
                 "netns", host.name])
            switch.exec(["ip", "link", "set", f"to-{host.host}", "master", "bridge", "up"])
            host.exec(["ip", "address", "add", f"{host.address}/24", "dev", "eth0"])
            host.exec(["ip", "link", "set", "eth0", "up"])
        yield switch, hosts[:2], hosts[2:]


@pytest.fixture(name="servers")
def fixture_servers(start, net):
    """Start an nginx on each server host, at one port, and an observer of it. The second one's nginx is slow."""
    lab = start(Lab("--service", "20ms", netns=net[1][1]))
    port, servers = free_port(), []
    for host in net[1]:
        slow = f"location /page {{ proxy_pass http://{lab.address}:{lab.port}/; }}" if host.host == "web-2" else ""
        nginx = start(Nginx(port=port, netns=host, addresses=(host.address,), server=slow))
        observer = start(Observer("--listen", f"{host.address}:0", "--open", ports=[port], netns=host))
        servers.append((nginx, observer))
    return servers


needs_nats = pytest.mark.skipif(not shutil.which("nats-server"), reason="nats-server is not installed")


@pytest.fixture(name="nats")
def fixture_nats(start, net):
    return start(NatsServer(netns=net[0], address="10.202.0.1"))


def look_out(start, nats, host, observer):
    """Start an agent beside a host's observer."""
    return start(Agent(nats.url, host.host, "--observer", observer.url, netns=host))


@pytest.fixture(name="hidden")
def fixture_hidden(start, net):
    """Start an nginx and an observer on each server host, as in servers; nobody else reaches the observers."""
    port = free_port()
    return [(start(Nginx(port=port, netns=host, addresses=(host.address,))), start(Observer(ports=[port], netns=host)))
            for host in net[1]]


def observed(servers):
    """Return the options for the observers of all servers."""
    return [word for _, observer in servers for word in ("--observer", observer.url)]


def drive(switch, servers, *words, status=0, fleet=(), by=None):
    """Run to the end, with all servers as targets in turn. Return the process, and its document."""
    command = [DRIVER, *fleet, *words, *(nginx.url + "page" for nginx, _ in servers), *(by or observed(servers)), "--json", "-"]
    done = run(command, netns=switch, check=False)
    assert done.status == status, done.error(f"ended with status {done.status}")
    return done, documents.parse(done.stdout)


def by_host(document, port):
    """Return the service at the port of each host."""
    return {service["host"]: service for service in document["services"] if service["port"] == port}


def check_counts(document, servers, requests, before=None):
    """Each host's exchanges are those of its nginx, and each was joined with the driver's request. Return them."""
    port = servers[0][0].port
    services = by_host(document, port)
    counts = {host: service["exchanges"] for host, service in services.items()}
    assert counts == {host: nginx.status()["requests"] - (before or {}).get(host, 0)
                      for host, (nginx, _) in zip(("web-1", "web-2"), servers)}
    assert sum(counts.values()) == document["driver"]["requests"] == requests
    joined = document["joined"]
    assert joined["joined"] == requests and joined["implausible"] == joined["driver_only"] == 0
    assert {host["name"]: host["count"] for host in joined["hosts"]} == counts
    assert document["driver"]["observer_error"] is None
    return counts


def report(document, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(document)
    return run([OBSERVER, "report", path]).stdout.splitlines()


def members_of(net, folder):
    """Return the words for a fleet of the client hosts. The second one's monotonic clock is a day ahead."""
    reach = folder / "reach"
    reach.write_text("""#!/bin/sh
host=$1; shift
case $host in *two*) set -- unshare --time --monotonic 86400 --fork --kill-child "$@";; esac
exec ip netns exec "$host" "$@"
""")
    reach.chmod(0o755)
    return ["fleet", "--via", f"{reach} {{host}}", "--agent-program", DRIVER, "--hosts", ",".join(host.name for host in net[2]), "--"]


def test_all_hosts_are_counted(net, servers, tmp_path):
    """Of a driver and of a fleet, the counts are the servers' own, and each exchange is joined with its server's.
    The first line of the report names the slow host."""
    done, document = drive(net[0], servers, "-c", "4", "-n", "300")
    counts = check_counts(document, servers, 300)
    lines = report(done.stdout, tmp_path)
    answer = next(line for line in lines if re.match("host |no host|not known|GET ", line))  # a busy machine's is "LIMITED"
    assert answer.startswith("host web-2 is the slow one: mean round trip "), lines
    rows = {match[1]: int(match[2]) for line in lines if (match := re.match(r"(web-\d|all hosts) +([\d,]+)  ", line))}
    assert rows == {**counts, "all hosts": 300}, lines
    _, document = drive(net[0], servers, "-c", "4", "-n", "300", fleet=members_of(net, tmp_path))
    check_counts(document, servers, 300, before=counts)
    assert [member["requests"] for member in document["driver"]["members"]] == [150, 150]


def test_an_observer_that_is_killed_is_named(start, net, servers, tmp_path):
    """Its part is missing with the reason, and the others' are whole."""
    (first, _), (second, killed) = servers
    driver = start(Process([DRIVER, "-c", "4", "-n", "500", "--rate", "500", first.url, second.url, *observed(servers),
                            "--json", "-"], netns=net[0]))
    wait_until(lambda: second.status()["requests"] > 50)
    killed.kill()
    assert driver.wait() == 1
    assert f"the observer's part is missing: {killed.url}/v1/phases/" in driver.stderr
    document = documents.parse(driver.stdout)
    assert [service["exchanges"] for service in document["services"]] == [first.status()["requests"]]
    assert document["driver"]["requests"] == first.status()["requests"] + second.status()["requests"] == 500
    assert killed.url in document["driver"]["observer_error"]
    text = "\n".join(report(driver.stdout, tmp_path))
    assert f"without the observer's part: {killed.url}/v1/phases/" in text, text


def load_agents(start, nats, net, gather="20s"):
    """Let the client hosts wait for load. Return the words before those of a run, which waits for so long at most."""
    for host in net[2]:
        start(Agent(nats.url, host.host, netns=host))
    return ["fleet", "--via", nats.url, "--members", "2", "--gather", gather, "--"]


@needs_nats
def test_observers_are_found_over_nats(start, net, hidden, nats):
    """A driver and a fleet count as with an address for each observer. An agent on a host that is no target has no part
    in it, though it has no observer."""
    for host, (_, observer) in zip(net[1], hidden):
        look_out(start, nats, host, observer)
    start(Agent(nats.url, "aside", "--observer", "1", netns=net[2][0]))
    _, document = drive(net[0], hidden, "-c", "4", "-n", "300", by=["--observer", nats.url])
    before = check_counts(document, hidden, 300)
    fleet = load_agents(start, nats, net)
    _, document = drive(net[0], hidden, "-c", "4", "-n", "300", fleet=fleet, by=["--observer", "fleet"])
    check_counts(document, hidden, 300, before=before)
    _, document = drive(net[0], hidden, "-c", "4", "-n", "300", "--warmup", "100ms", fleet=fleet, by=["--observer", "fleet"])
    counts = [service["exchanges"] for service in by_host(document, hidden[0][0].port).values()]
    assert len(counts) == 2 and sum(counts) == document["driver"]["requests"] == document["joined"]["joined"] == 300


@needs_nats
def test_observers_that_are_lost_or_late_are_named(start, net, hidden, nats, tmp_path):
    """One observer is killed under way, and the agent of the other one comes when all has begun."""
    (first, killed), (second, late) = hidden
    look_out(start, nats, net[1][0], killed)
    fleet = load_agents(start, nats, net, gather="2s")
    driver = start(Process([DRIVER, *fleet, "-c", "4", "-d", "60s", "--rate", "200", first.url, second.url, "--observer",
                            "fleet", "--json", "-"], netns=net[0]))
    wait_until(lambda: second.status()["requests"] > 10)
    look_out(start, nats, net[1][1], late).wait_for("the observer sees targets of it", stream="stderr")
    killed.kill()
    driver.send(signal.SIGINT)
    assert driver.wait() == 1
    document = documents.parse(driver.stdout)
    assert document["driver"]["requests"] == first.status()["requests"] + second.status()["requests"]
    assert not document["services"]
    error = document["driver"]["observer_error"]
    assert f"web-1: {killed.url}/v1/phases/" in error and "web-2: it answered when the measured phase had begun" in error
    text = "\n".join(report(driver.stdout, tmp_path))
    assert f"without the observer's part: web-1: {killed.url}/v1/phases/" in text, text


@needs_nats
def test_no_observer_over_nats(start, net, hidden, nats):
    """Without an observer that sees a target nothing is sent, and the error says who answered and why not."""
    (nginx, observer), (_, other) = hidden
    place = f"{net[1][0].address}:{nginx.port}"
    start(Agent(nats.url, "web-1", "--observer", observer.url, "--allow", "192.0.2.0/24", netns=net[1][0]))
    look_out(start, nats, net[1][1], other)
    fleet = load_agents(start, nats, net, gather="2s")
    done = run([DRIVER, *fleet, nginx.url, "-c", "2", "-n", "10", "--observer", "fleet"], netns=net[0], check=False)
    assert done.status == 1 and nginx.status()["requests"] == 0
    assert f"sees {place} within 2 s; web-1: '{place}' is not among the targets of its --allow 192.0.2.0/24" in done.stderr, done.stderr
    assert "; 1 answered of which no target is: web-2" in done.stderr, done.stderr


def test_mistakes_with_groups_of_observers(tmp_path):
    """The option, the value and the way out are named, before anything starts."""
    (tmp_path / "token").write_text("token")
    for words, expected in (
            (["127.0.0.1:1", "--observer", "fleet"], "--observer: 'fleet' means the NATS server of sojourn-drive fleet --via"),
            (["127.0.0.1:1", "--observer", "nats://"], "--observer: 'nats://' has no host"),
            (["127.0.0.1:1", "--observer", "nats://a", "--observer", "tls://b"], "'tls://b' is a second group of observers"),
            (["127.0.0.1:1", "--observer", "nats://a", "--observer-ca", __file__], "--observer-ca: '"),
            (["127.0.0.1:1", "--observer", "nats://a", "--observer-key", "k"], "--observer-key: 'nats://a' may be without TLS"),
            (["127.0.0.1:1", "--observer", "9180", "--observer-cert", "c"], "--observer-cert: it is for a NATS server"),
            (["127.0.0.1:1", "--observer", "nats://a", "--observer-token-file", tmp_path / "token"], "agents at the NATS server show"),
            (["agent", "--observer", "9180"], "--observer: there is no NATS server"),
            (["agent", "--fleet", "nats://a", "--observer", "fleet"], "'fleet' is no observer's address"),
            (["agent", "--fleet", "nats://a", "--observer", "1", "--max-rate", "5"], "--max-rate: an agent with --observer carries no load"),
            (["agent", "--fleet", "nats://a", "--sees", "10.0.0.0/8"], "--sees: it is for agents beside an observer"),
            (["agent", "--fleet", "nats://a", "--observer", "1", "--sees", "10.0.0.0/99"], "--sees: '10.0.0.0/99' is neither")):
        done = run([DRIVER, *words], check=False)
        assert done.status == 2 and expected in done.stderr, (words, done.stderr)
    done = run([OBSERVER, "serve", "--fleet", "nats://hub"], check=False)
    assert done.status == 2 and "sojourn-drive agent --fleet nats://hub --observer 9180" in done.stderr, done.stderr


class Endless:
    """An HTTP server that begins a phase, and whose document of it has no end."""

    def __init__(self):
        self.listener, self.sent = socket.create_server(("127.0.0.1", 0)), 0
        self.port = self.listener.getsockname()[1]
        serve_each(self.listener, self.answer)

    def answer(self, connection):
        with connection, contextlib.suppress(OSError):
            while head := connection.recv(65536):
                if b"/end" not in head.split(b"\r\n", 1)[0]:
                    body = b'{"phase": 1, "lease_s": 60}'
                    connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                    continue
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{")
                while self.sent < 1 << 30:
                    self.sent += connection.send(b" " * (1 << 20))

    def close(self):
        self.listener.close()


def test_an_observer_without_end_is_left(start):
    """A document of at most 64 MiB is read; the driver's own result is kept."""
    lab, endless = start(Lab()), start(Endless())
    driver = run([DRIVER, lab.url, "-n", "100", "--observer", f"http://127.0.0.1:{endless.port}"], check=False, seconds=50)
    assert driver.status == 1
    assert "answered more than 64 MiB: is it an observer?" in driver.stderr
    assert "100 requests" in driver.stdout.replace("\n", " ")
    assert endless.sent < 128 << 20
