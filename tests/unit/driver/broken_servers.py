#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drive sojourn-drive against servers that fail in different ways. Check how every failure is counted, that
each request is counted once, and that the run ends in time.

Usage: broken_servers.py PATH/TO/sojourn-drive
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

DRIVE = sys.argv[1]
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HANG_SECONDS = 50
failures = []
holders = []  # sockets that keep ports from others


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def serve(connection, action):
    """Call action(connection, n) for the connection's n-th request while it returns True."""
    n = 0
    try:
        while connection.recv(65536) and action(connection, n):
            n += 1
    except OSError:
        pass
    connection.close()


def sends(data, keep=True):
    def action(connection, _):
        connection.sendall(data)
        return keep
    return action


def resets(connection, _):
    reset(connection)
    return False


def is_silent(connection, _):
    return True


def drips(connection, _):
    for i in range(len(GOOD)):
        connection.sendall(GOOD[i:i + 1])
    return True


def alternates(connection, n):
    """Answer the first request of a connection, reset at the second."""
    if n:
        reset(connection)
        return False
    connection.sendall(GOOD)
    return True


class Server:
    def __init__(self, action):
        self.action = action
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection, self.action), daemon=True).start()


def drive(port, *options, interrupt_at=None):
    """Return the driver's part and the exit status. `interrupt_at`: the event at which to interrupt the run."""
    url = f"http://127.0.0.1:{port}/"
    process = subprocess.Popen([DRIVE, "--json=-", *options, url], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if interrupt_at:
        check("interrupt", interrupt_at.wait(HANG_SECONDS), f"no load with {options}")
        process.send_signal(signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        failures.append(f"hang with {options}")
        return None, ""
    return json.loads(out)["driver"] if out else None, process.returncode


def check(name, condition, what):
    if not condition:
        failures.append(f"{name}: {what}")


def errors_of(document):
    return {name: count for name, count in document["errors"].items() if count}


def expect(name, action, errors, requests, *options, port=None):
    """20 requests over 4 connections: `errors` by kind, `requests` complete."""
    server = Server(action) if action else None
    # Only servers that never answer may miss it, however busy the machine is.
    timeout = "--timeout=300ms" if "timeout" in errors else "--timeout=20s"
    document, code = drive(port or server.port, "-n20", "-c4", timeout, *options)
    if document is None:
        return failures.append(f"{name}: no document, exit status {code}")
    check(name, errors_of(document) == errors, f"errors {errors_of(document)}, not {errors}")
    check(name, document["requests"] == requests, f"requests {document['requests']}")
    check(name, code == (1 if errors else 0), f"exit status {code}")
    check(name, document["round_trip"]["count"] == requests, "round trips")
    return None


def closed_port():
    """Return a port that refuses. Its socket stays bound, or another program could get the port and listen."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holders.append(holder)
    return holder.getsockname()[1]


def test_kinds():
    expect("good", sends(GOOD), {}, 20)
    expect("good, new connections", sends(GOOD), {}, 20, "--new-connections")
    expect("good, closed by the server", sends(GOOD, keep=False), {}, 20, "--new-connections")
    expect("announced close", sends(GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
                                    keep=False), {}, 20)
    expect("byte by byte", drips, {}, 20)
    expect("until close", sends(b"HTTP/1.1 200 OK\r\n\r\nok", keep=False), {}, 20)
    expect("closes at once", sends(b"", keep=False), {"closed_early": 20}, 0)
    expect("closes in the body", sends(GOOD[:-1], keep=False), {"closed_early": 20}, 0)
    expect("resets", resets, {"reset": 20}, 0)
    expect("silent", is_silent, {"timeout": 20}, 0)
    expect("stalls in the body", sends(GOOD[:-1]), {"timeout": 20}, 0)
    expect("garbage", sends(b"\x15\x03\x01\x00\x02\x02\x50"), {"malformed": 20}, 0)
    expect("too much", sends(GOOD + b"!"), {"malformed": 20}, 0)
    expect("endless header", sends(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200000), {"malformed": 20}, 0)
    expect("404", sends(GOOD.replace(b"200 OK", b"404 No")), {"status": 20}, 20)
    expect("expected 404", sends(GOOD.replace(b"200 OK", b"404 No")), {}, 20,
           "--expect-status=200,404")
    expect("unexpected 200", sends(GOOD), {"unexpected": 20}, 20, "--expect-status=204")
    expect("expected body", sends(GOOD), {}, 20, "--expect-body=ok")
    expect("expected body, byte by byte", drips, {}, 20, "--expect-body=ok", "--expect-status=200")
    expect("unexpected body", sends(GOOD), {"unexpected": 20}, 20, "--expect-body=OK")
    expect("refused", None, {"refused": 20}, 0, port=closed_port())


def test_alternating():
    """Every second request fails: all others are complete."""
    document, code = drive(Server(alternates).port, "-n", "400", "-c4")
    check("alternates", code == 1, f"exit status {code}")
    check("alternates", document["requests"] + document["errors"]["reset"] == 400, "sum")
    check("alternates", 196 <= document["requests"] <= 204, f"requests {document['requests']}")


def test_large_body():
    """The request does not fit into the socket's buffer at once."""
    body = b"x" * (8 << 20) + b"."

    def action(connection, _):
        while received := connection.recv(1 << 20):
            if received.endswith(b"."):
                connection.sendall(GOOD)
        return False

    path = f"/tmp/driver_broken_servers.{os.getpid()}"
    with open(path, "wb") as file:
        file.write(body)
    try:
        document, _ = drive(Server(action).port, "-n4", "-c2", f"--body=@{path}",
                               "--new-connections")
    finally:
        os.unlink(path)
    total = sum(document["errors"].values())
    check("large body", document["requests"] == 4 and not total, f"{document['errors']}")
    check("large body", 0 < document["bytes_out"] - 4 * len(body) < 4 * 500, f"bytes out {document['bytes_out']}")


def answers(count):
    """Answer every request. The event is set at the request with this number."""
    seen, event = [], threading.Event()

    def action(connection, _):
        seen.append(1)
        if len(seen) >= count:
            event.set()
        connection.sendall(GOOD)
        return True
    return action, event


def test_interrupt():
    """At the second request of the only connection, the first one is complete."""
    action, second = answers(2)
    document, code = drive(Server(action).port, "-d60m", "-c1", interrupt_at=second)
    check("interrupt", document and document["requests"] > 0, "no results")
    check("interrupt", code == 0, f"exit status {code}")


def test_interrupted_warmup():
    action, first = answers(1)
    document, code = drive(Server(action).port, "--warmup=60m", interrupt_at=first)
    check("interrupted warm-up", document is None and code == 1, f"exit status {code}")


def test_refused_duration():
    """With back-off 4 connections try at most some dozens of times in half a second."""
    document, code = drive(closed_port(), "-d500ms", "-c4")
    refused, seconds = document["errors"]["refused"], document["duration_ns"] / 1e9
    check("refused for a time", code == 1, f"exit status {code}")
    check("refused for a time", 4 <= refused <= 160 * seconds, f"{refused} attempts in {seconds:.1f} s")
    check("refused for a time", seconds >= 0.49, f"{seconds:.2f} s")


def test_warmup_is_not_counted():
    action, warm = answers(51)
    document, code = drive(Server(action).port, "-n50", "-c4", "--warmup=1s")
    check("warm-up", code == 0 and document["requests"] == 50, f"{document['requests']}")
    check("warm-up", document["connects"] == 0, "connections were not kept")
    check("warm-up", warm.is_set(), "no more requests than those that were counted")


TESTS = [test_kinds, test_alternating, test_large_body, test_interrupt, test_interrupted_warmup,
         test_refused_duration, test_warmup_is_not_counted]

for test in TESTS:
    test()
for failure in failures:
    print("FAILED", failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
