# SPDX-License-Identifier: MIT
"""Raw byte requests against servers of other protocols: their own counters are the truth."""
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from support.net import free_port
from support.peers import ask, need
from support.process import Process, run
from support.programs import Driver, Lab
from support.slapd import Slapd

SET = r"*3\r\n$3\r\nSET\r\n$12\r\nkey:{{counter:8}}\r\n$36\r\n{{uuid}}\r\n"
BIND = "300c020101600702010304008000"
SEARCH = "3025020102632004000a01000a0100020100020100010100870b6f626a656374436c6173733000"


@pytest.fixture(name="folder")
def _folder():
    with tempfile.TemporaryDirectory(prefix="sojourn-stream.") as folder:
        yield Path(folder)


@pytest.fixture(name="redis")
def _redis(start, folder):
    need("redis-server")
    port = free_port()
    server = start(Process(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                            "--dir", folder, "--unixsocket", folder / "socket"]))
    ask(port, b"PING\r\n")
    server.port, server.socket = port, folder / "socket"
    return server


def redis_calls(server, command):
    text = subprocess.run(["redis-cli", "-p", str(server.port), "info", "commandstats"],
                          check=True, capture_output=True, text=True).stdout
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", text)
    return int(found[1]) if found else 0


def test_redis(redis):
    before = redis_calls(redis, "ping")
    url = f"tcp://127.0.0.1:{redis.port}"
    driver = Driver(url, "--payload", r"PING\r\n", "--framing=resp", connections=8, count=5000)
    assert driver.result["requests"] == 5000
    assert driver.result["method"] is None
    assert redis_calls(redis, "ping") - before == 5000

    driver = Driver(url, "--payload", r"PING\r\nPING\r\nPING\r\n", "--framing=resp", "--replies=3",
                    "--new-connections", connections=4, count=500)
    assert driver.result["connects"] == 500
    assert redis_calls(redis, "ping") - before == 5000 + 3 * 500


def test_every_create_differs(redis):
    """Over a Unix socket, from two threads: as many keys as requests."""
    driver = Driver(f"unix:{redis.socket}", "--payload", SET, "--framing=resp", connections=8,
                    threads=2, count=5000)
    assert driver.result["requests"] == 5000
    size = run(["redis-cli", "-p", redis.port, "dbsize"]).stdout
    assert int(re.search(r"\d+", size)[0]) == 5000
    assert redis_calls(redis, "set") == 5000
    values = {run(["redis-cli", "-p", redis.port, "get", f"key:{key:08}"]).stdout
              for key in (1, 2500, 5000)}
    assert len(values) == 3 and all(len(value.strip()) == 36 for value in values)


def test_replies_that_say_failure(redis):
    driver = Driver(f"tcp://127.0.0.1:{redis.port}", "--payload", r"NONSENSE\r\n",
                    "--framing=resp", count=100, check=False)
    assert driver.status == 1
    assert driver.result["requests"] == driver.result["errors"]["status"] == 100
    assert driver.result["connects"] == 1, "the connection is as good as before"


