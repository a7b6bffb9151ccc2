# SPDX-License-Identifier: MIT
"""Single calls of nginx in front, each paired with its exchange on the upstream's host, which has an observer of its own. The
truth are nginx's log of its upstream in ms, the upstream's own log or times, and the rate of the path between both."""
import csv
import re
import shutil

import pytest

from support import documents
from support.documents import service
from support.net import Host, veth
from support.process import run, wait_until
from support.programs import DRIVER, Driver, Lab
from support.timing import MS, Untimely, in_quiet, lies_within

from .test_far_calls import observe
from .test_far_upstreams import merged, report
from .test_upstreams import KEEP, Front, upstreams

COUNT = 200
EACH = 50  # so many requests have one slow one among them

# 70,000 bytes at 10 Mbit/s, of which 5 kB pass at once, without a ms of doubt.
ON_PATH = 51 * MS
FRONT = "10.206.0.1"
POOL = "client_body_buffer_size 128k;" + KEEP % "pool"
SLOWEST = re.compile(r"Of its slowest 1 % \((\d+) from \S+ ms on\) ([\d.<]+) % was the wait for \S+: ([\d.<]+) % were there, "
                     r"([\d.<]+) % between both, and ([\d.<]+) % its own")


@pytest.fixture
def hosts():
    """Yield the front's host and the upstream's."""
    with Host("front", FRONT) as front, Host("behind", "10.206.0.2") as behind:
        veth(front, behind, (f"{front.address}/24", f"{behind.address}/24"))
        yield front, behind


def start_front(start, host, address, port):
    return start(Front({"call": POOL, "now": "return 200;"}, host=host, pool=f"server {address}:{port}; keepalive 16;"))


def observe_both(start, hosts, front, port, behind=()):
    return observe(start, hosts[0], front.port, "--calls"), observe(start, hosts[1], port, *behind)


def finish(tmp_path, observers, front):
    """Return the front's row of its upstream in one document of both observers, and what the report of both says."""
    for observer in observers:
        observer.stop()
    paths = [observer.json for observer in observers]
    row, = upstreams(merged(tmp_path, *paths), front.port).values()
    return row, report(*paths)


