# SPDX-License-Identifier: MIT
"""TLS: requests are counted as in the server's own log, and the handshake is a stage of its own."""
import contextlib
import socket
import ssl
import threading
import time

import pytest

from support.conditions import needs_program
from support.documents import service
from support.foreign import RUNTIMES, Foreign, needs_runtime
from support.pki import Pki
from support.process import run
from support.programs import Driver, Nginx, Observer
from support.timing import MS
from .scene import Scene
from .test_stages import samples_add_up, stage


@pytest.fixture(scope="module", name="pki")
def _pki():
    pki = Pki()
    yield pki
    pki.close()


@pytest.fixture(scope="module", name="certificate")
def _certificate(pki):
    return pki.issue("server", "DNS:localhost,IP:127.0.0.1")


class Tls(Nginx):
    """nginx with TLS; requests() is its own count."""

    def __init__(self, certificate, protocol="TLSv1.3", server="", options="ssl", **more):
        super().__init__(listen_options=options, server=f"ssl_certificate {certificate[0]};\n"
                         f"ssl_certificate_key {certificate[1]};\nssl_protocols {protocol};\n"
                         f"{server}", **more)
        self.url = f"https://127.0.0.1:{self.port}/"

    def requests(self):
        return self.status()["requests"]


def curl(url, *options, times=1):
    run(["curl", "--silent", "--fail", "--insecure", "--output", "/dev/null", *options, *[url] * times])


def agrees(entry, requests, connections):
    """Counts equal the server's, with a handshake per connection; TLS records count as nothing else."""
    losses = {name: count for name, count in entry["losses"].items() if count}
    untimed = losses.pop("untimed", 0)
    for name in ("accept_unseen", "blocked"):
        losses.pop(name, None)
    assert losses.pop("trailing", 0) <= 2 * untimed  # of reads whose start is unknown
    assert entry["exchanges"] == requests
    assert untimed <= connections
    assert stage(entry, "service")["count"] == requests - untimed
    assert not losses
    assert entry["tls"] == entry["tls_handshake"]["count"] == connections
    samples_add_up(entry)


@needs_program("curl")
@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_curl_and_nginx(start, certificate, protocol):
    """New connections, and one that is kept: each request counts, the closing alert does not."""
    nginx = start(Tls(certificate, protocol))
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(5):
        curl(nginx.url)
    curl(nginx.url, times=7)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.requests() == 12
    agrees(entry, 12, 6)
    assert "TLS handshake" in observer.stdout


@needs_program("curl")
@pytest.mark.parametrize("options", [("--http1.1",), ("--no-alpn",), ()])
@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_curl_offers(start, certificate, protocol, options):
    """The server takes or refuses the client's ALPN offer, or there is none: HTTP/1.1 each time."""
    nginx = start(Tls(certificate, protocol))
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(4):
        curl(nginx.url, *options)
    observer.stop()
    assert nginx.requests() == 4
    agrees(service(observer.summary(), nginx.port), 4, 4)


@needs_program("curl")
@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_http2_is_multiplexed(start, certificate, protocol):
    """By ALPN: from ServerHello in 1.2, from the length of EncryptedExtensions in 1.3."""
    nginx = start(Tls(certificate, protocol, options="ssl http2"))
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(3):
        curl(nginx.url, "--http2")
    curl(nginx.url, "--http1.1", times=2)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["tls"] == entry["tls_handshake"]["count"] == 4
    assert entry["losses"]["multiplexed"] == 3 and entry["losses"]["tls_unknown"] == 0
    assert entry["exchanges"] == 2


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("options", [("-c", "4"), ("-c", "4", "--new-connections")])
def test_sojourn_drive(start, certificate, protocol, options):
    nginx = start(Tls(certificate, protocol))
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, "--insecure", *options, "-n", "200")
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.requests() == driver.result["requests"] == 200
    agrees(entry, 200, entry["accepted"])


