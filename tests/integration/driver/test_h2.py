# SPDX-License-Identifier: MIT
"""h2: and h2c: against nginx, whose counters are the truth, and a server with deliberate faults."""
import socket
import struct

import pytest

from support.h2server import H2Server
from support.pki import Pki
from support.programs import Driver, Nginx

pytest.importorskip("h2", reason="python3-h2 is not installed: tools/setup")


@pytest.fixture(name="pki", scope="module")
def _pki():
    pki = Pki()
    pki.server = pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    yield pki
    pki.close()


def nginx_h2(pki=None, more="", **options):
    nginx = Nginx(listen_options="ssl http2" if pki else "http2",
                  server=f"ssl_certificate {pki.server[0]}; ssl_certificate_key {pki.server[1]};"
                  f"{more}" if pki else more, **options)
    nginx.url = nginx.url.replace("http:", "h2:" if pki else "h2c:")
    nginx.options = ["--ca", pki.ca] if pki else []
    return nginx


def errors(driver):
    return {kind: count for kind, count in driver.result["errors"].items() if count}


@pytest.mark.parametrize("tls", [False, True])
def test_counts_are_the_servers(start, pki, tls):
    nginx = start(nginx_h2(pki if tls else None, workers=2))
    driver = Driver(nginx.url, *nginx.options, "--streams=10", connections=4, threads=2,
                    count=20000)
    status = nginx.status()
    assert driver.result["requests"] == driver.result["status"]["2xx"] == 20000
    assert status["requests"] == 20000
    assert status["accepts"] == driver.result["connects"] == 4
    assert driver.result["tls"]["count"] == (4 if tls else 0)
    assert driver.result["first_byte"]["count"] == driver.result["round_trip"]["count"] == 20000
    assert driver.result["streams"] == 10 and driver.result["streams_allowed"] == 128
    assert "up to 10 at a time" in driver.report
    assert errors(driver) == {}
    assert not driver.result["unsampled"]  # the observer may see streams, in TLS with --tls


def test_threads_share(start):
    nginx = start(nginx_h2())
    driver = Driver(nginx.url, "--streams=3", connections=5, threads=4, count=6000)
    assert nginx.status()["requests"] == driver.result["requests"] == 6000
    assert nginx.status()["accepts"] == driver.result["connects"] == 5


@pytest.mark.parametrize("streams", [1, 7])
def test_so_many_at_once(start, streams):
    """One connection has as many open streams at the server as requested, never more."""
    def treat(exchanges):
        if len(exchanges.open) == streams:
            for _ in range(streams):
                exchanges.answer()

    server = start(H2Server(treat))
    driver = Driver(server.url, f"--streams={streams}", count=streams * 50)
    assert server.counts == {"connections": 1, "requests": streams * 50, "at once": streams}
    assert driver.result["requests"] == streams * 50


def test_the_server_allows_fewer(start):
    """Requests beyond the server's limit wait without a running clock, and the report says so."""
    from h2.settings import SettingCodes

    server = start(H2Server(lambda exchanges: exchanges.answer(),
                            settings={SettingCodes.MAX_CONCURRENT_STREAMS: 2}))
    driver = Driver(server.url, "--streams=5", count=300)
    assert driver.result["requests"] == server.counts["requests"] == 300
    assert driver.result["streams_allowed"] == 2
    assert "the server allows only 2" in driver.report


def test_policy(start, pki):
    nginx = start(nginx_h2(pki))
    each = Driver(nginx.url, *nginx.options, "--new-connections", "--close=rst", connections=3,
                  count=150)
    assert nginx.status()["accepts"] == each.result["connects"] == 150
    some = Driver(nginx.url, *nginx.options, "--streams=4", "--requests-per-connection=20",
                  count=400)
    assert nginx.status()["accepts"] == 150 + some.result["connects"] == 150 + 20
    assert nginx.status()["requests"] == 550
    old = Driver(nginx.url, *nginx.options, "--streams=4", "--connection-lifetime=100ms",
                 "--rate=500", duration="1s")
    assert 5 <= old.result["connects"] <= 12
    assert nginx.status()["requests"] == 550 + old.result["requests"]
    assert errors(each) == errors(some) == errors(old) == {}


