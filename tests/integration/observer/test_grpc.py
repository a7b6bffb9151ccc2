# SPDX-License-Identifier: MIT
"""Responses of gRPC by status (--http), against the counts of foreign servers and clients. Other tests write the bytes
themselves. tests/unit/bpf/protocol/status.c tests the decoder alone, against nghttp2's encoder.

tools/mutate: "a status of gRPC need not end the stream".
"""
import os
import re
import sys

import pytest

from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.foreign.grpc import need_grpcio
from support.net import free_port
from support.process import run, wait_until
from support.programs import Driver, Nginx, Observer

pytest.importorskip("h2")
from .test_http2 import CANCEL, H2Scene, WRITES  # noqa: E402
from .test_statuses import by_sendfile, counted  # noqa: E402

NAMES = ("ok cancelled unknown invalid_argument deadline_exceeded not_found already_exists permission_denied "
         "resource_exhausted failed_precondition aborted out_of_range unimplemented internal unavailable data_loss "
         "unauthenticated").split()


def of_grpc(entry):
    """Return {name: count} of the statuses. Each failed response that has one and was timed is in its histogram."""
    grpc = entry.get("grpc")
    if not grpc:
        return {}
    told = {name: count for name, count in grpc["status"].items() if count}
    failed = sum(count for name, count in told.items() if name not in ("ok", "missing", "not_known"))
    assert failed - entry["losses"]["untimed"] <= grpc["service_failed"]["count"] <= failed
    return told


def by_route(entry):
    """Return {route: count}. All are known."""
    assert not any(entry["routes"]["not_known"].values())
    return {route["route"]: route["count"] for route in entry["routes"]["list"] if route["count"]}


def said(text):
    """Return the counts that grpcserver.py or grpcclient.py have printed."""
    return {NAMES[int(code)]: int(count) for code, count in re.findall(r"status (\d+)=(\d+)", text)}


def grpcio_server(start):
    need_grpcio()
    port = free_port()
    server = start([sys.executable, ROOT / "tests/support/grpcserver.py", port])
    server.wait_for("ready", seconds=20)
    return server, port


@needs_program("nginx")
def test_servers_and_clients_count_the_same(start):
    """grpcio's server, nginx before it, and two clients: many calls on a connection, with each status."""
    server, port = grpcio_server(start)
    nginx = start(Nginx(listen_options="http2", server=f"location /test.Service/ {{ grpc_pass grpc://127.0.0.1:{port}; }}"
                        "location /gone/ { grpc_pass grpc://127.0.0.1:1; }"))
    observer = start(Observer("--route", "/test.Service/*", "--route", "POST /test.Service/Any", "--route", "/gone/",
                              ports=[port, nginx.port]))
    clients = [run([sys.executable, ROOT / "tests/support/grpcclient.py", at, 510]).stdout for at in (port, nginx.port)]
    driver = Driver(f"h2c://127.0.0.1:{port}/test.Service/Missing", "--grpc", "--streams=50", connections=2, count=1000,
                    check=False)
    run(["curl", "--silent", "--http2-prior-knowledge", f"{nginx.url}gone/"])  # a response of HTTP alone

    def told():
        return {name: int(count) for name, count in
                re.findall(rf'^sojourn_grpc_responses_total\{{[^}}]*port="{nginx.port}"[^}}]*status="(\w+)"\}} (\d+)',
                           observer.get("/metrics"), re.MULTILINE)}

    wait_until(lambda: told() == said(clients[1]))
    server.stop()
    observer.stop()
    truth = said(server.stdout)
    of_server, of_nginx = (service(observer.summary(), at) for at in (port, nginx.port))
    assert len(truth) == 17 and sum(truth.values()) == 1020 and driver.result["grpc"]["not_found"] == 1000
    assert of_grpc(of_server) == {**truth, "not_found": truth["not_found"] + 1000}
    assert of_grpc(of_nginx) == said(clients[1])
    assert counted(of_server) == {200: 2020} and counted(of_nginx) == {200: 510, 502: 1}
    assert by_route(of_server) == {"/test.Service/*": 1000, "POST /test.Service/Any": 1020}
    assert by_route(of_nginx) == {"POST /test.Service/Any": 510, "/gone/": 1}
    assert re.search(r"gRPC +not found 1,040 \(51 %\) · ok", observer.stdout), observer.stdout


