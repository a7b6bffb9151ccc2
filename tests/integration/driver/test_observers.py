# SPDX-License-Identifier: MIT
"""Observers on several hosts: namespaces with a host name and an nginx each, whose counts are the truth."""
import contextlib
import re

import pytest

from support import documents
from support.net import Netns, free_port
from support.process import Process, run, wait_until
from support.programs import DRIVER, OBSERVER, Lab, Nginx, Observer


class Host(Netns):
    """A network namespace whose processes have a host name of their own."""

    def __init__(self, name, address):
        super().__init__(name)
        self.host = name
        self.address = address

    def prefix(self):
        return [*super().prefix(), "unshare", "--uts", "sh", "-c", f'hostname {self.host} && exec "$@"', "sh"]


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


def observed(servers):
    """Return the options for the observers of all servers."""
    return [word for _, observer in servers for word in ("--observer", observer.url)]


def drive(switch, servers, *words, status=0, fleet=()):
    """Run to the end, with all servers as targets in turn. Return the process, and its document."""
    command = [DRIVER, *fleet, *words, *(nginx.url + "page" for nginx, _ in servers), *observed(servers), "--json", "-"]
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
