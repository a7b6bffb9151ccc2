# SPDX-License-Identifier: MIT
"""Database servers of a test, each unprivileged, with its own files and its own counts."""
import os
import re
import shutil
import socket
import struct
import time
from pathlib import Path

import pytest

from .net import free_port
from .process import Process, own_folder, run, wait_until

NOBODY = 65534
UNPRIVILEGED = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


class Server(Process):
    """Runs as the user nobody if the test is root, in a folder that is removed at close()."""

    def __init__(self, argv, files):
        self.files = files
        super().__init__([*unprivileged(), *argv])
        with self.coming_up():
            wait_until(lambda: answers(self.port) or not self.running(), 30)
            if not self.running():
                raise self.error("did not come up")

    def close(self):
        super().close()
        self.files.cleanup()


def unprivileged():
    return UNPRIVILEGED if os.geteuid() == 0 else []


def folder_of_nobody(what):
    folder = own_folder(what)
    if os.geteuid() == 0:
        os.chown(folder.name, NOBODY, NOBODY)
    return folder


def postgres_program(name):
    """Return the newest version's program: Debian keeps each version in its own folder."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    path = found[-1] if found else shutil.which(name)
    if not path:
        pytest.skip(f"PostgreSQL's {name} is not installed: tools/setup")
    return path


class Postgres(Server):
    """PostgreSQL. Clients use TCP; ask() uses a Unix socket, so its queries are not observed."""

    def __init__(self, *settings, certificate=None):
        programs = [postgres_program(name) for name in ("initdb", "postgres")]
        files = folder_of_nobody("postgres")
        try:
            self.folder_name, self.port = files.name, free_port()
            run([*unprivileged(), programs[0], "-D", f"{files.name}/data", "-A", "trust", "-U", "test", "--no-sync",
                 "--no-locale", "-E", "UTF8"])
            tls = self._tls(certificate) if certificate else ()
            words = [word for each in ("listen_addresses=127.0.0.1", "fsync=off", "autovacuum=off",
                                       "shared_preload_libraries=pg_stat_statements",
                                       "pg_stat_statements.track_utility=on", *tls, *settings) for word in ("-c", each)]
        except BaseException:
            files.cleanup()
            raise
        super().__init__([programs[1], "-D", f"{files.name}/data", "-p", self.port, "-k", files.name, *words], files)
        with self.coming_up():
            self.wait_for("ready to accept connections", "stderr", 30)
            self.ask("create extension pg_stat_statements")

    def _tls(self, certificate):
        paths = []
        for path in certificate:
            paths.append(Path(self.folder_name, Path(path).name))
            shutil.copy(path, paths[-1])
            os.chmod(paths[-1], 0o600)
            if os.geteuid() == 0:
                os.chown(paths[-1], NOBODY, NOBODY)
        return "ssl=on", f"ssl_cert_file={paths[0]}", f"ssl_key_file={paths[1]}"

    def ask(self, sql):
        return run([postgres_program("psql"), "-h", self.folder_name, "-p", self.port, "-U", "test", "-Atc", sql,
                    "postgres"]).stdout.strip()

    def bench(self, *options, tls="disable", check=True):
        """Return the output of pgbench with these options, over TCP."""
        return run([postgres_program("pgbench"), "-h", "127.0.0.1", "-p", self.port, "-U", "test", "-n", *options,
                    "postgres"], env={"PGSSLMODE": tls}, check=check).stdout

    def client(self, sql):
        return Process([postgres_program("psql"), "-h", "127.0.0.1", "-p", self.port, "-U", "test", "-Atc", sql,
                        "postgres"], env={"PGSSLMODE": "disable"})

    def forget(self):
        self.ask("select pg_stat_statements_reset()")

    def statements(self, like):
        calls, ms = self.ask("select coalesce(sum(calls), 0), coalesce(sum(total_exec_time), 0) from pg_stat_statements "
                             f"where query ilike '{like}'").split("|")
        return int(calls), float(ms)


class Mariadb(Server):
    def __init__(self):
        for program in ("mariadbd", "mariadb"):
            if not shutil.which(program):
                pytest.skip(f"{program} is not installed: tools/setup")
        files = folder_of_nobody("mariadb")
        self.socket, self.port = f"{files.name}/socket", free_port()
        super().__init__(["mariadbd", "--no-defaults", f"--datadir={files.name}", f"--socket={self.socket}",
                          f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-grant-tables",
                          f"--pid-file={files.name}/pid", "--innodb-flush-log-at-trx-commit=0",
                          "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"], files)

    def status(self):
        """Return counts by name. `Questions` includes this query."""
        text = run(["mariadb", "--no-defaults", "-S", self.socket, "-BNe", "show global status"]).stdout
        return {name: int(value) for name, value in re.findall(r"^(\w+)\t(\d+)$", text, re.MULTILINE)}


class MysqlClient:
    """The part of MySQL's protocol for statements. Each method sends at once, so the test decides when."""

    LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE, PLUGIN = 0x1, 0x200, 0x2000, 0x8000, 0x80000

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(20)
        assert self.packet()[0] == 10  # the greeting
        flags = self.LONG_PASSWORD | self.PROTOCOL_41 | self.TRANSACTIONS | self.SECURE | self.PLUGIN
        self.send(struct.pack("<IIB23x", flags, 1 << 24, 33) + b"root\0\0mysql_native_password\0", 1)
        assert self.packet()[0] == 0

    def take(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            assert part, "the server has closed"
            data += part
        return data

    def packet(self):
        return self.take(int.from_bytes(self.take(4)[:3], "little"))

    def send(self, body, number=0):
        self.socket.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)

    def rows(self):
        first = self.packet()
        assert first[0] != 255, first
        for _ in range(first[0] + 1 if first[0] else 0):
            self.packet()
        count = 0
        while first[0] and self.packet()[0] != 254:
            count += 1
        return count

    def query(self, sql):
        self.send(b"\x03" + sql.encode())
        return self.rows()

    def prepare(self, sql):
        """Return the id of a statement without parameters."""
        self.send(b"\x16" + sql.encode())
        number, columns, parameters = struct.unpack("<IHH", self.packet()[1:9])
        assert not parameters
        for _ in range(columns + 1 if columns else 0):
            self.packet()
        return number

    def execute(self, statement):
        self.send(b"\x17" + struct.pack("<IBI", statement, 0, 1))
        return self.rows()

    def close_statement(self, statement):
        self.send(b"\x19" + struct.pack("<I", statement))

    def quit(self):
        """Send COM_QUIT, and wait until the server closes: it has then read everything."""
        self.send(b"\x01")
        while self.socket.recv(100):
            pass
        self.close()

    def close(self):
        self.socket.close()