def test_servers_that_close_after_some(start):
    """nginx announces its limit of requests by GOAWAY: with one stream no request is lost."""
    nginx = start(nginx_h2(more="keepalive_requests 10;"))
    driver = Driver(nginx.url, connections=2, count=400)
    assert errors(driver) == {}
    assert nginx.status()["requests"] == 400
    assert 40 <= nginx.status()["accepts"] == driver.result["connects"] <= 41


def test_bodies_headers_and_expectations(start, tmp_path):
    (tmp_path / "get").mkdir()
    (tmp_path / "get" / "big").write_bytes(b"x" * 3000000 + b"end")
    nginx = start(nginx_h2(more=f"location /get {{ root {tmp_path}; }}"
                           'location /say { return 200 "$host $http_name $request_method $args"; }'
                           "location /no { return 404; }"))
    down = Driver(nginx.url + "get/big", "--streams=4", "--expect-body=xend", count=40)
    assert errors(down) == {}
    assert 0 < down.result["bytes_in"] - 40 * 3000003 < 40 * 10000
    said = Driver(nginx.url + "say?a={{counter:3}}", "-H", "Host: some.example", "-H", "Name: V",
                  "-m", "PUT", "--expect-body=some.example V PUT a=0", "--streams=5", count=50)
    assert errors(said) == {}
    no = Driver(nginx.url + "no", count=10, check=False)
    assert errors(no) == {"status": 10} and no.status == 1
    assert errors(Driver(nginx.url + "no", "--expect-status=404", count=10)) == {}
    assert errors(Driver(nginx.url, "--expect-body=nonsense", count=10, check=False)
                  ) == {"unexpected": 10}
    assert errors(Driver(nginx.url, "-m", "HEAD", "--streams=2", count=10)) == {}


def test_large_requests(start, tmp_path):
    """The body exceeds sockets and flow control, and arrives byte by byte as given."""
    body = bytes(range(251)) * 4000
    (tmp_path / "body").write_bytes(body)
    wrong = []

    def treat(exchanges):
        if exchanges.bodies.pop(exchanges.open[0]) != body:
            wrong.append(exchanges.open[0])
        exchanges.answer()

    server = start(H2Server(treat))
    driver = Driver(server.url, f"--body=@{tmp_path}/body", "--streams=3", connections=2, count=12)
    assert errors(driver) == {} and not wrong
    assert server.counts["requests"] == driver.result["requests"] == 12
    assert 0 < driver.result["bytes_out"] - 12 * len(body) < 12 * len(body) / 100


def test_open_loop(start, pki):
    nginx = start(nginx_h2(pki))
    driver = Driver(nginx.url, *nginx.options, "--streams=8", "--rate=1000", connections=2,
                    duration="2s")
    assert driver.result["response_time"]["count"] == driver.result["requests"]
    assert driver.result["requests"] + driver.result["unsent"] == driver.result["scheduled"]
    assert 1990 <= driver.result["scheduled"] <= 2010
    assert nginx.status()["requests"] == driver.result["requests"]


def test_not_negotiated(start, pki):
    """HTTP/1.1 is not mistaken for HTTP/2: ALPN shows it with TLS, the first bytes without."""
    cert, key = pki.server
    nginx = start(Nginx(listen_options="ssl",
                        server=f"ssl_certificate {cert}; ssl_certificate_key {key};"))
    driver = Driver(nginx.url.replace("http:", "h2:"), "--ca", pki.ca, count=10, check=False)
    assert errors(driver) == {"not_negotiated": 10} and driver.status == 1
    assert driver.result["connects"] == 0 and nginx.status()["requests"] == 0
    assert "ALPN" in driver.result["failures"][0]["explanation"]

    plain = start(Nginx())
    driver = Driver(plain.url.replace("http:", "h2c:"), "--streams=2", count=10, check=False)
    assert errors(driver) == {"malformed": 10}


def abort(exchanges):
    exchanges.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchanges.socket.close()
    raise EOFError


