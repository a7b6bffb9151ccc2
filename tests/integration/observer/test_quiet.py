# SPDX-License-Identifier: MIT
"""--quiet-time sets what belongs to a response. The test's own server pauses, and its clock measures how long."""
import json
import select
import socket
import threading
import time

import pytest

from support import http
from support.documents import parse
from support.process import Process, run
from support.programs import OBSERVER
from support.timing import MS, in_quiet, in_time, timing
from .scene import Scene
from .test_serve import Serve

ROUNDS = 5


def respond_in_two(pair, pause):
    """Send a response in two parts; return the time between the ends of the two writes."""
    client, connection = pair
    client.sendall(b"request")
    connection.recv(100)
    connection.sendall(b"one part")
    first = time.monotonic_ns()
    time.sleep(pause)
    connection.sendall(b"another")
    second = time.monotonic_ns()
    assert client.recv(len(b"one partanother"), socket.MSG_WAITALL) == b"one partanother"
    return second - first


@pytest.mark.parametrize("options, pause, trails", [
    ((), 0.4, True), (("--quiet-time", "1s"), 0.4, False),
    ((), 0.1, False), (("--quiet-time=50ms",), 0.1, True)], ids=["usual", "longer", "within", "shorter"])
@in_quiet
def test_what_belongs_to_a_response(start, options, pause, trails):
    scene = Scene(start, *options)
    pair = scene.connect()
    pauses = [respond_in_two(pair, pause) for _ in range(ROUNDS)]
    entry = scene.end()
    assert entry["exchanges"] == ROUNDS
    assert entry["losses"].get("trailing", 0) == (ROUNDS if trails else 0)
    assert entry["stages"]["respond"]["count"] == ROUNDS
    if trails:
        assert entry["stages"]["respond"]["max_ns"] == 0, "one write, and nothing after it"
    else:
        with timing():
            assert entry["stages"]["respond"]["sum_ns"] == pytest.approx(sum(pauses), abs=ROUNDS * MS)
    quiet_ns = {(): 200, ("--quiet-time", "1s"): 1000, ("--quiet-time=50ms",): 50}[options] * MS
    assert entry["quiet_ns"] == quiet_ns
    assert ("responses end with a pause of" in scene.observer.stdout) == bool(options)


BODY = b"x" * 8_000_000


def write_at_once(connection):
    connection.sendall(BODY)


def write_when_there_is_room(connection):
    connection.setblocking(False)
    rest = memoryview(BODY)
    while rest:
        select.select([], [connection], [])
        rest = rest[connection.send(rest[:1 << 20]):]
    connection.setblocking(True)


