# SPDX-License-Identifier: MIT
"""Messages that nobody answers. Brokers push messages, and their clients acknowledge them. An acknowledgement wants no answer (bpf/tcp/oneway.h): else the
next message would look like one, and the pause before it like the broker's work."""
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.databases import answers, unprivileged
from support.documents import service
from support.net import free_port
from support.process import Process, own_folder, wait_until
from support.programs import Observer
from .scene import entries
from .test_stages import stage

PAUSE = 0.3  # seconds: longer than the quiet time that ends a response
SETTLE = b"\x01\0\1\0\0\0\x0d\0\x3c\0%s\0\0\0\0\0\0\0\7\0\xce"

# A client says this after the broker's message; the sizes of the server's reads; whether it wants an answer.
SAID = {
    "puback": (b"\x40\x02\0\1", [100], False),
    "puback, by the byte": (b"\x40\x02\1\0", [1, 1, 100], False),
    "pubcomp, by the byte": (b"\x70\x02\0\1", [1, 1, 100], False),
    "pubcomp": (b"\x70\x02\xff\0", [100], False),
    "four of them": (b"\x40\x02\0\1\x70\x02\0\2\x40\x02\0\3\x40\x02\0\4", [100], False),
    "pubrec": (b"\x50\x02\0\1", [1, 1, 100], True),
    "no identifier": (b"\x40\x02\0\0", [100], True),
    "another length": (b"\x40\x03\0\1", [1, 1, 100], True),
    "puback, publish": (b"\x40\x02\0\1\x30\x02\0\1", [100], True),
    "basic.ack": (SETTLE % b"\x50", [100], False),
    "basic.reject": (SETTLE % b"\x5a", [100], False),
    "basic.nack": (SETTLE % b"\x78", [100], False),
    "basic.ack in two": (SETTLE % b"\x50", [7, 100], True),
    "queue.delete": (b"\x01\0\1\0\0\0\x0d\0\x32\0\x28\0\0\5queue\0\xce", [100], True),
}


def test_an_acknowledgement_is_no_request(start):
    """The server's next message comes long after that, or is the answer."""
    def push(scene, name):
        said, reads, _ = SAID[name]
        client, connection = scene.connect()
        client.sendall(b"hello")
        connection.recv(100)
        connection.sendall(b"welcome")
        for _ in range(2):
            time.sleep(PAUSE)
            connection.sendall(b"message")
            client.sendall(said)
            for size in reads:
                connection.recv(size)
        time.sleep(PAUSE)
        connection.sendall(b"message")

    for (name,), entry in entries(start, [(name,) for name in SAID], push, at_once=True):
        asks = SAID[name][2]
        assert entry["exchanges"] == (3 if asks else 1), name
        assert entry["losses"]["oneway"] == (0 if asks else 2), name
        assert entry["losses"]["unanswered"] == 0, name
        assert (stage(entry, "service")["max_ns"] > PAUSE * 1e9 / 2) == asks, name



