# SPDX-License-Identifier: MIT
"""Responses by status (--http), against logs of foreign servers, and with bytes that a test writes itself.
tests/unit/bpf/protocol/status.c tests the decoder alone, against nghttp2's encoder.

tools/mutate: "a field that enters the dynamic table is not counted".
"""
import contextlib
import json
import os
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import PREFACE
from support.pki import Pki
from support.process import Process, run, wait_until
from support.programs import Nginx, Observer
from support.timing import MS
from .scene import Scene

SERVER = """
    access_log {folder}/statuses.log statuses;
    location /none { return 204; }
    location /moved { return 301 /; }
    location /missing { return 404; }
    location /broken { return 500 "broken"; }
    location /bad { proxy_pass http://127.0.0.1:1; }
    location /busy { return 503; }
    location /odd { return 418 "teapot"; }
    location /files/ { alias {folder}/; sendfile on; }
"""
PATHS = ("", "none", "moved", "missing", "broken", "bad", "busy", "odd", "files/statuses.txt", "files/nothing")


def counted(entry):
    """Return {status: count}, None for unknown ones. All figures of the document on responses must agree."""
    responses = entry["responses"]
    statuses = {status: count for status, count in responses["statuses"]}
    classes = Counter()
    for status, count in statuses.items():
        classes[f"{status // 100}xx"] += count
    assert {name: n for name, n in responses["status"].items() if n and name != "other"} == dict(classes)
    assert responses["count"] == entry["exchanges"]
    for name in ("4xx", "5xx"):
        assert responses[f"service_{name}"]["count"] == responses["status"][name]
    unknown = responses["status"]["other"]
    return {**statuses, None: unknown} if unknown else statuses


@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
@pytest.mark.parametrize("listen_options", ["", "http2"])
def test_nginx_logs_the_same(start, listen_options):
    """Every status of nginx's own log, of clients that share connections; a file by sendfile(), and 100 Continue."""
    nginx = start(Nginx(listen_options=listen_options, server=SERVER,
                        http_block="log_format statuses '$status';"))
    folder = Path(nginx.files.name)
    folder.chmod(0o755)
    (folder / "statuses.txt").write_bytes(os.urandom(100_000))
    observer = start(Observer("--http", ports=[nginx.port]))
    urls = [nginx.url + path for path in PATHS]
    h2load = ["h2load", "-n", 1000, "-c", 4, *(["-m", 10] if listen_options else ["--h1"])]
    assert "1000 done" in run([*h2load, *urls]).stdout
    curl = ["curl", "--silent", "--http2-prior-knowledge" if listen_options else "--http1.1", "--output", "/dev/null"]
    for urls_at_once in [[url] for url in urls] if listen_options else [urls]:  # curl 7.88 fails to share h2c
        run([*curl, *urls_at_once])
    if listen_options:
        run(["nghttp", "-n", *urls])
    else:
        run([*curl, "--header", "Expect: 100-continue", "--data-binary", f"@{folder}/statuses.txt", urls[0]])
    observer.stop()
    nginx.stop()
    logged = Counter(int(line) for line in (folder / "statuses.log").read_text().split())
    entry = service(observer.summary(), nginx.port)
    assert len(logged) == 8 and logged.total() == entry["exchanges"]
    assert counted(entry) == dict(logged)
    assert entry["stages"]["service"]["count"] == entry["exchanges"]
    assert re.search(rf"statuses +200 {logged[200]} \(20 %\) · 404 {logged[404]} \(20 %\)", observer.stdout), observer.stdout
    assert re.search(r"service of 5xx \d+ · mean", observer.stdout), observer.stdout
    assert "grpc" not in entry and "gRPC" not in observer.stdout


