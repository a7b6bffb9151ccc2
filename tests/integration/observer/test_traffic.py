# SPDX-License-Identifier: MIT
"""Traffic that does not simply alternate requests and responses: known figures are right, the rest is reported
as unknown."""
import os
import socket
import struct
import threading
import time

import pytest

from ..conftest import kernel_counter
from support.documents import service
from support.frames import PREFACE
from support.net import close_before_data
from support.process import run
from support.programs import Observer, time_waits
from support.timing import MS
from .scene import Scene, entries, inside
from .test_stages import stage

QUIET = 0.3  # seconds: longer than the quiet time that ends a response and a message


def mean(values):
    return sum(values) / len(values)


def pipelined(start, lag, interval=0.02, count=30):
    """Send a request every @interval, each answered @lag later: the socket is never empty. Return the waits as
    the server saw them."""
    scene = Scene(start)
    client, connection = scene.connect()
    sent = []

    def send():
        for i in range(count):
            sent.append(time.monotonic_ns())
            client.sendall(b"x" * 10)
            time.sleep(interval)

    sender = threading.Thread(target=send)
    sender.start()
    waits = []
    for i in range(count):
        while len(sent) <= i or time.monotonic_ns() < sent[i] + lag * 1e9:
            time.sleep(0.001)
        connection.recv(10)
        waits.append(time.monotonic_ns() - sent[i])
        connection.sendall(b"y")
    sender.join()
    return scene.end(), waits


def test_each_pipelined_request_has_its_own_arrival(start):
    entry, waits = pipelined(start, lag=0.1)
    queue = stage(entry, "socket_queue")
    assert entry["exchanges"] == queue["count"] == len(waits)
    assert entry["losses"]["untimed"] == 0
    assert abs(queue["sum_ns"] / queue["count"] - mean(waits)) < 5 * MS
    assert queue["max_ns"] <= max(waits) + 2 * MS


def test_arrivals_that_found_no_room_are_told(start):
    entry, waits = pipelined(start, lag=0.5)
    queue = stage(entry, "socket_queue")
    assert entry["exchanges"] == len(waits)
    assert 0 < entry["losses"]["untimed"] < len(waits)
    assert queue["count"] + entry["losses"]["untimed"] == len(waits)
    assert queue["max_ns"] <= max(waits) + 2 * MS


def test_a_message_that_wants_no_answer_is_no_request(start):
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(b"close statement")
    connection.recv(100)
    time.sleep(QUIET)
    client.sendall(b"query")
    connection.recv(100)
    begun = time.monotonic_ns()
    time.sleep(0.005)
    connection.sendall(b"row")
    took = time.monotonic_ns() - begun
    entry = scene.end()
    assert entry["exchanges"] == entry["losses"]["oneway"] == 1
    assert entry["losses"]["unanswered"] == 0
    assert stage(entry, "receive")["max_ns"] == 0
    assert 5 * MS * 0.98 < stage(entry, "service")["max_ns"] < took + 2 * MS
    assert entry["bytes_in"] == len("close statement") + len("query")


# The server's own question, and what a client says to it or from time to time. Of WebSocket the mask, then the text.
SIGNS_OF_LIFE = {
    "websocket": (b"\x89\x04life", b"\x8a\x84\1\2\3\4mjeb"),
    "websocket, empty": (b"\x89\x00", b"\x8a\x80\1\2\3\4"),
    "amqp": (b"\x08\0\0\0\0\0\0\xce", b"\x08\0\0\0\0\0\0\xce"),
    "nats": (b"PING\r\n", b"PONG\r\n"),
}


def test_a_sign_of_life_is_no_request(start):
    """Idle connections of WebSocket and brokers: the server asks from time to time, and the next time is no answer."""
    scene = Scene(start)
    pairs = [(*scene.connect(), *words) for words in SIGNS_OF_LIFE.values()]
    rounds = 2
    for client, connection, ask, _ in pairs:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" if ask[0] == 0x89 else b"hello")
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    for _ in range(rounds):
        time.sleep(QUIET)
        for client, connection, ask, say in pairs:
            connection.sendall(ask)
            client.sendall(say)
            connection.recv(100)
    entry = scene.end()
    assert stage(entry, "service")["max_ns"] < QUIET * 1e9 / 2
    assert entry["exchanges"] == len(pairs)
    assert entry["losses"]["oneway"] == rounds * len(pairs)
    assert entry["losses"]["unanswered"] == 0


