# SPDX-License-Identifier: MIT
"""Requests by route (--route): against the log of a foreign server, and of bytes that a test writes itself.

tests/unit/bpf/protocol/request.c and hpack_request.c test the parsers alone, the latter with nghttp2's encoder.
tools/mutate: "a path in the dynamic table has the routes of another".
"""
import csv
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import frame
from support.process import Process, run, wait_until
from support.programs import DRIVER, Lab, OBSERVER, Nginx, Observer
from support.timing import MS
from .scene import Scene

ROUTES = ["/api/*", "/api/users/*", "GET /api/users/*", "POST /api/*", "/exact", "GET /exact", "/%41*", "DELETE /*"]
STAGES = ("socket_queue", "receive", "service", "respond")


def options(routes):
    return [word for route in routes for word in ("--route", route)]


def route_of(method, target, routes):
    """The rule of docs/measurement.md: the longest path, and of equal ones the one with a method."""
    path = re.sub(r"^\w+://[^/?]*", "", target).split("?")[0]
    best = (-1, False, "other")
    for route in routes:
        wanted, _, pattern = route.rpartition(" ")
        whole = not pattern.endswith("*")
        start = pattern.rstrip("*")
        if wanted in ("", method) and (path == start if whole else path.startswith(start)):
            best = max(best, (len(start) + whole, bool(wanted), route))
    return best[2]


def counted(entry):
    """Return {route: count} without zeros. All figures of the document on routes must agree."""
    told = Counter()
    for route in entry["routes"]["list"]:
        assert sum(route["status"].values()) == route["count"]
        assert {route[stage]["count"] for stage in STAGES} == {route["service"]["count"]} <= {route["count"]}
        told[route["route"]] += route["count"]
    unknown = +Counter(entry["routes"]["not_known"])
    assert told.total() + unknown.total() == entry["responses"]["count"]
    for stage in STAGES:
        whole, parts = entry["stages"][stage], [route[stage] for route in entry["routes"]["list"]]
        if not unknown:
            assert sum(part["sum_ns"] for part in parts) == whole["sum_ns"]
            assert sum(part["count"] for part in parts) == whole["count"]
            assert max(part["max_ns"] or 0 for part in parts) == (whole["max_ns"] or 0)
    return +told, dict(unknown)


@needs_program("curl")
@needs_program("h2load")
@needs_program("nghttp")
@pytest.mark.parametrize("listen_options", ["", "http2"])
def test_nginx_logs_the_same(start, listen_options):
    """The first line and the status of each request in nginx's own log; the sums of all routes are those of the service.
    With HTTP/2 paths are in Huffman's code or plain, and in the dynamic table, which nghttp makes small."""
    nginx = start(Nginx(listen_options=listen_options,
                        http_block="log_format routes '$status $request';",
                        server="access_log {folder}/routes.log routes; "
                               "location /api/users/ { return 404; } location /exact { proxy_pass http://127.0.0.1:1; }"))
    observer = start(Observer(*options(ROUTES), ports=[nginx.port]))
    paths = ["", "api", "api/", "api/users", "api/users/7", "api/users/7?to=/exact", "exact", "exact?a", "exact/", "Exact",
             "%41", "A", "api/../exact", "x" * 500, "api/" + "%C3%A9" * 100, "exact?" + "~" * 90, "index.html"]
    urls = [nginx.url + path for path in paths]
    h2load = ["h2load", "-n", 600, "-c", 3, *(["-m", 10] if listen_options else ["--h1"])]
    assert "600 done" in run([*h2load, *urls]).stdout
    curl = ["curl", "--silent", "--path-as-is", "--output", "/dev/null",
            "--http2-prior-knowledge" if listen_options else "--http1.1"]
    for method in ("POST", "DELETE", "LONGER-THAN-ALL-METHODS", "get"):
        if not listen_options:
            run([*curl, "--request", method, *urls])
        elif method != "get":  # nginx refuses it, and logs no line; curl 7.88 fails to share h2c
            for url in urls[4:7]:
                run([*curl, "--request", method, url])
    if listen_options:
        run(["nghttp", "-n", "--header-table-size=100", *urls, *urls])
        run(["nghttp", "-n", "--no-dep", "--padding=100", "--continuation", "-d", nginx.files.name + "/nginx.conf", *urls])
    else:
        run([*curl, "--request-target", "http://a.example:80/api/users/3", nginx.url])
        run([*curl, "--request", "OPTIONS", "--request-target", "*", nginx.url])
    observer.stop()
    nginx.stop()
    lines = (Path(nginx.files.name) / "routes.log").read_text().splitlines()
    logged = Counter()
    for line in lines:
        status, method, target, *_ = line.split()
        logged[route_of(method, target, ROUTES), f"{status[0]}xx"] += 1
    entry = service(observer.summary(), nginx.port)
    told, unknown = counted(entry)
    assert unknown == {}
    assert len(told) == len(ROUTES) + 1 - ("DELETE /*" not in told)
    assert {(route["route"], name): n for route in entry["routes"]["list"]
            for name, n in route["status"].items() if n} == dict(logged)
    classes = entry_classes(logged)
    assert in_the_table(observer.stdout) == {route: (count, *classes[route]) for route, count in told.items()}
    found = csv.DictReader(run([OBSERVER, "report", "-f", "csv", observer.json]).stdout.splitlines())
    assert {row["name"]: (int(row["requests"]), int(row["errors"])) for row in found if int(row["requests"])} == \
        {route: (count, sum(classes[route])) for route, count in told.items()}


