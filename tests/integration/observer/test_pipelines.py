# SPDX-License-Identifier: MIT
"""Pipelined requests of HTTP/1 (--http): each is an exchange, with its status, route and times. Against logs of foreign
servers, and with bytes that a test writes itself. tests/unit/bpf/protocol/http1.c tests the parser alone.

tools/mutate: "a response to HEAD has a body", "a second request in a read is not looked for"; "a request read before the
pipeline has the later read's time". And: "pipelined requests are answered by the last response alone"; "a body in chunks ends
with its first one"; "a GET is single whatever follows"; "a POST is all of its read".
"""
import re
import socket
import threading
import time
from collections import Counter
from http.client import HTTPResponse
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.process import Process, run
from support.programs import Nginx, Observer
from support.timing import MS
from .scene import Scene
from .test_routes import counted as by_route
from .test_statuses import counted as by_status

SERVER = """
    access_log {folder}/pipelined.log pipelined;
    keepalive_requests 1000000;
    location /none { return 204; }
    location /moved { return 301 /; }
    location /missing { return 404; }
    location /api/ { return 200 "api"; }
    location /files/ { alias {folder}/; sendfile on; }
"""
LOG = "log_format pipelined '$request_method $uri $status';"
ROUTES = ("/api/*", "HEAD /api/*", "/files/*")


def ask(path, method="GET", fields="", body=""):
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}".encode()


# Responses without a body, with a length, and by sendfile(); requests with a length and in chunks, which contain requests.
ASKED = (ask("/"), ask("/none"), ask("/api/1", "HEAD"), ask("/missing"), ask("/api/2"), ask("/files/file", "HEAD"),
         ask("/api/3", "POST", "Content-Length: 30\r\n", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), ask("/files/file"),
         ask("/api/4", "PUT", "Transfer-Encoding: chunked\r\n", "4;a=b\r\n\r\n\r\n\r\n12\r\nGET / HTTP/1.1\r\n\r\n\r\n0\r\nA: b\r\n\r\n"),
         ask("/moved", "HEAD"), ask("/api/5", fields="A: " + "long " * 300 + "\r\n"), ask("/files/nothing"))
LAST = ask("/api/last", fields="Connection: close\r\n")


def options(routes):
    return [word for route in routes for word in ("--route", route)]


def pipelining(start):
    """Return nginx with a log and a file, and an observer that looks into its connections."""
    nginx = start(Nginx(server=SERVER, http_block=LOG))
    folder = Path(nginx.files.name)
    folder.chmod(0o755)
    (folder / "file").write_bytes(b"HTTP/1.1 200 OK\r\n" * 5000)
    return nginx, start(Observer("--http", *options(ROUTES), ports=[nginx.port]))


def drain(client):
    while client.recv(1 << 20):
        pass


def logged(nginx):
    """Return ({status: count}, {route: count}) of nginx's own log."""
    statuses, routes = Counter(), Counter()
    for line in Path(nginx.files.name, "pipelined.log").read_text().splitlines():
        method, path, status = line.split()
        statuses[int(status)] += 1
        head = "HEAD " if method == "HEAD" and path.startswith("/api/") else ""
        routes[next((head + route for route in ROUTES if path.startswith(route.rstrip("*"))), "other")] += 1
    return statuses, routes


def lost(entry):
    """Return what was lost of requests. Where the test accepts and reads at once, accept() may not have been seen."""
    return {name: n for name, n in entry["losses"].items() if n and name != "accept_unseen"}


def assert_as_logged(nginx, observer):
    observer.stop()
    nginx.stop()
    entry = service(observer.summary(), nginx.port)
    statuses, routes = logged(nginx)
    assert entry["exchanges"] == statuses.total()
    assert by_status(entry) == statuses
    told, unknown = by_route(entry)
    assert not unknown and {route: n for route, n in told.items() if n} == routes
    assert not lost(entry)
    assert entry["pipelines_given_up"] == 0
    assert entry["stages"]["service"]["count"] == entry["exchanges"]
    return entry


