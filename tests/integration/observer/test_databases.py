# SPDX-License-Identifier: MIT
"""Real databases and caches: our counts and times of their statements equal their own.

Messages without an answer (COM_STMT_CLOSE, COM_QUIT, Terminate, "quit") are recognised by their bytes
(bpf/tcp/oneway.h). Otherwise every properly closed connection could look like an unanswered request.
"""
import os
import re
import signal
import socket
import struct
import threading
import time

import pytest

from support.conditions import needs_program
from support.databases import Mariadb, Memcached, MysqlClient, Postgres, Redis, settle, until
from support.documents import service
from support.net import free_port
from support.pki import Pki
from support.process import run
from support.programs import Observer
from support.timing import MS, in_quiet, timing
from .test_stages import samples_add_up, stage

THINKS = 0.05  # seconds: shorter than the quiet time that ends a message.
# These are no losses: an accept() the kernel did not show, and messages that are no requests.
NO_LOSS = ("accept_unseen", "goodbyes", "oneway", "unsolicited", "overlapped")


# Of memcached's binary protocol: a command is its header, and what that says of the rest.
SET, QUIT_QUIETLY = 0x01, 0x17


def binary(command, key=b"", extras=b"", value=b""):
    rest = extras + key + value
    return struct.pack(">BBHBBHIIQ", 0x80, command, len(key), len(extras), 0, 0, len(rest), 0, 0) + rest


def lost(entry):
    return {name: count for name, count in entry["losses"].items() if count and name not in NO_LOSS}


def observed(observer, port):
    settle()
    observer.stop()
    entry = service(observer.summary(), port)
    samples_add_up(entry)
    return entry


def total_ns(entry, *names):
    return sum(entry["stages"][name].get("sum_ns", 0) for name in names)


@pytest.fixture(name="postgres")
def one_postgres(start):
    server = start(Postgres())
    server.ask("create table numbers as select generate_series(1, 100) as number")
    return server


@pytest.fixture(name="mariadb")
def one_mariadb(start):
    return start(Mariadb())


@pytest.fixture(name="memcached")
def one_memcached(start):
    return start(Memcached())


@pytest.fixture(name="redis")
def one_redis(start):
    return start(Redis())


def test_pgbench(start, tmp_path, postgres):
    """Every client logs in, and in "prepared" mode prepares its statement; all other exchanges are statements."""
    script = tmp_path / "script.sql"
    script.write_text("select number from numbers where number = 17;\n")
    clients, transactions = 4, 100
    postgres.forget()
    observer = start(Observer(ports=[postgres.port]))
    done = 0
    for mode in ("simple", "extended", "prepared"):
        text = postgres.bench("-M", mode, "-c", str(clients), "-t", str(transactions), "-f", script)
        done += int(re.search(r"actually processed: (\d+)", text)[1])
    entry = observed(observer, postgres.port)
    calls, executed_ms = postgres.statements("select number from numbers%")
    assert calls == done == 3 * clients * transactions
    assert entry["accepted"] == entry["losses"]["goodbyes"] == 3 * (clients + 1)  # pgbench first queries the database
    assert entry["exchanges"] == calls + entry["accepted"] + clients
    assert not lost(entry)
    assert total_ns(entry, "service") >= executed_ms * MS


def test_pgbench_with_a_connection_each(start, tmp_path, postgres):
    """Clients log in and send Terminate every time: none of them has given up."""
    script = tmp_path / "script.sql"
    script.write_text("select 1;\n")
    observer = start(Observer(ports=[postgres.port]))
    text = postgres.bench("-C", "-c", "2", "-t", "40", "-f", script)
    entry = observed(observer, postgres.port)
    done = int(re.search(r"actually processed: (\d+)", text)[1])
    assert done == 80
    assert entry["accepted"] == entry["losses"]["goodbyes"]
    assert entry["exchanges"] == done + entry["accepted"]
    assert not lost(entry) and not entry["abandoned"]["count"]