def entry_classes(logged):
    """Return {route: (4xx, 5xx)}."""
    return {route: (logged[route, "4xx"], logged[route, "5xx"]) for route, _ in logged}


def in_the_table(report):
    """Return {route: (requests, 4xx, 5xx)} of the text report."""
    rows = re.findall(r"^  (.+?) +([\d,]+) +[\d.,]+/s +([\d,]+|-) +([\d,]+|-) +\S+ \S+ +\S+ \S+$", report, re.MULTILINE)
    return {route: tuple(int(number.replace(",", "").replace("-", "0")) for number in numbers) for route, *numbers in rows}


# ---- bytes in the test's own hands ----

REQUEST = b"GET http://a.example/api/users/5?x HTTP/1.1\r\nHost: test\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def exchange(client, end, *pieces, read=lambda end: end.recv(4096)):
    for piece in pieces:
        client.sendall(piece)
        read(end)
    end.sendall(ANSWER)
    client.recv(4096)


def test_a_line_may_be_cut_anywhere(start):
    """Into two reads at each byte, into one byte each, and over buffers of each size. With a header of a proxy before it."""
    scene = Scene(start, *options(ROUTES))
    client, end = scene.connect()
    exchange(client, end, b"PUT / HTTP/1.1\r\n\r\n")
    for cut in range(1, len(REQUEST)):
        exchange(client, end, REQUEST[:cut], REQUEST[cut:])
        exchange(*scene.connect(), REQUEST[:cut], REQUEST[cut:])
    exchange(*scene.connect(), *(REQUEST[at:at + 1] for at in range(len(REQUEST))))
    for size in (1, 2, 5, 64, 300):
        buffers = [bytearray(0 if at % 2 else size) for at in range(2 * len(REQUEST))]
        exchange(client, end, REQUEST, read=lambda end, b=buffers: os.readv(end.fileno(), b))
        exchange(client, end, REQUEST, read=lambda end, b=buffers: end.recvmsg_into(b))
    proxied = b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + REQUEST
    for cut in (1, 10, 36, 40, 50):
        exchange(*scene.connect(), proxied[:cut], proxied[cut:])
    exchange(*scene.connect(), proxied[:1], proxied[1:36], proxied[36:])
    cuts = 2 * (len(REQUEST) - 1) + 1 + 10 + 6
    assert counted(scene.end()) == ({"GET /api/users/*": cuts, "other": 1}, {})


def test_what_is_not_known_is_counted_with_its_reason(start):
    """And the exchange after it on the same connection has its route again."""
    scene = Scene(start, *options(["/x*"]))
    ways = {
        "cut": lambda client, end: exchange(client, end, b"GET /xy"),
        "strange": lambda client, end: exchange(client, end, b"\x01GET /x HTTP/1.1\r\n\r\n"),
        "pipelined": lambda client, end: exchange(client, end, 2 * b"GET /x HTTP/1.1\r\nA: b\r\n\r\n"),
        "unseen": lambda client, end: exchange(client, end, b"GET /x HTTP/1.1\r\n\r\n", read=spliced),
    }
    pipe = os.pipe()

    def spliced(end):
        assert os.splice(end.fileno(), pipe[1], 4096) > 0
        os.read(pipe[0], 4096)

    client, end = scene.connect()
    for way in ways.values():
        exchange(client, end, b"GET /x HTTP/1.1\r\n\r\n")
        way(client, end)
        exchange(client, end, b"\r\nPOST /xyz HTTP/1.0\r\nContent-Length: 8\r\n\r\n", b"GET /a\r\n")
    for descriptor in pipe:
        os.close(descriptor)
    assert counted(scene.end()) == ({"/x*": 2 * len(ways)}, dict.fromkeys(ways, 1))


