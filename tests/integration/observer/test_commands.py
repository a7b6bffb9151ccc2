# SPDX-License-Identifier: MIT
"""Requests by command (--protocol): against the servers' own counts and times of their commands.

tests/unit/bpf/protocol/resp.c tests the parser alone. tools/mutate: "each value of a reply is a reply".
"""
import re
import socket
import threading
import time
from collections import Counter

import pytest

from support.conditions import needs_program
from support.databases import Postgres, Redis, postgres_program, settle, until
from support.documents import service
from support.pki import Pki
from support.process import run
from support.programs import OBSERVER, Nginx, Observer
from support.timing import MS, US, in_quiet, lies_within, timing
from .scene import Scene
from .test_stages import samples_add_up

STAGES = ("socket_queue", "receive", "service", "respond")


@pytest.fixture(name="redis")
def one_redis(start):
    return start(Redis())


def observed(start, server, *options):
    return start(Observer("--protocol", f"redis:{server.port}", *options, ports=[server.port]))


def resp(*words):
    words = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def commandstats(server):
    """Return {command: (calls, errors)} by the server's own count, up to this request."""
    with server.connect() as connection:
        text = until(connection, resp("INFO", "commandstats"), b"\r\n", length=True).decode()
    calls, errors = Counter(), Counter()
    for name, n, rejected, failed in re.findall(r"cmdstat_([^:|]+)[^:]*:calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)", text):
        calls[name.upper()] += int(n) + int(rejected)
        errors[name.upper()] += int(rejected) + int(failed)
    return {name: (n, errors[name]) for name, n in calls.items() if n}


def counted(observer, port, protocol="redis"):
    """Return ({command: (requests, errors)}, {reason: exchanges}), zeros left out. All figures of the document must agree."""
    settle()
    observer.stop()
    entry = service(observer.summary(), port)
    samples_add_up(entry)
    told, routes = {}, entry["routes"]
    assert routes["protocol"] == protocol
    for command in routes["list"]:
        assert not any(command["status"].values())
        assert {command[stage]["count"] for stage in STAGES} == {command["service"]["count"]} <= {command["count"]}
        if command["count"]:
            told[command["route"]] = command["count"], command["errors"]
    unknown = {reason: n for reason, n in routes["not_known"].items() if n}
    assert sum(n for n, _ in told.values()) + sum(unknown.values()) == entry["exchanges"]
    if not unknown:
        for stage in STAGES:
            assert sum(command[stage]["sum_ns"] for command in routes["list"]) == entry["stages"][stage]["sum_ns"]
    return entry, told, unknown


def without_info(calls):
    return {name: n for name, n in calls.items() if name != "INFO"}


@needs_program("redis-benchmark")
@pytest.mark.parametrize("pipeline", [1, 16, 300])
def test_redis_counts_the_same(start, redis, pipeline):
    """Each command of a pipeline is an exchange of its own, and is counted by its name."""
    observer = observed(start, redis)
    run(["redis-benchmark", "-p", redis.port, "-c", 7, "-n", 9000, "-P", pipeline, "-q", "-t",
         "ping_inline,ping_mbulk,set,get,incr,lpush,rpop,hset,spop,zadd,mset,lrange_100"])
    run(["redis-cli", "-p", redis.port, "-r", 200, "incr", "mylist"])
    truth = commandstats(redis)
    entry, told, unknown = counted(observer, redis.port)
    assert unknown == {}
    assert without_info(told) == without_info(truth)
    assert told["INCR"][1] == 200 and told["PING"][0] >= 18000
    assert not entry["losses"]["untimed"] and not entry["losses"]["unanswered"]


def replies(connection, count):
    """Read @count replies that are lines."""
    data = b""
    while data.count(b"\r\n") < count:
        part = connection.recv(65536)
        assert part, data
        data += part
    return data