class Mosquitto(Process):
    """Writes a line to its log for each packet."""

    def __init__(self):
        self.port = free_port()
        self.files = own_folder("mosquitto")
        path = os.path.join(self.files.name, "conf")
        with open(path, "w", encoding="ascii") as conf:
            conf.write(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nlog_type all\nlog_dest stderr\n")
        os.chmod(self.files.name, 0o755)
        super().__init__([*unprivileged(), "mosquitto", "-c", path])
        with self.coming_up():
            self.wait_for(r"mosquitto version \S+ running", "stderr")

    def packets(self, what):
        return len(re.findall(rf": {what} ", self.stderr))

    def close(self):
        super().close()
        self.files.cleanup()


@needs_program("mosquitto")
@needs_program("mosquitto_pub")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_mosquitto(start, qos):
    """Each packet that it answered, by its log, is an exchange. No acknowledgement is one, at any quality of service."""
    broker, count = start(Mosquitto()), 4
    observer = start(Observer(ports=[broker.port]))
    subscriber = start(Process(["mosquitto_sub", "-p", broker.port, "-t", "topic", "-q", qos, "-C", count, "-i", "subscriber"]))
    broker.wait_for("Sending SUBACK", "stderr")
    with subprocess.Popen(["mosquitto_pub", "-p", str(broker.port), "-t", "topic", "-q", str(qos), "-l"],
                          stdin=subprocess.PIPE) as publisher:
        for number in range(count):
            time.sleep(PAUSE)
            publisher.stdin.write(b"message\n")
            publisher.stdin.flush()
            wait_until(lambda: broker.packets("Sending PUBLISH to subscriber") == number + 1)
        time.sleep(PAUSE)  # or DISCONNECT may be one message with a PUBLISH that wants no answer
        publisher.stdin.close()
    assert subscriber.wait() == 0
    wait_until(lambda: broker.packets("Received DISCONNECT from") == 2)
    observer.stop()
    entry = service(observer.summary(), broker.port)
    answers = ["CONNACK", "SUBACK", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP"]
    assert entry["exchanges"] == sum(broker.packets(f"Sending {answer} to") for answer in answers)
    assert entry["exchanges"] == 3 + [0, count, 3 * count][qos]
    assert entry["losses"]["unanswered"] == 0 and entry["losses"]["goodbyes"] == 2
    assert stage(entry, "service")["max_ns"] < PAUSE * 1e9
    acknowledged = sum(broker.packets(f"Received {packet} from subscriber") for packet in ("PUBACK", "PUBCOMP"))
    assert acknowledged == (count if qos else 0)
    assert qos == 0 or entry["losses"]["oneway"] == acknowledged


class Rsyslog(Process):
    """Takes lines over TCP, and says nothing."""

    def __init__(self):
        self.port = free_port()
        self.files = own_folder("rsyslog")
        self.lines = Path(self.files.name, "lines")
        conf = Path(self.files.name, "conf")
        conf.write_text(f'module(load="imtcp")\ninput(type="imtcp" port="{self.port}" address="127.0.0.1")\n'
                        f'action(type="omfile" file="{self.lines}")\n', encoding="ascii")
        super().__init__(["rsyslogd", "-n", "-f", conf, "-i", Path(self.files.name, "pid")])
        with self.coming_up():
            wait_until(lambda: answers(self.port))

    def count(self):
        return len(re.findall("message", self.lines.read_text(encoding="ascii"))) if self.lines.exists() else 0

    def close(self):
        super().close()
        self.files.cleanup()


@needs_program("rsyslogd")
def test_a_server_of_logs_does_not_hang(start):
    """It reads each line, and answers none: clients that stay connected wait for nothing."""
    logs, rounds = start(Rsyslog()), 3
    observer = start(Observer(ports=[logs.port]))
    clients = [socket.create_connection(("127.0.0.1", logs.port)) for _ in range(2)]
    for number in range(rounds):
        for client in clients:
            client.sendall(b"<13>Nov 25 22:00:00 host tag: message\n")
        wait_until(lambda: logs.count() == (number + 1) * len(clients))
        time.sleep(PAUSE)
    wait_until(lambda: service(observer.document(), logs.port)["open"]["oldest_ns"] > 3.2e9)
    document = observer.document()
    assert "requests-hang" not in {finding["id"] for finding in document["findings"]}
    entry = service(document, logs.port)
    assert (entry["open"]["read"], entry["open"]["unread"]) == (len(clients), 0)
    assert (entry["exchanges"], entry["losses"]["oneway"]) == (0, (rounds - 1) * len(clients))
    for client in clients:
        client.close()
    wait_until(lambda: service(observer.document(), logs.port)["losses"]["unanswered"] == len(clients))
    observer.stop()
    assert "Perhaps it wanted none" in observer.stdout
    assert "never answered" not in observer.stdout
