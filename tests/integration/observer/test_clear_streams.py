# SPDX-License-Identifier: MIT
"""Streams of HTTP/2 in TLS (--tls), against the logs of foreign servers, and times under the test's control. The rules of
streams are those in clear text: test_http2.py.
"""
import os
import signal
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.foreign.grpc import need_grpcio
from support.h2server import H2Server
from support.net import free_port
from support.process import run, stat_fields, wait_until
from support.programs import Driver, Nginx, Observer
from support.timing import in_quiet, lies_within

pytest.importorskip("h2")
from h2.config import H2Configuration  # noqa: E402
from h2.connection import H2Connection  # noqa: E402
from h2.events import StreamEnded  # noqa: E402
from .test_clear import OPTIONS, _certificate, agrees, client_context, curl, tls_nginx  # noqa: E402, F401
from .test_http2 import HEADERS, H2Scene, between, cut, followed  # noqa: E402


class TlsScene(H2Scene):
    """Both ends use OpenSSL, and each of its calls is under the test's control."""

    def __init__(self, start, certificate, *options, observe=True, offers=("h2", "http/1.1")):
        super().__init__(start, "--tls", *options, observe=observe)
        self.identity = certificate
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(*certificate)
        self.server.set_alpn_protocols(["h2"])
        self.client = client_context()
        self.client.set_alpn_protocols(list(offers))

    def serve(self, connection):
        return self.server.wrap_socket(connection, server_side=True)

    def connect(self):
        client, server = super().connect()
        ends = []
        thread = threading.Thread(target=lambda: ends.append(self.serve(server)))
        thread.start()
        ends.append(self.client.wrap_socket(client))
        thread.join()
        self.ends = [*self.ends[:-2], *ends]
        return tuple(sorted(ends, key=lambda end: end.server_side))


@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
def test_nginx_logs_the_same(start, certificate):
    """Two workers have 20 streams at a time, files, uploads, and HTTP/1 beside them. nginx names its own count of each."""
    servers = [tls_nginx(start, certificate, protocol, "ssl http2") for protocol in ("TLSv1.2", "TLSv1.3")]
    for nginx in servers:
        (Path(nginx.files.name) / "big").write_bytes(os.urandom(300_000))
    observer = start(Observer(*OPTIONS, ports=[nginx.port for nginx in servers]))
    for nginx in servers:
        run(["h2load", "-n", 600, "-c", 3, "-m", 20, f"{nginx.url}api/users/4", f"{nginx.url}api/x"])
        run(["nghttp", "-n", f"{nginx.url}exact", f"{nginx.url}big", f"{nginx.url}api/{'x' * 600}"])
        curl("--http2", "--data", "a" * 30000, *[f"{nginx.url}{path}" for path in ("api/1", "exact", "api/users/7?a=b")])
        curl("--http1.1", f"{nginx.url}api/")
        wait_until(lambda nginx=nginx: (Path(nginx.files.name) / "tls.log").read_text().count("\n") == 607)
    observer.stop()
    for nginx in servers:
        entry = service(observer.summary(), nginx.port)
        agrees(entry, Path(nginx.files.name) / "tls.log")
        assert followed(entry, 606, 5)
        assert not {name for name, count in entry["losses"].items() if count} - {"untimed", "accept_unseen"}


@needs_program("nginx")
def test_grpc_threads_and_the_driver(start, certificate):
    """grpcio's server counts the calls that nginx passes on. Another server has a thread for each connection. The driver
    knows each stream by its number."""
    port = free_port()
    need_grpcio()
    server = start([sys.executable, ROOT / "tests/support/grpcserver.py", port])
    server.wait_for("ready", seconds=20)
    nginx = start(Nginx(listen_options="ssl http2", server=f"ssl_certificate {certificate[0]}; ssl_certificate_key "
                        f"{certificate[1]}; location /test.Service/ {{ grpc_pass grpc://127.0.0.1:{port}; }}"))
    threads = H2Server(lambda exchange: exchange.answer(), identity=certificate)
    observer = start(Observer("--route", "/test.Service/Missing", "--tls", ports=[nginx.port, threads.port]))
    for method, count in (("Echo", 300), ("Missing", 200)):
        Driver(f"h2://127.0.0.1:{nginx.port}/test.Service/{method}", "--insecure", "--grpc", "--streams", 10,
               connections=2, count=count, check=False)
    driver = Driver(threads.url, "--insecure", connections=4, count=200, observer=observer)
    observer.stop()
    server.stop()
    threads.close()
    assert "Echo=300 Missing=200" in server.stdout
    entry = service(observer.summary(), nginx.port)
    assert followed(entry, 500, 4)
    assert {name: count for name, count in entry["grpc"]["status"].items() if count} == {"ok": 300, "not_found": 200}
    assert {name: count for name, count in entry["grpc"]["kinds"].items() if count} == {"unary": 300, "undecided": 200}
    assert (entry["grpc"]["messages_in"], entry["grpc"]["messages_out"]) == (500, 300)
    assert {route["route"]: route["count"] for route in entry["routes"]["list"]} == \
        {"/test.Service/Missing": 200, "other": 300}
    entry = service(observer.summary(), threads.port)
    assert threads.counts["requests"] == entry["exchanges"] == 200
    assert followed(entry, 200, 4)
    # The last answer of each connection may reach the driver, and end its phase, before the server's call has returned.
    joined, phase = driver.document["joined"], service(driver.document, threads.port)
    late = phase["exchanges"] - phase["losses"]["untimed"] - joined["joined"]
    assert 196 <= phase["exchanges"] <= 200 and 0 <= late <= 4 and joined["observer_only"] == 0
    assert joined["driver_only"] == 200 - joined["joined"]
    assert late or joined["sum"]["stages"]["service"] == phase["stages"]["service"]["sum_ns"]