def test_a_message_right_before_the_end_is_a_goodbye(start):
    scene = Scene(start)
    for quit_first in (True, False):
        client, connection = scene.connect()
        client.sendall(b"ping")
        connection.recv(100)
        connection.sendall(b"pong")
        client.recv(100)
        client.sendall(b"quit")
        if not quit_first:
            time.sleep(0.1)  # the client waits for an answer, and gives up
        client.close()
        while connection.recv(100):
            pass
        connection.close()
    entry = scene.end()
    assert entry["exchanges"] == 2
    assert entry["losses"]["goodbyes"] == entry["losses"]["unanswered"] == 1


def test_a_request_right_before_the_end_wants_an_answer(start):
    """A load generator exits at its deadline: nginx counts those of its requests that it has read, and cannot
    answer."""
    scene = Scene(start)
    for _ in range(3):
        client, connection = scene.connect()
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        client.close()
        while connection.recv(100):
            pass
        connection.close()
    entry = scene.end()
    assert entry["losses"]["unanswered"] == 3
    assert entry["losses"]["goodbyes"] == entry["exchanges"] == 0


def test_the_rest_of_an_answered_request_is_no_request(start):
    """As PHP's FastCGI does: it reads the end of the input after its response, or never. A request that comes after the
    response is one."""
    scene = Scene(start)
    for left in ("read", "unread", "next"):
        client, connection = scene.connect()
        client.sendall(b"request, end")
        connection.recv(7 if left != "next" else 100)
        connection.sendall(b"response")
        client.recv(100)
        if left == "read":
            connection.recv(100)
        elif left == "next":
            client.sendall(b"next")
            connection.recv(100)
        connection.shutdown(socket.SHUT_WR)
    entry = scene.end(samples=False)
    assert entry["exchanges"] == 3
    assert entry["losses"]["unanswered"] == 1


def test_a_long_body_is_not_many_requests(start):
    """The part of a read that is looked at is smaller than its request."""
    scene = Scene(start)
    client, connection = scene.connect()
    for _ in range(130):
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 8000\r\n\r\n" + bytes(8000))
        assert len(connection.recv(65536, socket.MSG_PEEK)) > 4096
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        client.recv(100)
    entry = scene.end()
    assert entry["looked"] == entry["looked_requests"] >= 2


def test_what_is_written_after_a_pause_is_no_response(start):
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(b"request")
    connection.recv(100)
    connection.sendall(b"response")
    time.sleep(QUIET)
    connection.sendall(b"farewell")
    entry = scene.end()
    assert entry["exchanges"] == entry["losses"]["trailing"] == 1
    assert stage(entry, "respond")["max_ns"] < QUIET * 1e9 / 2
    assert entry["bytes_out"] == len("responsefarewell")


def test_one_thread_reads_while_another_writes(start):
    """No time is negative, and none is longer than the whole."""
    scene = Scene(start)
    client, connection = scene.connect()
    begun = time.monotonic_ns()
    until = begun + int(1.5e9)
    children = []
    for work in (lambda: client.send(b"x" * 100), lambda: client.recv(4096),
                 lambda: connection.recv(150), lambda: connection.send(b"y" * 80)):
        pid = os.fork()
        if not pid:
            try:
                while time.monotonic_ns() < until:
                    work()
            finally:
                os._exit(0)
        children.append(pid)
    time.sleep(1.6)
    for end in (client, connection):
        end.shutdown(socket.SHUT_RDWR)
    for pid in children:
        os.waitpid(pid, 0)
    took = time.monotonic_ns() - begun
    entry = scene.end(samples=False)
    assert entry["exchanges"] > 10
    for name, row in entry["stages"].items():
        if row.get("count"):
            assert row["sum_ns"] / row["count"] <= row["max_ns"] <= took, name


