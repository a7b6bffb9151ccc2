# SPDX-License-Identifier: MIT
"""`sojourn report --check`: each document is checked as a test reads it (tests/support/documents.py)."""
import contextlib
import json
import random
import socket
import threading
import time

import pytest

from support.documents import broken
from support.process import run
from support.programs import OBSERVER, Driver, Nginx, Observer
from .scene import Scene
from .test_serve import Serve


def check(*paths):
    return run([OBSERVER, "report", "--check", *paths], check=False)


def test_half_closed_connections_are_open(start):
    """The server has shut its side and waits: the connection is neither established nor over, as in `ss`."""
    scene = Scene(start)
    client, connection = scene.connect()
    connection.shutdown(socket.SHUT_WR)
    time.sleep(0.1)
    assert "FIN-WAIT-2" in run(["ss", "-Htn", f"sport = :{scene.port}"]).stdout
    found = next(entry for entry in scene.observer.document()["services"] if entry["port"] == scene.port)
    assert (found["accepted"], found["connections"], found["open"]["closing"]) == (1, 0, 1)
    assert sum(found["closes"].values()) == 0
    client.close()
    connection.close()
    ended = scene.end()
    assert (sum(ended["closes"].values()), ended["connections"], ended["open"]["closing"]) == (1, 0, 0)


@pytest.mark.parametrize("route", ["/v1/run", "/v1/past"])
def test_connections_that_come_while_a_document_is_made(start, route):
    """The sockets are visited before the counts are read: a connection that comes in between is open, too."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener, contextlib.ExitStack() as clients:
        observer = start(Serve(listener.getsockname()[1]))

        def connect(pause):
            time.sleep(pause)
            clients.enter_context(socket.create_connection(listener.getsockname()))

        for number in range(100):
            client = threading.Thread(target=connect, args=(random.uniform(0, 0.01),))
            client.start()
            found = json.loads(observer.get(route))["services"][0]
            client.join()
            assert number <= found["accepted"] == found["connections"] <= number + 1


def test_files_are_checked_each_by_itself(start, tmp_path):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    Driver(nginx.url, connections=2, count=300)
    observer.stop()
    sound = observer.json
    whole = json.loads(sound.read_text())
    damaged, foreign = tmp_path / "damaged.json", tmp_path / "foreign.json"
    entry = next(each for each in whole["services"] if each["port"] == nginx.port)
    entry["exchanges"] *= 10  # more than may pass while figures are read
    damaged.write_text(json.dumps(whole))
    foreign.write_text("{}")

    done = check(sound)
    assert (done.status, done.stdout, done.stderr) == (0, f"{sound}: holds\n", "")
    done = check(damaged, sound)
    lines = done.stdout.splitlines()
    assert done.status == 1 and lines[-1] == f"{sound}: holds"
    assert f"{damaged}: exchanges-timed: tcp port {nginx.port}: stages.service.count + losses.untimed is 300, " \
        "must be exchanges, which is 3000" in lines
    report = run([OBSERVER, "report", damaged], check=False)
    (warning,) = report.stderr.splitlines()
    assert report.status == 0 and f"'{damaged}': figures contradict each other ({len(lines) - 1})" in warning
    assert run([OBSERVER, "report", sound]).stderr == ""
    assert broken(damaged.read_text()) == [line.replace(str(damaged), "-", 1) for line in lines[:-1]]
    done = check(foreign, sound)
    assert done.status == 2 and done.stdout == f"{sound}: holds\n" and str(foreign) in done.stderr


def test_no_report_beside_it(start, tmp_path):
    done = check(tmp_path / "any.json", "--compare")
    assert done.status == 2 and "--check" in done.stderr and "--compare" in done.stderr


def test_figures_that_people_read_are_checked(start, tmp_path):
    """Readers ignore derived figures; still, a document whose percentiles descend is wrong."""
    nginx = start(Nginx())
    path = tmp_path / "driver.json"
    document = Driver(nginx.url, connections=2, count=300).document
    document["driver"]["round_trip"]["p50_ns"] = document["driver"]["round_trip"]["p99_ns"] + 1
    path.write_text(json.dumps(document))
    done = check(path)
    assert done.status == 1
    assert done.stdout.startswith(f"{path}: derived-follows: driver.round_trip: p50_ns is ")
    assert len(done.stdout.splitlines()) == 1