@needs_program("node")
@needs_program("h2load")
@needs_program("nghttp")
def test_what_the_dynamic_table_holds_is_known(start, tmp_path):
    """Node's encoder adds statuses to the table with a connection's first responses, and other fields evict them. Each
    second response ends as one of gRPC. The truth is its own count."""
    script = tmp_path / "server.js"
    script.write_text("""
        const counts = {}, server = require("http2").createServer();
        server.on("stream", (stream, headers) => {
            const status = Number(headers[":path"].slice(1)), at = Object.values(counts).reduce((a, b) => a + b, 0);
            counts[status] = (counts[status] || 0) + 1;
            if (at % 3 == 0) stream.additionalHeaders({":status": 103, link: "<" + "x".repeat(at % 300) + ">"});
            stream.respond({":status": status, "x-request": "r".repeat(at % 90) + at}, {waitForTrailers: at % 2 == 0});
            stream.on("wantTrailers", () => stream.sendTrailers({"grpc-status": String(at % 17), "x-at": String(at)}));
            stream.end("hello");
        });
        process.on("SIGTERM", () => { console.log(`counts ${JSON.stringify(counts)}`); process.exit(0); });
        server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
    """)
    node = start(Process(["node", script]))
    port = int(node.wait_for(r"port (\d+)", "stdout", 30)[1])
    observer = start(Observer("--http", ports=[port]))
    urls = [f"http://127.0.0.1:{port}/{status}" for status in (418, 200, 503, 404, 429, 302, 599)]
    assert "1400 done" in run(["h2load", "-n", 1400, "-c", 2, "-m", 5, *urls]).stdout
    run(["nghttp", "-n", "--header-table-size=256", *urls, *urls])
    node.stop()
    observer.stop()
    counts = json.loads(re.search(r"counts (.*)", node.stdout)[1])
    assert sum(counts.values()) == 1400 + len(urls)  # nghttp asks once for each
    entry = service(observer.summary(), port)
    assert counted(entry) == {int(status): count for status, count in counts.items()}
    at = Counter(at % 17 for at in range(0, entry["exchanges"], 2))
    assert list(entry["grpc"]["status"].values()) == [*(at[code] for code in range(17)), 0, 0, 0]


# ---- bytes in the test's own hands ----

def line(status, headers=""):
    return f"HTTP/1.1 {status} whatever\r\n{headers}\r\n".encode()


def words(end, data):
    """Write each word from its own buffer, with empty buffers in between, as some servers do."""
    os.writev(end.fileno(), [piece for word in re.split(rb"(?<= )", data) for piece in (word, b"")])


def by_sendfile(folder):
    def write(end, data):
        path = folder / "response"
        path.write_bytes(data)
        with open(path, "rb") as file:
            assert os.sendfile(end.fileno(), file.fileno(), 0, len(data)) == len(data)
    return write


def in_pieces(size):
    def write(end, data):
        end.sendall(data[:size])
        time.sleep(0.01)
        end.sendall(data[size:])
    return write


def whole(end, data):
    end.sendall(data)


def separately(*parts):
    def write(end, _data):
        for part in parts:
            end.sendall(part)
            time.sleep(0.01)
    return write


LONG = "Link: </" + "x" * 3000 + ">; rel=preload\r\n"


def responses(folder):
    """Return (written bytes, way of writing, status); None: the status is not known."""
    return [
        (line(200), whole, 200), (b"HTTP/1.0 404\r\n\r\n", whole, 404), (line(599), whole, 599),
        (line(302), words, 302), (line(201), in_pieces(13), 201), (line(201), in_pieces(12), None),
        (line(200), by_sendfile(folder), None), (line(600), whole, None), (b"hello, world\n", whole, None),
        (b"HTTP/1.1 204\r\n\r\n", whole, 204), (line(2000), whole, None), (line("20"), whole, None),
        (line(101), whole, 101),
        # Interim responses: alone, long, before the final one, twice, without an end, and cut.
        (line(100) + line(204), separately(line(100), line(204)), 204),
        (line(103, LONG) + line(500), separately(line(103, LONG), line(500)), 500),
        (line(103, LONG) + line(404), words, 404),
        (line(100) + line(103) + line(410), whole, 410),
        (line(100) + line(102) + line(411), separately(line(100), line(102), line(411)), 411),
        (line(103, 2 * LONG) + line(200), whole, None),
        (line(103, LONG) + line(200), in_pieces(1000), None),
    ]


def test_the_status_is_what_was_written(start, tmp_path):
    """Each response is an exchange with its status or none, on its own connection and on one for all."""
    scene = Scene(start, "--http", "--samples", "1000")
    cases = responses(tmp_path)
    shared = scene.connect()
    for data, write, _ in cases:
        for client, end in (scene.connect(), shared):
            client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            assert end.recv(4096)
            write(end, data)
            left = len(data)
            while left:
                left -= len(client.recv(left))
    entry = scene.end()
    assert entry["exchanges"] == entry["stages"]["service"]["count"] == 2 * len(cases)
    assert counted(entry) == {status: 2 * n for status, n in Counter(status for _, _, status in cases).items()}


def test_service_of_those_that_fail_is_told_apart(start):
    """It equals the service in the samples of the same exchanges. An interim response does not end service."""
    scene = Scene(start, "--http", "--samples", "1000")
    client, end = scene.connect()
    order = (200, 503, 404, 200, 500, 429)
    for status in order:
        client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert end.recv(4096)
        end.sendall(line(100))
        assert client.recv(4096)
        client.sendall(b"body")
        assert end.recv(4096) == b"body"
        time.sleep(0.03 if status == 503 else 0.001)
        end.sendall(line(status))
        assert client.recv(4096)
    entry = scene.end()
    assert counted(entry) == dict(Counter(order))
    took = dict(zip(entry["samples"]["index"], entry["samples"]["stages"]["service"]))
    for name, failed in (("5xx", (1, 4)), ("4xx", (2, 5))):
        told = entry["responses"][f"service_{name}"]
        assert told["count"] == 2 and told["sum_ns"] == sum(took[index] for index in failed)
        assert told["max_ns"] == max(took[index] for index in failed)
    assert entry["responses"]["service_5xx"]["max_ns"] >= 30 * MS
    assert entry["stages"]["receive"]["count"] == len(order) and entry["stages"]["receive"]["sum_ns"] > 0