def load(url, host, *slow):
    """COUNT requests one after another, of which each EACH-th is another one: by one connection to the front."""
    for _ in range(COUNT // EACH):
        Driver(url + "call?service=1ms", connections=1, count=EACH - 1, netns=host)
        Driver(url + "call?service=1ms" if not slow[0] else url + slow[0], *slow[1:], connections=1, count=1, netns=host)


def times(path):
    """Return what the lab server took from the request's last byte to the response's first one, in ns, in its order."""
    with open(path, encoding="ascii") as file:
        return [int(line["first_write_end_ns"]) - int(line["last_read_end_ns"]) for line in csv.DictReader(file)]


@pytest.mark.parametrize("where", ["there", "between"])
@in_quiet
def test_where_the_slow_requests_are_slow(start, hosts, tmp_path, where):
    """Four requests of 200 are slow. Their backend takes 60 ms, or their 70,000 bytes wait for a path of 10 Mbit/s. nginx
    counts that as its upstream's time, too. Each call is paired, and the sums are those of the servers' own logs."""
    hosts[0].exec(["tc", "qdisc", "replace", "dev", "veth0", "root", "tbf", "rate", "10mbit", "burst", "5kb", "latency", "2s"])
    lab = start(Lab("--truth", tmp_path / "truth.csv", address=hosts[1].address, netns=hosts[1]))
    front = start_front(start, hosts[0], lab.address, lab.port)
    observers = observe_both(start, hosts, front, lab.port)
    load(front.url, hosts[0], *(["call?service=60ms"] if where == "there" else ["", "--body", "b" * 70_000]))
    row, said = finish(tmp_path, observers, front)
    lab.stop()
    nested, pairs = row["nested"], row["pairs"]
    divided, slowest = nested["divided"], nested["slowest"]
    assert (pairs["reason"], pairs["calls"], pairs["paired"], nested["reason"], nested["paired"]) == (None, COUNT, COUNT, None, COUNT)
    assert pairs["whole"]["sum_ns"] == pairs["there"]["sum_ns"] + pairs["between"]["sum_ns"]
    assert nested["all"]["service_ns"] == sum(divided[part]["sum_ns"] for part in ("own", "there", "between"))
    assert slowest["count"] == divided["slowest"] == 2
    assert slowest["service_ns"] == sum(divided[f"slowest_{part}_ns"] for part in ("own", "there", "between"))
    there, called = times(tmp_path / "truth.csv"), [float(line.split()[1]) * 1000 * MS for line in front.log()]
    assert len(there) == len(called) == COUNT
    truth = {"there": sum(there), "between": sum(called) - sum(there), "whole": sum(called)}
    told = SLOWEST.search(said)
    assert told and int(told[1]) == 2, said
    least_ns = 60 * MS if where == "there" else ON_PATH
    assert pairs[where]["sum_ns"] >= COUNT // EACH * least_ns and pairs[where]["max_ns"] >= least_ns
    if divided[f"slowest_{where}_ns"] < 2 * least_ns:
        raise Untimely(f"the slowest were others: {divided}")
    for part, sum_ns in truth.items():
        if abs(pairs[part]["sum_ns"] - sum_ns) > COUNT * MS:
            raise Untimely(f"{part}: {pairs[part]['sum_ns']} is not {sum_ns}")
    if max(float(told[3]), float(told[4])) != float(told[3 if where == "there" else 4]):
        raise Untimely(said)


@in_quiet
def test_many_at_once_to_another_nginx(start, hosts, tmp_path):
    """The upstream is nginx, whose log has its own times. Its kept connections are shared by 20 clients in any order."""
    lab = start(Lab("--service", "5ms", address="127.0.0.1", netns=hosts[1]))
    behind = start(Front({"call": f"proxy_pass http://127.0.0.1:{lab.port};"}, host=hosts[1]))
    front = start_front(start, hosts[0], hosts[1].address, behind.port)
    observers = observe_both(start, hosts, front, behind.port)
    Driver(front.url + "call", connections=20, count=1000, netns=hosts[0])
    row, said = finish(tmp_path, observers, front)
    pairs = row["pairs"]
    assert (pairs["reason"], pairs["calls"], pairs["paired"]) == (None, 1000, 1000)
    if pairs["early"] > 10:
        raise Untimely(f"the times of {pairs['early']} writes are late")
    assert row["nested"]["paired"] + row["nested"]["ambiguous"] == 1000
    assert "1,000 calls are paired with their exchanges on behind." in said, said
    # nginx's own time begins when it reads: what waits in its sockets is in neither log, but in the front's.
    least_ns, most_ns = behind.times()[0], front.times()[1]
    lies_within(pairs["there"]["mean_ns"], least_ns - MS, most_ns + MS)
    lies_within(pairs["whole"]["mean_ns"], least_ns - MS, most_ns + MS)
    lies_within(pairs["between"]["mean_ns"], 0, most_ns - least_ns + 2 * MS)


@in_quiet
def test_a_request_that_is_tried_again_elsewhere(start, hosts, tmp_path):
    """nginx asks a server that refuses, and then a slow one: for the first, the wait for the second is not called nginx's own."""
    refusing = start(Front({"call": "return 503;"}, host=hosts[1]))
    lab = start(Lab("--service", "20ms", address=hosts[1].address, netns=hosts[1]))
    front = start(Front({"call": "proxy_next_upstream http_503;" + KEEP % "both"}, host=hosts[0],
                        both="".join(f"server {lab.address}:{one.port} max_fails=0;" for one in (refusing, lab)) + "keepalive 4;"))
    observers = [observe(start, hosts[0], front.port, "--calls"),
                 observe(start, hosts[1], refusing.port), observe(start, hosts[1], lab.port)]
    Driver(front.url + "call", connections=1, count=40, netns=hosts[0])
    for observer in observers:
        observer.stop()
    paths = [observer.json for observer in observers]
    rows, said = upstreams(merged(tmp_path, *paths), front.port), report(*paths)
    twice = sum("," in line for line in front.log())
    assert twice == 20 and (rows[refusing.port]["pairs"]["paired"], rows[lab.port]["pairs"]["paired"]) == (twice, 40)
    assert rows[refusing.port]["nested"]["divided"]["own"]["sum_ns"] > twice * 20 * MS
    assert rows[lab.port]["nested"]["divided"]["there"]["sum_ns"] > 40 * 20 * MS
    assert "% its own, or of calls to others" in said and not re.search(r"between both, and \S+ % its own(?!, or)", said), said


# Answers "get MS" after so long, and nothing else.
ANSWERS = """
import socket, sys, time
listener = socket.create_server((sys.argv[1], 0))
print("port", listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
for line in connection.makefile():
    if line.startswith("get"):
        time.sleep(int(line.split()[1]) / 1000)
        connection.sendall(b"done\\n")
"""

# Each request is a call, of which the 300th takes longer; the first is after a message that wants no response.
ASKS = """
import http.server, socket, sys, time
upstream, calls = None, 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global upstream, calls
        if not upstream:
            upstream = socket.create_connection((sys.argv[2], int(sys.argv[3])))
            upstream.sendall(b"set\\n")
            time.sleep(0.3)
        calls += 1
        upstream.sendall(b"get 60\\n" if calls == 300 else b"get 10\\n")
        upstream.recv(100)
        self.send_response(204)
        self.end_headers()
server = http.server.ThreadingHTTPServer((sys.argv[1], 0), Handler)
print("port", server.server_port, flush=True)
server.serve_forever()
"""


def test_numbers_that_are_off_by_one(start, hosts, tmp_path):
    """The upstream's observer counts the message without a response, and the front has it in its first call. All calls
    take equally long but one, so each could be that of its neighbour. None is paired."""
    behind = start(["/usr/bin/python3", "-c", ANSWERS, hosts[1].address], netns=hosts[1])
    port = int(behind.wait_for(r"^port (\d+)$")[1])
    front = start(["/usr/bin/python3", "-c", ASKS, hosts[0].address, hosts[1].address, port], netns=hosts[0])
    ahead = int(front.wait_for(r"^port (\d+)$")[1])
    observers = observe(start, hosts[0], ahead, "--calls"), observe(start, hosts[1], port)
    Driver(f"http://{hosts[0].address}:{ahead}/", connections=1, count=400, netns=hosts[0])
    for observer in observers:
        observer.stop()
    paths = [observer.json for observer in observers]
    assert service(observers[1].summary(), port)["losses"]["oneway"] == 1
    row = upstreams(merged(tmp_path, *paths), ahead)[port]
    assert (row["pairs"]["calls"], row["pairs"]["paired"], row["nested"]["divided"]["own"]["count"]) == (400, 0, 0)
    assert "may count calls in different ways" in report(*paths)


def test_fewer_samples_there(start, hosts, tmp_path):
    """The upstream's observer keeps at most 50: so many calls are paired, of the same ones. The rest is not counted as lost."""
    lab = start(Lab("--service", "1ms", address=hosts[1].address, netns=hosts[1]))
    front = start_front(start, hosts[0], lab.address, lab.port)
    observers = observe_both(start, hosts, front, lab.port, ["--samples", "50"])
    Driver(front.url + "call", connections=8, count=COUNT, netns=hosts[0])
    row, _ = finish(tmp_path, observers, front)
    kept = service(observers[1].summary(), lab.port)["samples"]
    pairs, divided = row["pairs"], row["nested"]["divided"]
    assert 0 < len(kept["index"]) <= 50 and pairs["threshold"] == kept["threshold"] < 2 ** 32
    assert (pairs["reason"], pairs["calls"], pairs["paired"]) == (None, len(kept["index"]), len(kept["index"]))
    assert row["nested"]["reason"] is None and divided["own"]["count"] <= pairs["paired"]


def test_fewer_samples_in_front(start, hosts, tmp_path):
    """Without all of the front's samples nothing is said of single requests, and the pairs are still known."""
    lab = start(Lab("--service", "1ms", address=hosts[1].address, netns=hosts[1]))
    front = start_front(start, hosts[0], lab.address, lab.port)
    observers = observe(start, hosts[0], front.port, "--calls", "--samples", "50"), observe(start, hosts[1], lab.port)
    Driver(front.url + "call", connections=8, count=COUNT, netns=hosts[0])
    row, _ = finish(tmp_path, observers, front)
    assert "exchanges is sampled, and all are needed" in row["nested"]["reason"]
    assert row["pairs"]["reason"] is None and 0 < row["pairs"]["paired"] == row["pairs"]["calls"] <= 50


@pytest.mark.parametrize("older", ["front", "behind"])
def test_connections_that_are_older(start, hosts, tmp_path, older):
    """Connections that were open before the observer of either host began have no number, and are not guessed."""
    lab = start(Lab("--service", "1ms", address=hosts[1].address, netns=hosts[1]))
    front = start_front(start, hosts[0], lab.address, lab.port)
    observers = []
    if older == "behind":
        observers.append(observe(start, hosts[0], front.port, "--calls"))
    Driver(front.url + "call", connections=4, count=40, netns=hosts[0])
    if older == "front":
        observers.append(observe(start, hosts[0], front.port, "--calls"))
    observers.append(observe(start, hosts[1], lab.port))
    Driver(front.url + "call", connections=4, count=COUNT, netns=hosts[0])
    row, said = finish(tmp_path, observers, front)
    pairs = row["pairs"]
    assert pairs["paired"] == 0 and "No call is paired with an exchange there: " + pairs["reason"] in said, said
    if older == "front":
        assert pairs["calls"] == 0 and "calls are not sampled, and all are needed" in row["nested"]["reason"]
    else:
        assert pairs["calls"] == pairs["unknown_flow"] == 40 + COUNT and "older than the observation" in pairs["reason"]
        assert row["nested"]["reason"] is None and row["nested"]["divided"]["own"]["count"] == 0


@pytest.mark.parametrize("what", ["client", "server"])
@pytest.mark.skipif(not shutil.which("nft"), reason="no nft")
def test_translated_addresses(start, hosts, tmp_path, what):
    """The kernel translates the front's address and port, or the upstream's: no connection is the same on both hosts."""
    lab = start(Lab("--service", "1ms", address=hosts[1].address, netns=hosts[1]))
    port = lab.port if what == "client" else 81
    hook, rule = ("postrouting", f"snat to {FRONT}:20000-20100 random") if what == "client" else ("prerouting", f"redirect to :{lab.port}")
    host = hosts[0 if what == "client" else 1]
    host.exec(["nft", f"add table ip s; add chain ip s c {{ type nat hook {hook} priority 0; }}; add rule ip s c tcp dport {port} {rule}"])
    front = start_front(start, hosts[0], lab.address, port)
    observers = observe_both(start, hosts, front, lab.port)
    Driver(front.url + "call", connections=4, count=COUNT, netns=hosts[0])
    if what == "server":
        for observer in observers:
            observer.stop()
        entry = service(merged(tmp_path, *(one.json for one in observers)), front.port)
        said = report(*(one.json for one in observers))
        assert "upstreams" not in entry and entry["timed_calls"][0]["calls"] == COUNT
        assert f"connections to {lab.address}:81. These are not observed, or under other addresses (translated" in said, said
        return
    row, said = finish(tmp_path, observers, front)
    assert (row["pairs"]["paired"], row["pairs"]["unknown_flow"]) == (0, COUNT)
    assert "addresses or ports are translated in between" in row["pairs"]["reason"]
    assert "No call is paired with an exchange there: none of the connections to it is known" in said, said
    assert row["nested"]["paired"] + row["nested"]["ambiguous"] == COUNT and row["nested"]["divided"]["own"]["count"] == 0


def test_a_driver_that_brackets_both(start, hosts):
    """The document of a run with two observers has the pairs, too. Requests without a call are alone."""
    lab = start(Lab("--service", "1ms", address=hosts[1].address, netns=hosts[1]))
    front = start_front(start, hosts[0], lab.address, lab.port)
    observers = observe_both(start, hosts, front, lab.port)
    done = run([DRIVER, front.url + "call", front.url + "now", "-c", "1", "-n", "100", "--json", "-",
                *(word for one in observers for word in ("--observer", one.url))], netns=hosts[0])
    row = upstreams(documents.parse(done.stdout), front.port)[lab.port]
    wait_until(lambda: len(front.log()) == 100)
    calls = sum(not line.split()[1] == "-" for line in front.log())
    assert row["pairs"]["paired"] == row["pairs"]["calls"] == calls
    assert row["nested"]["alone"] == 100 - calls and row["nested"]["divided"]["own"]["count"] == calls