def test_commands_cut_anywhere(start, redis):
    """A mixed pipeline, cut at every byte: arrays and inline commands, a transaction, errors, a script, large values."""
    script = "redis.call('set', 'x', '1') return {1, {2, {3, 'four'}}, {}}"
    pipeline = b"".join([resp("PING"), b"SET inline 1\r\n", resp("MULTI"), resp("incr", "k"), resp("LPUSH", "k", "1"), resp("EXEC"),
                         resp("NOSUCH", "a"), resp("get"), resp("SET", "big", b"\r\n*1\r\n" * 700), resp("EVAL", script, "0"),
                         resp("CLIENT", "SETNAME", "me"), b"\r\n", resp("DEL", "k", "k2")])
    observer = observed(start, redis)
    rounds = 0
    for at in range(1, len(pipeline), 97):
        with redis.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(pipeline[:at])
            time.sleep(0.002)
            connection.sendall(pipeline[at:] + resp("ECHO", "the end"))
            until(connection, b"", b"$7\r\nthe end\r\n")
            rounds += 1
    truth = commandstats(redis)
    _, told, unknown = counted(observer, redis.port)
    assert unknown == {}
    assert told.pop("other") == (rounds, rounds)  # NOSUCH, which the server's own count leaves out
    # Commands that EXEC and EVAL run count for the server too: LPUSH fails there, and SET is run by the script.
    calls, _ = truth.pop("SET")
    assert told.pop("SET") == (2 * rounds, 0) and calls == 3 * rounds
    assert told.pop("LPUSH") == (rounds, 0) and truth.pop("LPUSH") == (rounds, rounds)
    assert without_info(told) == without_info(truth)
    assert told["GET"] == (rounds, rounds)


@in_quiet
def test_times_are_the_commands_own(start, redis):
    """DEBUG SLEEP holds the whole server; BLPOP waits for another client, and that wait is its own."""
    observer = observed(start, redis)
    count, sleep, asked_ns = 20, 0.005, 0
    _, before_us = redis.calls(r"debug")  # of an attempt before
    with redis.connect() as connection:
        for _ in range(count):
            begin_ns = time.monotonic_ns()
            until(connection, resp("DEBUG", "SLEEP", str(sleep)), b"+OK\r\n")
            asked_ns += time.monotonic_ns() - begin_ns
            until(connection, resp("PING"), b"+PONG\r\n")
        slept_us = redis.calls(r"debug")[1] - before_us
    with redis.connect() as waiting, redis.connect() as other:
        begin_ns = time.monotonic_ns()
        waiting.sendall(resp("BLPOP", "queue", "0"))
        time.sleep(0.1)
        until(other, resp("RPUSH", "queue", "a"), b"\r\n")
        until(waiting, b"", b"a\r\n")
        waited_ns = time.monotonic_ns() - begin_ns
    entry, told, unknown = counted(observer, redis.port)
    assert unknown == {} and told["BLPOP"] == (1, 0)
    by_name = {command["route"]: command for command in entry["routes"]["list"]}
    # At least what the server has timed, at most what the client has: it may have waited for a CPU in between.
    slept, blocked = by_name["DEBUG"]["service"]["sum_ns"], by_name["BLPOP"]["service"]["max_ns"]
    assert slept >= slept_us * US and blocked >= 100 * MS
    assert lies_within(slept, slept_us * US, asked_ns) and lies_within(blocked, 100 * MS, waited_ns)
    with timing():
        assert by_name["PING"]["service"]["p50_ns"] < 1 * MS


def test_version_3_and_what_nobody_asked_for(start, redis):
    """Pushed invalidations are no replies. After SUBSCRIBE and MONITOR a connection's messages are no exchanges."""
    observer = observed(start, redis)
    with redis.connect() as tracking, redis.connect() as other:
        tracking.sendall(resp("HELLO", "3") + resp("CLIENT", "TRACKING", "ON") + resp("GET", "a"))
        until(tracking, b"", b"_\r\n")
        for i in range(5):
            until(other, resp("SET", "a", str(i)), b"+OK\r\n")
            until(tracking, b"", b"$1\r\na\r\n")  # the push
            until(tracking, resp("GET", "a"), b"%d\r\n" % i)
    with redis.connect() as subscribed, redis.connect() as other:
        until(subscribed, resp("SUBSCRIBE", "one", "two"), b":2\r\n")
        for _ in range(3):
            until(other, resp("PUBLISH", "one", "hello"), b":1\r\n")
            until(subscribed, b"", b"hello\r\n")
    with redis.connect() as monitor:
        until(monitor, resp("MONITOR"), b"+OK\r\n")
        truth = commandstats(redis)
        until(monitor, b"", b"\r\n")
    entry, told, unknown = counted(observer, redis.port)
    assert unknown == {}
    assert without_info(told) == without_info(truth)
    assert told["SUBSCRIBE"] == told["MONITOR"] == (1, 0)
    assert entry["losses"]["multiplexed"] == 2
    assert not entry["losses"]["unsolicited"]


