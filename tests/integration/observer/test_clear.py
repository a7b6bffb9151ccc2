# SPDX-License-Identifier: MIT
"""Statuses and routes in TLS (--tls), against the logs of foreign servers."""
import contextlib
import http.client
import socket
import ssl
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.frames import PREFACE
from support.net import accepts, free_port
from support.pki import Pki
from support.process import Process, own_folder, run, wait_until
from support.programs import Nginx, Observer

ROUTES = ("/api/*", "POST /api/*", "/exact")
OPTIONS = ("--tls", *(word for route in ROUTES for word in ("--route", route)))
SERVER = """ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols {protocol};
access_log {folder}/tls.log tls; location /api/users/ {{ return 404; }} location /big {{ root {folder}; }}
location /exact {{ proxy_pass http://127.0.0.1:1; }}"""
# With buffers in memory between the sockets and OpenSSL, as Node has them too.
APART = """
import asyncio, ssl, sys

async def serve(reader, writer):
    while await reader.readuntil(b"\\r\\n\\r\\n"):
        writer.write(b"HTTP/1.1 404 No\\r\\nContent-Length: 2\\r\\n\\r\\nno")

async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
APACHE = """
ServerRoot {folder}
PidFile {folder}/pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
ErrorLog {folder}/error.log
LogFormat "%>s %r" tls
CustomLog {folder}/tls.log tls
ServerName localhost
Listen 127.0.0.1:{port}
SSLEngine on
SSLCertificateFile {certificate}
SSLCertificateKeyFile {key}
Redirect 410 /api/
Redirect 503 /exact
"""


@pytest.fixture(scope="module", name="certificate")
def _certificate():
    pki = Pki()
    yield pki.issue("server", "DNS:localhost,IP:127.0.0.1")
    pki.close()


def tls_nginx(start, certificate, protocol="TLSv1.2 TLSv1.3", listen="ssl"):
    text = SERVER.format(certificate=certificate[0], key=certificate[1], protocol=protocol, folder="{folder}")
    nginx = start(Nginx(listen_options=listen, http_block="log_format tls '$status $request';", server=text, workers=2))
    nginx.url = f"https://127.0.0.1:{nginx.port}/"
    return nginx


def agrees(entry, log):
    """Statuses and routes are those of the server's own log, a line per request."""
    statuses, routes = Counter(), Counter()
    for line in log.read_text().splitlines():
        status, method, target, _ = line.split(" ")
        path = target.split("?")[0]
        statuses[int(status)] += 1
        if path.startswith("/api/"):
            routes["POST /api/*" if method == "POST" else "/api/*"] += 1
        else:
            routes["/exact" if path == "/exact" else "other"] += 1
    assert dict(entry["responses"]["statuses"]) == statuses
    assert entry["responses"]["count"] == entry["exchanges"] == statuses.total()
    assert {route["route"]: route["count"] for route in entry["routes"]["list"] if route["count"]} == routes
    assert not any(entry["routes"]["not_known"].values())


def curl(*words):
    run(["curl", "--silent", "--insecure", *words])


def nginx_asked(nginx):
    urls = [nginx.url + path for path in ("api/", "api/users/7", "api/users/7?to=/exact", "exact", "x" * 500, "big")]
    for _ in range(3):
        curl(*urls)
    curl("--data", "a" * 30000, *urls)
    curl("--data", "a" * 3000, "--header", "Expect: 100-continue", *urls)


def apache_started(start, certificate, folder):
    """Return the port."""
    port, path = free_port(), Path(folder.name)
    (path / "conf").write_text(APACHE.format(folder=path, port=port, certificate=certificate[0], key=certificate[1]))
    start(Process(["apache2", "-DFOREGROUND", "-f", path / "conf"]))
    wait_until(lambda: accepts(port))
    return port


@needs_program("curl")
@needs_program("apache2")
def test_servers_log_the_same(start, certificate):
    """nginx with two workers has uploads that it answers early, bodies that look like responses, and interim responses.
    Apache writes to the socket after SSL_write() has returned. A server with buffers in memory is not known."""
    servers = [tls_nginx(start, certificate, protocol) for protocol in ("TLSv1.2", "TLSv1.3")]
    for nginx in servers:
        (Path(nginx.files.name) / "big").write_bytes(b"HTTP/1.1 500 no\r\n" * 40000)
    folder = own_folder("apache")
    apache = apache_started(start, certificate, folder)
    apart = start(Process([sys.executable, "-c", APART, *certificate]))
    apart = int(apart.wait_for(r"listening on (\d+)")[1])
    observer = start(Observer(*OPTIONS, ports=[apache, apart, *(nginx.port for nginx in servers)]))
    for nginx in servers:
        nginx_asked(nginx)
    for _ in range(3):
        curl(*(f"https://127.0.0.1:{apache}{name}" for name in ("/api/a", "/exact", "/api/", "/missing")))
    curl("--data", "a" * 300, f"https://127.0.0.1:{apache}/api/b")
    curl(*[f"https://127.0.0.1:{apart}/api/"] * 5)
    logs = [(nginx.port, Path(nginx.files.name) / "tls.log", 30) for nginx in servers]
    for _, log, lines in [*logs, (apache, Path(folder.name) / "tls.log", 13)]:
        wait_until(lambda log=log, lines=lines: log.read_text().count("\n") == lines)
    observer.stop()
    for port, log, _ in [*logs, (apache, Path(folder.name) / "tls.log", 13)]:
        agrees(service(observer.summary(), port), log)
    entry = service(observer.summary(), apart)
    assert entry["exchanges"] == entry["responses"]["status"]["other"] == entry["routes"]["not_known"]["tls"] == 5
    folder.cleanup()


