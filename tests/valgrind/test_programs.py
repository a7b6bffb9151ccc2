# SPDX-License-Identifier: MIT
"""Short runs of the programs under valgrind: each protocol of the driver, its failures, and the readers of
documents."""
import itertools
import socket
import threading
from contextlib import contextmanager

import pytest

from support import documents
from support.conditions import needs_program
from support.net import free_port
from support.pki import Pki
from support.programs import DRIVER, OBSERVER, Lab, Nginx
from support.valgrind import checked

pytestmark = [needs_program("valgrind"), pytest.mark.timeout(180)]


@pytest.fixture(name="drive")
def _drive(tmp_path):
    """Return drive(status, words…), which returns the driver's part of the document."""
    def drive(status, *words):
        path = tmp_path / "run.json"
        path.unlink(missing_ok=True)
        patience = [] if status else ["--timeout=60s"]  # the machine may be busy
        checked([DRIVER, *words, *patience, "--json", path], status, seconds=150)
        return documents.load(path)["driver"] if path.exists() else None
    return drive


@pytest.fixture(name="pki", scope="module")
def _pki():
    pki = Pki()
    pki.server = pki.issue("server", "IP:127.0.0.1")
    yield pki
    pki.close()


HTTP = {
    "closed loop": ["-c", 8, "-n", 400, "-t", 2, "--interval=100ms"],
    "rate": ["-c", 8, "--rate=200", "--arrival=poisson", "-d", "1s", "--warmup=200ms"],
    "ramps": ["-c", "1..8", "-d", "1s", "--think=5ms", "--think-distribution=exponential"],
    "connections": ["-c", 4, "-n", 100, "--requests-per-connection=3", "--source=127.0.0.2-127.0.0.3"],
    "fields": ["-c", 2, "-n", 50, "--method=POST", "-H", "X-Id: {{uuid}}", "--body",
               "{{counter}} {{random-hex:8}} {{timestamp}}", "--expect-status=200"],
}


@pytest.mark.parametrize("name", HTTP)
def test_http(start, drive, name):
    lab = start(Lab("--size=2000", "--chunked"))
    result = drive(0, lab.url, *HTTP[name])
    assert result["requests"] and not any(result["errors"].values())


def test_expectations_that_fail(start, drive):
    nginx = start(Nginx(server="location /gone { return 404; }"))
    assert drive(1, nginx.url + "gone", "-n", 20)["errors"]["status"] == 20
    assert drive(1, nginx.url, "-n", 20, "--expect-body=nothing", "--assert=p99<1ns"
                 )["errors"]["unexpected"] == 20


@pytest.mark.parametrize("scheme, listen, words", [
    ("https", "ssl", []), ("https", "ssl", ["--new-connections"]),
    ("h2", "ssl http2", ["--streams=5"]), ("h2c", "http2", ["--streams=5"])])
def test_tls_and_h2(start, drive, pki, scheme, listen, words):
    cert, key = pki.server
    nginx = start(Nginx(listen_options=listen, server=f"ssl_certificate {cert}; ssl_certificate_key {key};"
                        if "ssl" in listen else ""))
    url = nginx.url.replace("http:", f"{scheme}:")
    tls = [] if scheme == "h2c" else ["--ca", pki.ca]
    assert drive(0, url, "-c", 2, "-n", 60, *tls, *words)["requests"] == 60


STREAMS = {
    "line": ["--payload", r"size=50&n={{counter}}\n", r"--framing=delimiter:\n"],
    "frame": ["--payload", r"\0\0\0\x07size=50", "--framing=length:4"],
}


@pytest.mark.parametrize("protocol", STREAMS)
def test_streams(start, drive, protocol):
    lab = start(Lab(protocol=protocol))
    result = drive(0, f"tcp://127.0.0.1:{lab.port}", *STREAMS[protocol], "-c", 4, "-n", 200)
    assert result["requests"] == 200