def talk(port, context, session=None, requests=1, pause=None):
    """Send requests over a connection; return its session, and whether an earlier one was resumed."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        with context.wrap_socket(client, server_hostname="localhost", session=session) as tls:
            for _ in range(requests):
                tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                data = b""
                while not data.endswith(b"ok"):
                    data += tls.recv(4096)
            return tls.session, tls.session_reused


def insecure(*versions):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for version in versions:
        context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_resumption(start, certificate, version):
    """A resumed session has fewer flights; in 1.2 the client's is the last."""
    nginx = start(Tls(certificate, "TLSv1.2 TLSv1.3", server="ssl_session_cache shared:S:1m;\n"))
    observer = start(Observer(ports=[nginx.port]))
    context = insecure(version)
    session, reused = talk(nginx.port, context)
    assert not reused
    for _ in range(5):
        session, reused = talk(nginx.port, context, session, requests=2)
        assert reused
    observer.stop()
    assert nginx.requests() == 11
    agrees(service(observer.summary(), nginx.port), 11, 6)


def each_runtime():
    return pytest.mark.parametrize("runtime", [pytest.param(name, marks=needs_runtime(name))
                                               for name in RUNTIMES])


@needs_program("curl")
@each_runtime()
@pytest.mark.parametrize("version", [pytest.param("--tlsv1.2", marks=pytest.mark.long), "--tlsv1.3"])
def test_other_servers(start, certificate, runtime, version):
    """Other libraries group records differently, and send their tickets at other times."""
    server = start(Foreign(runtime, certificate))
    observer = start(Observer(ports=[server.port]))
    only = ("--tls-max", "1.2") if version == "--tlsv1.2" else ()
    for _ in range(8):
        curl(server.url, "--http1.1", version, *only)
    for _ in range(3):
        curl(server.url, "--http1.1", version, *only, times=6)
    curl(server.url, "--http1.1", version, *only, "--data-binary", "x" * 40000)
    observer.stop()
    entry = service(observer.summary(), server.port)
    assert server.requests() == 27
    agrees(entry, 27, 12)


@each_runtime()
def test_other_servers_under_load(start, certificate, runtime):
    server = start(Foreign(runtime, certificate))
    observer = start(Observer(ports=[server.port]))
    kept = Driver(server.url, "--insecure", "-c", "4", "-n", "300").result["requests"]
    fresh = Driver(server.url, "--insecure", "-c", "4", "-n", "60", "--new-connections")
    observer.stop()
    entry = service(observer.summary(), server.port)
    assert server.requests() == kept + fresh.result["requests"] == 360
    agrees(entry, 360, entry["accepted"])


@needs_program("curl")
@needs_runtime("java")
def test_what_cannot_be_told_is_said(start, certificate):
    """Java sends its flight in one record, which hides whether it has chosen HTTP/2."""
    server = start(Foreign("java", certificate))
    observer = start(Observer(ports=[server.port]))
    curl(server.url, "--http2", "--tlsv1.3", times=3)
    observer.stop()
    entry = service(observer.summary(), server.port)
    assert entry["tls"] == entry["losses"]["tls_unknown"] == 1
    assert entry["exchanges"] == entry["losses"]["unanswered"] == 0
    assert "protocol is not known" in observer.stdout


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_goodbyes_are_no_response(start, certificate, protocol):
    """nginx ends a connection that is kept too long with an alert, and the client answers with one."""
    nginx = start(Tls(certificate, protocol, server="keepalive_timeout 1s;\n"))
    observer = start(Observer(ports=[nginx.port]))
    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        with insecure().wrap_socket(client) as tls:
            for _ in range(3):
                tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert tls.recv(4096)
            assert tls.recv(4096) == b""  # the server's alert, a second later
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    agrees(entry, 3, 1)
    assert stage(entry, "respond")["max_ns"] < 500 * MS