@in_quiet
def test_a_pipeline_is_one_exchange(start, tmp_path, postgres):
    """Three statements are sent and answered together: one exchange, as long as all three."""
    script = tmp_path / "script.sql"
    script.write_text("\\startpipeline\nselect pg_sleep(0.004);\nselect pg_sleep(0.003);\nselect 1;\n\\endpipeline\n")
    count = 50
    postgres.forget()
    observer = start(Observer(ports=[postgres.port]))
    postgres.bench("-M", "extended", "-t", str(count), "-f", script)
    entry = observed(observer, postgres.port)
    calls, executed_ms = postgres.statements("select pg_sleep%")
    assert calls == 2 * count
    assert entry["exchanges"] == count + entry["accepted"]
    assert not lost(entry)
    took_ns = total_ns(entry, "service", "respond")
    assert executed_ms * MS <= took_ns
    with timing():
        assert took_ns <= executed_ms * MS * 1.1 + 50 * MS


@in_quiet
def test_statements_take_as_long_as_postgres_says(start, tmp_path, postgres):
    script = tmp_path / "script.sql"
    script.write_text("select pg_sleep(0.01);\n")
    postgres.forget()
    observer = start(Observer(ports=[postgres.port]))
    postgres.bench("-M", "prepared", "-c", "2", "-t", "50", "-f", script)
    entry = observed(observer, postgres.port)
    calls, executed_ms = postgres.statements("select pg_sleep%")
    assert calls == 100
    took_ns = total_ns(entry, "service")
    assert executed_ms * MS <= took_ns
    with timing():
        assert took_ns <= executed_ms * MS * 1.03 + 30 * MS
        assert 10 * MS <= stage(entry, "service")["p90_ns"] <= 13 * MS


@needs_program("openssl")
def test_postgres_speaks_tls(start, tmp_path):
    """TLS starts after a question in clear text. The handshake is no exchange, the statements are."""
    server = start(Postgres(certificate=start(Pki()).issue("server", "IP:127.0.0.1")))
    script = tmp_path / "script.sql"
    script.write_text("select 1 as one;\n")
    clients, transactions = 2, 50
    observer = start(Observer(ports=[server.port]))
    server.bench("-c", str(clients), "-t", str(transactions), "-f", script, tls="require")
    entry = observed(observer, server.port)
    calls, _ = server.statements("select $1 as one")
    assert calls == clients * transactions
    # SSLRequest is answered, so it is an exchange.
    connections = clients + 1
    assert entry["tls"] == entry["tls_handshake"]["count"] == entry["accepted"] == connections
    assert entry["exchanges"] == calls + 2 * connections
    assert entry["losses"]["tls_unknown"] == 0


def backend_of(postgres, seconds):
    """Return the backend that sleeps for so many seconds, as soon as it sleeps."""
    found = 0
    while not found:
        found = int(postgres.ask("select coalesce(max(pid), 0) from pg_stat_activity "
                                 f"where query = 'select pg_sleep({seconds})' and state = 'active'"))
    time.sleep(0.2)
    return found


def test_statements_that_are_not_answered(start, postgres):
    """One backend is terminated and says so. Then a client is killed, and at last a backend, which ends the
    whole server."""
    observer = start(Observer(ports=[postgres.port]))
    start(postgres.client("select pg_sleep(20)"))
    assert postgres.ask(f"select pg_terminate_backend({backend_of(postgres, 20)}, 5000)") == "t"
    client = start(postgres.client("select pg_sleep(1)"))
    backend = backend_of(postgres, 1)
    client.kill()
    while postgres.ask(f"select count(*) from pg_stat_activity where pid = {backend}") != "0":
        time.sleep(0.05)
    client = start(postgres.client("select pg_sleep(21)"))
    os.kill(backend_of(postgres, 21), signal.SIGKILL)
    client.wait()
    entry = observed(observer, postgres.port)
    assert entry["accepted"] == 3
    assert entry["exchanges"] == entry["accepted"] + 1
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == 2
    assert entry["losses"]["goodbyes"] == 0
    assert entry["abandoned"]["sum_ns"] >= 2 * 200 * MS


