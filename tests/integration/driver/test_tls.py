# SPDX-License-Identifier: MIT
"""https: against nginx, whose counters are the truth, and against servers with faulty TLS."""
import json
import os
import re
import signal
import socket
import ssl
import struct
import threading

import pytest

from support.net import free_port, serve_each
from support.pki import Pki
from support.process import Process, stat_fields, wait_until
from support.programs import DRIVER, Driver, Nginx

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture(name="pki", scope="module")
def _pki():
    pki = Pki()
    pki.server = pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    pki.other = pki.issue("other", "DNS:other.example")
    pki.expired = pki.issue("expired", "IP:127.0.0.1", days=-1)
    pki.client = pki.issue("client", "DNS:client.example")
    yield pki
    pki.close()


def nginx_tls(pki, more="", identity=None, **options):
    cert, key = identity or pki.server
    nginx = Nginx(listen_options="ssl",
                  server=f"ssl_certificate {cert}; ssl_certificate_key {key}; {more}", **options)
    nginx.url = nginx.url.replace("http:", "https:")
    return nginx


def only_error(driver, kind):
    found = [entry for entry in driver.result["failures"]]
    assert [entry["kind"] for entry in found] == [kind], found
    assert found[0]["count"] == driver.result["errors"][kind]
    return found[0]


def test_counts_are_the_servers(start, pki):
    nginx = start(nginx_tls(pki))
    driver = Driver(nginx.url, "--ca", pki.ca, connections=8, threads=2, count=5000)
    status = nginx.status()
    assert driver.result["requests"] == driver.result["status"]["2xx"] == 5000
    assert status["requests"] == 5000
    assert status["accepts"] == driver.result["connects"] == 8
    assert driver.result["tls"]["count"] == 8
    assert driver.result["first_byte"]["count"] == 5000
    assert driver.result["first_byte"]["sum_ns"] <= driver.result["round_trip"]["sum_ns"]
    assert re.search(r"^TLS +8 · mean ", driver.report, re.MULTILINE)
    assert "handshake" in driver.result["unsampled"]


def test_connection_policy(start, pki):
    nginx = start(nginx_tls(pki))
    each = Driver(nginx.url, "--ca", pki.ca, "--new-connections", "--close=rst", connections=4,
                  count=200)
    assert each.result["connects"] == each.result["tls"]["count"] == 200
    assert nginx.status()["accepts"] == 200
    some = Driver(nginx.url, "--ca", pki.ca, "--requests-per-connection=50", count=400)
    assert some.result["connects"] == 8
    assert nginx.status() | {"active": 0} == {"active": 0, "accepts": 208, "handled": 208,
                                              "requests": 600}


def test_large_bodies_both_ways(start, pki, tmp_path):
    """Bodies exceed a socket's buffers, at a rate, and are compared by their size."""
    (tmp_path / "body").write_bytes(bytes(range(256)) * 12000)
    nginx = start(nginx_tls(pki, "client_max_body_size 100m; client_body_buffer_size 8k;"
                            f"location /get {{ root {tmp_path}/; }} error_page 405 =200 $uri;"))
    (tmp_path / "get").mkdir()
    (tmp_path / "get" / "big").write_bytes(b"x" * 3000000)
    driver = Driver(nginx.url + "get/big", "--ca", pki.ca, "--rate=40", connections=4, count=40)
    assert driver.result["requests"] == 40
    assert 0 < driver.result["bytes_in"] - 40 * 3000000 < 40 * 1000
    assert driver.result["response_time"]["count"] == 40

    driver = Driver(nginx.url, "--ca", pki.ca, f"--body=@{tmp_path}/body", connections=2, count=20)
    assert driver.result["requests"] == driver.result["status"]["2xx"] == 20
    # nginx may answer before it has all of a body; the rest is then not sent.
    assert 10 * 12000 * 256 < driver.result["bytes_out"] < 21 * 12000 * 256


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_client_certificate_and_version(start, pki, version):
    nginx = start(nginx_tls(pki, f"ssl_client_certificate {pki.ca}; ssl_verify_client on; "
                            f"ssl_protocols {version}; add_header X $ssl_protocol$ssl_server_name;"))
    cert, key = pki.client
    url = nginx.url.replace("127.0.0.1", "localhost")
    with_it = Driver(url, "--ca", pki.ca, "--cert", cert, "--key", key, count=10)
    assert with_it.result["status"]["2xx"] == 10
    without = Driver(url, "--ca", pki.ca, count=10, check=False)
    assert without.result["status"]["4xx"] == 10


def test_server_name(start, pki):
    """SNI chooses the server, and the certificate must match that name."""
    nginx = start(nginx_tls(pki, identity=pki.other,
                            more="if ($ssl_server_name = other.example) { return 204; }"))
    asked = Driver(nginx.url, "--ca", pki.ca, "--server-name=other.example", "--expect-status=204",
                   count=10)
    assert asked.result["requests"] == 10
    wrong = Driver(nginx.url, "--ca", pki.ca, count=10, check=False)
    assert wrong.status == 1
    assert "IP address mismatch" in only_error(wrong, "certificate")["explanation"]
    assert "--server-name" in wrong.report


def test_certificates_that_are_not_accepted(start, pki):
    good = start(nginx_tls(pki))
    untrusted = Driver(good.url, count=10, check=False)
    assert "issuer" in only_error(untrusted, "certificate")["explanation"]
    assert untrusted.result["errors"]["certificate"] == 10
    assert untrusted.result["requests"] == untrusted.result["connects"] == 0

    expired = start(nginx_tls(pki, identity=pki.expired))
    driver = Driver(expired.url, "--ca", pki.ca, count=10, check=False)
    assert "expired" in only_error(driver, "certificate")["explanation"]
    driver = Driver(expired.url, "--insecure", count=10)
    assert driver.result["requests"] == 10