def test_a_server_that_lingers(start, certificate):
    """It has sent its FIN, and throws away what still comes, as lighttpd does. No program sees those bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    scene = Scene(start)
    client, connection = scene.connect()
    answering = threading.Thread(target=answer_and_linger, args=(context, connection))
    answering.start()
    with insecure().wrap_socket(client) as tls:
        tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while tls.recv(4096):
            pass
        tls.sendall(b"more")
        answering.join()
    agrees(scene.end(), 1, 1)


def answer_and_linger(context, connection):
    with context.wrap_socket(connection, server_side=True) as tls:
        tls.recv(4096)
        tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        tls.shutdown(socket.SHUT_WR)
        with socket.socket(fileno=tls.detach()) as raw:
            assert raw.recv(4096, socket.MSG_TRUNC)


@needs_program("curl")
@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_clients_with_certificates(start, pki, certificate, protocol):
    """Handshakes with client certificates have more records, which are no requests."""
    cert, key = pki.issue("client", "DNS:client")
    nginx = start(Tls(certificate, protocol, server=f"ssl_client_certificate {pki.ca};\n"
                      "ssl_verify_client on;\n"))
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(3):
        curl(nginx.url, "--cert", cert, "--key", key, times=2)
    observer.stop()
    assert nginx.requests() == 6
    agrees(service(observer.summary(), nginx.port), 6, 3)


def test_failed_handshakes(start, certificate):
    """The client refuses the certificate: there is no request and no finished handshake."""
    nginx = start(Tls(certificate))
    observer = start(Observer(ports=[nginx.port]))
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", nginx.port)) as client:
            with pytest.raises(ssl.SSLError):
                ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["tls"] == 3 and entry["tls_handshake"]["count"] == 0
    assert entry["exchanges"] == entry["losses"]["unanswered"] == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_handshake_takes_its_time(start, certificate, version):
    """The client's flights come late: the delay is in tls_handshake, and in no exchange."""
    nginx = start(Tls(certificate, "TLSv1.2 TLSv1.3"))
    observer = start(Observer(ports=[nginx.port]))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = insecure(version).wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        done, begin_ns = False, time.monotonic_ns()
        while not done:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            time.sleep(0.05)
            client.sendall(outgoing.read())
            end_ns = time.monotonic_ns()
            if not done:
                incoming.write(client.recv(65536))
        time.sleep(0.05)
        tls.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.sendall(outgoing.read())
        answer = b""
        while not answer.endswith(b"ok"):  # after the tickets
            incoming.write(client.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                answer += tls.read()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["tls_handshake"]["count"] == entry["exchanges"] == 1
    assert 45 * MS <= entry["tls_handshake"]["sum_ns"] < end_ns - begin_ns + 20 * MS
    for name in ("socket_queue", "receive", "service"):
        assert stage(entry, name)["sum_ns"] < 30 * MS


def test_starttls(start, certificate):
    """The connection starts in clear text and continues with TLS; messages count in both."""
    scene = Scene(start)
    client, connection = scene.connect()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def serve():
        assert connection.recv(100) == b"STARTTLS\r\n"
        connection.sendall(b"220 go on\r\n")
        with context.wrap_socket(connection, server_side=True) as tls:
            while data := tls.recv(100):
                tls.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    client.sendall(b"STARTTLS\r\n")
    client.recv(100)
    with insecure().wrap_socket(client) as tls:
        for _ in range(5):
            tls.sendall(b"a message")
            tls.recv(100)
        tls.unwrap()
    thread.join()
    entry = scene.end()
    assert entry["exchanges"] == 6
    assert entry["tls"] == entry["tls_handshake"]["count"] == 1


def test_older_connections(start, certificate):
    """The server chose the protocol before the observation: the requests are unknown, and reported so."""
    nginx = start(Tls(certificate))
    ends = []
    for _ in range(2):
        client = insecure().wrap_socket(socket.create_connection(("127.0.0.1", nginx.port)))
        ends.append(client)
    observer = start(Observer(ports=[nginx.port]))
    for client in ends:
        for _ in range(5):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.recv(4096)
        client.close()
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["tls"] == entry["losses"]["tls_unknown"] == entry["losses"]["preexisting"] == 2
    assert entry["exchanges"] == 0


@pytest.mark.parametrize("parts", [1, 3, 5, 40])
def test_records_in_pieces(start, certificate, parts):
    """The client's bytes, including record headers, may be cut anywhere."""
    nginx = start(Tls(certificate))
    observer = start(Observer(ports=[nginx.port]))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = insecure().wrap_bio(incoming, outgoing)

    def send(client):
        data = outgoing.read()
        for begin in range(0, len(data), parts):
            client.sendall(data[begin:begin + parts])
            time.sleep(0.0002)

    def until_done(client, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                send(client)
                incoming.write(client.recv(65536))

    with socket.create_connection(("127.0.0.1", nginx.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until_done(client, tls.do_handshake)
        for _ in range(3):
            tls.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            # Tickets may come first: wait for the response, or requests pile up.
            assert until_done(client, lambda: tls.read(65536))
            time.sleep(0.01)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert nginx.requests() == 3
    assert entry["exchanges"] == 3 and entry["tls_handshake"]["count"] == 1
    assert entry["losses"]["tls_unknown"] == 0