@in_quiet
def test_closing_a_statement_is_no_part_of_the_next(start, mariadb):
    """The client's pause after COM_STMT_CLOSE, however long, is in no exchange."""
    count = 15
    before = mariadb.status()
    observer = start(Observer(ports=[mariadb.port]))
    client = MysqlClient(mariadb.port)
    for number in range(count):
        statement = client.prepare("select 1")
        client.execute(statement)
        client.execute(statement)
        client.close_statement(statement)
        time.sleep((0, THINKS, 0.25)[number % 3])
    client.quit()
    entry = observed(observer, mariadb.port)
    done = {name: value - before[name] for name, value in mariadb.status().items() if name in before}
    assert (done["Com_stmt_prepare"], done["Com_stmt_execute"], done["Com_stmt_close"]) == (count, 2 * count, count)
    assert entry["exchanges"] == done["Com_stmt_prepare"] + done["Com_stmt_execute"] + 1  # logs in
    assert entry["losses"]["oneway"] == done["Com_stmt_close"]
    assert entry["losses"]["goodbyes"] == entry["losses"]["unsolicited"] == 1  # COM_QUIT, the greeting
    assert not lost(entry)
    with timing():
        assert stage(entry, "receive")["max_ns"] < THINKS * 1e9 / 2


@in_quiet
def test_mariadb_queries(start, mariadb):
    """Clients come and go; slow queries take as long as they sleep."""
    before = mariadb.status()
    observer = start(Observer(ports=[mariadb.port]))
    for _ in range(20):
        client = MysqlClient(mariadb.port)
        assert client.query("select 1 union select 2") == 2
        client.query("select sleep(0.01)")
        client.quit()
    entry = observed(observer, mariadb.port)
    after = mariadb.status()
    connections = after["Connections"] - before["Connections"] - 1  # status() makes one
    queries = after["Com_select"] - before["Com_select"]
    assert connections == entry["accepted"] == entry["losses"]["goodbyes"] == 20
    assert entry["exchanges"] == queries + connections == 60
    assert not lost(entry)
    assert total_ns(entry, "service") >= 20 * 10 * MS
    with timing():
        assert total_ns(entry, "service") <= 20 * 10 * MS * 1.1 + 40 * MS


def test_what_only_looks_like_a_statements_end_is_a_request(start):
    """Here the client speaks first, so this is another protocol, and its messages are requests."""
    listener = socket.create_server(("127.0.0.1", free_port()))
    port = listener.getsockname()[1]
    observer = start(Observer(ports=[port]))
    with listener, socket.create_connection(("127.0.0.1", port)) as client:
        connection, _ = listener.accept()
        with connection:
            for message in (b"\5\0\0\0\x19\1\0\0\0", b"\1\0\0\0\1") * 5:
                client.sendall(message)
                assert connection.recv(4, socket.MSG_WAITALL) == message[:4]
                assert connection.recv(100) == message[4:]
                connection.sendall(b"answer")
                assert client.recv(100) == b"answer"
    entry = observed(observer, port)
    assert entry["exchanges"] == 10
    assert not any(entry["losses"][name] for name in ("oneway", "goodbyes", "unsolicited", "unanswered"))


def test_memcached(start, memcached):
    """Sets and gets, one get of a hundred keys, and a quit: every command but quit is one exchange."""
    observer = start(Observer(ports=[memcached.port]))
    before = memcached.counts()
    with memcached.connect() as client:
        for number in range(100):
            until(client, b"set k%d 0 0 5\r\nvalue\r\n" % number, b"STORED\r\n")
            until(client, b"get k%d\r\n" % number, b"END\r\n")
        until(client, b"get %s\r\n" % b" ".join(b"k%d" % number for number in range(100)), b"END\r\n")
        client.sendall(b"quit\r\n")
        assert not client.recv(100)
    after = memcached.counts()
    entry = observed(observer, memcached.port)
    sets, gets = (after[name] - before[name] for name in ("cmd_set", "cmd_get"))
    assert (sets, gets) == (100, 200)
    assert entry["exchanges"] == sets + gets - 100 + 1 + 2  # counts() is called twice
    assert entry["losses"]["goodbyes"] == entry["closes"]["closed_by_server"] == 1
    assert not lost(entry)