def client_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def exchanged(port, records):
    """Send the end of the handshake and a request in these records together, and read the response's head."""
    incoming, outgoing, got = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    tls = client_context().wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        finished = False
        while not finished:
            try:
                tls.do_handshake()
                finished = True
            except ssl.SSLWantReadError:
                client.sendall(outgoing.read())
                incoming.write(client.recv(65536))
        for record in records:
            tls.write(record)
        client.sendall(outgoing.read())
        while b"HTTP/1.1 " not in got:
            data = client.recv(65536)
            assert data, f"the server closed after {got}"
            incoming.write(data)
            with contextlib.suppress(ssl.SSLWantReadError):
                for part in iter(lambda: tls.read(65536), b""):
                    got += part


def test_odd_text(start, certificate):
    """The first request comes with the end of the handshake, so the tickets are written after it was read. Then there are
    garbage, HTTP/2's preface to a server without it, a line in parts, and one that is too long."""
    nginx = tls_nginx(start, certificate)
    observer = start(Observer(*OPTIONS, ports=[nginx.port]))
    for path in ("api/1", "exact", "api/users/2", "missing"):
        exchanged(nginx.port, [b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode()])
    exchanged(nginx.port, [b"\0\1\2garbage\r\n\r\n"])
    exchanged(nginx.port, [PREFACE])
    exchanged(nginx.port, [b"GET /a", b"pi/", b"x HT", b"TP/1.1\r\nHost: a\r\n\r\n"])
    exchanged(nginx.port, [b"GET /exact" + b"x" * 10000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"])
    observer.stop()
    nginx.stop()
    entry = service(observer.summary(), nginx.port)
    log = (Path(nginx.files.name) / "tls.log").read_text().splitlines()
    assert len(log) == entry["exchanges"] == 8
    assert dict(entry["responses"]["statuses"]) == Counter(int(line.split(" ")[0]) for line in log)
    routes = {route["route"]: route["count"] for route in entry["routes"]["list"] if route["count"]}
    assert routes == {"/api/*": 3, "/exact": 1, "other": 3}
    assert entry["routes"]["not_known"]["strange"] == 1


def test_older_connections_are_not_known(start, certificate):
    """No request on them counts, as an exchange or otherwise, and the report says that they are there."""
    nginx = tls_nginx(start, certificate)
    with contextlib.ExitStack() as stack:
        clients = []
        for protocol in (["http/1.1"], ["h2", "http/1.1"]):
            context = client_context()
            context.set_alpn_protocols(protocol)
            clients.append(http.client.HTTPSConnection("127.0.0.1", nginx.port, context=context, timeout=10))
            stack.callback(clients[-1].close)
        for client in clients:
            ask(client)
        observer = start(Observer(*OPTIONS, ports=[nginx.port]))
        for client in clients:
            ask(client, 5)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["exchanges"] == 0 and "responses" not in entry
    assert {name: count for name, count in entry["losses"].items() if count} == {"preexisting": 2, "tls_unknown": 2}
    assert entry["bytes_in"] and entry["bytes_out"]
    assert "2 tls unknown" in observer.stdout
    assert "nor on connections from before" in " ".join(observer.stdout.split())


def ask(client, times=1):
    for _ in range(times):
        client.request("GET", "/api/")
        client.getresponse().read()


@needs_program("curl")
def test_a_library_that_comes_late(start, certificate):
    """A server that starts after the observer is found at the next reading. Without rights by then, this is said."""
    port = free_port()
    observer = start(Observer("--tls", ports=[port]))
    server = start(Process([sys.executable, "-c", APART.replace('"127.0.0.1", 0', f'"127.0.0.1", {port}'), *certificate]))
    server.wait_for(r"listening on (\d+)")
    curl(f"https://127.0.0.1:{port}/")
    observer.document()
    observer.wait_for(r"--tls: \S*libssl\S*: statuses and routes of its users are not known: .*restart", "stderr")
    observer.stop()
    assert service(observer.summary(), port)["responses"]["status"]["other"] == 1
