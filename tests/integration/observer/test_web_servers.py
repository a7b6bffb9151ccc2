# SPDX-License-Identifier: MIT
"""Apache, whose kernel waits for a request before accept() (TCP_DEFER_ACCEPT), alone and behind nginx.

The truth is Apache's own log: a line per request, with its time in microseconds.
"""
import os
import re
import socket
import statistics
import time
from pathlib import Path

import pytest

from support.documents import service
from support.net import free_port
from support.peers import need
from support.process import Process, own_folder, run, wait_until
from support.programs import Nginx, Observer
from support.timing import MS, US, in_quiet, in_time, timing
from .test_stages import samples_add_up, stage

CONFIGURATION = """
ServerRoot /usr/lib/apache2
ServerName localhost
Listen 127.0.0.1:{port}
AcceptFilter http data
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
PidFile {folder}/pid
DefaultRuntimeDir {folder}
User nobody
Group nogroup
DocumentRoot {folder}/www
ErrorLog {folder}/error.log
LogFormat "%D %s %B" times
CustomLog {folder}/access.log times
KeepAlive On
MaxKeepAliveRequests 0
StartServers 1
"""
LARGE = 16_000_000  # more than a send buffer holds


class Apache(Process):
    def __init__(self):
        need("apache2", "ab", "curl")
        if os.geteuid():
            pytest.skip("Apache changes its user")
        self.files = own_folder("apache")
        self.folder_name = Path(self.files.name)
        os.chmod(self.folder_name, 0o755)
        self.port = free_port()
        (self.folder_name / "www").mkdir()
        (self.folder_name / "www" / "index.html").write_text("x" * 1000)
        (self.folder_name / "www" / "large").write_text("x" * LARGE)
        path = self.folder_name / "apache.conf"
        path.write_text(CONFIGURATION.format(port=self.port, folder=self.folder_name))
        super().__init__(["apache2", "-f", path, "-DFOREGROUND"])
        with self.coming_up():
            wait_until(lambda: not self.running() or self._answers())
            if not self.running():
                raise self.error("did not come up")

    def _answers(self):
        return run(["curl", "--silent", "--output", "/dev/null", f"http://127.0.0.1:{self.port}/"], check=False).status == 0

    def log(self):
        text = (self.folder_name / "access.log").read_text()
        return [int(value) for value in re.findall(r"^(\d+) 200 \d+$", text, re.MULTILINE)]

    def logged(self, more, since):
        """Return those of `more` requests after the first @since. Apache writes a line when the response is out."""
        wait_until(lambda: len(self.log()) >= since + more)
        return self.log()[since:]

    def close(self):
        super().close()
        self.files.cleanup()


def ask(port, *options):
    text = run(["ab", "-q", *options, f"http://127.0.0.1:{port}/index.html"]).stdout
    assert re.search(r"Failed requests:\s+0\n", text)
    return int(re.search(r"Complete requests:\s+(\d+)", text)[1])


def times_are(entry, took_us):
    """Apache's time lasts from just before its first read until it writes the log line, which the client that
    it has woken may delay."""
    within_ns = sum(stage(entry, name)["sum_ns"] for name in ("receive", "service", "respond"))
    with timing():
        assert within_ns <= sum(took_us) * US * 1.05 + len(took_us) * 10 * US
        assert within_ns >= sum(took_us) * US * 0.1


@pytest.mark.parametrize("options", [pytest.param(("-n", 300, "-c", 3), marks=pytest.mark.long),
                                     ("-n", 1000, "-c", 3, "-k")])
@in_quiet
def test_apache(start, options):
    apache = start(Apache())
    before = len(apache.log())
    observer = start(Observer(ports=[apache.port]))
    done = ask(apache.port, *options)
    took_us = apache.logged(done, before)
    observer.stop()
    entry = service(observer.summary(), apache.port)
    samples_add_up(entry)
    assert entry["exchanges"] == done == len(took_us)
    assert not any(entry["losses"][name] for name in ("unanswered", "unsolicited", "untimed", "overlapped"))
    assert entry["accept_queue"]["overflows"] == 0
    # Every connection is accepted with its first request, so accept() may be inferred from what follows.
    if entry["accepted"] == done:
        assert entry["closes"]["closed_by_server"] == done
        assert stage(entry, "accept_queue")["count"] == done
    times_are(entry, took_us)


