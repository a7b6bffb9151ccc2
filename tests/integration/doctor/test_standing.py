# SPDX-License-Identifier: MIT
"""`sojourn doctor` on stalled connections: unread, not taken by the peer, or left before accept()."""
import contextlib
import os
import socket
import threading
import time

from ..conftest import sockets
from .test_processes import every
from support.findings import evidence
from support.net import free_port
from support.process import wait_until
from support.programs import Doctor

STANDING_SECONDS = 3.2
NEW = {"unread-data", "closing-unsent", "dead-in-accept-queue"}


def queued(state, filter_, column):
    """Return the sums of `ss`: (sockets, bytes of Recv-Q (0) or Send-Q (1))."""
    lines = [line.split() for line in sockets(state, filter_)]
    return len(lines), sum(int(line[column]) for line in lines)


def ours(port, *options):
    """Restrict the exit code to this process: others on the machine may exhaust something."""
    return Doctor("--pid", os.getpid(), "--port", port, *options)


@contextlib.contextmanager
def connections(count, address="127.0.0.1", family=socket.AF_INET, dual=False):
    """Yield (listener, clients, servers)."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(
            ("::" if dual else address, free_port()), family=socket.AF_INET6 if dual else family, backlog=64,
            dualstack_ipv6=dual))
        clients, servers = [], []
        for _ in range(count):
            clients.append(stack.enter_context(
                socket.create_connection((address, listener.getsockname()[1]))))
            servers.append(stack.enter_context(listener.accept()[0]))
        for each in clients + servers:
            each.setblocking(False)
        yield listener, clients, servers


def fill(sender):
    """Send until the kernel takes no more; return how many bytes it took."""
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            taken += sender.send(bytes(1 << 20))
    return taken


def test_a_server_that_does_not_read():
    """Unread data is no finding at first, becomes one, and ends when the server reads: over IPv4, IPv6, and IPv4 to a socket
    of IPv6."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(connections(20, **options))
                for options in ({}, {"address": "::1", "family": socket.AF_INET6}, {"dual": True})]
        ports = [listener.getsockname()[1] for listener, _, _ in made]
        for client in sum((clients for _, clients, _ in made), []):
            client.send(bytes(20000))
        for port in ports:
            assert not Doctor("--sample", "200ms", "--port", port).ids & NEW
        time.sleep(STANDING_SECONDS)
        for port, (_, _, servers) in zip(ports, made):
            doctor = Doctor("--sample", "200ms", "--port", port)
            # This process has the other listeners, too, and what a port's processes take elsewhere is a finding as well.
            finding, = (each for each in doctor.document["findings"]
                        if each["id"] == "unread-data" and each["port"] == port)
            count, unread = queued("established", f"sport = :{port}", 0)
            assert (finding["used"], evidence(finding, "unread")) == (count, unread) == (20, 400000)
            assert finding["port"] == port and finding["owners"][0]["pid"] == os.getpid()
            assert finding["owners"][0]["sockets"] == 20
            assert ours(port, "--sample", "200ms").status == 1
            assert STANDING_SECONDS <= evidence(finding, "for at least") <= evidence(finding, "the longest for") < 30
            assert "unread-data" in Doctor("--sample", "0", "--port", port).ids
            for server in servers:
                server.recv(1 << 20)
            assert not any(each["id"] in NEW and each["port"] == port
                           for each in Doctor("--sample", "0", "--port", port).document["findings"])


def test_a_slow_reader_with_full_queues_reads():
    """The server takes a little of its queue again and again; nothing new comes meanwhile."""
    with connections(8) as (listener, clients, servers):
        port = listener.getsockname()[1]
        for client in clients:
            client.send(bytes(100000))
        with every(0.2, lambda: [server.recv(1000) for server in servers]):
            time.sleep(STANDING_SECONDS)
            doctor = Doctor("--port", port)
            assert queued("established", f"sport = :{port}", 0)[1] > 8 * 50000
        assert not doctor.ids & NEW
        assert "unread-data" in Doctor("--port", port).ids  # now the server has stopped