def test_pipelined_requests_are_found_at_any_place(start):
    """The head of the first one has any length. A body without such a line is no request."""
    scene = Scene(start, *options(["/x*"]))
    client, end = scene.connect()
    for length in range(140):
        first = f"POST /x HTTP/1.1\r\nA: {'a' * length}\r\n\r\n".encode()
        exchange(client, end, first + b"PATCH /y HTTP/1.1\r\n\r\n")
        exchange(client, end, first + b"x\r\nPATCH: no\n\nGET /y\r\n \r\n\r\nget\r\n" + b"\r\n" * (length % 8))
    assert counted(scene.end(samples=False)) == ({"/x*": 140}, {"pipelined": 140})


def test_each_route_has_its_own_times(start):
    """Those of the samples of the same exchanges, stage by stage. A response in several writes moves its own time."""
    scene = Scene(start, *options(["/slow", "/fast"]), "--samples", "1000")
    client, end = scene.connect()
    order = ["/fast", "/slow", "/fast", "/other", "/slow"]
    for path in order:
        client.sendall(f"GET {path} HTTP/1.1\r\n".encode())
        end.recv(4096)
        client.sendall(b"\r\n")
        end.recv(4096)
        time.sleep(0.03 if path == "/slow" else 0.001)
        for _ in range(3):
            end.sendall(ANSWER)
            assert client.recv(len(ANSWER), socket.MSG_WAITALL)
    entry = scene.end()
    assert counted(entry) == ({"/fast": 2, "/slow": 2, "other": 1}, {})
    samples = entry["samples"]
    for route in entry["routes"]["list"]:
        mine = [at for at, index in enumerate(samples["index"]) if order[index].replace("/other", "other") == route["route"]]
        assert len(mine) == route["count"]
        for stage in STAGES:
            assert route[stage]["sum_ns"] == sum(samples["stages"][stage][at] for at in mine), (route["route"], stage)
    slow, fast = (route["service"] for route in entry["routes"]["list"][:2])
    assert slow["sum_ns"] >= 60 * MS and fast["sum_ns"] >= 2 * MS


# ---- HTTP/2 in the test's own hands ----