def responses(talk, stream, kind):
    """Let the server answer with a response of this kind."""
    grpc = ("content-type", "application/grpc")
    trailers = {"grpc-status": [("grpc-status", "14"), ("grpc-message", "x" * 5000)], "first": [("grpc-status", "0")],
                "odd": [("grpc-status", "17")], "text": [("grpc-status", "ok")], "untyped": [("grpc-status", "3")],
                "none": [("x-other", "1")], "web": [("x-other", "1")], "plain": [("x-other", "2")]}
    if kind == "alone":
        talk.answers.send_headers(stream, [(":status", "200"), grpc, ("grpc-status", "12")], end_stream=True)
        return
    types = {"untyped": [], "plain": [("content-type", "text/plain")], "web": [("content-type", "application/grpc-web")],
             "text": [("content-type", "application/grpc+proto")], "odd": [("content-type", "application/grpc;x=y")]}
    early = [("grpc-status", "5")] if kind in ("first", "data") else []  # no trailers: it is not the status
    talk.answers.send_headers(stream, [(":status", "200"), *types.get(kind, [grpc]), *early])
    talk.answers.send_data(stream, b"\0\0\0\0\5hello", end_stream=kind == "data")
    if kind in trailers:
        talk.answers.send_headers(stream, trailers[kind], end_stream=True)
    elif kind == "reset":
        talk.answers.reset_stream(stream, CANCEL)


KINDS = {"alone": "unimplemented", "grpc-status": "unavailable", "first": "ok", "odd": "other", "text": "other",
         "untyped": "invalid_argument", "none": "missing", "web": None, "plain": None, "data": "missing",
         "reset": "missing", "open": "missing"}


def test_a_response_of_grpc_is_what_was_written(start):
    """Each kind of response, twice on a connection so that the second time its fields are in the table, cut in each
    way. The last one is open when its connection ends."""
    scene = H2Scene(start)
    expected = {}
    for write in WRITES:
        talk = scene.talk()
        for stream, kind in zip(range(1, 100, 2), [*KINDS, *KINDS]):
            talk.request(stream)
            talk.ask()
            responses(talk, stream, kind)
            talk.answer(write)
            name = KINDS[kind]
            if name:
                expected[name] = expected.get(name, 0) + 1
    entry = scene.end()
    assert of_grpc(entry) == expected
    assert counted(entry) == {200: 2 * len(KINDS) * len(WRITES)}


def test_what_is_not_known_is_told_and_never_guessed(start, tmp_path):
    """A connection that is older than the observer has no statuses. One that is given up amid a response of gRPC has
    one that is not known, and none of those that follow."""
    scene = H2Scene(start, observe=False)
    old = scene.talk()
    old.exchange(1)
    scene.observe()
    old.request(3)
    old.ask()
    responses(old, 3, "grpc-status")
    old.answer()
    talk = scene.talk()
    for stream, kind in ((1, "alone"), (3, "open")):
        talk.request(stream)
        talk.ask()
        responses(talk, stream, kind)
        talk.answer()
    talk.answers.send_headers(3, [("grpc-status", "0")], end_stream=True)
    talk.answer(by_sendfile(tmp_path))
    talk.request(5)
    talk.ask()
    responses(talk, 5, "alone")
    talk.answer()
    entry = scene.end(samples=False)
    assert of_grpc(entry) == {"unimplemented": 1, "not_known": 1}
    assert entry["losses"]["multiplexed"] == 2 and entry["http2"]["given_up"] == 1


def test_an_entry_that_is_no_longer_kept_is_not_guessed(start):
    """The client allows a larger table than is kept. From the third response on, the name of the status is an entry
    that is gone. Entries that take their name from it are not known either."""
    scene = H2Scene(start)
    talk = scene.talk()
    talk.asks.update_settings({1: 1 << 16})  # SETTINGS_HEADER_TABLE_SIZE
    other = [(f"x-{n}", "y") for n in range(200)]
    grpc = [("content-type", "application/grpc"), ("grpc-status", "12")]
    for stream, fields in ((1, grpc), (3, other), (5, grpc), (7, [grpc[0], ("grpc-status", "7")]),
                           (9, [grpc[0], ("grpc-status", "7")])):
        talk.request(stream)
        talk.ask()
        talk.answers.send_headers(stream, [(":status", "200"), *fields], end_stream=True)
        talk.answer()
    entry = scene.end()
    assert of_grpc(entry) == {"unimplemented": 1, "not_known": 3}
