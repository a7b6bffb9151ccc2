# SPDX-License-Identifier: MIT
"""A service that waits for another one: against the log of nginx in front, and the truth of the lab server, its upstream."""
import csv
import re
import socketserver
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support.documents import service
from support.http import request
from support.net import Netns, free_port
from support.process import run, wait_until
from support.programs import Driver, Lab, Nginx, Observer
from support.timing import MS, in_quiet, lies_within

LOG = "log_format calls '$request_time $upstream_response_time $upstream_addr';"
WAITS = re.compile(r"(?:waits| and) for (\S+) \(port (\d+)\) for (?:at most )?([\d.<]+) % of its service: ([\d.]+) calls of")


class Front(Nginx):
    """nginx with a line in its log for each request. `places` are {name: what it does}, `groups` {name: servers}."""

    def __init__(self, places, port=None, host=None, **groups):
        pools = "".join(f"upstream {name} {{ {servers} }}" for name, servers in groups.items())
        inside = "".join(f"location /{name} {{ {what} }}" for name, what in places.items())
        super().__init__(port=port, netns=host, addresses=(host.address if host else "127.0.0.1",), http_block=LOG + pools + "limit_req_zone $binary_remote_addr zone=slow:1m rate=100r/s;",
                         server="access_log {folder}/calls.log calls; " + inside)

    def log(self):
        return Path(self.files.name, "calls.log").read_text().splitlines()

    def times(self):
        """Return the means of $request_time and $upstream_response_time, in ns."""
        lines = [line.split() for line in self.log()]
        return [sum(float(line[at]) for line in lines) / len(lines) * 1000 * MS for at in (0, 1)]


KEEP = 'proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Connection "";'


def pairs(front, hints):
    """Return {port: (percent of service, calls per request)} as the report says them of the front."""
    text = re.sub(r"\s+", " ", hints)
    text = text[text.index("hint "):]
    return {int(port): (float(share.strip("<")), float(calls)) for _, port, share, calls in WAITS.findall(text)}


def upstreams(document, port):
    return {row["port"]: row for row in service(document, port).get("upstreams", [])}


def means(entry, *names):
    return sum(entry["stages"][name]["sum_ns"] for name in names) / entry["exchanges"]


@pytest.mark.parametrize("keep", [True, False])
@in_quiet
def test_the_time_of_the_upstream(start, tmp_path, keep):
    """nginx logs whole milliseconds, which 50 ms make less than 1 %. The wait is at least the lab's own service, at most nginx's time of its upstream; the rest is nginx's own."""
    lab = start(Lab("--service", "50ms", "--truth", tmp_path / "truth.csv"))
    front = start(Front({"call": KEEP % "behind" if keep else "proxy_pass http://behind;"},
                        behind=f"server 127.0.0.1:{lab.port}; {'keepalive 8;' if keep else ''}"))
    observer = start(Observer(ports=[front.port, lab.port]))
    document = Driver(front.url + "call", connections=10, count=150, observer=observer).document
    observer.stop()
    lab.stop()
    row = upstreams(document, front.port)[lab.port]
    assert row["others"] == 0 and row["serves_too"] is None
    assert row["connections"] == (service(document, lab.port)["accepted"] if keep else 150)
    assert upstreams(document, lab.port) == {}
    with open(tmp_path / "truth.csv", encoding="ascii") as file:
        true_ns = sum(int(line["first_write_end_ns"]) - int(line["last_read_end_ns"]) for line in csv.DictReader(file)) / 150
    whole_ns, called_ns = front.times()
    wait_ns = means(service(document, lab.port), "socket_queue", "service") \
        + service(document, lab.port)["accept_delay_ns"] / 150
    service_ns = means(service(document, front.port), "service")
    assert lies_within(wait_ns, true_ns, called_ns)
    assert lies_within(service_ns, min(called_ns, whole_ns), max(called_ns, whole_ns))
    (share, calls), = pairs(front, observer.stdout).values()
    assert calls == 1 and abs(share - 100 * wait_ns / service_ns) < 1
    assert re.search(rf"nginx\s+waits\s+for\s+sojourn-lab\s+\(port\s+{lab.port}\),", observer.stdout)


def test_connections_that_are_older(start):
    """Kept connections from before the observation are nginx's, and a client's own is not."""
    lab = start(Lab("--service", "2ms"))
    front = start(Front({"call": KEEP % "behind"}, behind=f"server 127.0.0.1:{lab.port}; keepalive 8;"))
    Driver(front.url + "call", connections=4, count=40)
    observer = start(Observer(ports=[front.port, lab.port]))
    document = Driver(front.url + "call", connections=4, count=100, observer=observer).document
    row = upstreams(document, front.port)[lab.port]
    assert row["connections"] >= 1 and row["others"] == 0
    assert service(document, lab.port)["accepted"] < row["connections"]
    request(lab.url)
    observer.stop()
    row = upstreams(observer.summary(), front.port)[lab.port]
    assert row["others"] == 1
    text = re.sub(r"\s+", " ", observer.stdout)
    assert f"nginx calls sojourn-lab (port {lab.port}), and how long it waits is not known: 1 of" in text
    assert "nginx waits for" not in text


