# SPDX-License-Identifier: MIT
"""Calls in protocols other than HTTP: nginx calls PHP-FPM (FastCGI) and uWSGI, and unbound a resolver over TCP. The truth are the
logs of both ends."""
import contextlib
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from support.net import free_port, serve_each
from support.peers import need
from support.process import Process, own_folder, wait_until
from support.programs import Driver, Observer
from support.timing import MS, in_quiet, lies_within

from .test_calls import LASTING, flat, rows, uncut
from .test_dns import Asked, Unbound, fresh
from .test_upstreams import Front

COUNT = 45
PHP = "<?php usleep(20000); file_get_contents('php://input'); echo 'begun'; if (isset($_GET['late'])) { flush(); usleep(30000); echo 'ended'; }"
FPM = """[global]
error_log = {folder}/error.log
daemonize = no
[pool]
user = root
group = root
listen = {where}
pm = static
pm.max_children = 4
access.log = {folder}/log
access.format = "%s"
php_flag[output_buffering] = off
"""
PYTHON = """import time
def application(environ, start):
    environ['wsgi.input'].read()
    time.sleep(0.02)
    start('200 OK', [])
    yield b'begun'
    if environ['QUERY_STRING']:
        time.sleep(0.03)
        yield b'ended'
"""


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Behind(Process):
    """A server behind nginx. It logs a line for each request that it has answered."""

    def come_up(self, argv):
        super().__init__(argv)
        with self.coming_up():
            wait_until(lambda: self.unix.exists() or listens(self.port) or not self.running(), 30)
            if not self.running():
                raise self.error("did not come up")

    def prepare(self, name):
        self.files = own_folder(name)
        self.base = Path(self.files.name)
        self.unix = self.base / "socket"
        self.port = free_port()

    def log(self):
        return [line for line in (self.base / "log").read_text().splitlines() if line.startswith("200")]

    def close(self):
        super().close()
        self.files.cleanup()


class Fpm(Behind):
    def __init__(self, unix=False):
        program = next(iter(sorted(Path("/usr/sbin").glob("php-fpm*"))), Path("php-fpm")).name
        need(program)
        self.prepare("fpm")
        (self.base / "call.php").write_text(PHP)
        (self.base / "fpm.conf").write_text(FPM.format(folder=self.base, where=self.unix if unix else f"127.0.0.1:{self.port}"))
        self.come_up([program, "-R", "-F", "-n", "-y", self.base / "fpm.conf"])

    def place(self, keep):
        return f"include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME {self.base}/call.php; fastcgi_pass behind;" \
            f"fastcgi_keep_conn {'on' if keep else 'off'}; fastcgi_buffering off;"


class Uwsgi(Behind):
    def __init__(self):
        need("uwsgi")
        self.prepare("uwsgi")
        (self.base / "application.py").write_text(PYTHON)
        self.come_up(["uwsgi", "--plugin", "python3", "--socket", f"127.0.0.1:{self.port}", "--wsgi-file", self.base / "application.py",
                      "--threads", 4, "--master", "--die-on-term", "--logto2", self.base / "log", "--log-format", "%(status)"])

    def place(self, _):
        return f"include /etc/nginx/uwsgi_params; uwsgi_pass 127.0.0.1:{self.port}; uwsgi_buffering off;"


def calls(start, behind, where, keep, query="", body=()):
    """Return (the rows of nginx's calls, nginx's mean time of its upstream)."""
    front = start(Front({"call": behind.place(keep)}, behind=f"server {where}; {'keepalive 4;' if keep else ''}"))
    observer = start(Observer("--calls", ports=[front.port]))
    Driver(front.url + "call" + query, *body, connections=3, count=COUNT)
    observer.stop()
    wait_until(lambda: len(behind.log()) == COUNT)
    return rows(observer.summary(), front.port), front.times()[1]


@pytest.mark.parametrize("kind, keep", [(Fpm, True), (Fpm, False), (Uwsgi, False)])
@in_quiet
def test_behind_nginx(start, kind, keep):
    """A call is as long as the program sleeps, and at most as long as nginx says. The second part of a response is in the whole."""
    behind = start(kind())
    found, called_ns = calls(start, behind, f"127.0.0.1:{behind.port}", keep, "?late=1", ("--body", "x" * 20000))
    row, = found.values()
    assert row["towards"] == f"127.0.0.1:{behind.port}" and row["calls"] == row["wait"]["count"] == COUNT and uncut(row) == {}
    assert {name: row[name] for name in LASTING} == LASTING and row["older"] == 0
    assert row["connects"] == COUNT if not keep else 1 <= row["connects"] < COUNT
    lies_within(row["wait"]["mean_ns"], 20 * MS, called_ns - 30 * MS + MS)
    lies_within(row["whole"]["mean_ns"], row["wait"]["mean_ns"] + 30 * MS, called_ns + MS)


def test_a_unix_socket(start):
    """Calls over it are not looked at: there is no row, and no figure."""
    behind = start(Fpm(unix=True))
    assert calls(start, behind, f"unix:{behind.unix}", True)[0] == {}


class Resolver:
    """Answers questions over TCP, each 20 ms after it has come, also while others wait."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = 0
        serve_each(self.listener, self.serve)

    def serve(self, connection):
        with connection, connection.makefile("rb") as questions:
            while len(ahead := questions.read(2)) == 2:
                question = questions.read(struct.unpack(">H", ahead)[0])
                self.asked += 1
                threading.Timer(0.02, self.answer, (connection, question)).start()

    def answer(self, connection, question):
        end = question.index(b"\0", 12) + 5
        text = question[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question[12:end] + b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x0a\0\0\1"
        with contextlib.suppress(OSError):  # unbound has given up
            connection.sendall(struct.pack(">H", len(text)) + text)

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("clients", [1, 8])
@in_quiet
def test_a_resolver_over_tcp(start, clients):
    """unbound writes each length in a buffer of its own. Its questions share a connection: once they overlap, no time is known."""
    upstream = start(Resolver())
    unbound = start(Unbound(upstream.port, more="tcp-upstream: yes"))
    observer = start(Observer("--calls", ports=[unbound.port]))
    begin_ns = time.monotonic_ns()
    asked = Asked(unbound, fresh(COUNT, "host"), "-m", "tcp", "-q", clients, "-c", clients)
    asked_ns = time.monotonic_ns() - begin_ns
    observer.stop()
    row, = rows(observer.summary(), unbound.port).values()
    assert asked.completed == COUNT and row["connects"] >= 1 and row["open"] == 0
    if clients == 1:
        assert row["calls"] == row["wait"]["count"] and row["calls"] + row["failed"] == upstream.asked >= COUNT and uncut(row) == {}
        lies_within(row["wait"]["mean_ns"], 20 * MS, asked_ns / COUNT)
    else:
        assert set(uncut(row)) == {"overlapped"}
        assert "carried a request before the previous response was complete" in flat(observer.stdout)
