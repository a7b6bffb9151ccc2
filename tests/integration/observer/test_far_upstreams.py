# SPDX-License-Identifier: MIT
"""A service that waits for one of another host: two namespaces with an observer each, whose documents are reported
together. The truth are nginx's log in front, and the lab server's own times behind."""
import csv
import re

import pytest

from support import documents
from support.documents import service
from support.net import Host, veth
from support.process import Process, run
from support.programs import DRIVER, OBSERVER, Lab, Observer
from support.timing import in_quiet, lies_within

from .test_upstreams import KEEP, Front, means, upstreams

COUNT = 150
WAITS = re.compile(r"nginx waits for (\S+) on behind \(port (\d+)\) for ([\d.]+) % of its service: ([\d.]+) calls of")


@pytest.fixture(scope="module")
def hosts():
    """Yield the front's host and the upstream's."""
    with Host("front", "10.204.0.1") as front, Host("behind", "10.204.0.2") as behind:
        veth(front, behind, (f"{front.address}/24", f"{behind.address}/24"))
        yield front, behind


def observe(start, host, port):
    return start(Observer("--listen", f"{host.address}:0", "--open", ports=[port], netns=host))


def drive(host, url, *words, count=COUNT):
    done = run([DRIVER, url, "-c", "10", "-n", count, *words, "--json", "-"], netns=host)
    return done.stdout, documents.parse(done.stdout)


def report(*paths):
    return re.sub(r"\s+", " ", run([OBSERVER, "report", "-v", *paths]).stdout)


def merged(tmp_path, *paths):
    run([OBSERVER, "report", *paths, "-o", tmp_path / "merged.json"])
    return documents.load(tmp_path / "merged.json")


@pytest.mark.parametrize("keep", [True, False])
@in_quiet
def test_the_time_of_an_upstream_on_another_host(start, hosts, tmp_path, keep):
    """The wait is at least the lab's own service, and at most nginx's time of its upstream, which includes the network.
    A driver that brackets both observers says the same as a report of two observers' own documents."""
    lab = start(Lab("--service", "50ms", "--truth", tmp_path / "truth.csv", address=hosts[1].address, netns=hosts[1]))
    front = start(Front({"call": KEEP % "behind" if keep else "proxy_pass http://behind;"}, host=hosts[0],
                        behind=f"server {lab.address}:{lab.port}; {'keepalive 8;' if keep else ''}"))
    observers = [observe(start, host, port) for host, port in zip(hosts, (front.port, lab.port))]
    text, document = drive(hosts[0], front.url + "call", *(word for one in observers for word in ("--observer", one.url)))
    for observer in observers:
        observer.stop()
    lab.stop()
    with open(tmp_path / "truth.csv", encoding="ascii") as file:
        true_ns = sum(int(line["first_write_end_ns"]) - int(line["last_read_end_ns"]) for line in csv.DictReader(file)) / COUNT
    _, called_ns = front.times()
    (tmp_path / "run.json").write_text(text)
    for whole, said in ((document, report(tmp_path / "run.json")),
                        (merged(tmp_path, *(one.json for one in observers)), report(*(one.json for one in observers)))):
        entry, behind = service(whole, front.port), service(whole, lab.port)
        row, = entry["upstreams"]
        assert (row["host"], row["port"], row["others"], row["serves_too"]) == ("behind", lab.port, 0, None)
        assert row["nested"]["reason"].startswith("the two hosts have no common clock")
        assert row["connections"] == (behind["accepted"] if keep else COUNT)
        assert "called" not in entry and "calls" not in entry
        wait_ns = means(behind, "socket_queue", "service") + behind["accept_delay_ns"] / COUNT
        assert lies_within(wait_ns, true_ns, called_ns)
        share = 100 * wait_ns / means(entry, "service")
        told = WAITS.search(said)
        assert told and told[1] == "sojourn-lab" and int(told[2]) == lab.port, said
        assert abs(float(told[3]) - share) < 1 and float(told[4]) == 1, said


def test_connections_of_others_and_older_ones(start, hosts, tmp_path):
    """Kept connections from before the observation are nginx's, another client's is not: then the part is not known."""
    lab = start(Lab("--service", "2ms", address=hosts[1].address, netns=hosts[1]))
    front = start(Front({"call": KEEP % "behind"}, host=hosts[0], behind=f"server {lab.address}:{lab.port}; keepalive 8;"))
    drive(hosts[0], front.url + "call", count=40)
    observers = [observe(start, host, port) for host, port in zip(hosts, (front.port, lab.port))]
    both = [word for one in observers for word in ("--observer", one.url)]
    text, document = drive(hosts[0], front.url + "call", *both)
    row = upstreams(document, front.port)[lab.port]
    behind = service(document, lab.port)
    assert behind["older_connections"] >= 1 and row["others"] == 0
    assert row["connections"] == behind["accepted"] + behind["older_connections"]
    drive(hosts[1], f"http://{lab.address}:{lab.port}/", count=20)
    for observer in observers:
        observer.stop()
    row = upstreams(merged(tmp_path, *(one.json for one in observers)), front.port)[lab.port]
    assert row["others"] == 10
    said = report(*(one.json for one in observers))
    assert f"nginx calls sojourn-lab on behind (port {lab.port}), and how long it waits is not known: " in said, said
    assert "nginx waits for" not in said


def test_documents_of_different_seconds(start, hosts):
    """The upstream answered its front before the front's observer began: nothing is said of the part."""
    lab = start(Lab("--service", "2ms", address=hosts[1].address, netns=hosts[1]))
    front = start(Front({"call": KEEP % "behind"}, host=hosts[0], behind=f"server {lab.address}:{lab.port}; keepalive 8;"))
    behind = observe(start, hosts[1], lab.port)
    drive(hosts[0], front.url + "call", count=100)
    before = observe(start, hosts[0], front.port)
    drive(hosts[0], front.url + "call", count=100)
    for observer in (before, behind):
        observer.stop()
    said = report(before.json, behind.json)
    assert "nginx waits for" not in said and "how long it waits is not known: " in said, said


RELAY = """
import socket, sys, threading
def pump(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
listener = socket.create_server((sys.argv[1], 0))
print("ready", listener.getsockname()[1], flush=True)
while True:
    one = listener.accept()[0]
    other = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    for pair in ((one, other), (other, one)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def test_an_address_that_no_document_knows(start, hosts):
    """Between both is a relay at another port, as translated addresses are: nothing is paired, and the place is named."""
    lab = start(Lab("--service", "5ms", address=hosts[1].address, netns=hosts[1]))
    relay = start(Process(["/usr/bin/python3", "-c", RELAY, hosts[1].address, lab.address, lab.port], netns=hosts[1]))
    port = int(relay.wait_for(r"^ready (\d+)$")[1])
    front = start(Front({"call": KEEP % "behind"}, host=hosts[0], behind=f"server {hosts[1].address}:{port}; keepalive 8;"))
    observers = [observe(start, host, port) for host, port in zip(hosts, (front.port, lab.port))]
    text, document = drive(hosts[0], front.url + "call", *(word for one in observers for word in ("--observer", one.url)))
    for observer in observers:
        observer.stop()
    entry = service(document, front.port)
    assert "upstreams" not in entry
    assert [(row["towards"], row["connections"] > 0) for row in entry["called"]] == [(f"{hosts[1].address}:{port}", True)]
    said = report(*(one.json for one in observers))
    assert "nginx waits for" not in said
    assert f"connections to {hosts[1].address}:{port}. These are not observed, or under other addresses" in said, said