@in_quiet
def test_connections_that_say_nothing_are_not_accepted(start):
    """They are accepted when they ask: the time before is not the server's."""
    apache = start(Apache())
    before = len(apache.log())
    observer = start(Observer(ports=[apache.port]))
    clients = [socket.create_connection(("127.0.0.1", apache.port)) for _ in range(6)]
    time.sleep(0.5)
    for client in clients[:4]:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1")
    for client in clients:
        client.close()
    time.sleep(0.2)
    observer.stop()
    entry = service(observer.summary(), apache.port)
    samples_add_up(entry)
    assert entry["exchanges"] >= 4
    assert entry["losses"]["unanswered"] == 0
    with timing():
        assert stage(entry, "accept_queue")["max_ns"] < 200 * MS
        assert stage(entry, "socket_queue")["max_ns"] < 200 * MS
    assert len(apache.log()) - before <= entry["exchanges"]


@pytest.mark.parametrize("option", [[], ["--http"]], ids=["", "http"])
@in_time
def test_an_empty_line_after_a_body(start, option):
    """Old clients send CR LF after the body of a POST, and nginx skips it. It is no request, and the client's pause after it
    is no time of the next one, nor of the server."""
    nginx = start(Nginx(server="access_log {folder}/access.log;"))
    observer = start(Observer(*option, ports=[nginx.port]))
    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        for _ in range(10):
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
            assert client.recv(65536).startswith(b"HTTP/1.1 ")
            client.sendall(b"\r\n")
            time.sleep(0.1)
        logged = Path(nginx.files.name, "access.log").read_text().count("POST / ")
    wait_until(lambda: nginx.status()["active"] == 0)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    samples_add_up(entry)
    assert entry["exchanges"] == logged == entry["losses"]["oneway"] == 10
    assert entry["losses"]["unanswered"] == 0
    with timing():
        assert sum(stage(entry, name)["sum_ns"] for name in ("socket_queue", "receive", "service", "respond")) < 100 * MS


@in_quiet
def test_a_slow_reader_is_respond(start):
    apache = start(Apache())
    before = len(apache.log())
    observer = start(Observer(ports=[apache.port]))
    with socket.create_connection(("127.0.0.1", apache.port)) as client:
        client.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        while client.recv(500_000):
            time.sleep(0.005)
    took_us = apache.logged(1, before)
    observer.stop()
    entry = service(observer.summary(), apache.port)
    assert entry["exchanges"] == 1
    assert entry["bytes_out"] > LARGE
    times_are(entry, took_us)
    with timing():
        assert stage(entry, "respond")["sum_ns"] > 0.5 * sum(took_us) * US


@in_quiet
def test_apache_behind_nginx(start):
    """Both count the same; Apache's time is within nginx's."""
    apache = start(Apache())
    nginx = start(Nginx(http_block=f"upstream apache {{ server 127.0.0.1:{apache.port}; keepalive 8; }}",
                        server="location /index.html { proxy_pass http://apache; proxy_http_version 1.1; "
                               'proxy_set_header Connection ""; }'))
    before = len(apache.log())
    observer = start(Observer(ports=[apache.port, nginx.port]))
    done = ask(nginx.port, "-n", 600, "-c", 3, "-k")
    took_us = apache.logged(done, before)
    observer.stop()
    front, back = (service(observer.summary(), each.port) for each in (nginx, apache))
    assert front["exchanges"] == back["exchanges"] == done == len(took_us)
    for entry in (front, back):
        samples_add_up(entry)
        assert not any(entry["losses"][name] for name in ("unanswered", "unsolicited", "untimed"))
    times_are(back, took_us)
    assert stage(front, "service")["mean_ns"] > statistics.fmean(took_us) * US * 0.1