def test_nginx_logs_the_same(start):
    """All of a pipeline at once, again and again; single requests follow on the same connections."""
    nginx, observer = pipelining(start)
    clients, rounds = 3, 20
    for _ in range(clients):
        with socket.create_connection(("127.0.0.1", nginx.port)) as client:
            for _ in range(rounds):
                client.sendall(b"".join(ASKED))
                answers = b""
                while answers.count(b"<h1>404") < 2:  # the last one of ASKED is the second
                    answers += client.recv(1 << 20)
            client.sendall(LAST)
            drain(client)
    entry = assert_as_logged(nginx, observer)
    assert entry["exchanges"] == clients * (rounds * len(ASKED) + 1) and entry["pipelined"] == clients
    assert re.search(rf"pipelined +on {clients} connections, each request an exchange", observer.stdout), observer.stdout


def test_pipelines_cut_anywhere(start):
    """Two reads, and a pause between them: a head or a body goes on in the second one."""
    nginx, observer = pipelining(start)
    whole = b"".join(ASKED[:5] + ASKED[6:7] + ASKED[8:]) + LAST
    rounds = 0
    for at in range(6, len(whole) - 1600, 7):  # of fewer than 5 bytes the protocol is not known: see below
        with socket.create_connection(("127.0.0.1", nginx.port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(whole[:at])
            time.sleep(0.002)
            client.sendall(whole[at:])
            drain(client)
            rounds += 1
    entry = assert_as_logged(nginx, observer)
    assert entry["exchanges"] == 11 * rounds and entry["pipelined"] == rounds


WRK = """
init = function(args)
  local r = {}
  for i = 1, 16 do r[i] = wrk.format("GET", i % 3 == 0 and "/missing" or "/api/" .. i) end
  all = table.concat(r)
end
request = function() return all end
"""


@needs_program("wrk")
def test_wrk_pipelines(start, tmp_path):
    """As many requests as nginx has logged, at full speed."""
    nginx, observer = pipelining(start)
    script = tmp_path / "pipeline.lua"
    script.write_text(WRK)
    run(["wrk", "-c", 8, "-t", 2, "-d", "1s", "-s", script, nginx.url], seconds=30)
    time.sleep(0.2)
    observer.stop()
    nginx.stop()
    entry = service(observer.summary(), nginx.port)
    statuses, _ = logged(nginx)
    # wrk ends its connections amid responses: nginx logs those that it could not write, as well.
    assert 0 <= statuses.total() - entry["exchanges"] <= 8 * 16
    assert statuses.total() > 16 * 100 and entry["pipelined"] == 8
    assert abs(entry["responses"]["status"]["4xx"] - statuses[404]) <= 8 * 16
    assert entry["pipelines_given_up"] == 0


def test_without_pipelining_nothing_is_followed(start):
    """One request at a time, of all kinds, is not followed, and has the figures of always."""
    nginx, observer = pipelining(start)
    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        for request in ASKED:
            client.sendall(request)
            response = HTTPResponse(client, method=request.split(b" ")[0].decode())
            response.begin()
            response.read()
        client.sendall(LAST)
        drain(client)
    entry = assert_as_logged(nginx, observer)
    assert entry["pipelined"] == 0 and "pipelined" not in observer.stdout


# ---- bytes that the test writes itself ----

def test_a_second_request_is_found_at_any_place(start):
    """Each connection has a pair of GETs at first, whose heads have any length. Single ones of the same length are not followed."""
    scene = Scene(start, "--http")
    lengths = [*range(1, 140), 450, 455, 460, 465, 470, 475, 950, 955, 960, 965, 1100, 3000]
    for length in lengths:
        for second in (ask("/b"), b""):
            client, server = scene.connect()
            client.sendall(ask("/", fields=f"A: {'a' * length}\r\n") + second)
            assert server.recv(8192)
            server.sendall(ANSWER * (2 if second else 1))
            client.recv(4096)
            client.close()
            server.close()
    entry = scene.end()
    assert entry["exchanges"] == 3 * len(lengths) and entry["pipelined"] == len(lengths)
    assert entry["pipelines_given_up"] == 0


def posted(length, name="Content-Length"):
    """Return a POST with a head of any length, and a body that looks like a request."""
    body = ask("/body")
    return ask("/", "POST", f"A: {'a' * length}\r\n{name}: {len(body)}\r\nContent-Type: a\r\n", body.decode())


def test_a_body_is_no_request_at_any_place(start):
    """A read has a POST and its body, or another request after it, or a part of the body. A field's name may be in small letters,
    and the read may fill two buffers."""
    scene = Scene(start, "--http")
    lengths = [*range(1, 30), 860, 875, 900, 1100]
    for length in lengths:
        whole = posted(length, "content-length" if length % 2 else "Content-Length")
        for parts, count in (([whole, whole], 2), ([whole + ask("/b")], 2), ([whole[:-9], whole[-9:], whole], 2)):
            client, server = scene.connect()
            for part in parts:
                client.sendall(part)
                server.recvmsg_into([bytearray(length), bytearray(8192)] if length % 3 else [bytearray(8192)])
                if part.endswith(whole[-9:]):
                    server.sendall(ANSWER * (count if len(parts) == 1 else 1))
                    client.recv(4096)
            client.close()
            server.close()
    entry = scene.end()
    assert entry["exchanges"] == 6 * len(lengths) and entry["pipelined"] == len(lengths)
    assert entry["pipelines_given_up"] == 0


def test_a_body_without_a_head_that_says_so(start):
    """The body of a GET is no request, if it comes by a read of its own. The connection is given up, and the exchange is one."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    for part in (ask("/", fields="Content-Length: 11\r\n"), b'{"a": "bc"}'):
        client.sendall(part)
        server.recv(4096)
    server.sendall(ANSWER)
    client.recv(4096)
    entry = scene.end()
    assert entry["exchanges"] == 1 and entry["pipelines_given_up"] == 1 and entry["pipelined"] == 0


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_times_are_each_requests_own(start):
    """One read has three requests; each response comes 20 ms after the one before."""
    scene = Scene(start, "--http", "--samples", "1")
    client, server = scene.connect()
    rounds, step = 5, 0.02
    for _ in range(rounds):
        client.sendall(ask("/") * 3)
        server.recv(4096)
        began = time.monotonic_ns()
        written = []
        for _ in range(3):
            time.sleep(step)
            server.sendall(ANSWER)
            written.append(time.monotonic_ns() - began)
        client.recv(4096)
        lasted = sum(written)
        scene.lasted = getattr(scene, "lasted", 0) + lasted
    entry = scene.end()
    service_ns = entry["stages"]["service"]["sum_ns"]
    assert entry["exchanges"] == 3 * rounds == entry["stages"]["service"]["count"]
    assert abs(service_ns - scene.lasted) < 3 * rounds * MS
    assert entry["stages"]["service"]["max_ns"] >= 60 * MS > entry["stages"]["service"]["p50_ns"] >= 38 * MS


def test_reads_of_one_request_each(start):
    """A server that reads on while it works (Node does) has each request by a read of its own, the first a HEAD."""
    scene = Scene(start, "--http", "--samples", "1")
    client, server = scene.connect()
    read = []
    for request in (ask("/a", "HEAD"), ask("/b"), ask("/c")):
        client.sendall(request)
        server.recv(4096)
        read.append(time.monotonic_ns())
        time.sleep(0.03)
    server.sendall(ANSWER[:-2] + ANSWER[:20])
    written = [time.monotonic_ns()] * 2
    time.sleep(0.03)
    server.sendall(ANSWER[20:] + ANSWER)
    written.append(time.monotonic_ns())
    entry = scene.end()
    stages = entry["stages"]
    assert entry["exchanges"] == 3 and entry["pipelined"] == 1 and by_status(entry) == {200: 3}
    assert abs(stages["service"]["sum_ns"] - (sum(written) - sum(read))) < 3 * MS
    assert stages["receive"]["sum_ns"] == 0 and not lost(entry)


def test_upgrades_leave_the_pipeline(start):
    """After 101 the connection has another protocol. Messages of WebSocket are counted, and are no exchanges."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    client.sendall(ask("/") + ask("/chat", fields="Connection: Upgrade\r\nUpgrade: websocket\r\n"))
    server.recv(4096)
    server.sendall(ANSWER + b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x02ab")
    client.recv(4096)
    for _ in range(3):
        client.sendall(b"\x81\x81abcda")
        server.recv(100)
        server.sendall(b"\x81\x01b")
        client.recv(100)
    entry = scene.end()
    assert entry["exchanges"] == 2 and entry["responses"]["statuses"] == [[101, 1], [200, 1]]
    assert (entry["websocket"]["messages_in"], entry["websocket"]["messages_out"], entry["websocket"]["bytes_out"]) == (3, 4, 5)
    assert not lost(entry) and entry["pipelines_given_up"] == 0


def test_a_first_read_of_few_bytes(start):
    """They do not show HTTP/1, so it is not known where the first request ends."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    for part in (ask("/")[:3], ask("/")[3:] + ask("/b")):
        client.sendall(part)
        server.recv(4096)
    server.sendall(ANSWER * 2)
    entry = scene.end()
    assert entry["exchanges"] == 1 and entry["pipelines_given_up"] == 1 and entry["pipelined"] == 0


@pytest.mark.parametrize("garbage", ["request", "response"])
def test_garbage_is_given_up(start, garbage):
    """Reads and writes are exchanges from then on, and the connection is counted."""
    scene = Scene(start, "--http")
    client, server = scene.connect()
    client.sendall(ask("/") * 2)
    server.recv(4096)
    server.sendall(ANSWER + ANSWER)
    client.recv(4096)
    for _ in range(4):
        client.sendall(b"\x01 no request" if garbage == "request" else ask("/"))
        server.recv(4096)
        server.sendall(b"\x01 no response")
        client.recv(4096)
    entry = scene.end()
    assert entry["pipelines_given_up"] == 1 and entry["exchanges"] == 6
    assert re.search("pipelined .*not looked for on 1 connections", " ".join(scene.observer.stdout.split()))


def test_unanswered_requests_are_told(start):
    scene = Scene(start, "--http")
    client, server = scene.connect()
    client.sendall(ask("/") * 5)
    server.recv(4096)
    server.sendall(ANSWER * 2)
    time.sleep(0.05)
    entry = scene.end()
    assert entry["exchanges"] == 2 and entry["losses"]["unanswered"] == 3


NODE = """
const http = require('http');
let count = 0;
http.createServer((q, a) => { const number = ++count; q.resume(); q.on('end', () => setTimeout(() => {
    a.writeHead(number % 5 ? 200 : 503); a.write('a'); a.end(q.method + 'b'); }, 5)); })
    .listen(+process.argv[1], '127.0.0.1', () => console.log('listening'));
"""
PYTHON = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.send_response(200)
        self.send_header('Content-Length', '3')
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(b'abc')
    do_HEAD = do_POST = do_GET
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler)
print('listening', flush=True)
server.serve_forever()
"""


@needs_program("node")
@pytest.mark.parametrize("program", ["node", "python"])
def test_other_servers(start, program):
    """Node reads on while it works, and answers in chunks. Python reads through a buffer, and answers head and body apart.
    One client sends all at once, another each request apart, at intervals of 1 ms. Some are untimed if the server does not come to
    read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    words = ["node", "-e", NODE, port] if program == "node" else ["/usr/bin/python3", "-c", PYTHON, port]
    server = start(Process(words))
    server.wait_for("listening")
    observer = start(Observer("--http", ports=[port]))
    asked = (ask("/a"), ask("/b", "HEAD"), ask("/c", "POST", "Content-Length: 9\r\n", "GET / \r\n\r"), ask("/d"))
    rounds = 10

    def ask_all(pause):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(rounds):
                for part in asked if pause < 0.01 else [b"".join(asked)]:
                    client.sendall(part)
                    time.sleep(pause)
            client.sendall(ask("/last", fields="Connection: close\r\n"))
            drain(client)

    threads = [threading.Thread(target=ask_all, args=(pause,)) for pause in (0.06, 0.001)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observer.stop()
    entry = service(observer.summary(), port)
    count = 2 * (rounds * len(asked) + 1)
    failed = count // 5 if program == "node" else 0
    assert entry["exchanges"] == count == entry["responses"]["count"] and entry["pipelined"] >= 1
    assert dict(entry["responses"]["statuses"]) == {200: count - failed, **({503: failed} if failed else {})}
    assert entry["pipelines_given_up"] == 0