@pytest.mark.parametrize("words", [
    [], ["--match=id:4", "--outstanding=8"], ["--match=echo", "--outstanding=3", "--rate=500"]])
def test_datagrams(start, drive, words):
    lab = start(Lab(protocol="udp"))
    words = ["--payload", "xxxx{{counter:12}}", *words] if words else ["--payload", "size=100"]
    result = drive(0, f"udp://127.0.0.1:{lab.port}", "-c", 4, "-n", 200, *words)
    assert result["requests"] == 200


def test_datagrams_without_reply(drive):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"udp://127.0.0.1:{silent.getsockname()[1]}"
        words = ["-c", 2, "-n", 10, "--payload=xxxx", "--match=id:4", "--timeout=100ms", "--retransmit=30ms"]
        assert drive(1, url, *words)["errors"]["timeout"] == 10
    errors = drive(1, url, *words)["errors"]
    assert errors["refused"] and sum(errors.values()) == 10


@contextmanager
def answering(*answers):
    """Yield the URL of a server that gives one of these to each connection in turn, and closes it."""
    listener = socket.create_server(("127.0.0.1", free_port()), backlog=64)

    def serve():
        for answer in itertools.cycle(answers):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def test_broken_answers(drive):
    """Cut off, malformed, too short, empty; and no server."""
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", b"nonsense\r\n\r\n", b"HTTP/1.1 2", b"") as url:
        errors = drive(1, url, "-c", 3, "-n", 40, "--timeout=5s")["errors"]
    assert errors["malformed"] and errors["closed_early"] and sum(errors.values()) == 40
    assert drive(1, url, "-c", 3, "-n", 10, "--keep-trying")["errors"]["refused"] == 10


SCENARIO = """\
target: URL
defaults:
  headers: {X-Run: '{{uuid}}'}
steps:
- name: first
  path: /?size=30
  capture:
    length: {header: Content-Length}
- name: second
  path: /{{var:length}}
  body: '{"n": {{counter}}}'
"""


def test_scenario(start, drive, tmp_path):
    lab = start(Lab())
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.replace("URL", lab.url.rstrip("/")))
    assert drive(0, "run", path, "-c", 4, "-n", 100)["steps"][1]["requests"]
    path.write_text(SCENARIO.replace("URL", lab.url.rstrip("/")) + "  unknown: 3\n")
    assert drive(2, "run", path) is None


def test_sweep(start, drive):
    lab = start(Lab("--service=1ms", "--block"))
    drive(0, "sweep", lab.url, "--ladder=1,2,4,8", "--warmup=50ms", "-d", "200ms")


@pytest.mark.parametrize("words", [["--nonsense"], ["http://"], ["http://127.0.0.1/", "-c", "0"],
                                   ["tcp://127.0.0.1:1"], ["run", "/nonexistent"], ["--help"]])
def test_wrong_usage(words):
    checked([DRIVER, *words], status=0 if words == ["--help"] else 2)


FORMS = ["text", "html", "markdown", "json", "csv", "hlog"]


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory):
    """Return two documents of the driver."""
    folder = tmp_path_factory.mktemp("documents")
    paths = [folder / "a.json", folder / "b.json"]
    with Lab("--one-in=3", "--service=2ms") as lab:
        for path in paths:
            checked([DRIVER, lab.url, "-c", 4, "-n", 200, "--quiet", "--json", path])
    return paths


@pytest.mark.parametrize("form", FORMS)
def test_report(made, tmp_path, form):
    checked([OBSERVER, "report", *made, "-f", form, "-o", tmp_path / "report"])
    assert (tmp_path / "report").stat().st_size


def test_report_compares_and_refuses(made, tmp_path):
    checked([OBSERVER, "report", "--compare", *made])
    (tmp_path / "half").write_bytes(made[0].read_bytes()[:3000])
    checked([OBSERVER, "report", tmp_path / "half"], status=2)


def test_doctor():
    checked([OBSERVER, "doctor", "--json", "--sample=0"], status=None)