def test_connections_from_before(start, redis):
    """They are followed from their first request after the start on."""
    with redis.connect() as old:
        until(old, resp("PING"), b"+PONG\r\n")
        observer = observed(start, redis)
        for _ in range(10):
            until(old, resp("PING") + resp("ECHO", "x"), b"x\r\n")
    entry, told, unknown = counted(observer, redis.port)
    assert entry["losses"]["preexisting"] == 1
    assert (told, unknown) == ({"PING": (10, 0), "ECHO": (10, 0)}, {})


def test_unanswered_commands(start, redis):
    observer = observed(start, redis)
    with redis.connect() as leaves:
        leaves.sendall(resp("PING") + resp("BLPOP", "nothing", "0"))
        until(leaves, b"", b"+PONG\r\n")
        settle()
    entry, told, unknown = counted(observer, redis.port)
    assert (told, unknown) == ({"PING": (1, 0)}, {})
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == 1


@needs_program("curl")
def test_another_protocol_is_bytes(start):
    """A server of HTTP: all is counted as without the option, and the report says why no command is known."""
    nginx = start(Nginx())
    observer = observed(start, nginx)
    for _ in range(5):
        run(["curl", "--silent", "--output", "/dev/null", nginx.url, nginx.url])
    _, told, unknown = counted(observer, nginx.port)
    assert (told, unknown) == ({}, {"strange": 10})
    assert "not known" in observer.stdout


def test_garbage_on_the_way(start):
    """Bytes that are no RESP come after some that are: what was counted stays, and the rest is counted by reads."""
    scene = Scene(start, observe=False)
    scene.observer = start(Observer("--protocol", f"valkey:{scene.port}", ports=[scene.port]))
    client, connection = scene.connect()
    for request, reply in [(resp("PING"), b"+PONG\r\n"), (resp("GET", "a") + resp("GET", "b"), b"$1\r\na\r\n$1\r\nb\r\n"),
                           (b"\x00\xff garbage", b"?"), (resp("PING"), b"+PONG\r\n")]:
        client.sendall(request)
        assert connection.recv(65536) == request
        connection.sendall(reply)
        assert client.recv(65536) == reply
    client, connection = scene.connect()
    client.sendall(resp("GET", "a"))
    connection.recv(65536)
    connection.sendall(b"no reply of this protocol")
    client.recv(65536)
    for end in scene.ends:
        end.close()
    entry, told, unknown = counted(scene.observer, scene.port)
    assert (told, unknown) == ({"PING": (1, 0), "GET": (2, 0)}, {"strange": 3})
    assert not entry["losses"]["unanswered"] and not entry["losses"]["untimed"]


def test_more_commands_than_have_room(start):
    """Commands beyond the queue of their connection are counted, and their names are not known."""
    scene = Scene(start, observe=False)
    scene.observer = start(Observer("--protocol", f"redis:{scene.port}", ports=[scene.port]))
    client, connection = scene.connect()
    count, got = 5000, 0
    request = resp("PING") * count
    sender = threading.Thread(target=client.sendall, args=(request,))
    sender.start()
    while got < len(request):
        got += len(connection.recv(1 << 20))
    sender.join()
    connection.sendall(b"+PONG\r\n" * count)
    replies(client, count)
    for end in scene.ends:
        end.close()
    entry, told, unknown = counted(scene.observer, scene.port)
    assert told["PING"][0] + unknown["pipelined"] == count == entry["exchanges"]
    assert told["PING"][0] == 1024 and entry["losses"]["untimed"] == unknown["pipelined"]


@pytest.mark.parametrize("words, said", [
    (["--protocol", "redis:0"], "redis, valkey or postgresql"), (["--protocol", "smtp"], "redis, valkey or postgresql"),
    (["--protocol", "redis", "--protocol", "valkey"], "one protocol per port"),
    (["--protocol", "redis"], "--port does not name this port")])
def test_options_that_contradict(words, said):
    refused = run([OBSERVER, "observe", "--port", 1, *words], check=False)
    assert refused.status == 2 and said in refused.stderr


# ---- PostgreSQL ----

@pytest.fixture(name="postgres")
def one_postgres(start):
    server = start(Postgres())
    server.ask("create table numbers as select generate_series(1, 100) as number")
    return server


def observed_postgres(start, server, *options):
    return start(Observer("--protocol", f"postgresql:{server.port}", *options, ports=[server.port]))


