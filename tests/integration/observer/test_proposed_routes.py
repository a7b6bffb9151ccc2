# SPDX-License-Identifier: MIT
"""Proposed routes (--propose-routes): against the logs of foreign servers, the counts of a gRPC server, and bytes of the test's
own.

tests/unit/observer/sources/propose.c has the rules, tests/unit/bpf/protocol/hpack_request.c the texts of HTTP/2's paths.

tools/mutate: "a path in the dynamic table has the text of another". "texts that are gone are no requests".
"""
import random
import re
import socket
import sys
from collections import Counter
from pathlib import Path

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.foreign.grpc import GrpcServer, need_grpcio, needs_grpc
from support.frames import frame
from support.net import accepts, free_port
from support.process import Process, own_folder, run, wait_until
from support.programs import Driver, Nginx, Observer
from .scene import Scene
from .test_clear import _certificate, client_context, curl  # noqa: F401
from .test_routes import REQUEST, exchange

pytest.importorskip("h2")
from h2.config import H2Configuration  # noqa: E402
from h2.connection import H2Connection  # noqa: E402
from h2.events import StreamEnded  # noqa: E402
from hpack import Encoder, NeverIndexedHeaderTuple  # noqa: E402
from .test_http2 import READS, H2Scene, in_pieces  # noqa: E402
from .test_older import OlderScene, ask_path  # noqa: E402

PATHS = [*(f"api/users/{1000 + at}/orders?secret=1" for at in range(50)), *["static/app.js?v=secret"] * 30, *[""] * 15,
         *(f"f47ac10b-58cc-4372-a567-0e02b2c3d4{at}" for at in range(10, 15)), *["given/1"] * 20]
APACHE = """
ServerRoot {folder}
PidFile {folder}/pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
ErrorLog {folder}/error.log
LogFormat "%U" paths
CustomLog {folder}/paths.log paths
ServerName localhost
Listen 127.0.0.1:{port}
Protocols h2c http/1.1
MaxKeepAliveRequests 0
"""


def shares_fit(proposed, logged):
    """Shares are within five standard deviations of those of the @logged paths."""
    assert (proposed["requests"], proposed["paths"]) == (logged.total(), min(256, logged.total()))
    for each in proposed["list"]:
        truth = sum(n for path, n in logged.items()
                    if (path.startswith(each["route"][:-1]) if each["route"].endswith("*") else path == each["route"]))
        share, truth = each["paths"] / proposed["paths"], truth / logged.total()
        assert abs(share - truth) < 5 * (truth * (1 - truth) / 256) ** 0.5, (each, truth)


def are_those_of_the_log(observer, live, port, log):
    """Given routes are none of the proposals. No identifier and no query is in a document."""
    logged = Counter(path for path in log.read_text().split() if "given" not in path)
    proposed = service(observer.summary(), port)["proposed"]
    assert proposed["not_known"] == 0
    shares_fit(proposed, logged)
    assert {each["route"] for each in proposed["list"]} == {"/api/users/*", "/static/app.js", "/"}
    options = " ".join(f"--route '{each['route']}'" for each in proposed["list"])
    assert re.search(rf"^proposed +{re.escape(options)}$", observer.stdout, re.MULTILINE), observer.stdout
    for text in (live, observer.stdout, observer.json.read_text()):
        assert not any(word in text for word in ("secret", "/10", "f47ac"))
    return logged.total()


def ask_by_index(client, paths):
    """Each path enters the table, and later requests refer to it. nghttp2, and so all of the programs here, never does that."""
    asks = H2Connection(H2Configuration(client_side=True))
    asks.initiate_connection()
    for at, path in enumerate(paths):
        asks.send_headers(2 * at + 1, [(":method", "GET"), (":path", f"/{path}"), (":scheme", "http"), (":authority", "test"),
                                       ("x-at", str(at % 7))], end_stream=True)
        client.sendall(asks.data_to_send())
        while not any(isinstance(event, StreamEnded) for event in asks.receive_data(client.recv(65536))):
            client.sendall(asks.data_to_send())
    client.close()