class Server:
    """Hands each connection to `treat`, within TLS if there is an identity."""

    def __init__(self, treat, identity=None):
        self.treat = treat
        self.context = None
        if identity:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*identity)
        self.listener = socket.create_server(("127.0.0.1", free_port()), backlog=128)
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.accepted = serve_each(self.listener, self._treat)

    def _treat(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True,
                                                      suppress_ragged_eofs=True)
            self.treat(connection)
        except (OSError, ValueError):
            pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.accepted:
            connection.close()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def say(text, end):
    """Return a treatment that reads a request, answers this text, and ends in this way."""
    def treat(connection):
        connection.recv(4096)
        connection.sendall(text)
        end(connection)
    return treat


def tell_end(connection):
    connection.unwrap().close()


def stall(connection):
    connection.recv(65536)
    threading.Event().wait(30)


HANDSHAKES = {
    "not TLS": (say(RESPONSE, lambda c: c.close()), "tls", "the server spoke plain HTTP: use http://"),
    "closed": (lambda c: (c.recv(4096), c.close()), "tls", "closed during the handshake"),
    "reset": (lambda c: (c.recv(1), reset(c)), "tls", "reset the connection"),
    "stall": (stall, "tls_timeout", "did not finish the handshake within 300 ms"),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_handshakes_that_fail(start, name):
    treat, kind, text = HANDSHAKES[name]
    server = start(Server(treat))
    driver = Driver(server.url, "--insecure", "--timeout=300ms", count=5, check=False)
    assert driver.status == 1
    assert driver.result["errors"][kind] == 5
    assert text in only_error(driver, kind)["explanation"]
    assert driver.result["connects"] == 0
    assert len(server.accepted) == 5, "no attempt that is not counted"


UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
RESPONSES = {
    "complete": (say(RESPONSE.replace(b"Content", b"Connection: close\r\nContent"), tell_end), None),
    "until close_notify": (say(UNTIL_CLOSE, tell_end), None),
    "until FIN": (say(UNTIL_CLOSE, lambda c: c.close()), "closed_early"),
    "truncated": (say(RESPONSE[:-2], tell_end), "closed_early"),
    "truncated by FIN": (say(RESPONSE[:-2], lambda c: c.close()), "closed_early"),
    "reset": (say(RESPONSE[:-2], reset), "reset"),
    "too long": (say(RESPONSE + b"!", lambda c: c.close()), "malformed"),
    "garbage": (say(b"\0\1\2\3", lambda c: c.close()), "malformed"),
    "stall": (stall, "timeout"),
    "not TLS any more": (lambda c: (c.recv(4096), socket.socket(fileno=c.detach()).sendall(RESPONSE),
                                    ), "tls"),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_that_fail(start, pki, name):
    treat, kind = RESPONSES[name]
    server = start(Server(treat, pki.server))
    driver = Driver(server.url, "--ca", pki.ca, "--timeout=1s", connections=4, count=4, check=False)
    assert len(server.accepted) == driver.result["connects"] == driver.result["tls"]["count"] == 4
    if kind:
        assert only_error(driver, kind)["count"] == 4
    else:
        assert driver.result["requests"] == 4 and driver.result["failures"] == []


def test_a_stopped_driver_goes_on_with_its_handshake(start, pki):
    """TLS 1.2 takes another step of the client. Its server stops the driver for longer than the time limit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*pki.server)
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def go_on():
        held.append(1)
        os.kill(driver.pid, signal.SIGCONT)

    def treat(connection):
        connection.recv(1, socket.MSG_PEEK)
        os.kill(driver.pid, signal.SIGSTOP)
        wait_until(lambda: stat_fields(f"/proc/{driver.pid}")[0] == "T")
        threading.Timer(0.7, go_on).start()
        with context.wrap_socket(connection, server_side=True) as stream:
            stream.recv(4096)
            stream.sendall(RESPONSE)
            stream.recv(4096)

    serve_each(listener, treat)
    with listener:
        driver = start(Process([DRIVER, f"https://127.0.0.1:{listener.getsockname()[1]}/", "--ca", pki.ca, "-c1", "-n3",
                                "--new-connections", "--timeout=500ms", "--json=-"]))
        assert driver.wait(seconds=30) == 0, driver.stderr
    result = json.loads(driver.stdout)["driver"]
    assert result["requests"] == len(held) == result["tls"]["count"] == 3
    assert not any(result["errors"].values())


def test_stolen_options_are_refused(pki, tmp_path):
    """Options without effect and unsuitable files are refused before any load."""
    (tmp_path / "text").write_text("no certificate\n")
    https = "https://127.0.0.1:9/"
    for url, words, text in (
            ("http://127.0.0.1:9/", ["--insecure"], "--insecure: http: targets have no TLS"),
            ("http://127.0.0.1:9/", ["--ca", pki.ca], "--ca: http: targets have no TLS"),
            (https, ["--insecure", "--ca", pki.ca], "give one of the two"),
            (https, ["--key", "x"], "add --cert=FILE"),
            (https, ["--ca", tmp_path / "none"], "No such file"),
            (https, ["--ca", tmp_path / "text"], f"--ca: cannot use '{tmp_path}/text'"),
            (https, ["--cert", tmp_path / "text"], f"--cert: cannot use '{tmp_path}/text'"),
            (https, ["--cert", pki.client[0], "--key", pki.server[1]], "mismatch")):
        driver = Driver(url, *words, count=1, check=False)
        assert driver.status in (1, 2) and driver.document is None
        assert text in driver.process.stderr
        assert len(driver.process.stderr.splitlines()) == 1