def test_paths_in_the_dynamic_table_have_their_routes(start):
    """Many paths on each connection, as python3-h2 writes them: each enters the table, or never does. Reads of each shape.
    The table's size changes, and requests have trailers."""
    pytest.importorskip("h2")
    from hpack import HeaderTuple, NeverIndexedHeaderTuple
    from .test_http2 import H2Scene, READS, in_pieces

    scene = H2Scene(start, *options(ROUTES))
    expected = Counter()
    for way, read in enumerate([None, *(in_pieces(call, size) for call in READS for size in (1, 13, 65536))]):
        talk = scene.talk()
        for at in range(60 if way else 400):
            method = ("GET", "POST", "PUT", "DELETE")[at % 7 % 4]
            path = (f"/api/{at % 30}", f"/api/users/{at % 50}", "/exact", f"/exact?{at}", "/" + "y" * (at % 400), "/%41")[at % 6]
            extra = [("x-filler", "z" * (at * 37 % 900))] if at % 5 == 2 else []
            kind = NeverIndexedHeaderTuple if at % 11 == 3 else HeaderTuple
            headers = [(":method", method), (":scheme", "http"), kind(":path", path), (":authority", "test"), *extra]
            talk.asks.send_headers(2 * at + 1, headers, end_stream=at % 9 != 1)
            if at % 9 == 1:
                talk.asks.send_headers(2 * at + 1, [("x-trailer", str(at))], end_stream=True)
            if at % 40 == 39:
                talk.asks.encoder.header_table_size = (0, 4096, 300)[at // 40 % 3]
            talk.ask(read=read)
            talk.response(2 * at + 1)
            talk.answer()
            expected[route_of(method, path, ROUTES)] += 1
    assert counted(scene.end()) == (expected, {})


def test_streams_whose_route_is_not_known_have_a_reason(start):
    """Those that are answered too early, without a method, and by an entry before the latest 128 of a large table. The
    requests after them have their routes."""
    pytest.importorskip("h2")
    from hpack import Encoder
    from .test_http2 import H2Scene

    scene = H2Scene(start, *options(["/x*"]))
    talk, encoder = scene.talk(), Encoder()
    talk.ask()
    talk.answer()
    encoder.header_table_size = 65536
    stream = 1

    def own(kind, flags, payload):
        return frame(kind, stream, payload, flags)

    def exchange_of(*frames, answer=b"\x88"):
        nonlocal stream
        for at, data in enumerate(frames):
            talk.client.sendall(data)
            talk.server.recv(65536)
            if at == len(frames) - 1 or answer:
                talk.server.sendall(own(1, 5, b"\x88"))
                talk.client.recv(65536)
                answer = b""
        stream += 2

    def fields(*more, path="/xyz", method="GET"):
        return encoder.encode([(name, value) for name, value in ((":method", method), (":path", path), *more) if value])

    exchange_of(own(1, 5, fields()))
    for at in range(140):
        exchange_of(own(1, 5, fields(("x-at", str(at)))))
    exchange_of(own(1, 5, fields()))  # its path is the table's oldest entry
    block = fields(path="/xz")
    exchange_of(own(1, 1, block[:2]), own(9, 4, block[2:]))  # answered in between
    exchange_of(own(1, 5, fields(method="", path="/xz")))
    exchange_of(own(1, 5, fields(path="")))
    exchange_of(own(1, 5, fields(path="/xz")))
    told, unknown = counted(scene.end())
    assert unknown == {"http2": 12 + 1, "cut": 1, "strange": 1}
    assert told == {"/x*": 1 + 128 + 1, "other": 1}


def test_routes_are_metrics(start):
    """The label is the user's own text; what clients send is none."""
    scene = Scene(start, *options(["GET /api/*"]))
    client, end = scene.connect()
    for path in ("/api/1", "/api/2", "/secret"):
        exchange(client, end, f"GET {path} HTTP/1.1\r\n\r\n".encode())

    def told(name, label):
        text = scene.observer.get("/metrics")
        assert "secret" not in text and "/api/1" not in text  # a cgroup may be named _api/1
        return dict(re.findall(rf'^{name}\{{[^}}]*route="([^"]*)"[^}}]*{label}[^}}]*\}} (\S+)', text, re.MULTILINE))

    wait_until(lambda: told("sojourn_route_responses_total", 'status="2xx"') == {"GET /api/*": "2", "other": "1"})
    assert told("sojourn_route_stage_seconds_count", 'stage="service"') == {"GET /api/*": "2", "other": "1"}
    scene.end()


FORM = "give a path, or the start of one before a final *"


@pytest.mark.parametrize("routes, message", [
    (["api"], FORM), (["*"], FORM), ([""], FORM), (["GET"], FORM), (["get /x"], FORM), (["/a?b"], FORM), (["/a*b"], FORM),
    (["/a b"], FORM), (["/\u00e9"], FORM), (["GET  /x"], FORM),
    (["/" + "x" * 120], "at most 120 bytes"), (["M" * 16 + " /"], "a method of at most 15"),
    (["/a", "GET /a", "/a"], "'/a' is not allowed: give each given once"),
    ([f"/{n}" for n in range(33)], "'/32' is not allowed: give at most 32 routes"),
])
def test_refused(routes, message):
    ended = run([OBSERVER, "observe", "--port", "1", *options(routes)], check=False)
    assert ended.status == 2
    (line,) = ended.stderr.splitlines()
    assert "--route: '" in line and message in line, line


def test_a_starved_observer_reads_statuses_and_routes_together(start):
    """Another process takes the observer's CPU for some milliseconds, at any place of a reading. Statuses and routes of one
    document are of one moment all the same. tools/mutate: "statuses and routes are read once"."""
    lab = start(Lab())
    observer = start(Observer("--route", "/a", ports=[lab.port]))
    os.sched_setaffinity(observer.pid, {0})
    start(Process([DRIVER, lab.url, "--rate", 2000, "-d", "60s", "-c", 4]))
    # Not yet a whole document: it may have been read between the connections' begin and that of the load.
    wait_until(lambda: service(json.loads(observer.get("/v1/services")), lab.port).get("responses"))
    apart = []
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {0})) as spinner:
        for _ in range(150):
            entry = service(json.loads(observer.get("/v1/services")), lab.port)
            told = sum(route["count"] for route in entry["routes"]["list"]) + sum(entry["routes"]["not_known"].values())
            apart.append(told - entry["responses"]["count"])
        spinner.kill()
    assert sum(map(bool, apart)) <= 3, apart