@needs_program("h2load")
@needs_program("nghttp")
@needs_program("curl")
@pytest.mark.parametrize("way", ["http/1", "h2c", "tls"])
def test_nginx_logs_the_same(start, request, way):
    """Paths in Huffman's code and plain, in a dynamic table of any size and in none. In TLS both versions on one port."""
    certificate = request.getfixturevalue("certificate") if way == "tls" else ("", "")
    keys = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};" if way == "tls" else ""
    nginx = start(Nginx(listen_options={"http/1": "", "h2c": "http2", "tls": "ssl http2"}[way],
                        http_block="log_format paths '$uri';", server=f"access_log {{folder}}/paths.log paths; {keys}"))
    observer = start(Observer("--propose-routes", "--route", "/given/*", *(["--tls"] if way == "tls" else []),
                              ports=[nginx.port]))
    urls = [f"http{'s' if way == 'tls' else ''}://127.0.0.1:{nginx.port}/{path}" for path in PATHS]
    if way != "h2c":
        run(["h2load", "--h1", "-n", 1200, "-c", 2, *urls])
        curl("--http1.1", "--output", "/dev/null", *urls)
    if way != "http/1":
        run(["h2load", "-n", 1200, "-c", 3, "-m", 10, *urls])
        for size in (0, 100, 65536):
            run(["nghttp", "-n", f"--header-table-size={size}", *urls])
        run(["nghttp", "-n", "--continuation", "--padding=100", *urls])
        client = socket.create_connection(("127.0.0.1", nginx.port))
        if way == "tls":
            context = client_context()
            context.set_alpn_protocols(["h2"])
            client = context.wrap_socket(client)
        ask_by_index(client, random.Random(1).sample(8 * PATHS, 8 * len(PATHS)))
    live = observer.get("/v1/run") + observer.get("/metrics")
    observer.stop()
    nginx.stop()
    assert are_those_of_the_log(observer, live, nginx.port, Path(nginx.files.name) / "paths.log") > 1000


@needs_program("apache2")
@needs_program("h2load")
def test_both_versions_of_http_share_a_sample(start):
    """Apache speaks both on one port in clear text. Only HTTP/2 asks for some paths, and only HTTP/1 for others."""
    folder, port = own_folder("apache"), free_port()
    path, log = Path(folder.name) / "conf", Path(folder.name) / "paths.log"
    path.write_text(APACHE.format(folder=folder.name, port=port))
    start(Process(["apache2", "-DFOREGROUND", "-f", path]))
    wait_until(lambda: accepts(port))
    observer = start(Observer("--propose-routes", ports=[port]))
    run(["h2load", "--h1", "-n", 600, "-c", 2, *(f"http://127.0.0.1:{port}/{path}" for path in ("one/7", "both"))])
    run(["h2load", "-n", 900, "-c", 2, *(f"http://127.0.0.1:{port}/{path}" for path in ("two/7", "two/8", "both"))])
    observer.stop()
    wait_until(lambda: log.read_text().count("\n") >= 1500)
    entry = service(observer.summary(), port)
    assert entry["http2"]["streams"] == 900 and entry["exchanges"] == 1500
    shares_fit(entry["proposed"], Counter(log.read_text().split()))
    assert {each["route"] for each in entry["proposed"]["list"]} == {"/one/*", "/two/*", "/both"}
    folder.cleanup()


@needs_grpc("go")
def test_methods_of_grpc_are_proposed(start):
    """The server's own count of each. grpcio's client refers to its path in the table."""
    need_grpcio()
    server = start(GrpcServer("go"))
    observer = start(Observer("--propose-routes", ports=[server.port]))
    for method, count in (("Echo", 300), ("Missing", 150)):
        Driver(server.url + method, "--grpc", "--streams=3", connections=2, count=count, check=False)
    run([sys.executable, ROOT / "tests/support/grpcclient.py", server.port, 150])
    observer.stop()
    served = Counter()
    for name, count in server.served().items():
        served["/test.Service/" + ("Any" if name.startswith("status") else name)] += count
    served = +served
    assert served == {"/test.Service/Echo": 300, "/test.Service/Missing": 150, "/test.Service/Any": 150}
    proposed = service(observer.summary(), server.port)["proposed"]
    assert proposed["not_known"] == 0
    shares_fit(proposed, served)
    assert {each["route"] for each in proposed["list"]} == set(served)


# ---- bytes in the test's own hands ----

def test_a_path_in_parts_is_in_the_sample(start):
    """One byte per read, an absolute target, and none with a path: what is left is all that was sent."""
    scene = Scene(start, "--propose-routes")
    client, end = scene.connect()
    for _ in range(12):
        exchange(client, end, *(REQUEST[at:at + 1] for at in range(len(REQUEST))))
        exchange(client, end, b"OPTIONS * HTTP/1.1\r\n\r\n")
        exchange(client, end, b"GET http://a.example?x HTTP/1.1\r\n\r\n")
    assert scene.end(samples=False)["proposed"] == {
        "most": 256, "requests": 24, "not_known": 0, "paths": 24,
        "list": [{"route": "/", "paths": 12}, {"route": "/api/users/*", "paths": 12}]}


