# SPDX-License-Identifier: MIT
"""When packets pass an interface, by the kernel's own stamps (AF_PACKET, SO_TIMESTAMPNS). They are a truth on
arrival, departure and acknowledgement, independent of the observer and the server.

An incoming packet is stamped before TCP or UDP sees it, an outgoing one as the driver takes it.
"""
import contextlib
import ctypes
import os
import socket
import struct
import time
from typing import NamedTuple

from .timing import US, Untimely

ETH_P_ALL = 3
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
SYN = 2


class Packet(NamedTuple):
    """A TCP or UDP packet; `at_ns` is of CLOCK_MONOTONIC, `end` the sequence number after its data."""

    at_ns: int
    comes_in: bool
    source: int
    target: int
    size: int  # of the data
    syn: bool = False
    end: int = 0
    acked: int = 0


def transport(data):
    """Return (protocol, the IP packet's payload, its length)."""
    if data[0] >> 4 == 4:
        size = 4 * (data[0] & 15)
        return data[9], data[size:], struct.unpack_from("!H", data, 2)[0] - size
    return data[6], data[40:], struct.unpack_from("!H", data, 4)[0]


def packet(data, at_ns, comes_in):
    """Return a Packet; None if it is neither TCP nor UDP."""
    if len(data) < 28:
        return None
    protocol, rest, size = transport(data)
    if protocol == socket.IPPROTO_UDP:
        return Packet(at_ns, comes_in, *struct.unpack_from("!HH", rest), size - 8)
    if protocol != socket.IPPROTO_TCP:
        return None
    source, target, sequence, acked, offset, flags = struct.unpack_from("!HHIIBB", rest)
    size -= 4 * (offset >> 4)
    return Packet(at_ns, comes_in, source, target, size, bool(flags & SYN), sequence + size, acked)


def real_minus_monotonic():
    def reading():
        before, real, after = (time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME),
                               time.monotonic_ns())
        return after - before, real - (before + after) // 2
    return min(reading() for _ in range(20))[1]


@contextlib.contextmanager
def network_of(netns):
    """Move this thread into the namespace within `with`; None: leave the thread where it is."""
    if netns is None:
        yield
        return
    with open("/proc/thread-self/ns/net", encoding="ascii") as home, open(netns.path, encoding="ascii") as there:
        if LIBC.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            if LIBC.setns(home.fileno(), CLONE_NEWNET):
                os._exit(1)  # this process's further work would be in the wrong namespace


def once(packets):
    """Return the packets without repeated data: TCP sends the last packet again if no answer comes."""
    ends = set()
    return [each for each in packets
            if not (each.end and each.size) or not (each.end in ends or ends.add(each.end))]


def stamps_are_made():
    """Whether the kernel stamps packets yet: it starts a little after the request. Until then a stamp is the
    time of the reading."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        probe.bind(("127.0.0.1", 0))
        probe.sendto(b"", probe.getsockname())
        time.sleep(0.002)
        seconds, nanoseconds = struct.unpack("ll", probe.recvmsg(8, 64)[1][0][2])
        return time.clock_gettime_ns(time.CLOCK_REALTIME) - seconds * 1_000_000_000 - nanoseconds > 1_500 * US


class Packets:
    """with Packets(port) as packets: …; then packets.arrivals(): packets of the server's port on one interface."""

    def __init__(self, port, interface="lo", netns=None):
        self.port, self.seen = port, []
        with network_of(netns):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self.socket.bind((interface, ETH_P_ALL))
        deadline = time.monotonic() + 5
        while not stamps_are_made():
            assert time.monotonic() < deadline, "packets are not stamped"
        self.offset_ns = real_minus_monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        """Read the queued packets; none may be missing."""
        with self.socket:
            offset_ns = real_minus_monotonic()
            self._read()
            _, lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        assert lost == 0
        if abs(offset_ns - self.offset_ns) > 2 * US:
            raise Untimely(f"the clock was set by {offset_ns - self.offset_ns} ns meanwhile")

    def _read(self):
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _, address = self.socket.recvmsg(256, 64)
                seconds, nanoseconds = struct.unpack("ll", ancillary[0][2])
                found = packet(data, seconds * 1_000_000_000 + nanoseconds - self.offset_ns,
                               address[2] != socket.PACKET_OUTGOING)
                if found and self.port in (found.source, found.target):
                    self.seen.append(found)

    def _by_client(self, wanted):
        found = {}
        for each in self.seen:
            if wanted(each):
                found.setdefault(each.source if each.target == self.port else each.target, []).append(each)
        return {client: once(packets) for client, packets in found.items()}

    def arrivals(self):
        """Return {the client's port: packets with data for the server, without retransmissions}."""
        return self._by_client(lambda p: p.comes_in and p.target == self.port and p.size)

    def departures(self):
        """Return {the client's port: packets with data from the server}."""
        return self._by_client(lambda p: not p.comes_in and p.source == self.port and p.size)

    def acknowledgements(self):
        """Return {the client's port: packets for the server that are no SYN}: the first one ends the handshake."""
        return self._by_client(lambda p: p.comes_in and p.target == self.port and not p.syn)


def port_of(row):
    """Return the client's port in a row of the lab server's truth."""
    return int(row["peer"].rpartition(":")[2])