def test_several_upstreams(start):
    """As many calls of each as in nginx's log, with a call that is tried again elsewhere."""
    refusing = start(Nginx(server="location /busy { return 503; }"))
    slow, fast = start(Lab("--service", "20ms")), start(Lab("--service", "1ms"))
    again = "proxy_next_upstream http_503 non_idempotent; proxy_pass http://both;"
    front = start(Front({"slow": KEEP % "one", "fast": f"proxy_pass http://127.0.0.1:{fast.port};", "busy": again},
                        one=f"server 127.0.0.1:{slow.port}; keepalive 8;",
                        both=f"server 127.0.0.1:{refusing.port} max_fails=0; server 127.0.0.1:{fast.port} max_fails=0;"))
    ports = [refusing.port, slow.port, fast.port]
    observer = start(Observer(ports=[front.port, *ports]))
    for name, count in (("slow", 20), ("fast", 10), ("busy", 10)):
        for _ in range(count):
            request(f"{front.url}{name}")
    observer.stop()
    wait_until(lambda: len(front.log()) == 40)
    logged = Counter(int(port) for port in re.findall(r"127.0.0.1:(\d+)", "\n".join(front.log())))
    document = observer.summary()
    assert {port: service(document, port)["exchanges"] for port in ports} == logged
    assert logged[fast.port] == 20 and logged[refusing.port] >= 4
    assert {row["others"] for row in upstreams(document, front.port).values()} == {0}
    said = pairs(front, observer.stdout)
    assert {port: calls for port, (_, calls) in said.items()} == {port: round(logged[port] / 40, 2) for port in ports}
    assert max(said, key=lambda port: said[port][0]) == slow.port


def test_a_front_that_is_slow_itself(start):
    """nginx holds each request back before its call: the upstream is named with its small part, not as the cause."""
    lab = start(Lab("--service", "1ms"))
    front = start(Front({"call": f"limit_req zone=slow burst=1000; proxy_pass http://127.0.0.1:{lab.port};"}))
    observer = start(Observer(ports=[front.port, lab.port]))
    document = Driver(front.url + "call", connections=8, count=50, observer=observer).document
    observer.stop()
    assert upstreams(document, front.port)[lab.port]["others"] == 0
    (share, calls), = pairs(front, observer.stdout).values()
    assert share < 50 and calls == 1
    assert "nginx takes this long" in re.sub(r"\s+", " ", observer.stdout)


class Slow(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(4096):
            time.sleep(0.01)
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_upstreams_that_are_not_observed(start, tmp_path):
    """By a Unix socket and by TCP: named, with no time of theirs."""
    path = tmp_path / "app.sock"
    lab = start(Lab("--service", "10ms"))
    with socketserver.ThreadingUnixStreamServer(str(path), Slow) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        try:
            front = start(Front({"unix": KEEP % "near", "tcp": KEEP % "far"}, near=f"server unix:{path}; keepalive 8;",
                                far=f"server 127.0.0.1:{lab.port}; keepalive 8;"))
            observer = start(Observer(ports=[front.port]))
            for name in ("unix", "tcp", "unix"):
                request(front.url + name)
            observer.stop()
            front.stop()
        finally:
            server.shutdown()
    entry = service(observer.summary(), front.port)
    assert sorted(entry["calls"].split(", ")) == [f"127.0.0.1:{lab.port}", f"unix:{path}"]
    assert "upstreams" not in entry
    text = re.sub(r"\s+", " ", observer.stdout)
    assert f"nginx takes this long, or waits for {entry['calls']} (not observed" in text
    assert f"connections to {entry['calls']}. These are not observed" in text


def test_observed_ones_are_known_by_their_address(start):
    """A server on another host is not observed, although the port is that of an observed one. The front itself is."""
    with Netns("far") as far:
        run(["ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", far.name])
        for prefix, address in (([], "10.203.0.1/24"), (far.prefix(), "10.203.0.2/24")):
            run([*prefix, "ip", "address", "add", address, "dev", "veth0"])
            run([*prefix, "ip", "link", "set", "veth0", "up"])
        lab, port = start(Lab("--service", "10ms", address="10.203.0.2", netns=far)), free_port()
        with socketserver.ThreadingTCPServer(("127.0.0.1", lab.port), Slow) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever).start()
            try:
                front = start(Front({"self/": (KEEP % "me") + " rewrite ^/self(.*)$ $1 break;", "call": KEEP % "both"}, port,
                                    me=f"server 127.0.0.1:{port}; keepalive 8;",
                                    both=f"server 127.0.0.1:{lab.port}; server 10.203.0.2:{lab.port}; keepalive 8;"))
                observer = start(Observer(ports=[port, lab.port]))
                for _ in range(4):
                    request(front.url + "self/call")
                observer.stop()
                front.stop()
            finally:
                server.shutdown()
    entry = service(observer.summary(), port)
    assert entry["calls"] == f"10.203.0.2:{lab.port}"
    assert [row["port"] for row in entry["upstreams"]] == [lab.port]


def test_processes_that_serve_two_ports(start):
    """Which of both services the calls were for is not known, unless only one had requests."""
    lab = start(Lab("--service", "1ms"))
    inner = KEEP % "behind"
    front = start(Front({"call": inner}, behind=f"server 127.0.0.1:{lab.port}; keepalive 8;"))
    observer = start(Observer(ports=[front.port, front.status_port, lab.port]))
    for _ in range(5):
        request(front.url + "call")
    phase = observer.begin_phase()
    for _ in range(5):
        request(front.url + "call")
    assert upstreams(observer.end_phase(phase), front.port)[lab.port]["serves_too"] is None
    front.status()
    observer.stop()
    document = observer.summary()
    assert upstreams(document, front.port)[lab.port]["serves_too"] == front.status_port
    assert upstreams(document, front.status_port)[lab.port]["serves_too"] == front.port
    assert "is not known: the calls may be for port" in re.sub(r"\s+", " ", observer.stdout)