def test_memcached(start):
    need("memcached")
    port = free_port()
    start(Process(["memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, "-u", "root"]))
    ask(port, b"version\r\n")
    url = f"tcp://127.0.0.1:{port}"
    Driver(url, "--payload", r"set k{{counter}} 0 0 2\r\nok\r\n", r"--framing=delimiter:STORED\r\n",
           connections=4, count=2000)
    Driver(url, "--payload", r"get k{{counter}}\r\n", r"--framing=delimiter:END\r\n",
           connections=4, count=2000)
    stats = dict(re.findall(r"STAT (\w+) (\S+)", ask(port, b"stats\r\n")))
    assert int(stats["cmd_set"]) == int(stats["curr_items"]) == 2000
    assert int(stats["cmd_get"]) == int(stats["get_hits"]) == 2000


def test_ldap(start, folder):
    """A bind and a search, each on a connection of its own; slapd counts operations."""
    slapd = start(Slapd(folder))
    binds, searches = slapd.completed("Bind"), slapd.completed("Search")
    driver = Driver(slapd.url, "--payload-hex", BIND + SEARCH, "--framing=ldap",
                    "--replies=2", "--new-connections", connections=2, count=300)
    assert driver.result["requests"] == 300
    # Each query of ours is a bind and a search, too; the search in progress is not completed.
    assert slapd.completed("Bind") - binds == 300 + 2
    assert slapd.completed("Search") - searches == 300 + 2


def escaped(hexadecimal):
    return "".join(f"\\x{byte:02x}" for byte in bytes.fromhex(hexadecimal))


# (uidNumber=...) with a field in the place of the value, and its attribute "1".
EQUAL = escaped("302f020102632a04000a01000a0100020100020100010100a3120409") + "uidNumber" + escaped("0405") + "{{counter:5}}" + \
    escaped("3003040131")


@pytest.mark.parametrize("payload, replies", [(["--payload-hex", BIND + SEARCH], 2), (["--payload", EQUAL], 1),
                                              (["--payload", escaped(BIND) + EQUAL + EQUAL], 3)])
def test_message_ids_of_ldap_differ(start, folder, payload, replies):
    """slapd's own trace has each messageID once, over all connections."""
    slapd = start(Slapd(folder, trace=1))
    count = 300
    driver = Driver(slapd.url, *payload, "--framing=ldap", f"--replies={replies}", connections=2, count=count)
    assert driver.result["requests"] == count and driver.result["connects"] == 2
    slapd.stop()
    answered = re.findall(r"send_ldap_response: msgid=(\d+) tag=\d+ err=0", slapd.stderr)
    assert len(answered) == count * replies and len(set(answered)) == len(answered)
    assert all(0 < int(number) < 1 << 31 for number in answered)


@pytest.mark.parametrize("protocol, options", [
    ("line", ["--payload", r"{{counter}}\n", r"--framing=delimiter:\n"]),
    ("line", ["--payload", r"{{counter}}\n", "--framing=echo"]),
    ("line", ["--payload", r"1234567\n", "--framing=fixed:8"]),
    ("frame", ["--payload", r"\0\0\0\x08{{counter:8}}", "--framing=length:4"]),
])
def test_lab(start, protocol, options):
    lab = start(Lab(protocol=protocol))
    driver = Driver(f"tcp://127.0.0.1:{lab.port}", *options, connections=4, threads=2, count=1000)
    assert driver.result["requests"] == 1000
    assert sum(driver.result["errors"].values()) == 0


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


FAULTS = {
    "closed_early": lambda connection: connection.sendall(b"\0\0\0\4ab"),
    "reset": reset,
    "malformed": lambda connection: connection.sendall(b"\0\0\0\1ab"),
    "timeout": lambda connection: (connection.sendall(b"\0\0\0\4ab"), connection.recv(1)),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_failures(kind):
    def serve():
        for _ in range(20):
            connection, _ = listener.accept()
            with connection:
                connection.recv(64)
                FAULTS[kind](connection)

    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        driver = Driver(f"tcp://127.0.0.1:{port}", "--payload", "x", "--framing=length:4",
                        "--timeout=50ms", count=20, check=False)
        thread.join(10)
    assert driver.status == 1
    assert driver.result["errors"] == dict.fromkeys(driver.result["errors"], 0) | {kind: 20}


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:{port}", "unix:{folder}/nobody"])
def test_refused(folder, url):
    driver = Driver(url.format(port=free_port(), folder=folder), "--payload", "x",
                    "--framing=echo", count=5, check=False)
    assert driver.result["errors"]["refused"] == 5


def test_full_queue_of_a_local_socket(folder):
    """connect() waits for room, up to the time limit, as with TCP."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(0)
        driver = Driver(f"unix:{folder}/socket", "--payload", "x", "--framing=echo",
                        "--timeout=200ms", connections=4, count=4, check=False)
    errors = driver.result["errors"]
    assert errors["timeout"] == 1, "the one that the queue takes"
    assert errors["connect_timeout"] == 3
