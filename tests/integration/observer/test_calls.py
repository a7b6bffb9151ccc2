# SPDX-License-Identifier: MIT
"""Calls of a service to upstreams that nobody observes. The truth are nginx's log in front, and the lab server's times behind.
Other fronts follow the test's orders."""
import csv
import json
import re
import socket
import ssl
import threading
from contextlib import ExitStack, closing
from urllib.error import HTTPError

import pytest

from support.documents import service
from support.http import request
from support.net import free_port
from support.pki import Pki
from support.process import Process
from support.programs import Driver, Lab, Nginx, Observer
from support.timing import MS, in_quiet, lies_within, timing

from .test_upstreams import KEEP, Front

COUNT = 80
LASTING = {"serves_too": None, "connects_failed": 0, "failed": 0, "open": 0, "untimed": 0, "handshakes": 0, "trailing": 0,
           "carried": 0}


def rows(document, port):
    """Return {place: calls to it}."""
    return {row["towards"]: row for row in service(document, port).get("timed_calls", [])}


def uncut(row):
    return {name: count for name, count in row["uncut"].items() if count}


def flat(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("keep, delay", [(True, 1), (True, 50), (False, 5), *(
    pytest.param(*other, marks=pytest.mark.long) for other in ((True, 5), (False, 1), (False, 50)))])
@in_quiet
def test_the_backend_of_nginx(start, tmp_path, keep, delay):
    """The wait is at least the lab's own service, and at most nginx's time of its upstream, which errs by a millisecond."""
    lab = start(Lab("--service", f"{delay}ms", "--truth", tmp_path / "truth.csv"))
    front = start(Front({"call": KEEP % "behind" if keep else "proxy_pass http://behind;"},
                        behind=f"server 127.0.0.1:{lab.port}; {'keepalive 8;' if keep else ''}"))
    observer = start(Observer("--calls", ports=[front.port]))
    Driver(front.url + "call", connections=4, count=COUNT)
    observer.stop()
    lab.stop()
    row, = rows(observer.summary(), front.port).values()
    assert row["towards"] == f"127.0.0.1:{lab.port}" and row["calls"] == row["wait"]["count"] == row["whole"]["count"] == COUNT
    assert row["connects"] == COUNT if not keep else 1 <= row["connects"] < COUNT
    assert row["older"] == 0 and uncut(row) == {} and {name: row[name] for name in LASTING} == LASTING
    with open(tmp_path / "truth.csv", encoding="ascii") as file:
        true_ns = sum(int(line["first_write_end_ns"]) - int(line["last_read_end_ns"]) for line in csv.DictReader(file)) / COUNT
    _, called_ns = front.times()
    lies_within(row["wait"]["mean_ns"], true_ns, called_ns + MS)
    lies_within(row["whole"]["mean_ns"], row["wait"]["mean_ns"], called_ns + MS)
    if delay == 50:
        assert re.search(rf"nginx waits for 127.0.0.1:{lab.port}, [\d.]+ % of its service", flat(observer.stdout))
        assert re.search(rf"calls to 127.0.0.1:{lab.port} (?:· )?{COUNT} calls, [\d.]+ per request (?:· )?wait mean [\d.]+ ms", flat(observer.stdout))


@in_quiet
def test_requests_without_a_call(start):
    """Several requests may wait for one call, as for a batch: with fewer calls than requests the share is at least the figure."""
    lab = start(Lab("--service", "50ms"))
    front = start(Front({"call": KEEP % f"127.0.0.1:{lab.port}", "own": "return 200 ok;"}))
    observer = start(Observer("--calls", ports=[front.port]))
    for name in ["call", "own"] * 5:
        request(front.url + name)
    observer.stop()
    row, = rows(observer.summary(), front.port).values()
    assert row["calls"] == 5 and service(observer.summary(), front.port)["exchanges"] == 10
    assert re.search(r"the wait is at least [\d.]+ % of its service", flat(observer.stdout))
    assert re.search(rf"nginx waits for 127.0.0.1:{lab.port}, at least [\d.]+ % of its service", flat(observer.stdout))


@in_quiet
def test_a_response_in_parts(start):
    """The wait ends with its first part; a part after the quiet time is not in the whole."""
    lab = start(Lab())
    front = start(Front({"call": KEEP % f"127.0.0.1:{lab.port}"}))
    observer = start(Observer("--calls", ports=[front.port]))
    for _ in range(20):
        request(front.url + "call?service=10ms&pieces=3&pause=30ms&size=3000")
    request(front.url + "call?pieces=2&pause=400ms&size=2000")
    observer.stop()
    row, = rows(observer.summary(), front.port).values()
    assert row["calls"] == 21 and row["trailing"] == 1
    with timing():
        assert row["whole"]["sum_ns"] - row["wait"]["sum_ns"] >= 20 * 60 * MS
    lies_within(row["wait"]["sum_ns"], 200 * MS, 300 * MS)
    lies_within(row["whole"]["sum_ns"], 20 * 70 * MS, 20 * 80 * MS)


def test_calls_without_an_answer(start):
    """One is given up by nginx, one is broken off behind; a port where nothing listens refuses. nginx answers 504 or 502."""
    lab, gone = start(Lab()), free_port()
    front = start(Front({"late": f"proxy_read_timeout 50ms; proxy_pass http://127.0.0.1:{lab.port};",
                         "gone": f"proxy_pass http://127.0.0.1:{gone};"}))
    observer = start(Observer("--calls", ports=[front.port]))
    for name, status in (("late?service=300ms", 504), ("gone", 502), ("gone", 502)):
        with pytest.raises(HTTPError) as error:
            request(front.url + name)
        assert error.value.code == status
    observer.stop()
    found = rows(observer.summary(), front.port)
    late = found[f"127.0.0.1:{lab.port}"]
    assert (late["failed"], late["calls"], late["open"], late["connects_failed"]) == (1, 0, 0, 0)
    refused = found[f"127.0.0.1:{gone}"]
    assert (refused["connects_failed"], refused["connects"], refused["calls"], refused["failed"]) == (2, 0, 0, 0)
    assert "without an answer 1" in observer.stdout and "failed connects 2" in observer.stdout


FRONT = """
import contextlib, json, socket, ssl
listener = socket.create_server(("127.0.0.1", 0))
print("ready", listener.getsockname()[1], flush=True)
client = listener.accept()[0]
lines, ends = client.makefile("rw"), {}
for line in lines:
    end, what, value = json.loads(line)
    if what == "connect":
        ends[end] = socket.create_connection(("127.0.0.1", value))
    elif what == "connect-mptcp":
        ends[end] = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        ends[end].connect(("127.0.0.1", value))
    elif what == "tls":
        context = ssl.create_default_context(cafile=value[0])
        context.set_alpn_protocols(value[1])
        ends[end] = context.wrap_socket(ends[end], server_hostname="localhost")
    elif what == "write":
        ends[end].sendall(value.encode("latin-1"))
    elif what == "read":
        while value:
            value -= len(ends[end].recv(value))
    elif what == "close":
        if isinstance(ends[end], ssl.SSLSocket):
            with contextlib.suppress(OSError):
                ends[end].unwrap()  # an alert
        ends[end].close()
    lines.write("done\\n")
    lines.flush()
"""


class Told(Process):
    """A front that connects, writes and reads by order of its one client."""

    def __init__(self):
        super().__init__(["/usr/bin/python3", "-c", FRONT])
        with self.coming_up():
            self.port = int(self.wait_for(r"^ready (\d+)$")[1])

    def begin(self):
        self.client = socket.create_connection(("127.0.0.1", self.port))
        self.lines = self.client.makefile("rw")

    def do(self, end, what, value=None):
        self.lines.write(json.dumps([end, what, value]) + "\n")
        self.lines.flush()
        assert self.lines.readline() == "done\n"

    def close(self):
        self.client.close()
        super().close()


class Behind:
    """The upstream of such a front, in the test's own process. @room: of its receive buffers."""

    def __init__(self, room=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        if room:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        return self.listener.accept()[0]

    def close(self):
        self.listener.close()


@pytest.fixture
def pair(start):
    """Yield a front under observation, its upstream, and both ends of a new connection between them."""
    front, behind = start(Told()), Behind()
    observer = start(Observer("--calls", ports=[front.port]))
    front.begin()
    front.do("a", "connect", behind.port)
    with closing(behind), closing(behind.accept()) as end:
        yield front, behind, end, observer


def row_of(observer, front, behind):
    return rows(observer.document(), front.port)[f"127.0.0.1:{behind.port}"]


def call(front, end, text="GET / HTTP/1.1\r\n\r\n", answer=b"HTTP/1.1 204 No Content\r\n\r\n"):
    front.do("a", "write", text)
    got = b""
    while len(got) < len(text):
        got += end.recv(65536)
    end.sendall(answer)
    front.do("a", "read", len(answer))


def test_a_call_is_open_and_of_its_phase(pair):
    front, behind, end, observer = pair
    call(front, end)
    phase = observer.begin_phase()
    front.do("a", "write", "GET /slow HTTP/1.1\r\n")
    front.do("a", "write", "\r\n")
    end.recv(100)
    assert [row_of(observer, front, behind)[name] for name in ("calls", "open", "connects")] == [1, 1, 1]
    end.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    front.do("a", "read", 27)
    row, = rows(observer.end_phase(phase), front.port).values()
    assert [row[name] for name in ("calls", "open", "connects", "failed")] == [1, 0, 0, 0]
    assert row["wait"]["count"] == row["whole"]["count"] == 1 and row["whole"]["sum_ns"] > row["wait"]["sum_ns"]
    assert row_of(observer, front, behind)["calls"] == 2
    front.do("a", "close")
    assert row_of(observer, front, behind)["failed"] == 0


def test_others_and_older_connections(start):
    """A connection of another process is not counted; one from before the observation is picked up after a call."""
    front, behind = start(Told()), Behind()
    with closing(behind):
        front.begin()
        front.do("a", "connect", behind.port)
        with closing(behind.accept()) as end, closing(socket.create_connection(("127.0.0.1", behind.port))) as other:
            call(front, end)
            observer = start(Observer("--calls", ports=[front.port]))
            other.sendall(b"GET / HTTP/1.1\r\n\r\n")
            for _ in range(5):
                call(front, end)
            row = row_of(observer, front, behind)
            assert (row["older"], row["connects"], row["calls"], row["open"], row["failed"]) == (1, 0, 4, 0, 0)


@pytest.mark.parametrize("request_text, answer, why", [
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"anything", "http2"),
    ("CONNECT a:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", "tunnels"),
    ("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "tunnels"),
])
def test_what_cannot_be_cut(pair, request_text, answer, why):
    """It is counted with its reason, and no time is printed."""
    front, behind, end, observer = pair
    call(front, end, request_text, answer)
    call(front, end, "x" * 20, b"y" * 20)
    row = row_of(observer, front, behind)
    assert uncut(row) == {why: 1} and row["calls"] == row["open"] == row["failed"] == row["wait"]["count"] == 0
    observer.stop()
    assert "times not known: 1 of its 1 connections" in flat(observer.stdout)


def test_calls_by_mptcp(start):
    """Their bytes pass another socket than the one that connects."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()
    except OSError as error:
        pytest.skip(f"no MPTCP here: {error}")
    front, behind = start(Told()), Behind()
    observer = start(Observer("--calls", ports=[front.port]))
    front.begin()
    with closing(behind):
        front.do("a", "connect-mptcp", behind.port)
        with closing(behind.accept()) as end:
            call(front, end)
            row = row_of(observer, front, behind)
    assert uncut(row) == {"unseen": 1} and row["connects"] == 1 and row["calls"] == row["open"] == row["failed"] == 0


def test_a_request_before_the_response_is_complete(pair):
    """The rest of the response is unread when the next request is written."""
    front, behind, end, observer = pair
    call(front, end)
    front.do("a", "write", "GET /1 HTTP/1.1\r\n\r\n")
    end.recv(100)
    end.sendall(b"HTTP/1.1 200 OK\r\n" * 2)
    front.do("a", "read", 17)
    assert row_of(observer, front, behind)["calls"] == 2
    front.do("a", "write", "GET /2 HTTP/1.1\r\n\r\n")
    row = row_of(observer, front, behind)
    assert uncut(row) == {"overlapped": 1} and (row["calls"], row["open"]) == (2, 0)


def test_the_rest_of_a_response_arrives_before_the_next_request(pair):
    """Nothing was left unread by the read, and the rest is there when the next request is written."""
    front, behind, end, observer = pair
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the rest leaves before the first part is acknowledged
    call(front, end)
    front.do("a", "write", "GET /1 HTTP/1.1\r\n\r\n")
    end.recv(100)
    end.sendall(b"HTTP/1.1 200 OK\r\n")
    front.do("a", "read", 17)
    end.sendall(b"\r\n")
    assert uncut(row_of(observer, front, behind)) == {}
    front.do("a", "write", "GET /2 HTTP/1.1\r\n\r\n")
    row = row_of(observer, front, behind)
    assert uncut(row) == {"overlapped": 1} and (row["calls"], row["open"]) == (2, 0)


def test_a_response_before_the_write_returns(start):
    """The upstream answers when it has read the head. The write of the body has not returned then: it waits for room."""
    front, behind = start(Told()), Behind(room=4096)
    observer = start(Observer("--calls", ports=[front.port]))
    front.begin()
    front.do("a", "connect", behind.port)
    with closing(behind), closing(behind.accept()) as end:
        call(front, end)
        length = 8 << 20
        writer = threading.Thread(target=front.do, args=("a", "write", "POST / HTTP/1.1\r\n\r\n" + "x" * (length - 19)))
        writer.start()
        length -= len(end.recv(19))
        end.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        assert writer.is_alive()
        while length:
            length -= len(end.recv(length))
        writer.join()
        front.do("a", "read", 19)
        call(front, end)
        row = row_of(observer, front, behind)
        assert uncut(row) == {} and (row["calls"], row["open"], row["untimed"], row["failed"]) == (3, 0, 0, 0)


def test_a_response_before_its_request_has_arrived(start):
    """The upstream has no room for the second request when it sends more: that is of the first one, and no response to it."""
    front, behind = start(Told()), Behind(room=4096)
    observer = start(Observer("--calls", ports=[front.port]))
    front.begin()
    front.do("a", "connect", behind.port)
    with closing(behind), closing(behind.accept()) as end:
        front.do("a", "write", "GET /1 HTTP/1.1\r\n\r\n" + "x" * 60000)  # far more than its room
        end.sendall(b"1")
        front.do("a", "read", 1)
        front.do("a", "write", "GET /2 HTTP/1.1\r\n\r\n")
        end.sendall(b"1")
        front.do("a", "read", 1)
        row = row_of(observer, front, behind)
        assert uncut(row) == {"overlapped": 1} and (row["calls"], row["open"], row["failed"]) == (1, 0, 0)


def test_commands_that_share_a_connection(pair):
    """Two clients' commands at a time, as Node's libraries send them: which response is whose is not known."""
    front, behind, end, observer = pair
    get, name = "*2\r\n$3\r\nGET\r\n$1\r\n%d\r\n", "*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$1\r\n%d\r\n"
    front.do("a", "write", name % 0)
    call(front, end, name % 1, b"+OK\r\n+OK\r\n")
    call(front, end, get % 0, b"$-1\r\n")
    assert row_of(observer, front, behind)["calls"] == 2
    front.do("a", "write", get % 1)
    front.do("a", "write", get % 2)
    for number in (3, 4):
        end.sendall(b"$-1\r\n")
        front.do("a", "read", 5)
        front.do("a", "write", get % number)
    row = row_of(observer, front, behind)
    assert uncut(row) == {"overlapped": 1} and (row["calls"], row["open"], row["failed"]) == (2, 0, 0)


@pytest.mark.parametrize("leave", ["X\0\0\0\4", "\1\0\0\0\1", "quit\r\n"])
def test_a_farewell(pair, leave):
    """PostgreSQL's, MariaDB's and memcached's clients take leave, and get no answer: that is no call that failed."""
    front, behind, end, observer = pair
    call(front, end, "Q\0\0\0\15select 1\0", b"answer")
    front.do("a", "write", leave)
    assert end.recv(100) == leave.encode()
    front.do("a", "close")
    assert end.recv(100) == b""
    row = row_of(observer, front, behind)
    assert (row["calls"], row["failed"], row["open"]) == (1, 0, 0) and uncut(row) == {}


def numbered(ahead, number):
    """Return a message of DNS (2) or Kafka (4): it begins with its length in so many bytes."""
    body = f"\0{number}\1\0\0\1" + "x" * 20
    return "\0" * (ahead - 1) + chr(len(body)) + body


@pytest.mark.parametrize("how", ["one_by_one", "at_once"])
@pytest.mark.parametrize("ahead", [2, 4])
def test_numbered_messages(pair, ahead, how):
    """Once one does not wait for the response before, which response is whose is not known."""
    front, behind, end, observer = pair
    for number in range(3):
        call(front, end, numbered(ahead, number), numbered(ahead, number).encode())
    row = row_of(observer, front, behind)
    assert (row["calls"], row["open"], row["failed"]) == (3, 0, 0) and uncut(row) == {}
    if how == "at_once":
        front.do("a", "write", numbered(ahead, 3) + numbered(ahead, 4))
    else:
        front.do("a", "write", numbered(ahead, 3))
        front.do("a", "write", numbered(ahead, 4))
    row = row_of(observer, front, behind)
    assert (row["calls"], row["open"], row["failed"]) == (3, 0, 0) and uncut(row) == {"overlapped": 1}


def test_a_message_in_parts(pair):
    """It is one call, and so is one whose length is written first."""
    front, behind, end, observer = pair
    text = numbered(4, 1)
    call(front, end, text, b"answer")
    for cut in (4, 10):
        front.do("a", "write", text[:cut])
        call(front, end, text[cut:], b"answer")
    row = row_of(observer, front, behind)
    assert (row["calls"], row["open"], row["failed"]) == (3, 0, 0) and uncut(row) == {}


def test_older_connections_with_numbered_messages(start):
    """Requests may overlap on them already."""
    front, behind = start(Told()), Behind()
    with closing(behind):
        front.begin()
        front.do("a", "connect", behind.port)
        with closing(behind.accept()) as end:
            call(front, end, numbered(4, 1), b"answer")
            observer = start(Observer("--calls", ports=[front.port]))
            for number in range(3):
                call(front, end, numbered(4, number), b"answer")
            row = row_of(observer, front, behind)
            assert row["older"] == 1 and row["calls"] == 0 and uncut(row) == {"overlapped": 1}


LEAVE = "X\0\0\0\4"  # PostgreSQL's Terminate


def tls(start, offer, ask=None, leave=None):
    """Return the row of a front that makes four calls on one connection in TLS. @ask: in clear before; @leave: its last words."""
    authority = start(Pki())
    cert, key = authority.issue("localhost", "DNS:localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["http/1.1"])
    front, behind = start(Told()), Behind()
    observer = start(Observer("--calls", ports=[front.port]))

    def serve(raw):
        if ask:
            raw.recv(100)
            raw.sendall(b"S")
        with context.wrap_socket(raw, server_side=True) as end:
            while end.recv(100) not in (b"", LEAVE.encode()):
                end.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with closing(behind):
        front.begin()
        front.do("a", "connect", behind.port)
        thread = threading.Thread(target=serve, args=(behind.accept(),))
        thread.start()
        if ask:
            front.do("a", "write", ask)
            front.do("a", "read", 1)
        front.do("a", "tls", [str(authority.ca), offer])
        for _ in range(4):
            front.do("a", "write", "GET / HTTP/1.1\r\n\r\n")
            front.do("a", "read", 27)
        if leave:
            front.do("a", "write", leave)
        front.do("a", "close")
        thread.join()
        return row_of(observer, front, behind)


def test_tls(start):
    """The handshake is no call, and hides the first one. The client's alert at the end is none, too."""
    row = tls(start, ["http/1.1"])
    assert (row["handshakes"], row["calls"], row["failed"], row["open"]) == (1, 3, 0, 0) and uncut(row) == {}


def test_tls_with_http2_on_offer(start):
    row = tls(start, ["h2", "http/1.1"])
    assert (row["handshakes"], row["calls"], row["failed"], row["open"]) == (0, 0, 0, 0) and uncut(row) == {"perhaps_http2": 1}


def test_tls_after_words_in_clear(start):
    """As with PostgreSQL: the question for TLS is a call, the handshake none. The farewell is not a request without an answer."""
    row = tls(start, [], "\0\0\0\10\4\xd2\x16\x2f", LEAVE)
    assert (row["handshakes"], row["calls"], row["failed"], row["open"]) == (1, 1 + 3, 0, 0) and uncut(row) == {}


def test_grpc_behind_nginx(start):
    """nginx speaks HTTP/2 in clear to its upstream: connections are counted, and no call."""
    behind = start(Nginx(listen_options="http2"))
    front = start(Front({"call": f"grpc_pass grpc://127.0.0.1:{behind.port};"}))
    observer = start(Observer("--calls", ports=[front.port]))
    for _ in range(3):
        request(front.url + "call")
    observer.stop()
    row, = rows(observer.summary(), front.port).values()
    assert uncut(row) == {"http2": 3} and row["connects"] == 3 and row["calls"] == row["open"] == row["failed"] == 0


def test_two_services_of_one_process(start):
    """Which of both its calls are for is not known."""
    lab, second = start(Lab()), free_port()
    inside = f"location /call {{ proxy_pass http://127.0.0.1:{lab.port}; }}"
    front = start(Nginx(http_block=f"server {{ listen 127.0.0.1:{second}; {inside} }}", server=inside))
    observer = start(Observer("--calls", ports=[front.port, second]))
    for port in (front.port, second, front.port, second):
        request(f"http://127.0.0.1:{port}/call?service=5ms")
    observer.stop()
    found = [(port, row) for port in (front.port, second) for row in rows(observer.summary(), port).values()]
    assert sum(row["calls"] for _, row in found) == 4
    assert all(row["serves_too"] == front.port + second - port for port, row in found)
    assert "perhaps for port" in flat(observer.stdout) and "% of its service" not in flat(observer.stdout)


def test_more_places_than_there_is_room_for(start):
    """129 places of one service: the last one is counted as lost."""
    front = start(Told())
    observer = start(Observer("--calls", ports=[front.port]))
    front.begin()
    with ExitStack() as places:  # open to the end, so that no two have one port
        for i in range(129):
            front.do(str(i), "connect", places.enter_context(closing(Behind())).port)
            front.do(str(i), "close")
    observer.stop()
    entry = service(observer.summary(), front.port)
    assert len(entry["timed_calls"]) == 128 and entry["calls_lost"] == 1
    assert "connections to places without room" in flat(observer.stdout)


def metric(text, name):
    value, = re.findall(rf"^sojourn_upstream_{name}{{[^}}]*}} (\S+)$", text, re.MULTILINE)
    return float(value)


def test_metrics(pair):
    """They have the row's counts. Once a connection cannot be cut, no times."""
    front, behind, end, observer = pair
    for _ in range(3):
        call(front, end)
    text, row = observer.get("/metrics"), row_of(observer, front, behind)
    assert f'upstream="127.0.0.1:{behind.port}"' in text
    assert [metric(text, name) for name in ("calls_total", "calls_failed_total", "calls_open", "connects_total", "connections_uncut_total")] \
        == [3, 0, 0, 1, 0]
    assert metric(text, "wait_seconds_count") == row["wait"]["count"] == 3
    assert round(metric(text, "wait_seconds_sum") * 1e9) == row["wait"]["sum_ns"]
    call(front, end, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    text = observer.get("/metrics")
    assert metric(text, "connections_uncut_total") == 1 and "sojourn_upstream_wait_seconds_count" not in text


def test_not_asked_for(start):
    front = start(Front({"call": "return 200 ok;"}))
    observer = start(Observer(ports=[front.port]))
    request(front.url + "call")
    observer.stop()
    entry = service(observer.summary(), front.port)
    assert "timed_calls" not in entry and entry.get("calls_lost") is None