def test_data_after_close_is_reset_by_the_server(start):
    """The client sends no RST; TCP's own count of discarded data shows that the server caused it."""
    refused = kernel_counter("TCPAbortOnData")
    scene = Scene(start)
    client, connection = scene.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(b"request")
    connection.recv(100)
    connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            connection.send(bytes(1 << 20))
    connection.close()  # FIN_WAIT1: the written data cannot be sent yet
    client.sendall(b"next request")
    time.sleep(0.1)
    entry = scene.end()
    assert kernel_counter("TCPAbortOnData") == refused + 1
    assert entry["closes"]["reset_by_server"] == 1
    assert entry["closes"]["reset_by_client"] == 0


def mptcp_socket():
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError as error:
        pytest.skip(f"no MPTCP here: {error}")


def mptcp_listener():
    listener = mptcp_socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def exchange_over(client, listener):
    """Return the accepted connection, after a request and its response."""
    client.connect(listener.getsockname())
    connection, _ = listener.accept()
    client.sendall(b"request")
    connection.recv(100)
    connection.sendall(b"response")
    client.recv(100)
    return connection


def test_mptcp_connections_are_told(start):
    """Also those that began before the observation. None of their requests is seen, so none is judged."""
    listener = mptcp_listener()
    older = mptcp_socket()
    ends = [older, exchange_over(older, listener)]
    scene = Scene(start, listener=listener)
    scene.ends += ends
    for i in range(10):
        client = mptcp_socket() if i % 2 else socket.socket()
        scene.ends += [client, exchange_over(client, listener)]
    older.sendall(b"request")
    entry = scene.end()
    assert entry["accepted"] == 10
    assert entry["exchanges"] == 5
    assert entry["losses"]["mptcp"] == 6
    assert entry["losses"]["unanswered"] == 0
    assert entry["open"]["read"] == entry["open"]["unread"] == 0


def test_time_wait_behind_a_listener_of_mptcp(start):
    """Go's listeners are of MPTCP. Their connections are in TIME_WAIT like others, of either kind."""
    listener = mptcp_listener()
    scene = Scene(start, listener=listener)
    for i in range(10):
        client = mptcp_socket() if i % 2 else socket.socket()
        exchange_over(client, listener).close()
        client.close()
    listed = run(["ss", "-Htan", "state", "time-wait", f"sport = :{scene.port}"]).stdout
    entry = scene.end()
    assert entry["time_wait"] == len(listed.splitlines()) >= 5


def test_bytes_count_when_they_are_read(start):
    """Bytes of a client that only sends count while its connection is still open."""
    scene = Scene(start)
    client, connection = scene.connect()
    left = size = 3_000_000
    sender = threading.Thread(target=client.sendall, args=(bytes(size),))
    sender.start()
    while left:
        left -= len(connection.recv(65536))
    sender.join()
    scene.observer.stop()
    entry = [s for s in scene.observer.summary()["services"] if s["port"] == scene.port][0]
    scene.end()
    assert entry["bytes_in"] == size
    assert entry["exchanges"] == 0


def test_bytes_of_http2_behind_the_last_write_count(start):
    scene = Scene(start)
    client, connection = scene.connect()
    client.sendall(PREFACE)
    connection.recv(100)
    connection.sendall(b"settings")
    client.sendall(bytes(50_000))
    left = 50_000
    while left:
        left -= len(connection.recv(left))
    entry = scene.end()
    assert entry["losses"]["multiplexed"] == 1
    assert entry["bytes_in"] == 24 + 50_000


def plain_close(client, connection):
    connection.close()
    client.recv(1)
    client.close()


def data_with_the_acknowledgement(client, connection):
    """Like the close_notify of a TLS client, after the server has closed."""
    close_before_data(connection, client)