def read_late(client, size, pause):
    """The client pauses before it reads, and again after a third."""
    for part in (size // 3, size - size // 3):
        time.sleep(pause)
        client.recv(part, socket.MSG_WAITALL)


@pytest.mark.parametrize("write, room", [(write_at_once, None), (write_at_once, 4096), (write_when_there_is_room, None)])
@in_quiet
def test_a_pause_of_the_client_ends_no_response(start, write, room):
    """The client does not read for 0.6 s, twice, so the server cannot write. That is no end of its response. With little
    room a write that blocks leaves nothing unsent."""
    scene = Scene(start)
    client, connection = scene.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    if room:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
    client.sendall(b"request")
    connection.recv(100)
    reader = threading.Thread(target=read_late, args=(client, 4 + len(BODY), 0.6))
    reader.start()
    connection.sendall(b"head")
    began = time.monotonic_ns()
    write(connection)
    took = time.monotonic_ns() - began
    reader.join()
    entry = scene.end()
    assert took > 600 * MS and entry["exchanges"] == 1
    assert entry["losses"].get("trailing", 0) == 0
    with timing():
        assert entry["stages"]["respond"]["sum_ns"] == pytest.approx(took, abs=20 * MS)


def test_what_follows_a_pause_of_the_server_trails(start):
    """The server has room and pauses. It then writes more than the client takes."""
    scene = Scene(start)
    client, connection = scene.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.sendall(b"request")
    connection.recv(100)
    connection.sendall(b"answer")
    time.sleep(0.5)
    connection.setblocking(False)
    assert connection.send(BODY) > 65536
    entry = scene.end()
    assert (entry["exchanges"], entry["losses"]["trailing"]) == (1, 1)
    assert entry["stages"]["respond"]["max_ns"] == 0


def test_what_waits_for_no_answer(start):
    """The second message follows after 300 ms. By default the first one is oneway; with a longer quiet time it is part
    of the request."""
    for options, expected in (((), (1, 1)), (("--quiet-time", "5s"), (0, 1))):
        scene = Scene(start, *options)
        client, connection = scene.connect()
        for part in (b"to nobody", b"request"):
            client.sendall(part)
            connection.recv(100)
            time.sleep(0.3)
        connection.sendall(b"answer")
        client.recv(100)
        entry = scene.end()
        assert (entry["losses"].get("oneway", 0), entry["exchanges"]) == expected


# The sizes of the server's reads: mosquitto's first one of a packet is a byte.
GOODBYES = {"MQTT": (b"\xe0\x00", [1, 100]), "MQTT-whole": (b"\xe0\x00", [100]),
            "LDAP": (b"0\x05\x02\x01\x03B\x00", [100]), "LDAP-300": (b"0\x06\x02\x02\x01\x2cB\x00", [100])}


@pytest.mark.parametrize("message, reads", GOODBYES.values(), ids=GOODBYES)
def test_who_says_goodbye_has_asked_nothing(start, message, reads):
    """The client closes much later than a goodbye of unknown bytes would be noticed."""
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(b"request")
    connection.recv(100)
    connection.sendall(b"answer")
    client.recv(100)
    client.sendall(message)
    for size in reads:
        connection.recv(size)
    time.sleep(0.05)
    client.close()
    connection.recv(100)
    connection.close()
    entry = scene.end()
    assert (entry["exchanges"], entry["losses"]["goodbyes"], entry["losses"]["unanswered"]) == (1, 1, 0)


@in_time
def test_a_request_that_still_arrives_does_not_wait(start):
    """A slow upload is as old as its first byte; the server last read from it a moment ago."""
    scene = Scene(start)
    client, connection = scene.connect()
    for _ in range(4):
        client.sendall(b"a part")
        connection.recv(100)
        time.sleep(0.1)
    client.sendall(b"the last")
    connection.recv(100)
    waits = scene.observer.document()["services"][0]["open"]
    connection.sendall(b"answer")
    client.recv(100)
    scene.end()
    assert waits["read"] == 1 and waits["oldest_ns"] >= 390 * MS
    with timing():
        assert waits["waiting_ns"] < 200 * MS


def test_serve_and_record_take_it(start, tmp_path):
    scene = Scene(start, observe=False)
    serve = start(Serve(scene.port, "--quiet-time", "1s"))
    recorder = start(Process([OBSERVER, "record", "-o", tmp_path / "rec", "--port", scene.port, "--interval=100ms",
                              "--listen", "127.0.0.1:0", "--quiet-time", "3s"]))
    url = recorder.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    respond_in_two(scene.connect(), 0.4)
    for text, quiet_ns in ((serve.get("/v1/services"), 1000 * MS),
                           (http.request(url + "/v1/services", "GET", None), 3000 * MS)):
        entry = parse(text)["services"][0]
        assert (entry["quiet_ns"], entry["losses"].get("trailing", 0)) == (quiet_ns, 0)
    recorder.stop()
    run([OBSERVER, "report", tmp_path / "rec", "-f", "json", "-o", tmp_path / "run.json"])
    assert json.loads((tmp_path / "run.json").read_text())["services"][0]["quiet_ns"] == 3000 * MS
    for end in (*scene.ends, scene.listener):
        end.close()


@pytest.mark.parametrize("command", ["observe", "serve", "live", "record"])
@pytest.mark.parametrize("value", ["0", "999us", "3601s", "-1s", "soon", ""])
def test_wrong_times(command, value):
    options = {"observe": ["--port=1"], "record": ["--output=none"]}.get(command, [])
    refused = run([OBSERVER, command, *options, f"--quiet-time={value}"], check=False)
    assert refused.status == 2
    assert f"--quiet-time: '{value}'" in refused.stderr and "from 1ms to 1h" in refused.stderr