def hang_up(exchanges):
    exchanges.answer(end=False)
    exchanges.flush()
    exchanges.socket.shutdown(socket.SHUT_WR)
    while exchanges.socket.recv(65536):
        pass
    raise EOFError


def say(data):
    def treat(exchanges):
        exchanges.socket.sendall(data)
    return treat


WRONGS = {
    "stream reset": (lambda e: e.reset(2), "stream_reset", 1),
    "refused stream": (lambda e: e.reset(7), "unprocessed", 1),
    "reset": (abort, "reset", 6),
    "half an answer": (hang_up, "closed_early", 6),
    "too short": (lambda e: e.answer(headers=[("content-length", "9")]), "malformed", 1),
    "garbage": (say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "malformed", 6),
    "nothing": (lambda e: None, "timeout", None),
}


@pytest.mark.parametrize("name", WRONGS)
def test_what_goes_wrong(start, name):
    """Each fault counts under its own kind, as often as it happened, and nothing is retried silently."""
    treat, kind, connections = WRONGS[name]
    server = start(H2Server(treat))
    driver = Driver(server.url, "--timeout=300ms", count=6, check=False)
    assert errors(driver) == {kind: 6} and driver.status == 1
    assert server.counts["requests"] == 6
    assert server.counts["connections"] == driver.result["connects"]
    assert connections in (None, driver.result["connects"])


def test_goaway(start):
    """Streams above the last one were not processed, the others were; then there is a new connection."""
    def treat(exchanges):
        if exchanges.seen < 4:
            return
        done = [exchanges.answer(), exchanges.answer()]
        exchanges.connection.close_connection(last_stream_id=done[1])
        exchanges.flush()
        raise EOFError

    server = start(H2Server(treat))
    driver = Driver(server.url, "--streams=4", count=20, check=False)
    assert errors(driver) == {"unprocessed": 10}
    assert driver.result["requests"] == 10
    assert server.counts["connections"] == driver.result["connects"] == 5
    assert server.counts["requests"] == 20


def test_one_stream_times_out_alone(start):
    """After a stream's time-out its connection and the other streams continue."""
    def treat(exchanges):
        if exchanges.open[0] == 1:
            exchanges.open.append(exchanges.open.pop(0))
        if exchanges.open[0] != 1:
            exchanges.answer()

    server = start(H2Server(treat))
    driver = Driver(server.url, "--streams=3", "--timeout=400ms", "--think=5ms", count=300,
                    check=False)
    assert errors(driver) == {"timeout": 1}
    assert driver.result["requests"] == 299
    assert server.counts["connections"] == driver.result["connects"] == 1


def test_nobody_listens():
    """Requests that wait for the connection are no failures of their own."""
    driver = Driver("h2c://127.0.0.1:20001/", "--streams=10", connections=2, count=20, check=False)
    assert errors(driver) == {"refused": 20}


def test_options_are_refused():
    for url, words, text in (
            ("http://127.0.0.1:9/", ["--streams=2"], "--streams: http: targets are not HTTP/2"),
            ("h2c://127.0.0.1:9/", ["--insecure"], "--insecure: h2c: targets have no TLS"),
            ("h2c://127.0.0.1:9/", ["-H", "Connection: close"], "HTTP/2 has no 'Connection'"),
            ("h2c://127.0.0.1:9/", ["--streams=0"], "--streams: '0'"),
            ("h2c://127.0.0.1:9/", ["--streams=10000", "-c", "101"], "more than 1000000"),
            ("https://127.0.0.1:9/", ["--grpc"], "--grpc: https: targets are not HTTP/2"),
            ("h2://127.0.0.1:9/", ["--expect-grpc-status=0"], "add --grpc"),
            ("h2://127.0.0.1:9/", ["--grpc", "--expect-grpc-status=17"], "'17' is not a status")):
        driver = Driver(url, *words, connections=None, count=1, check=False)
        assert driver.status == 2, (words, driver.process.stderr)
        assert text in driver.process.stderr
        assert len(driver.process.stderr.splitlines()) == 1