def unread_data(client, connection):
    connection.shutdown(socket.SHUT_WR)
    client.recv(1)
    client.sendall(b"more")
    time.sleep(0.01)
    connection.close()


def unread_data_and_fin(client, connection):
    """The client's FIN ends FIN_WAIT2, whatever is still unread."""
    connection.shutdown(socket.SHUT_WR)
    client.recv(1)
    client.sendall(b"more")
    client.close()
    time.sleep(0.01)
    connection.close()


def linger_of_nothing(client, connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_WR)
    time.sleep(0.01)
    connection.close()


def linger2(connection, seconds):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, seconds)


def no_linger2(client, connection):
    linger2(connection, -1)
    plain_close(client, connection)


def no_linger2_but_a_half_close(client, connection):
    linger2(connection, -1)
    connection.shutdown(socket.SHUT_WR)
    client.recv(1)
    client.close()


def some_linger2(client, connection):
    linger2(connection, 10)
    plain_close(client, connection)


def test_a_close_leaves_time_wait_or_resets(start):
    """The kernel's own counts say which: TIME_WAIT sockets made, and RSTs sent."""
    count, truth = 10, {}

    def close_all(scene, close, _):
        made, resets = time_waits(), kernel_counter("OutRsts", table="snmp", row="Tcp")
        for _ in range(count):
            close(*scene.connect())
        time.sleep(0.05)
        truth[close] = time_waits() - made, kernel_counter("OutRsts", table="snmp", row="Tcp") - resets

    cases = [(plain_close, True), (some_linger2, True), (unread_data_and_fin, True), (no_linger2_but_a_half_close, True),
             (data_with_the_acknowledgement, False), (unread_data, False), (linger_of_nothing, False), (no_linger2, False)]
    for (close, left), entry in entries(start, cases, close_all):
        made, resets = truth[close]
        assert entry["time_wait_created"] == made == (count if left else 0), close
        assert entry["closes"]["reset_by_server"] == resets == (0 if left else count), close
        assert entry["closes"]["closed_by_server"] == made, close


def test_fast_open_connections_are_accepted(start, netns):
    """The server may read and answer before the handshake is over. Throughput counts all exchanges from the
    first to the last, whether or not their arrival was seen."""
    network = netns("fast-open")
    network.exec(["sysctl", "-qw", "net.ipv4.tcp_fastopen=1543"])  # both sides, without cookies
    count = 50
    asked, read, writes, written = [], [], [], []
    with inside(network):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        scene = Scene(start, listener=listener, netns=network)
        for _ in range(count):
            client = socket.socket()
            asked.append(time.monotonic_ns())
            client.sendto(b"request", socket.MSG_FASTOPEN, ("127.0.0.1", scene.port))
            connection, _ = listener.accept()
            connection.recv(100)
            read.append(time.monotonic_ns())
            writes.append(time.monotonic_ns())
            connection.sendall(b"response")
            written.append(time.monotonic_ns())
            connection.close()
            while client.recv(100):
                pass
            client.close()
            time.sleep(0.005)
        passive = kernel_counter("TCPFastOpenPassive", network)
        entry = scene.end()
    assert passive == count
    assert entry["accepted"] == entry["exchanges"] == entry["closes"]["closed_by_server"] == count
    assert asked[0] <= entry["first_message_ns"] <= read[0]
    assert writes[-1] <= entry["last_message_ns"] <= written[-1]


def test_a_response_older_than_the_phase_is_not_of_it(start):
    scene = Scene(start, "--quiet-time", "10s")  # a busy machine's pause does not end the response
    client, connection = scene.connect()
    client.sendall(b"request")
    connection.recv(100)
    for part in range(10):
        connection.sendall(b"part")
        time.sleep(0.05)
        if part == 4:
            phase = scene.observer.begin_phase()
    document = scene.observer.end_phase(phase)
    later = [s for s in document["services"] if s["port"] == scene.port][0]
    whole = scene.end(samples=False)
    for value in ("count", "sum_ns", "max_ns"):
        assert not stage(later, "respond").get(value)
    assert later["losses"]["carried"] == whole["losses"]["carried"] == 1
    assert stage(whole, "respond")["count"] == 1