def test_memcached_leaves_quietly(start, memcached):
    """QuitQ of the binary protocol closes without an answer, and a client that leaves so has given up nothing."""
    observer = start(Observer(ports=[memcached.port]))
    before = memcached.counts()
    with memcached.connect() as client:
        for number in range(10):
            client.sendall(binary(SET, b"k%d" % number, bytes(8), b"value"))
            assert client.recv(24).startswith(bytes([0x81, SET]))
        client.sendall(binary(QUIT_QUIETLY))
        assert not client.recv(100)
    after = memcached.counts()
    entry = observed(observer, memcached.port)
    assert entry["exchanges"] == after["cmd_set"] - before["cmd_set"] + 2 == 12
    assert entry["losses"]["goodbyes"] == entry["closes"]["closed_by_server"] == 1
    assert not lost(entry)


def test_memcached_with_requests_in_flight(start, memcached):
    """Requests that were read together are one exchange: the count is a lower bound, and the report says so."""
    observer = start(Observer(ports=[memcached.port]))
    before = memcached.counts()
    with memcached.connect() as client:
        for _ in range(10):  # each is more than one read of memcached returns
            client.sendall(b"get nothing\r\n" * 3000)
            left = 3000 * len(b"END\r\n")
            while left:
                left -= len(client.recv(left))
    after = memcached.counts()
    entry = observed(observer, memcached.port)
    assert after["cmd_get"] - before["cmd_get"] == 30_000
    assert 10 < entry["exchanges"] < 30_000 and entry["losses"]["overlapped"] > 1
    assert "exchanges and throughput are a lower bound of the requests" in re.sub(r"\s+", " ", observer.stdout)
    assert not lost(entry)


def test_memcached_without_answers(start, memcached):
    """A set with noreply counts as oneway if the next command comes later; only the gets are timed."""
    count = 8
    observer = start(Observer(ports=[memcached.port]))
    before = memcached.counts()
    with memcached.connect() as client:
        for number in range(count):
            client.sendall(b"set n%d 0 0 5 noreply\r\nvalue\r\n" % number)
            time.sleep(0.25)
            assert b"value" in until(client, b"get n%d\r\n" % number, b"END\r\n")
    after = memcached.counts()
    entry = observed(observer, memcached.port)
    assert after["cmd_set"] - before["cmd_set"] == entry["losses"]["oneway"] == count
    assert entry["exchanges"] == after["cmd_get"] - before["cmd_get"] + 2
    assert not lost(entry)
    assert stage(entry, "receive")["max_ns"] < 200 * MS


def test_a_pool_that_is_idle_waits_for_nothing(start, memcached):
    """Ten connections send three requests each, 0.6 s apart: the pauses are in no stage."""
    observer = start(Observer(ports=[memcached.port]))
    before = memcached.counts()
    clients = [memcached.connect() for _ in range(10)]
    for _ in range(3):
        for client in clients:
            until(client, b"get nothing\r\n", b"END\r\n")
        time.sleep(0.6)
    for client in clients:
        client.close()
    after = memcached.counts()
    entry = observed(observer, memcached.port)
    assert entry["exchanges"] == after["cmd_get"] - before["cmd_get"] + 2 == 32
    assert entry["accepted"] == after["total_connections"] - before["total_connections"] + 1
    assert not lost(entry)
    assert total_ns(entry, "socket_queue", "receive", "service", "respond") < 500 * MS


