# SPDX-License-Identifier: MIT
"""Everyday mistakes: the words typed, the exit status, and the message."""
import contextlib
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import documents
from support.h2server import H2Server
from support.net import free_port
from support.pki import Pki
from support.process import run, wait_until
from support.programs import DRIVER, Driver, Nginx

NGINX_TLS = "listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};"
# Two Python servers: the common one, and the same with TLS, which hangs up on other protocols.
PYTHON_TLS = """\
import http.server, ssl, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


class Places(dict):
    """Servers by their ports, started when first used: the names in braces in the rows below."""

    def __init__(self, start, pki):
        super().__init__()
        self.start, self.pki, self.nginx = start, pki, None

    def __missing__(self, name):
        self[name] = port = getattr(self, name)()
        return port

    def nothing(self):
        return free_port()

    def plain(self):
        self.nginx = self.start(Nginx())
        return self.nginx.port

    def tls(self):
        port = free_port()
        cert, key = self.pki.issued
        self.start(Nginx(server=NGINX_TLS.format(port=port, cert=cert, key=key)))
        return port

    def python(self):
        return self.begin("-m", "http.server", "--bind", "127.0.0.1", "--directory", self.pki.path, free_port())

    def python_tls(self):
        return self.begin("-c", PYTHON_TLS, *self.pki.issued, free_port())

    def begin(self, *words):
        self.start([sys.executable, *words])
        wait_until(lambda: listens(words[-1]))
        return words[-1]

    def h2c(self):
        return self.start(H2Server(lambda exchange: exchange.answer())).port

    def fill(self, text):
        return text.format_map(self)

    def served(self):
        return self.nginx.status()["requests"] if self.nginx else 0


@pytest.fixture(name="pki", scope="module")
def _pki():
    with contextlib.closing(Pki()) as pki:
        pki.issued = pki.issue("server", "DNS:localhost,IP:127.0.0.1")
        yield pki


@pytest.fixture(name="places")
def _places(start, pki):
    return Places(start, pki)


SPENT = "-d60s"  # longer than the test waits, unless the run ends early

REFUSED = {
    "nothing listens": (["http://127.0.0.1:{nothing}/", SPENT], 1,
                        "nothing listens at 127.0.0.1:{nothing}: connection refused (ECONNREFUSED); --keep-trying"),
    "nothing listens, at a rate": (["127.0.0.1:{nothing}", SPENT, "-q5"], 1, "nothing listens at 127.0.0.1:{nothing}"),
    "nothing listens, in warm-up": (["http://127.0.0.1:{nothing}/", "--warmup=60s"], 1,
                                    "nothing listens at 127.0.0.1:{nothing}"),
    "nothing listens, HTTP/2": (["h2c://127.0.0.1:{nothing}/", SPENT], 1, "nothing listens at 127.0.0.1:{nothing}"),
    "nothing listens, a sweep": (["sweep", "http://127.0.0.1:{nothing}/", SPENT], 1,
                                 "nothing listens at 127.0.0.1:{nothing}"),
    "nothing listens, two targets": (["127.0.0.1:{nothing}/a", "127.0.0.1:{nothing}/b", SPENT], 1,
                                     ", nor can any other target be reached"),
    "no socket": (["unix:/nonexistent/socket", "--payload=x", "--framing=echo", SPENT], 1,
                  "nothing listens at /nonexistent/socket: no such file or directory"),
    "https to HTTP": (["https://127.0.0.1:{plain}/", SPENT], 1,
                      "no connection to 127.0.0.1:{plain}: the server spoke plain HTTP: use http://"),
    "https to Python's": (["https://127.0.0.1:{python}/", SPENT], 1, "the server spoke plain HTTP: use http://"),
    "https to HTTP/2": (["https://127.0.0.1:{h2c}/", SPENT], 1, "the server spoke plain HTTP/2: use h2c://"),
    "h2 to HTTP": (["h2://127.0.0.1:{plain}/", SPENT], 1, "the server spoke plain HTTP: use http:// or h2c://"),
    "h2 to HTTP/1 in TLS": (["h2://127.0.0.1:{tls}/", "-k", SPENT], 1, ": use https:// for HTTP/1.1"),
    "certificate": (["https://127.0.0.1:{tls}/", SPENT], 1,
                    "; give --ca=FILE or --server-name=NAME, or do without the check: --insecure"),
    "an observer's name": (["127.0.0.1:{plain}", "--observer=server"], 2, "'server' is not an observer's address; write it like 9180, "),
    "a misspelt condition": (["127.0.0.1:{plain}", "--assert=p98 < 5 ms"], 2, "'p98 < 5 ms' is not understood; write it like 'p99<5ms'"),
    "mistyped": (["127.0.0.1:{plain}", "--conections=4"], 2,
                 "unknown option '--conections': did you mean --connections?"),
    "another tool's option": (["127.0.0.1:{plain}", "--data", "x"], 2, "did you mean --body?"),
    "siege's option": (["127.0.0.1:{plain}", "--concurrency=4"], 2, "did you mean --connections?"),
    "nothing alike": (["127.0.0.1:{plain}", "--frobnicate"], 2, "unknown option '--frobnicate'; --help lists"),
    "ambiguous": (["127.0.0.1:{plain}", "--conn=4"], 2, "ambiguous option '--conn'"),
    "curl's body": (["127.0.0.1:{plain}", "-d", '{{"a": 1}}'], 2, "A request's body is given by --body"),
    "scenario without run": (["load.yaml"], 2, "'load.yaml' is a scenario: write sojourn-drive run load.yaml"),
    "mistyped subcommand": (["swep", "127.0.0.1:{plain}"], 2, "'swep' is no URL: did you mean sojourn-drive sweep?"),
    "no port, no scheme": (["example"], 2, "'example' is not a usable URL"),
    "no folder": (["127.0.0.1:{plain}", "--json=/nonexistent/run.json"], 2,
                  "--json: cannot write '/nonexistent/run.json': No such file or directory"),
    "a folder": (["127.0.0.1:{plain}", "--csv=/"], 2, "--csv: cannot write '/': Is a directory"),
    "no folder, checked": (["127.0.0.1:{plain}", "--check", "--hlog=/nonexistent/a"], 2, "--hlog: cannot write"),
}


def refused(places, words, status, message):
    words, message = [places.fill(word) for word in words], places.fill(message)
    ended = run([DRIVER, *words], seconds=20, check=False)
    assert (ended.status, ended.stdout) == (status, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("sojourn-drive: ") and message in line
    # nginx counts a TLS hello as a request.
    assert not places.served() or "plain HTTP" in message


@pytest.mark.parametrize("name", REFUSED)
def test_there_is_no_run(places, name):
    """One line, and nothing was sent; runs that wait for a connection give up."""
    refused(places, *REFUSED[name])


def test_no_observer(places):
    """Each driver waits some seconds for one that may be starting, all at once here."""
    places.fill("{plain} {nothing}")
    with ThreadPoolExecutor(3) as drivers:
        for told in [drivers.submit(refused, places, words, 1, message) for words, message in (
                (["127.0.0.1:{plain}", "--observer={nothing}"],
                 "start an observer there: sojourn observe --port {plain} --listen {nothing}"),
                (["http://127.0.0.1:{plain}/", "--observer=http://[::1]:{nothing}"],
                 "start an observer there: sojourn observe --port {plain} --listen [::1]:{nothing}"),
                (["http://127.0.0.1:{plain}/", "--observer=https://localhost:{nothing}"],
                 "--listen {nothing} --tls-cert FILE --tls-key FILE --token-file FILE"))]:
            told.result()


FAILED = {
    "h2c to HTTP/1": ("h2c://127.0.0.1:{plain}/", "malformed", "the server answered HTTP/1.1: use http://"),
    "h2c to Python's": ("h2c://127.0.0.1:{python}/", "malformed", "the server does not speak HTTP/2: use http://"),
    "http to HTTP/2": ("http://127.0.0.1:{h2c}/", "malformed", "the server spoke HTTP/2: use h2c://"),
    "http to nginx' TLS": ("http://127.0.0.1:{tls}/", "status", "status 400: the server wants TLS: use https://"),
    "http to Python's TLS": ("http://127.0.0.1:{python_tls}/", None, "if it speaks TLS, use https://"),
    "https to HTTP, counted": ("https://127.0.0.1:{plain}/", "tls", "the server spoke plain HTTP: use http://"),
}


@pytest.mark.parametrize("name", FAILED)
def test_failures_say_what_to_write(places, name):
    url, kind, message = FAILED[name]
    driver = Driver(places.fill(url), count=4, check=False)
    assert driver.status == 1
    (found,) = driver.result["failures"]
    assert found["kind"] == kind or not kind and found["kind"] in ("reset", "closed_early")
    assert message in found["explanation"]
    assert message in " ".join(driver.report.split())


@pytest.mark.parametrize("alert", [b"\x15\x03\x01\x00\x02\x02\x46", b"\x15\x03\x03\x00\x02\x02\x0a"])
def test_alert_of_tls(alert):
    """Other servers' answers to plain HTTP: Go, stunnel and the like."""
    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(alert)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        for scheme, message in (("http", "the server spoke TLS: use https://"),
                                ("h2c", "the server spoke TLS: use h2:// or https://")):
            driver = Driver(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/", count=2, check=False)
            assert [found["kind"] for found in driver.result["failures"]] == ["malformed"]
            assert message in driver.result["failures"][0]["explanation"]
        listener.shutdown(socket.SHUT_RDWR)


def test_keep_trying(places):
    """The driver keeps trying for the whole duration. In test_schedule.py a server starts meanwhile."""
    driver = Driver(f"http://127.0.0.1:{places['nothing']}/", "--keep-trying", duration="1500ms", check=False)
    assert driver.status == 1 and driver.result["requests"] == 0
    assert driver.result["duration_ns"] >= 1.5e9 and driver.result["errors"]["refused"] > 3


def test_a_server_that_was_there_is_waited_for(start):
    """One successful connection is enough: what happens to the server afterwards is a measurement."""
    server = start(Nginx(server="keepalive_requests 5;"))
    driver = start([DRIVER, server.url, "-c1", "-d4s", "--json=-"])
    wait_until(lambda: server.status()["requests"] > 5)
    server.stop()
    assert driver.wait(20) == 1
    result = documents.parse(driver.stdout)["driver"]
    assert result["requests"] > 5 and result["errors"]["refused"] > 0
    assert result["duration_ns"] >= 4e9


def test_aliases(places):
    """Aliases of curl, oha and hey, and an address without a scheme."""
    driver = Driver(f"127.0.0.1:{places['plain']}/x", "-X", "PUT", "-z", "500ms", "-q", "40")
    result = driver.result
    assert (result["method"], result["target"]) == ("PUT", f"http://127.0.0.1:{places['plain']}/x")
    assert (result["rate"], result["scheduled"], result["duration_ns"]) == (40, 20, 500_000_000)
    assert places.served() == result["requests"]
    assert Driver(f"https://127.0.0.1:{places['tls']}/", "-k", count=5).result["requests"] == 5
    shown = run([DRIVER, "--help"]).stdout
    for words in "-m, -X, --method=", "-d, -z, --duration=", "-q, --rate=", "-k, --insecure":
        assert words in shown


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_localhost_is_both(start, address):
    """The server is found at either address, whatever /etc/hosts says."""
    nginx = start(Nginx(addresses=(address,)))
    driver = Driver(f"localhost:{nginx.port}", count=10)
    assert driver.result["requests"] == 10 and driver.result["errors"]["refused"] == 0


def test_redirects_are_named(start):
    """Redirects are good responses, but probably not the intended ones."""
    nginx = start(Nginx(server="location /old { return 302 /new; } location /new { return 304; }"))
    driver = Driver(f"{nginx.url}old", count=10)
    assert driver.process.stderr == "sojourn-drive: warning: 100 % redirected, not followed: 302\n"
    meant = Driver(f"{nginx.url}old", "--expect-status=302", count=10)
    assert meant.process.stderr == "" and "redirected" not in meant.report and meant.result["expected"] == "302"
    assert Driver(f"{nginx.url}new", count=10).process.stderr == ""


def test_interrupted(start, tmp_path):
    nginx = start(Nginx())
    for words, message, asked in (
            (["-d60s"], " of 60 s\n", {"duration_ns": 60_000_000_000, "requests": None}),
            (["-n900M"], " of 900,000,000 requests\n", {"duration_ns": None, "requests": 900_000_000})):
        before = nginx.status()["requests"]
        driver = start([DRIVER, nginx.url, *words, "--json", tmp_path / "run.json"])
        wait_until(lambda seen=before: nginx.status()["requests"] > seen + 100)
        assert driver.stop(number=signal.SIGINT) == 0
        assert "interrupted after " in driver.stderr and driver.stderr.endswith(message)
        assert "requests ·" in driver.stdout and "note: interrupted after " in driver.stdout
        assert documents.load(tmp_path / "run.json")["driver"]["interrupted"] == asked


def test_a_file_that_is_lost_loses_no_run(start, tmp_path):
    """The folder disappears during the run: the other files and the report are written."""
    nginx = start(Nginx())
    folder = tmp_path / "results"
    folder.mkdir()
    driver = start([DRIVER, nginx.url, "-d3s", "--json", folder / "run.json", "--csv", tmp_path / "run.csv"])
    wait_until(lambda: nginx.status()["requests"] > 10)
    assert not list(folder.iterdir()), "what was tried before the run is gone"
    folder.rmdir()
    assert driver.wait(20) == 1
    assert driver.stderr == f"sojourn-drive: cannot write '{folder}/run.json': No such file or directory\n"
    assert "requests ·" in driver.stdout
    assert (tmp_path / "run.csv").read_text().count("\n") > 1


def test_what_is_there_stays_until_it_is_replaced(tmp_path):
    """The file is checked for writing without touching it."""
    path = tmp_path / "run.json"
    path.write_text("before")
    ended = run([DRIVER, f"127.0.0.1:{free_port()}", "--json", path, SPENT], seconds=20, check=False)
    assert ended.status == 1 and path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("words", [["sweep"], ["run"], []])
def test_help_is_a_command(words):
    assert run([DRIVER, "help", *words]).stdout == run([DRIVER, *words, "--help"]).stdout
