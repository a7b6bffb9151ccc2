# SPDX-License-Identifier: MIT
"""Ports and network namespaces of a test, always removed."""
import errno
import itertools
import os
import random
import socket
import struct
import threading

from .process import Process, run, wait_until

# Below Linux's ephemeral range, so that no connection of a test takes a listener's port.
PORTS = range(20000, 30000)
# linux/netlink.h, sock_diag.h, inet_diag.h
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, INET_DIAG_INFO = 4, 20, 1, 2
ALL_STATES = NO_COOKIE = 0xFFFFFFFF
BYTES_RECEIVED, BYTES_SENT = 128, 200  # offsets in struct tcp_info; bytes_retrans follows
_given = set()


def free_port():
    """Return a port without a socket on any address and without TIME_WAIT; each is returned once."""
    for _ in range(10 * len(PORTS)):
        port = random.choice(PORTS)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise RuntimeError("no free port between 20000 and 29999")


def accepts(port):
    """Return whether anybody listens there."""
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def serve_each(listener, treat):
    """Call treat(connection) in a thread of its own for each connection, until @listener is closed. Return the list that
    gets the connections.

    A thread that is in accept(2) when another one closes the listener stays there. If the call is interrupted, the kernel
    starts it again with the descriptor's number. The next test's listener may have that by now, and loses a connection.
    With a time limit Python waits in poll(2), and then finds that the listener is closed.
    """
    accepted = []
    listener.settimeout(1)

    def accept():
        while listener.fileno() >= 0:
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                continue
            except OSError:
                return
            accepted.append(connection)
            threading.Thread(target=treat, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return accepted


def unread(local, remote):
    """Return (unread bytes, received bytes) of a TCP socket over IPv4, by the kernel's sock_diag.

    /proc/net/tcp takes longer than a test's wait. See struct inet_diag_req_v2, inet_diag_msg, tcp_info.
    """
    ends = struct.pack("!HH4s12x4s12x", local[1], remote[1], *(socket.inet_aton(end[0]) for end in (local, remote)))
    request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << INET_DIAG_INFO - 1, ALL_STATES) + \
        ends + struct.pack("=III", 0, NO_COOKIE, NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as diag:
        diag.send(struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + request)
        answer = diag.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != SOCK_DIAG_BY_FAMILY:
        raise LookupError(f"no socket of {local} and {remote}")
    at = 16 + 72
    while struct.unpack_from("=HH", answer, at)[1] != INET_DIAG_INFO:
        at += struct.unpack_from("=H", answer, at)[0] + 3 & ~3
    return struct.unpack_from("=I", answer, 16 + 56)[0], struct.unpack_from("=Q", answer, at + 4 + BYTES_RECEIVED)[0]


def close_before_data(closing, sending):
    """@closing sends its FIN, and @sending acknowledges it with data. Both have answered each other before, so the
    acknowledgement waits for that data."""
    for _ in range(3):
        for one, other in ((sending, closing), (closing, sending)):
            one.sendall(b"message")
            other.recv(100)
    closing.close()
    sending.recv(1)
    sending.sendall(b"goodbye")


def wait_until_read(client):
    """Wait until the server, on this host, has read all that was sent to it."""
    ends = client.getpeername(), client.getsockname()
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    sent, again = struct.unpack_from("=QQ", info, BYTES_SENT)
    wait_until(lambda: unread(*ends) == (0, sent - again), poll_seconds=0.0005)


def _is_free(port):
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT:
                continue  # a host without IPv6
            return False
    return True


class Netns:
    """A network namespace with its loopback up; deleted at the end of `with`."""

    _numbers = itertools.count()

    def __init__(self, name="test"):
        self.name = f"sojourn-{name}-{os.getpid()}-{next(Netns._numbers)}"
        self.exists = False

    def __enter__(self):
        run(["ip", "netns", "add", self.name])
        self.exists = True
        try:
            run(["ip", "link", "set", "lo", "up"], netns=self)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Delete the namespace; idempotent. Its interfaces and their peers go, too."""
        if self.exists:
            self.exists = False
            run(["ip", "netns", "delete", self.name])

    @property
    def path(self):
        return f"/run/netns/{self.name}"

    @property
    def inode(self):
        return os.stat(self.path).st_ino

    def prefix(self):
        """Return the words before a command. Unlike `ip netns exec` they keep the mounts, including bpffs and
        /sys, and the process keeps its pid."""
        return ["nsenter", f"--net={self.path}", "--"]

    def exec(self, argv, **options):
        return run(argv, netns=self, **options)

    def start(self, argv, **options):
        return Process(argv, netns=self, **options)


def veth(left, right, addresses=("10.200.0.1/30", "10.200.0.2/30"), name="veth0"):
    """Join two namespaces by a veth pair with the same name at both ends; addresses may be IPv6. The pair goes
    when either namespace goes."""
    run(["ip", "link", "add", name, "netns", left.name, "type", "veth",
         "peer", "name", name, "netns", right.name])
    for netns, address in zip((left, right), addresses):
        # nodad: an IPv6 address is usable at once
        flags = ["nodad"] if ":" in address else []
        netns.exec(["ip", "address", "add", address, "dev", name, *flags])
        netns.exec(["ip", "link", "set", name, "up"])


class Host(Netns):
    """A network namespace whose processes have a host name and an address of their own; see Lan."""

    def __init__(self, name, address):
        super().__init__(name)
        self.host, self.address = name, address

    def prefix(self):
        return [*super().prefix(), "unshare", "--uts", "sh", "-c", f'hostname {self.host} && exec "$@"', "sh"]


class Lan:
    """Hosts at one switch. They go with the ExitStack."""

    def __init__(self, stack, network):
        self.stack, self.network, self.ports = stack, network, {}
        self.switch = stack.enter_context(Netns("switch"))
        self.switch.exec(["ip", "link", "add", "bridge", "type", "bridge"])
        self.switch.exec(["ip", "link", "set", "bridge", "up"])

    def host(self, name):
        host = self.stack.enter_context(Host(name, f"{self.network}.{len(self.ports) + 1}"))
        port = self.ports[host] = f"port{len(self.ports) + 1}"
        run(["ip", "link", "add", port, "netns", self.switch.name, "type", "veth", "peer", "name", "wire", "netns", host.name])
        self.switch.exec(["ip", "link", "set", port, "master", "bridge", "up"])
        host.exec(["ip", "address", "add", f"{host.address}/24", "dev", "wire"])
        host.exec(["ip", "link", "set", "wire", "up"])
        return host

    def cut(self, host):
        """Part the host from all others, as if its cable were pulled at the switch."""
        self.switch.exec(["ip", "link", "set", self.ports[host], "down"])

    def mend(self, host):
        self.switch.exec(["ip", "link", "set", self.ports[host], "up"])
        # The kernel remembers for a second that the host could not be reached.
        for end in (host, *(other for other in self.ports if other is not host)):
            end.exec(["ip", "neigh", "flush", "all"])