def test_what_is_read_by_splice_is_counted_and_not_timed(start):
    scene = Scene(start)
    client, connection = scene.connect()
    out, into = os.pipe()
    for _ in range(10):
        client.sendall(b"request")
        assert os.splice(connection.fileno(), into, 100) == 7
        os.read(out, 100)
        connection.sendall(b"response")
        client.recv(100)
    client.sendall(b"head")
    connection.recv(100)
    client.sendall(b"body")
    time.sleep(0.1)
    assert os.splice(connection.fileno(), into, 100) == 4
    connection.sendall(b"response")
    os.close(out)
    os.close(into)
    entry = scene.end()
    assert entry["exchanges"] == 11
    assert entry["losses"]["untimed"] == entry["losses"]["unseen_reads"] == 11
    assert stage(entry, "service")["count"] == 0
    assert entry["bytes_in"] == 10 * 7 + 8


def test_a_write_that_waits_for_room_is_response(start):
    scene = Scene(start)
    client, connection = scene.connect()
    size = 8 << 20

    def read_slowly():
        left = size
        time.sleep(0.5)
        while left:
            left -= len(client.recv(min(left, 1 << 20)))

    client.sendall(b"request")
    connection.recv(100)
    reader = threading.Thread(target=read_slowly)
    reader.start()
    read_ns = time.monotonic_ns()
    time.sleep(0.05)
    written_ns = time.monotonic_ns()
    connection.sendall(bytes(size))  # a single system call, which blocks
    done_ns = time.monotonic_ns()
    reader.join()
    entry = scene.end()
    assert entry["losses"]["blocked"] == 1
    # Known to a tick; the part of the write before it blocks counts as service.
    assert written_ns - read_ns - 11 * MS < stage(entry, "service")["max_ns"] < 200 * MS
    assert 300 * MS < stage(entry, "respond")["max_ns"] < done_ns - written_ns + 11 * MS


def test_a_read_that_waits_for_all_receives(start):
    scene = Scene(start)
    client, connection = scene.connect()

    def send():
        client.sendall(b"x" * 50)
        time.sleep(QUIET)
        client.sendall(b"x" * 50)

    sender = threading.Thread(target=send)
    sender.start()
    assert len(connection.recv(100, socket.MSG_WAITALL)) == 100
    connection.sendall(b"y")
    sender.join()
    entry = scene.end()
    assert stage(entry, "socket_queue")["max_ns"] < 50 * MS
    assert stage(entry, "receive")["max_ns"] >= QUIET * 1e9 * 0.98


