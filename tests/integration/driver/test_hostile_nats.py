# SPDX-License-Identifier: MIT
"""NATS servers that send nonsense, and members with a login who want more than they may."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import threading

import pytest

from support.nats import Agent, NatsServer
from support.process import Process, run, wait_until
from support.programs import DRIVER, Nginx

pytestmark = pytest.mark.skipif(not shutil.which("nats-server"), reason="nats-server is not installed")

KEY = "0123456789abcdef" * 2
INFO = b'INFO {"max_payload":1048576,"jetstream":true}\r\n'


@contextlib.contextmanager
def false_server(talk):
    """A server that lets its clients in, and then talks."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with contextlib.suppress(OSError), client:
                    client.sendall(INFO)
                    received = b""
                    while not received.endswith(b"PING\r\n"):
                        received += client.recv(4096)
                    client.sendall(b"PONG\r\n")
                    talk(client)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"nats://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


class Member:
    """Anybody with a login at the server."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.lines = self.socket.makefile("rb")
        self.socket.sendall(b"CONNECT {}\r\nSUB sojourn.> 1\r\nPING\r\n")
        next(line for line in self.lines if line == b"PONG\r\n")

    def close(self):
        self.lines.close()
        self.socket.close()

    def say(self, subject, head, body=b""):
        payload = json.dumps(head).encode() + b"\n" + body
        self.socket.sendall(b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(payload), payload))

    def hear(self, pattern):
        """Return the match of the next subject, with the payload."""
        for line in self.lines:
            if line.startswith(b"MSG "):
                words = line.split()
                payload, match = self.lines.read(int(words[-1])), re.fullmatch(pattern, words[1].decode())
                if match:
                    return match, payload
        raise AssertionError("the server has ended the connection")


def test_subjects_that_nobody_asked_for():
    """They end nothing by a signal: not a coordinator that resumes a run, and not one that gathers agents."""
    def talk(client):
        for subject in (b"x", b"x.", b".", b"a.store.", b"sojourn.from..store.1", KEY.encode()):
            client.sendall(b"MSG %b 1 3\r\n{}\n\r\n" % subject)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass

    with false_server(talk) as url:
        for words in (["resume", KEY, "--via", url], ["--via", url, "--members", "1", "--", "127.0.0.1:1"]):
            done = run([DRIVER, "fleet", *words], check=False)
            assert done.status == 1 and done.stderr, done.error(f"ended with status {done.status}")


def test_a_server_that_reads_nothing(start):
    """It costs an agent little memory: after some PINGs the connection is given up."""
    ended = threading.Event()

    def talk(client):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            while not ended.is_set():
                client.sendall(b"PING\r\n" * 10000)

    with false_server(talk) as url:
        agent = start(Process([DRIVER, "agent", "--fleet", url, "--name", "a"]))
        try:
            agent.wait_for("the server sends, but does not read", stream="stderr", seconds=30)
            peak = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{agent.pid}/status", encoding="ascii").read())[1])
        finally:
            ended.set()
            agent.stop()
    assert peak < 64 << 10, f"{peak} KiB"


def test_more_than_its_window(start):
    """A coordinator that sends more than the agent's driver reads is turned away, and its bytes are not kept."""
    server = start(NatsServer())
    agent, member = start(Agent(server.url, "a")), Member(server)
    member.say("sojourn.to.all", {"type": "call", "run": KEY, "asker": "member"})
    found, _ = member.hear(rf"sojourn\.from\.{KEY}\.([0-9a-f]{{32}})")
    to, back = f"sojourn.to.{found[1]}.{KEY}", rf"sojourn\.from\.{KEY}\.{found[1]}"
    member.say(to, {"type": "claim", "asker": "member", "keep": False, "window": 16384, "patience_ns": 10**10})
    said = b""
    while b"hello" not in said:  # a driver that is stopped before its exec() would stop the agent, too
        _, said = member.hear(back)
    os.kill(agent.child(), signal.SIGSTOP)
    for number in range(100):
        member.say(to, {"at": number * 16000, "ack": 0}, b"x" * 16000)
    while b'"end"' not in said:
        _, said = member.hear(back)
    assert b"it sends more than it may" in said
    member.close()
    wait_until(lambda: agent.ended() == 1)
    assert not agent.child()


def test_a_forged_record(start, tmp_path):
    """A member knows a run's key from its subjects. It stores a record with a command line of its own, to have a file
    overwritten by whoever resumes the run."""
    server, nginx = start(NatsServer(stores=True)), start(Nginx())
    start(Agent(server.url, "a"))
    member, victim = Member(server), tmp_path / "victim"
    victim.write_text("precious")
    driver = start(Process([DRIVER, "fleet", "--via", server.url, "--members", "1", "--", nginx.url, "-n", "10", "--wait-for",
                            "/nowhere/flag"]))
    driver.wait_for("its results are kept at", stream="stderr")
    secret = re.search(r"fleet resume ([0-9a-f]{32}) ", driver.stderr)[1]
    kept, _ = member.hear(r"sojourn\.kept\.([0-9a-f]{32})\.([0-9a-f]{32})")
    assert kept[1] != secret, "the subjects have the secret"
    driver.kill()
    for option in ("--json", "--csv", "--hlog", "--trace"):
        record = b"0" * 64 + json.dumps({"version": run([DRIVER, "--version"]).stdout.split()[-1],
                                          "command": ["sojourn-drive", "fleet", "--", nginx.url, "-n", "1", option, str(victim)],
                                          "members": [{"agent": kept[2], "name": "a", "offset_ns": 0, "round_ns": 0}]}).encode()
        member.say(f"sojourn.kept.{kept[1]}.record", {"at": 0, "total": len(record)}, record)
        member.say(f"sojourn.kept.{kept[1]}.{kept[2]}", {"at": 0, "total": 0, "final": True, "stopped": True})
        done = run([DRIVER, "fleet", "resume", secret, "--via", server.url], check=False)
        assert done.status == 1 and "was not stored by its coordinator" in done.stderr, done.stderr
        assert victim.read_text() == "precious"
    member.close()