class Memcached(Server):
    def __init__(self):
        if not shutil.which("memcached"):
            pytest.skip("memcached is not installed: tools/setup")
        self.port = free_port()
        super().__init__(["memcached", "-l", "127.0.0.1", "-p", self.port, "-U", 0], own_folder("memcached"))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def counts(self):
        """Return memcached's own counts, queried on a new connection."""
        with self.connect() as connection:
            text = until(connection, b"stats\r\n", b"END\r\n").decode()
        return {name: int(value) for name, value in re.findall(r"^STAT (\w+) (\d+)\r$", text, re.MULTILINE)}


class Redis(Server):
    def __init__(self):
        if not shutil.which("redis-server"):
            pytest.skip("redis-server is not installed: tools/setup")
        self.port = free_port()
        super().__init__(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", "/",
                          "--slowlog-log-slower-than", 0, "--slowlog-max-len", 10000, "--enable-debug-command", "yes"],
                         own_folder("redis"))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def calls(self, command):
        """Return (calls, their microseconds in all) of a command, queried on a new connection."""
        with self.connect() as connection:
            text = until(connection, b"INFO commandstats\r\n", b"\r\n", length=True).decode()
        match = re.search(rf"^cmdstat_{command}:calls=(\d+),usec=(\d+)", text, re.MULTILINE)
        return (int(match[1]), int(match[2])) if match else (0, 0)


def until(connection, request, end, length=False):
    """Return the response to a request: up to @end or, with @length, as long as its RESP header says."""
    connection.sendall(request)
    data = connection.recv(65536)
    if length:
        total = data.index(b"\r\n") + 2 + int(data[1:data.index(b"\r\n")]) + 2
        while len(data) < total:
            data += connection.recv(65536)
        return data
    while not data.endswith(end):
        part = connection.recv(65536)
        assert part, data
        data += part
    return data


def settle(seconds=0.1):
    time.sleep(seconds)