@needs_program("redis-benchmark")
def test_redis_pipelines_are_told(start, redis):
    """Exchanges are batches; the report shows the number of commands per batch."""
    commands, together = 40_000, 16
    observer = start(Observer(ports=[redis.port]))
    before, _ = redis.calls("set")
    run(["redis-benchmark", "-p", redis.port, "-n", commands, "-c", 4, "-P", together, "-t", "set", "-q"])
    after, _ = redis.calls("set")
    entry = observed(observer, redis.port)
    assert after - before == commands
    others = 2 + 1 + 1  # calls() is called twice; redis-benchmark asks for two settings, once each
    assert commands / together <= entry["exchanges"] <= commands / together + others
    # A look may also be at one of the others, which are smaller.
    assert 0 <= together * entry["looked"] - entry["looked_requests"] <= others * (together - 1)
    assert entry["looked"] > 2 * others
    assert not lost(entry)
    each = entry["looked_requests"] / entry["looked"]
    assert f"of about {each:.3g} requests each" in observer.stdout


@in_quiet
def test_a_redis_that_is_busy(start, redis):
    """One command sleeps and another waits for it: the wait is in the queue, not in the service."""
    count = 10
    earlier, earlier_us = redis.calls("debug")  # of this test, before it was tried again
    observer = start(Observer(ports=[redis.port]))
    with redis.connect() as slow, redis.connect() as quick:
        for _ in range(count):
            slow.sendall(b"DEBUG SLEEP 0.03\r\n")
            time.sleep(0.01)
            until(quick, b"PING\r\n", b"\r\n")
            assert slow.recv(100) == b"+OK\r\n"
    calls, slept_us = redis.calls("debug")
    slept_us -= earlier_us
    entry = observed(observer, redis.port)
    assert calls - earlier == count and entry["exchanges"] == 2 * count + 1
    assert not lost(entry)
    assert total_ns(entry, "service") >= slept_us * 1000
    with timing():
        assert total_ns(entry, "service") <= slept_us * 1000 * 1.05 + 10 * MS
        assert 15 * MS * count <= total_ns(entry, "socket_queue") <= 25 * MS * count


@in_quiet
def test_redis_pushes(start, redis):
    """Messages pushed to subscribers later are no response to their requests; neither is MONITOR's output."""
    earlier, _ = redis.calls("publish")  # of this test, before it was tried again
    observer = start(Observer(ports=[redis.port]))
    subscribers = [redis.connect() for _ in range(3)]
    for subscriber in subscribers:
        until(subscriber, b"SUBSCRIBE channel\r\n", b":1\r\n")
    monitor = redis.connect()
    until(monitor, b"MONITOR\r\n", b"+OK\r\n")
    with redis.connect() as client:
        for _ in range(4):
            time.sleep(0.25)
            until(client, b"PUBLISH channel hello\r\n", b":3\r\n")
    published = redis.calls("publish")[0] - earlier
    for each in (*subscribers, monitor):
        each.close()
    entry = observed(observer, redis.port)
    assert published == 4
    assert entry["exchanges"] == published + 3 + 1 + 1
    # MONITOR also prints INFO, soon after the last PUBLISH.
    assert 4 * published <= entry["losses"]["trailing"] <= 4 * published + 1
    with timing():
        assert total_ns(entry, "respond") < 200 * MS


@in_quiet
def test_a_redis_that_blocks(start, redis):
    """BLPOP is answered when another client pushes: the wait is its service, by the client's clock."""
    count, waited = 8, []
    observer = start(Observer(ports=[redis.port]))
    with redis.connect() as consumer, redis.connect() as producer:
        for _ in range(count):
            begun = time.monotonic_ns()
            pushing = threading.Timer(0.05, until, (producer, b"LPUSH list x\r\n", b"\r\n"))
            pushing.start()
            until(consumer, b"BLPOP list 0\r\n", b"x\r\n")
            waited.append(time.monotonic_ns() - begun)
            pushing.join()
    entry = observed(observer, redis.port)
    assert entry["exchanges"] == 2 * count
    assert not lost(entry)
    with timing():
        assert 45 * MS * count <= total_ns(entry, "service")
    assert stage(entry, "service")["max_ns"] <= max(waited) * 1.02  # known to a bucket's width