def test_streams_have_interim_responses(start):
    """A 103 of HTTP/2 starts no response: service ends with the response that follows."""
    pytest.importorskip("h2")
    from .test_http2 import H2Scene

    scene = H2Scene(start)
    talk = scene.talk()
    for stream in (1, 3):
        talk.ask(stream)
        talk.answers.send_headers(stream, [(":status", "103"), ("link", "</style.css>")])
        talk.answer()
        time.sleep(0.02)
        talk.response(stream, b"hello")
        talk.answer()
    entry = scene.end()
    assert counted(entry) == {200: 2}
    assert entry["stages"]["service"]["max_ns"] >= 20 * MS


def test_the_dynamic_table_is_followed_however_writes_are_cut(start):
    """Each way to write has its own connection. From the second response on, each status is in the table."""
    pytest.importorskip("h2")
    from .test_http2 import H2Scene, WRITES, cut

    scene = H2Scene(start)
    order = (418, 503, 418, 302, 503, 418, 302)
    ways = [*WRITES, lambda end, data: [end.sendall(data[at:at + 1]) for at in range(len(data))],
            lambda end, data: os.writev(end.fileno(), [buffer for piece in cut(data, 3) for buffer in (b"", piece, b"")])]
    for write in ways:
        talk = scene.talk()
        for stream, status in zip(range(1, 100, 2), order):
            talk.ask(stream)
            talk.answers.send_headers(stream, [(":status", str(status)), ("x-number", str(stream) * stream)])
            talk.answers.send_headers(stream, [("x-trailer", str(stream))], end_stream=True)
            talk.answer(write)
    entry = scene.end()
    assert counted(entry) == {status: count * len(ways) for status, count in Counter(order).items()}


def test_after_an_upgrade_there_is_another_protocol(start):
    """Messages are exchanges and no responses, unless 101 names WebSocket. A connection with HTTP/2 is counted as multiplexed."""
    scene = Scene(start, "--http")
    for messages in ([b"\x81\x85maskhello"] * 12, [PREFACE + bytes.fromhex("000000" "04" "00" "00000000")] * 2):
        client, end = scene.connect()
        client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\n\r\n")
        assert end.recv(4096)
        end.sendall(line(101))
        assert client.recv(4096)
        for message in messages:
            client.sendall(message)
            assert end.recv(4096) == message
            end.sendall(b"\x81\x05hello")
            assert client.recv(4096)
    entry = scene.end()
    assert entry["exchanges"] == 1 + 12 + 1
    assert entry["responses"]["statuses"] == [[101, 2]] and entry["responses"]["count"] == 2
    assert entry["losses"]["multiplexed"] == 1


@needs_program("openssl")
@needs_program("curl")
def test_those_in_tls_are_not_known(start):
    """The statuses are encrypted, and without ALPN it is unknown that the responses are HTTP."""
    with contextlib.closing(Pki()) as pki:
        certificate, key = pki.issue("localhost", "DNS:localhost")
        nginx = start(Nginx(listen_options="ssl", server=f"ssl_certificate {certificate}; ssl_certificate_key {key};"))
    observer = start(Observer("--http", ports=[nginx.port]))
    url = nginx.url.replace("http:", "https:")
    for alpn in ("--http1.1", "--no-alpn"):
        run(["curl", "--silent", "--fail", "--insecure", alpn, url, url, url])
    observer.stop()
    assert counted(service(observer.summary(), nginx.port)) == {None: 6}


def test_statuses_are_metrics(start):
    """Metrics have counts by status since the start. Other services have none, nor has any without the option."""
    nginx = start(Nginx(server="location /missing { return 404; }"))
    observer = start(Observer("--http", ports=[nginx.port]))
    plain = start(Observer(ports=[nginx.port]))
    for path in ("", "missing", "missing"):
        run(["curl", "--silent", nginx.url + path])

    def told():
        text = observer.get("/metrics")
        return {status: int(n) for status, n in
                re.findall(r'^sojourn_responses_total\{[^}]*status="(\w+)"\} (\d+)', text, re.MULTILINE)}

    wait_until(lambda: told() == {"200": 1, "404": 2})
    plain.stop()
    assert "responses" not in service(plain.summary(), nginx.port)