def test_a_path_of_http2_in_parts_is_in_the_sample(start):
    """In reads of each shape, and in each form: it enters the table, or never does. Trailers are no request."""
    scene = H2Scene(start, "--propose-routes")
    expected = Counter()
    for read in (None, *(in_pieces(call, size) for call in READS for size in (1, 13))):
        talk = scene.talk()
        for at in range(12):
            path = ("/one/two?three", "/one/" + "~" * 60, "/four", "*")[at % 4]
            kind = NeverIndexedHeaderTuple if at >= 8 else tuple
            talk.asks.send_headers(2 * at + 1, [(":method", "GET"), (":scheme", "http"), kind([":path", path])
                                                if kind is tuple else kind(":path", path), (":authority", "test")])
            talk.asks.send_headers(2 * at + 1, [("x-trailer", str(at))], end_stream=True)
            talk.ask(read=read)
            talk.response(2 * at + 1)
            talk.answer()
            expected[path] += 1
    proposed = scene.end()["proposed"]
    # "/one/~…" is a prefix that is cut: its last part is not known, and not the one of the others.
    total = expected.total() - expected["*"]
    assert proposed == {"most": 256, "requests": total, "not_known": 0, "paths": total,
                        "list": [{"route": "/four", "paths": total // 3}, {"route": "/one/*", "paths": total // 3},
                                 {"route": "/one/two", "paths": total // 3}]}


def test_paths_of_before_are_not_known(start):
    """A connection is older than the observer. Paths that it refers to are counted as not known until it spells them out."""
    scene = OlderScene(start, "--propose-routes", before=lambda talk: ask_path(talk, 3, "/old/a"))
    paths = ["/old/a", "/old/a", *["/new/a"] * 20, *["/old/a"] * 7, *["/"] * 5, *["/old/b"] * 20]
    for at, path in enumerate(paths):
        ask_path(scene.older, 2 * at + 5, path)
    entry = scene.ended()
    known = entry["http2"]["streams"] - 7
    assert entry["routes"]["not_known"]["http2"] == entry["proposed"]["not_known"] == 7
    assert known >= 40
    assert entry["proposed"] == {"most": 256, "requests": known, "not_known": 7, "paths": known,
                                 "list": [{"route": "/new/a", "paths": known - 25}, {"route": "/old/b", "paths": 20},
                                          {"route": "/", "paths": 5}]}
    assert re.search(r"paths of 7 more are not known", scene.observer.stdout)


def reset_streams(talk, first, fields):
    """Ask for streams with these fields beside the method, and reset each."""
    data = b"".join(frame(1, first + 2 * at, b"\x82" + field, 5) + frame(3, first + 2 * at, bytes(4))
                    for at, field in enumerate(fields))
    talk.client.sendall(data)
    left = len(data)
    while left:
        left -= len(talk.server.recv(65536))


def test_texts_that_give_way_are_counted(start):
    """More paths than are kept: when the first connection refers to its own, those are the oldest ones."""
    scene = H2Scene(start, "--propose-routes")
    talks = [scene.talk() for _ in range(200)]
    for talk in talks:
        talk.ask()
        reset_streams(talk, 1, [b"\x44\x02/a"] * 90)
    reset_streams(talks[0], 201, [bytes([0x80 + 62 + at]) if 62 + at < 127 else bytes([0xff, 62 + at - 127]) for at in range(90)])
    proposed = scene.end(samples=False)["proposed"]
    assert proposed["requests"] + proposed["not_known"] == 201 * 90
    assert 0 < proposed["not_known"] <= 90


def test_hostile_blocks_are_no_paths(start):
    """Two paths, none, an empty one, codes that are none. A path that is kept in no text is not known. Those after them are."""
    scene = H2Scene(start, "--propose-routes")
    talk, encoder = scene.talk(), Encoder()
    blocks = [b"\x82\x44\x02/x\x04\x02/y", b"\x82", b"\x82\x04\x00", b"\x82\x04\x80", b"\x82\x04\x85\xff\xff\xff\xff\xff",
              b"\x82\x04\x05x/y/z", b"\x82\xbe"]
    paths = [b"\x82\x04\x85\x63\xff\xff\xff\xcf", b"\x82\x04\x7f\x81\x01/" + b"z" * 255]
    talk.ask()
    talk.answer()
    for at, block in enumerate([*blocks, *paths, *(encoder.encode([(":method", "GET"), (":path", "/good")]) for _ in range(30))]):
        talk.client.sendall(frame(1, 2 * at + 1, block, 5))
        talk.server.recv(65536)
        talk.server.sendall(frame(1, 2 * at + 1, b"\x88", 5))
        talk.client.recv(65536)
    assert scene.end()["proposed"] == {"most": 256, "requests": 32, "not_known": 1, "paths": 32,
                                       "list": [{"route": "/good", "paths": 30}]}