def test_an_outgoing_connection_is_not_the_services(start):
    """The observed port is the connection's source port."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        scene = Scene(start, observe=False)
        outgoing = socket.socket()
        outgoing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        outgoing.bind(("127.0.0.2", scene.port))
        outgoing.connect(other.getsockname())
        peer, _ = other.accept()
        scene.observe()
        for _ in range(9):
            peer.sendall(b"request")
            outgoing.recv(100)
            outgoing.sendall(b"response")
            peer.recv(100)
        scene.ends += [outgoing, peer]
        entry = scene.end()
    assert entry["exchanges"] == 0
    assert entry["losses"]["preexisting"] == entry["connections"] == 0


def test_the_high_water_mark_knows_what_was_there_before(start):
    scene = Scene(start, observe=False)
    clients = [socket.create_connection(("127.0.0.1", scene.port)) for _ in range(5)]
    scene.observe()
    time.sleep(1.2)
    scene.ends += clients
    entry = scene.end()
    assert entry["accept_queue"]["depth_max"] >= 5


def test_what_was_half_read_when_the_observation_began_is_not_timed(start):
    scene = Scene(start, observe=False)
    client, connection = scene.connect()
    connection.sendall(b"greeting")
    client.recv(100)
    time.sleep(0.05)  # more than a tick of the kernel's coarse clock
    client.sendall(b"first half ")
    connection.recv(100)
    scene.observe()
    client.sendall(b"second half")
    connection.recv(100)
    connection.sendall(b"response")
    connection.sendall(b"more of it")
    client.sendall(b"next")
    connection.recv(100)
    connection.sendall(b"response")
    entry = scene.end()
    assert entry["losses"]["cut_off"] == entry["exchanges"] == 1
    assert entry["losses"]["unsolicited"] == 0
    assert stage(entry, "receive")["max_ns"] == 0


def test_a_hung_server_is_the_first_thing_told(start):
    """Twenty requests are answered; then ten are read and ten are not."""
    scene = Scene(start)
    pairs = [scene.connect() for _ in range(20)]
    for client, connection in pairs:
        client.sendall(b"request")
        connection.recv(100)
        connection.sendall(b"response")
        client.recv(100)
    begun = time.monotonic_ns()
    for i, (client, connection) in enumerate(pairs):
        client.sendall(b"request")
        if i < 10:
            connection.recv(100)
    scene.ends.append(socket.create_connection(("127.0.0.1", scene.port)))
    scene.ends[-1].sendall(b"request")  # nobody accepts it
    time.sleep(3.5)
    least = time.monotonic_ns() - begun
    scene.observer.stop()
    most = time.monotonic_ns() - begun
    document = scene.observer.summary()
    entry = service(document, scene.port)
    scene.end()
    assert entry["exchanges"] == 20
    assert (entry["open"]["read"], entry["open"]["unread"], entry["open"]["unaccepted"]) == (10, 11, 1)
    assert least - 1000 * MS < entry["open"]["oldest_ns"] < most
    assert entry["open"]["ages"]["below_10s"] == 21
    assert entry["series"]["open"][-1] == 21
    finding = document["findings"][0]
    assert (finding["id"], finding["severity"], finding["port"]) == ("requests-hang", "critical", scene.port)
    assert [owner["pid"] for owner in finding["owners"]] == [os.getpid()]
    assert scene.observer.stdout.index("requests-hang") < scene.observer.stdout.index("socket queue")


def test_what_clients_gave_up_has_its_age(start):
    scene = Scene(start)
    least, most = [], []
    for _ in range(5):
        client, connection = scene.connect()
        before = time.monotonic_ns()
        client.sendall(b"request")
        sent = time.monotonic_ns()
        connection.recv(100)
        time.sleep(0.1)
        client.close()
        assert not connection.recv(100)
        least.append(time.monotonic_ns() - sent)
        connection.close()
        most.append(time.monotonic_ns() - before)
    entry = scene.end()
    assert entry["losses"]["unanswered"] == entry["abandoned"]["count"] == 5
    assert sum(least) - MS < entry["abandoned"]["sum_ns"] < sum(most)
    assert "waited at least" in scene.observer.stdout


def test_overflows_are_the_accept_queues_and_survive_their_listener(start, netns):
    """One listener overflows and ends; another drops connections for TCP_DEFER_ACCEPT."""
    network = netns("overflow")
    with inside(network):
        full = socket.create_server(("127.0.0.1", 0), backlog=1)
        deferred = socket.create_server(("127.0.0.1", 0), backlog=100)
        deferred.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        ports = full.getsockname()[1], deferred.getsockname()[1]
        observer = start(Observer(ports=ports, netns=network))
        clients = []
        for _ in range(8):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", ports[0]))
            clients.append(client)
        time.sleep(1.5)
        clients += [socket.create_connection(("127.0.0.1", ports[1])) for _ in range(20)]
        overflows = kernel_counter("ListenOverflows", network)
        assert kernel_counter("TCPDeferAcceptDrop", network) > 0
        full.close()
        time.sleep(1.2)
        observer.stop()
        for client in clients:
            client.close()
        deferred.close()
    queues = [service(observer.summary(), port)["accept_queue"] for port in ports]
    assert overflows > 0
    assert queues[0]["overflows"] == overflows
    assert queues[1]["overflows"] == 0
    assert queues[1]["drops"] > 0