@needs_program("psql")
def test_pgbench_counts_the_same(start, tmp_path, postgres):
    """Each statement is a request of its kind, a login is none, and Terminate is a goodbye."""
    script = tmp_path / "script.sql"
    script.write_text("select number from numbers where number = 17;\n")
    observer = observed_postgres(start, postgres)
    clients, transactions, done = 4, 100, {}
    for mode in ("simple", "extended", "prepared"):
        postgres.forget()
        text = postgres.bench("-M", mode, "-c", str(clients), "-t", str(transactions), "-f", script)
        calls, _ = postgres.statements("select number from numbers%")
        done[mode] = int(re.search(r"actually processed: (\d+)", text)[1])
        assert calls == done[mode] == clients * transactions
    entry, told, unknown = counted(observer, postgres.port, "postgresql")
    assert unknown == {}
    # pgbench first queries the database on a connection of its own, and in "prepared" mode prepares its statement.
    assert told["login"] == (3 * (clients + 1), 0)
    assert told["extended"] == (done["extended"] + done["prepared"] + clients, 0)
    assert told["simple"] == (entry["exchanges"] - told["login"][0] - told["extended"][0], 0)
    assert told["simple"][0] == done["simple"]
    assert entry["losses"]["goodbyes"] == entry["accepted"] == 3 * (clients + 1)
    assert not entry["losses"]["untimed"] and not entry["losses"]["unanswered"] and not entry["losses"]["unsolicited"]


def psql(server, *words, check=True):
    return run([postgres_program("psql"), "-h", "127.0.0.1", "-p", server.port, "-U", "test", "-At", *words, "postgres"],
               env={"PGSSLMODE": "prefer"}, check=check)


def test_copies_errors_and_what_comes_by_itself(start, tmp_path, postgres):
    """psql asks for TLS first, which the server refuses: both are parts of the login. Notices answer nothing."""
    data = tmp_path / "numbers"
    data.write_text("".join(f"{n}\n" for n in range(50000)))
    observer = observed_postgres(start, postgres)
    psql(postgres, "-c", f"\\copy numbers from {data}", "-c", "\\copy numbers to /dev/null", "-c", "select 1")
    psql(postgres, "-c", "select nothing", check=False)
    psql(postgres, "-c", "do $$ begin raise notice 'a'; raise notice 'b'; end $$", "-c", "listen here; notify here")
    psql(postgres, "-c", "select 1; select 1 / 0; select 2", check=False)
    assert psql(postgres, "-d", "nowhere", "-c", "select 1", check=False).status
    _, told, unknown = counted(observer, postgres.port, "postgresql")
    assert (told, unknown) == ({"login": (5, 1), "copy": (2, 0), "simple": (5, 2)}, {})


@in_quiet
def test_times_of_queries_are_the_servers(start, tmp_path):
    """The server logs how long it took for each message. Reading, sending and logging are no part of that."""
    postgres = start(Postgres("log_min_duration_statement=0"))
    script = tmp_path / "script.sql"
    script.write_text("select pg_sleep(0.005);\n")
    count = 30
    observer = observed_postgres(start, postgres)
    postgres.bench("-M", "extended", "-t", str(count), "-f", script)
    entry, told, unknown = counted(observer, postgres.port, "postgresql")
    postgres.stop()
    logged = re.findall(r"duration: ([0-9.]+) ms +(?:parse|bind|execute) <unnamed>: select pg_sleep", postgres.stderr)
    assert len(logged) == 3 * count
    assert unknown == {} and told["extended"] == (count, 0)
    extended = next(command for command in entry["routes"]["list"] if command["route"] == "extended")
    mean = sum(extended[stage]["sum_ns"] for stage in ("service", "respond")) / count
    true = sum(float(ms) for ms in logged) * MS / count
    assert mean >= true
    with timing():
        assert mean - true < max(150 * US, 0.01 * true)


def test_a_pipeline_has_as_many_requests_as_syncs(start, tmp_path, postgres):
    script = tmp_path / "script.sql"
    script.write_text("\\startpipeline\nselect 1;\nselect 2;\nselect 3;\n\\endpipeline\n")
    count = 50
    observer = observed_postgres(start, postgres)
    postgres.bench("-M", "extended", "-t", str(count), "-f", script)
    _, told, unknown = counted(observer, postgres.port, "postgresql")
    assert unknown == {} and told["extended"] == (count, 0)


def test_a_database_in_tls_is_not_known(start, tmp_path):
    postgres = start(Postgres(certificate=start(Pki()).issue("server", "IP:127.0.0.1")))
    script = tmp_path / "script.sql"
    script.write_text("select 1;\n")
    observer = observed_postgres(start, postgres)
    postgres.bench("-t", "20", "-f", script, tls="require")
    entry, told, unknown = counted(observer, postgres.port, "postgresql")
    assert told == {} and set(unknown) == {"tls"} and entry["tls"] == entry["accepted"]