def state_of(pid):
    return stat_fields(f"/proc/{pid}")[0]


def each_has_its_arrival(start, port, worker, before=1):
    """The process is held while three streams arrive, one after the other. It reads all of them together. @before: streams
    that precede."""
    observer = start(Observer("--tls", "--samples", "100000", ports=[port]))
    context = client_context()
    context.set_alpn_protocols(["h2"])
    asks, sent = H2Connection(H2Configuration(client_side=True)), {}
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asks.initiate_connection()
        for number in range(before):
            answered(client, asks, 2 * number + 1)
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: state_of(worker) == "T")
        for stream in range(2 * before + 1, 2 * before + 7, 2):
            asks.send_headers(stream, HEADERS, end_stream=True)
            data = asks.data_to_send()
            sent[stream >> 1] = between(lambda data=data: client.sendall(data))
            time.sleep(0.005)
        begun = time.monotonic_ns()
        os.kill(worker, signal.SIGCONT)
        answered(client, asks, 2 * before + 7, 3 + 1)
        ended = time.monotonic_ns()
    observer.stop()
    entry = service(observer.summary(), port)
    assert followed(entry, 4 + before, 1)
    assert entry["losses"]["untimed"] <= before  # the first one may come with the end of the handshake
    samples = entry["samples"]
    queues = dict(zip(samples["index"], samples["stages"]["socket_queue"]))
    for index, (least, most) in sent.items():
        assert lies_within(queues[index], begun - most, ended - least)


@in_quiet
def test_records_that_are_read_at_once(start, certificate):
    nginx = start(Nginx(listen_options="ssl http2", server=f"ssl_certificate {certificate[0]}; "
                        f"ssl_certificate_key {certificate[1]};"))
    each_has_its_arrival(start, nginx.port, nginx.workers()[0])


def answered(client, asks, stream, count=1):
    """Ask for one more stream, and read until so many have been answered."""
    asks.send_headers(stream, HEADERS, end_stream=True)
    client.sendall(asks.data_to_send())
    while count:
        count -= sum(isinstance(event, StreamEnded) for event in asks.receive_data(client.recv(65536)))


def test_text_is_seen_however_it_is_cut(start, certificate):
    """The server reads single bytes, and writes frames in pieces. Streams are open when their connection ends."""
    scene = TlsScene(start, certificate)
    for size in (1, 13):
        talk = scene.talk()
        for stream in (1, 3):
            talk.request(stream, end=False, headers=[("x-long", "y" * 3000)])
            talk.asks.send_data(stream, b"body", end_stream=True, pad_length=9)
        talk.ask(read=lambda end, count, to, size=size: [to.receive_data(end.recv(1)) for _ in range(count)])
        talk.response(3, b"hello", headers=[("x-long", "y" * 3000)])
        talk.answer(lambda end, data, size=size: [end.sendall(piece) for piece in cut(data, size)])
        talk.ask(5)
    entry = scene.end(samples=False)
    assert followed(entry, 6)
    assert entry["exchanges"] == 2 and entry["losses"]["unanswered"] == 4 == entry["abandoned"]["count"]


def test_others_are_not_known(start, certificate):
    """HTTP/2 was agreed on, and something else came, or nothing; a connection is older than the observer."""
    scene = TlsScene(start, certificate, observe=False)
    old = scene.talk()
    old.exchange(1)
    scene.observe()
    old.exchange(3)
    other, server = scene.connect()
    other.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert server.recv(100)
    server.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    assert other.recv(100)
    scene.connect()
    scene.connect()
    scene.talk().exchange(1, 3)
    entry = scene.end(samples=False)
    assert followed(entry, 2, 1)
    assert entry["exchanges"] == 2
    assert entry["losses"]["preexisting"] == entry["losses"]["tls_unknown"] == 1
    assert entry["losses"]["multiplexed"] == 3