def test_clients_that_trickle_into_an_unread_socket():
    """The last byte is always recent; only the sample shows that the first stays unread."""
    with connections(6) as (listener, clients, _):
        port = listener.getsockname()[1]
        for client in clients:
            client.send(bytes(10000))
        with every(0.2, lambda: [client.send(b"x") for client in clients]):
            time.sleep(0.5)
            doctor = Doctor("--sample", "4s", "--port", port)
    finding = doctor.finding("unread-data")
    assert finding["used"] == 6 and evidence(finding, "for at least") >= 4


def test_what_a_few_do_not_read_is_their_affair():
    with connections(4) as (listener, clients, _):
        for client in clients:
            client.send(bytes(100000))
        time.sleep(STANDING_SECONDS)
        assert not Doctor("--port", listener.getsockname()[1]).ids & NEW


def test_responses_that_nobody_reads():
    """The server has closed, the clients do not read: both ends are found, in FIN-WAIT-1 and unread."""
    with connections(12) as (listener, _, servers):
        port = listener.getsockname()[1]
        sent = sum(fill(server) for server in servers)
        for server in servers:
            server.close()
        assert not Doctor("--sample", "500ms", "--port", port).ids & NEW
        time.sleep(STANDING_SECONDS)
        doctor = Doctor("--port", port)
        closing, unread = doctor.finding("closing-unsent"), doctor.finding("unread-data")
        count, held = queued("fin-wait-1", f"sport = :{port}", 1)
        waiting = queued("established", f"dport = :{port}", 0)
        assert count == 12 and held > 12 << 16
        # Each socket has a FIN to send, which takes one sequence number.
        assert sent - waiting[1] + 12 == held
        assert (closing["used"], evidence(closing, "not sent or not acknowledged")) == (count, held)
        assert evidence(closing, "held by no process") == evidence(closing, "the peer makes no room") == 12
        assert closing["port"] == port and closing["owners"][0]["pid"] == os.getpid()
        assert closing["command"] is None  # no retry would ever give up
        assert (unread["used"], evidence(unread, "unread")) == waiting
        assert unread["object"] == f"connections to 127.0.0.1:{port}"
        assert ours(port).status == 1


def test_closed_connections_whose_clients_read_on():
    with connections(8) as (listener, clients, servers):
        port = listener.getsockname()[1]
        for server in servers:
            fill(server)
            server.close()
        done = threading.Event()

        def read():
            while not done.wait(0.1):
                for client in clients:
                    with contextlib.suppress(BlockingIOError):
                        client.recv(20000)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            time.sleep(STANDING_SECONDS)
            doctor = Doctor("--sample", "2s", "--port", port)
            assert queued("fin-wait-1", f"sport = :{port}", 1)[1] > 8 << 16
        finally:
            done.set()
            reader.join()
        assert not doctor.ids & NEW


def test_clients_that_left_before_accept():
    with connections(0) as (listener, _, _):
        port = listener.getsockname()[1]
        for _ in range(8):
            socket.create_connection(("127.0.0.1", port)).close()
        wait_until(lambda: len(sockets("close-wait", f"sport = :{port}")) == 8)
        assert not Doctor("--sample", "500ms", "--port", port).ids & NEW
        time.sleep(2)
        doctor = Doctor("--sample", "500ms", "--port", port)
        finding = doctor.finding("dead-in-accept-queue")
        assert finding["used"] == len(sockets("close-wait", f"sport = :{port}")) == 8
        assert finding["used"] == doctor.resource("accept_queue", f":{port}")["used"]
        assert finding["owners"][0]["pid"] == os.getpid()
        assert doctor.ids & NEW == {"dead-in-accept-queue"} and ours(port).status == 1
        for _ in range(8):
            listener.accept()[0].close()
        assert not Doctor("--sample", "0", "--port", port).ids & NEW
