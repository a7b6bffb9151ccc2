# SPDX-License-Identifier: MIT
"""Streams of HTTP/2 by connection (--http, --tls). Those of connections that have ended are compared with nginx' log of
requests by connection, those at once with the option of h2load.

tools/mutate: "a connection ends twice". "streams that are open at once are all streams".
"""
import re
import subprocess
from collections import Counter

import pytest

from support.conditions import needs_program
from support.documents import service
from support.pki import Pki
from support.process import run, wait_until
from support.programs import OBSERVER, Nginx, Observer

pytestmark = [needs_program("nginx"), needs_program("h2load")]
LOG = "log_format by_connection '$connection $connection_requests $server_protocol';"


@pytest.fixture(scope="module", name="certificate")
def _certificate():
    pki = Pki()
    yield pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    pki.close()


def by_connection(log):
    """Return {connection: its requests} and check that nginx numbers them so."""
    rows = [line.split() for line in log.read_text().splitlines()]
    assert all(row[2] == "HTTP/2.0" for row in rows)
    logged = Counter(row[0] for row in rows)
    assert logged == {connection: max(int(row[1]) for row in rows if row[0] == connection) for connection in logged}
    return logged


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "TLS"])
def test_connections_that_have_ended(start, tmp_path, certificate, secure):
    log = tmp_path / "log"
    identity = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};" if secure else ""
    nginx = start(Nginx(http_block=LOG, server=f"access_log {log} by_connection; {identity} location /x {{ return 200 'x'; }}",
                        listen_options="ssl http2" if secure else "http2"))
    observer = start(Observer("--tls" if secure else "--http", ports=[nginx.port]))
    url = f"{'https' if secure else 'http'}://127.0.0.1:{nginx.port}/x"
    for requests, clients, at_once in ((500, 5, 1), (601, 3, 12), (7, 2, 2)):
        assert f"{requests} succeeded" in run(["h2load", "-n", requests, "-c", clients, "-m", at_once, url]).stdout
    logged = by_connection(log)
    assert len(logged) == 10 and sum(logged.values()) == 500 + 601 + 7
    wait_until(lambda: service(observer.document(), nginx.port)["http2"]["ended"] >= 10)
    observer.stop()
    http2 = service(observer.summary(), nginx.port)["http2"]
    assert (http2["ended"], http2["ended_streams"]) == (len(logged), sum(logged.values()))
    assert http2["streams_highest"] == max(logged.values()) and http2["open_highest"] == 12
    told = " ".join(run([OBSERVER, "report", "-v", observer.json]).stdout.split())
    assert re.search(rf"10 ended connections with 11\d(\.\d)? streams on average, at most {max(logged.values())} ", told), told
    assert "at most 12 open at once on one" in told


def test_a_connection_that_goes_on(start):
    """It has not ended, and so is in no mean. How many it has open at once is known."""
    nginx = start(Nginx(server="location /x { return 200 'x'; }", listen_options="http2"))
    observer = start(Observer("--http", ports=[nginx.port]))
    with subprocess.Popen(["h2load", "-D", "60", "-c", "1", "-m", "9", f"http://127.0.0.1:{nginx.port}/x"],
                          stdout=subprocess.DEVNULL) as client:
        wait_until(lambda: (service(observer.document(), nginx.port)["http2"]["streams"] or 0) > 100)
        http2 = service(observer.document(), nginx.port)["http2"]
        client.terminate()
    assert http2["open_highest"] == 9 and http2["ended"] == http2["ended_streams"] == http2["streams_highest"] == 0
    observer.stop()
