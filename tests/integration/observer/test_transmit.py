# SPDX-License-Identifier: MIT
"""A response after the server's last write: transmit_queue and ack.

Client and server have their own network namespaces, joined by a veth pair whose queues the test shapes. The
kernel's packet stamps give the time when a packet left the queue and when it was acknowledged. The lab server's
clock gives the time when it was written. Each test runs for both sources; TX timestamps need a cgroup, which is
the test's own.
"""
import functools
import json
import math
import socket
import statistics
import struct
import time

import pytest

from ..conftest import CLONE_NEWNET, LIBC, checked
from support.cgroup import Cgroup, cgroup2
from support.conditions import skip_if
from support.documents import service
from support.first import CAME, SENT, FirstProcess
from support.net import Netns, veth
from support.packets import Packets, port_of
from support.process import run
from support.programs import OBSERVER, Driver, Lab, Observer
from support.timing import MS, US, close_to, in_quiet, in_time, lies_within, timing
from .test_stages import mean, stage, truth_of

STAMPS = "sockops"
PACKETS = "tp_btf/net_dev_start_xmit+tcp_probe"
SERVER = "10.200.0.1"
MBIT = 1e6 / 8 / 1e9  # bytes per nanosecond


@functools.lru_cache(maxsize=None)
def probed():
    """Return what the probe says. It verifies every candidate, which takes seconds."""
    return run([OBSERVER, "probe"], check=False).stdout


def works(hook):
    return f"{hook} " in probed() and "refused" not in probed().split(f"{hook} ")[1].splitlines()[0]


@pytest.fixture(params=[STAMPS, PACKETS], ids=["stamps", "packets"])
def hook(request):
    if not works(request.param):
        pytest.skip(f"this kernel refuses {request.param}")
    return request.param


class Path:
    """A lab server in a cgroup and a namespace, a client's namespace, and the path between them."""

    def __init__(self):
        self.server, self.client = Netns("server"), Netns("client")
        self.cgroup = Cgroup(self.server)
        self.first = FirstProcess()
        self.lab = None

    def __enter__(self):
        self.cgroup.__enter__()
        self.server.__enter__()
        self.client.__enter__()
        veth(self.server, self.client, (f"{SERVER}/30", "10.200.0.2/30"))
        self.first.__enter__()
        return self

    def __exit__(self, *exception):
        self._end_lab()
        self.first.__exit__()
        self.client.close()
        self.server.close()
        self.cgroup.__exit__()

    def shape(self, netns, *words):
        netns.exec(["tc", "qdisc", "replace", "dev", "veth0", "root", *words])

    def neighbour(self, address):
        """Set the link address to which the server sends for the client; with another one the packets are lost."""
        self.server.exec(["ip", "neigh", "replace", "10.200.0.2", "lladdr", address, "dev", "veth0",
                          "nud", "permanent"])

    def serve(self, *options):
        self._end_lab()  # of the previous try
        self.lab = Lab(*options, address=SERVER, netns=self.cgroup)
        return self.lab

    def packets(self):
        """Capture at the server's end of the path, after its queue."""
        return Packets(self.lab.port, "veth0", self.server)

    def _end_lab(self):
        if self.lab:
            self.lab.close()

    def observe(self, *options, transmit="all"):
        return Observer("--transmit", transmit, *options, ports=[self.lab.port],
                        netns=self.server)

    def drive(self, query="", *options, **named):
        result = Driver(f"{self.lab.url}{query}", *options, netns=self.client, **named).result
        return result["round_trip"]["mean_ns"], result["requests"]

    def connect(self):
        with open("/proc/thread-self/ns/net", encoding="ascii") as home, \
                open(self.client.path, encoding="ascii") as there:
            checked(LIBC.setns(there.fileno(), CLONE_NEWNET))
            try:
                return socket.create_connection((SERVER, self.lab.port), timeout=10)
            finally:
                checked(LIBC.setns(home.fileno(), CLONE_NEWNET))


@pytest.fixture(name="path")
def path_fixture():
    if cgroup2() is None:
        pytest.skip("no cgroups of version 2 are mounted")
    with Path() as made:
        yield made


def read(observer, path):
    """Return the observer's entry at the end, after the server has seen its clients go. On a busy machine that takes a
    while. A test may have left one, whose connection stays."""
    port, until = path.lab.port, time.monotonic() + 2
    time.sleep(0.2)
    while time.monotonic() < until and path.server.exec(["ss", "-Htn", "state", "connected", "exclude", "time-wait",
                                                         f"sport = :{port}"]).stdout:
        time.sleep(0.05)
    observer.stop()
    entry = service(observer.summary(), port)
    observer.close()
    return entry


def unseen(path, hook):
    """Return how many responses may leave unseen, and how many acknowledgements may come so: none with TX timestamps. A
    tracepoint's program does not run for packets that interrupt the first process of a sandbox (test_seen.py)."""
    if hook == STAMPS:
        return 0, 0
    sent = path.first.count(SENT, "dev=veth0 ")
    return sent, sent + path.first.count(CAME, rf"src={SERVER}:{path.lab.port} ")


def all_seen(entry, path, hook):
    sent, came = unseen(path, hook)
    assert entry["losses"]["transmit_unseen"] <= sent and entry["losses"]["ack_unseen"] <= came
    return True


def on_the_wire(packets, truth):
    """Add to the lab server's truth when each response's last byte left and was acknowledged."""
    departures, acknowledgements = packets.departures(), packets.acknowledgements()
    begins = {(row["peer"], row["exchange"]): row["first_write_begin_ns"] for row in truth}
    for row in truth:
        until_ns = begins.get((row["peer"], row["exchange"] + 1), math.inf)
        last = [packet for packet in departures[port_of(row)]
                if row["first_write_begin_ns"] <= packet.at_ns < until_ns][-1]
        row["left_ns"] = last.at_ns
        row["acked_ns"] = next(packet.at_ns for packet in acknowledgements[port_of(row)]
                               if packet.at_ns > last.at_ns and (packet.acked - last.end) % 2**32 < 2**31)
    return truth


def median(rows, begin, end):
    return statistics.median_low(max(0, row[end] - row[begin]) for row in rows)


def median_within(entry, name, least_ns, most_ns):
    """The median, unlike the mean of 20 responses, does not move if the machine pauses between our stamp and
    the capture's. It is given as the upper edge of its bucket."""
    return lies_within(stage(entry, name)["p50_ns"], least_ns, most_ns * (1 + 1 / 64))


def left_in_time(entry, truth):
    """From the server's last write call to the packet's stamp, for responses of one write."""
    return median_within(entry, "transmit_queue", median(truth, "last_write_end_ns", "left_ns"),
                         median(truth, "first_write_begin_ns", "left_ns"))


def acknowledged_in_time(entry, truth):
    """The capture stamps the acknowledgement before IP and TCP handle it, which takes them microseconds."""
    waited_ns = median(truth, "left_ns", "acked_ns")
    return median_within(entry, "ack", waited_ns, waited_ns + 10 * US)


def accounted(entry):
    """Every followed response has its time, or is counted as having none. Where no program saw a connection end
    (docs/kernels.md), its last one is not yet over."""
    followed = entry["transmit_followed"]
    unended = entry["accepted"] - sum(entry["closes"].values()) - entry["connections"] - entry["open"]["closing"]
    for name, unseen in (("transmit_queue", "transmit_unseen"), ("ack", "ack_unseen")):
        assert 0 <= followed - stage(entry, name)["count"] - entry["losses"][unseen] <= max(unended, 0)
    return True


@in_quiet
def test_shaped_response(path, hook, tmp_path):
    """25,000 bytes at 20 Mbit/s: the wait is in transmit_queue, and nowhere else."""
    path.shape(path.server, "tbf", "rate", "20mbit", "burst", "5kb", "latency", "2s")
    path.serve("--service", "1ms", "--truth", tmp_path / "truth.csv")
    observer = path.observe("--prefer", hook)
    with path.packets() as packets:
        round_trip_ns, requests = path.drive("?size=25000", connections=1, count=60)
    entry = read(observer, path)
    truth = on_the_wire(packets, truth_of(path.lab, tmp_path / "truth.csv"))
    waited_ns = stage(entry, "transmit_queue")["mean_ns"]

    assert requests == entry["exchanges"] == entry["transmit_followed"] == 60
    assert stage(entry, "transmit_queue")["source"] == hook
    assert accounted(entry) and all_seen(entry, path, hook)
    assert left_in_time(entry, truth) and acknowledged_in_time(entry, truth)
    # The burst goes at once; each segment has about 70 bytes of headers.
    at_least_ns, at_most_ns = (25000 - 5 * 1024) / (20 * MBIT), 25000 * 1.06 / (20 * MBIT)
    with timing():
        assert at_least_ns * 0.95 < waited_ns < at_most_ns * 1.1 + 0.5 * MS
        residence_ns = sum(stage(entry, name)["sum_ns"] for name in
                           ("socket_queue", "receive", "service", "respond")) / 60
        assert residence_ns < 3 * MS
        network_ns = round_trip_ns - residence_ns - waited_ns
        assert abs(network_ns) < 0.1 * round_trip_ns


@in_quiet
def test_shaped_request(path, hook, tmp_path):
    """The other direction: the wait is in receive, and transmit_queue stays empty."""
    path.shape(path.client, "tbf", "rate", "20mbit", "burst", "5kb", "latency", "2s")
    path.serve("--truth", tmp_path / "truth.csv")
    observer = path.observe("--prefer", hook)
    with path.packets() as packets:
        round_trip_ns, requests = path.drive("", "--body", "x" * 25000, connections=1, count=40)
    entry = read(observer, path)
    truth = on_the_wire(packets, truth_of(path.lab, tmp_path / "truth.csv"))
    assert requests == entry["transmit_followed"] == 40 and accounted(entry)
    assert close_to(stage(entry, "receive")["mean_ns"], mean(truth, "first_read_end_ns", "last_read_end_ns"))
    assert left_in_time(entry, truth)
    with timing():
        assert round_trip_ns > 8 * MS
        assert stage(entry, "receive")["mean_ns"] > 0.5 * round_trip_ns
        assert stage(entry, "transmit_queue")["mean_ns"] < 0.05 * round_trip_ns


def ask(client):
    client.sendall(b"GET /?size=100 HTTP/1.1\r\nHost: lab\r\n\r\n")
    assert client.recv(65536)


@in_quiet
def test_delayed_ack(path, hook, tmp_path):
    """A queue on the client's side delays its acknowledgements, which its requests carry. The stage ack lasts until
    the kernel stamped them, close to the RTT that the server's TCP measured."""
    path.shape(path.client, "tbf", "rate", "64kbit", "burst", "300", "latency", "5s")
    path.serve("--truth", tmp_path / "truth.csv")
    observer = path.observe("--prefer", hook)
    with path.packets() as packets:
        with path.connect() as client:
            for _ in range(40):
                ask(client)
            text = path.server.exec(["ss", "-Htin", "sport", "=", f":{path.lab.port}"]).stdout
        entry = read(observer, path)
    truth = on_the_wire(packets, truth_of(path.lab, tmp_path / "truth.csv"))
    rtt_ns = float(text.split(" rtt:")[1].split("/")[0]) * MS
    assert entry["transmit_followed"] == 40 and accounted(entry) and all_seen(entry, path, hook)
    assert left_in_time(entry, truth) and acknowledged_in_time(entry, truth)
    with timing():
        assert rtt_ns > 5 * MS
        assert 0.5 * rtt_ns < stage(entry, "ack")["p50_ns"] < 2 * rtt_ns


@in_quiet
def test_closing_server(path, hook, tmp_path):
    """The server closes after its last write, long before the data has left."""
    path.shape(path.server, "tbf", "rate", "20mbit", "burst", "5kb", "latency", "2s")
    path.serve("--truth", tmp_path / "truth.csv")
    observer = path.observe("--prefer", hook)
    with path.packets() as packets:
        _, requests = path.drive("?size=25000&close=1", "--new-connections", connections=1, count=20)
    entry = read(observer, path)
    truth = on_the_wire(packets, truth_of(path.lab, tmp_path / "truth.csv"))
    assert requests == entry["transmit_followed"] == 20 and accounted(entry)
    assert all_seen(entry, path, hook)
    assert left_in_time(entry, truth) and acknowledged_in_time(entry, truth)
    with timing():
        assert stage(entry, "transmit_queue")["p50_ns"] > 7 * MS


@in_time
def test_pieces(path, hook):
    """Data sent between the writes is `respond`; after the last write nothing waits."""
    path.serve()
    observer = path.observe("--prefer", hook)
    path.drive("?pieces=4&pause=5ms&size=4000", connections=2, count=20)
    entry = read(observer, path)
    assert entry["transmit_followed"] == 20 and accounted(entry)
    assert stage(entry, "respond")["p50_ns"] >= 14 * MS
    with timing():
        assert stage(entry, "transmit_queue")["p50_ns"] < 1 * MS


@in_quiet
def test_reset_before_it_left(path, hook):
    """The client goes while most of the response waits: the last byte never leaves."""
    path.shape(path.server, "tbf", "rate", "1mbit", "burst", "5kb", "latency", "5s")
    path.serve()
    observer = path.observe("--prefer", hook)
    for _ in range(5):
        with path.connect() as client:
            client.sendall(b"GET /?size=40000 HTTP/1.1\r\nHost: lab\r\n\r\n")
            client.recv(1000)
            time.sleep(0.1)  # so that the server's write returns, in a third of the time that its bytes take
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.2)
    entry = read(observer, path)
    assert entry["transmit_followed"] == 5 and accounted(entry)
    assert entry["losses"]["transmit_unseen"] == entry["losses"]["ack_unseen"] == 5
    assert entry["closes"]["reset_by_client"] == 5


@in_quiet
def test_retransmitted(path, hook):
    """The first copy of the response left at once, to a wrong address. The later second copy is no wait in the
    queue, but the acknowledgement is late."""
    path.serve()
    observer = path.observe("--prefer", hook)
    right = json.loads(path.client.exec(["ip", "-json", "link", "show", "dev", "veth0"])
                       .stdout)[0]["address"]
    with path.connect() as client:
        ask(client)
        path.neighbour("02:00:00:00:00:01")
        client.sendall(b"GET /?size=100 HTTP/1.1\r\nHost: lab\r\n\r\n")
        time.sleep(0.3)
        path.neighbour(right)
        assert client.recv(65536)
    entry = read(observer, path)
    assert entry["transmit_followed"] == 2 and accounted(entry)
    assert entry["retransmits"] >= 1
    with timing():
        assert stage(entry, "ack")["max_ns"] > 290 * MS
        assert stage(entry, "transmit_queue")["max_ns"] < 50 * MS


@in_quiet
def test_both_see_the_same(path):
    """Two observers of the same traffic, one per source."""
    if not works(STAMPS):
        pytest.skip("this kernel has no TX timestamps")
    path.shape(path.server, "tbf", "rate", "40mbit", "burst", "5kb", "latency", "2s")
    path.serve("--service", "500us")
    observers = [path.observe("--prefer", hook) for hook in (STAMPS, PACKETS)]
    path.drive("?size=20000", connections=2, count=200)
    stamped, seen = (read(observer, path) for observer in observers)
    for entry in (stamped, seen):
        assert entry["transmit_followed"] == entry["exchanges"] == 200 and accounted(entry)
        with timing():
            assert entry["losses"]["transmit_unseen"] <= 10  # counted but not timed
    for name in ("transmit_queue", "ack"):
        mine, theirs = stage(stamped, name)["mean_ns"], stage(seen, name)["mean_ns"]
        with timing():
            assert abs(mine - theirs) < 0.05 * theirs + 50 * US


@in_quiet
def test_large_response(path, hook):
    """The response exceeds the send buffer, so a nonblocking server writes it in many parts. A part that fills
    the buffer may leave without a time stamp, as tcp_tx_timestamp() finds nothing unsent. If that is the last
    part, it is counted as unseen."""
    path.shape(path.server, "tbf", "rate", "200mbit", "burst", "20kb", "latency", "2s")
    path.serve()
    observer = path.observe("--prefer", hook)
    round_trip_ns, _ = path.drive("?size=1000000", connections=1, count=10)
    entry = read(observer, path)
    assert entry["transmit_followed"] == 10 and accounted(entry)
    assert entry["losses"]["transmit_unseen"] <= (unseen(path, hook)[0] if hook == PACKETS else 5)
    after_first_write_ns = stage(entry, "respond")["mean_ns"] + \
        stage(entry, "transmit_queue")["mean_ns"]
    with timing():
        assert after_first_write_ns > 0.9 * 1e6 / (200 * MBIT)
        assert after_first_write_ns < 1.05 * round_trip_ns


def test_half_close(path, hook):
    """The client's FIN comes with its request. Its acknowledgement of the response is then only seen on packets
    together with that of the server's FIN. If it came before that FIN was sent, it is unseen."""
    path.serve()
    observer = path.observe("--prefer", hook)
    for _ in range(10):
        with path.connect() as client:
            client.sendall(b"GET /?size=100&close=1 HTTP/1.1\r\nHost: lab\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    entry = read(observer, path)
    assert entry["exchanges"] == entry["transmit_followed"] == 10 and accounted(entry)
    assert entry["losses"]["transmit_unseen"] == 0
    assert hook == PACKETS or entry["losses"]["ack_unseen"] == 0


def test_share(path, hook):
    """1/16 of the exchanges, at random: within six standard deviations of 250."""
    path.serve()
    observer = path.observe("--prefer", hook, transmit="1/16")
    path.drive("", connections=8, count=4000)
    entry = read(observer, path)
    assert entry["exchanges"] == 4000 and accounted(entry)
    assert abs(entry["transmit_followed"] - 250) < 6 * 15.3


def test_existing_connection(path, hook):
    """The connection is older than the observation: TX timestamps have to be enabled on its socket."""
    path.serve()
    with path.connect() as client:
        observer = path.observe("--prefer", hook)
        for _ in range(3):
            ask(client)
    entry = read(observer, path)
    assert entry["transmit_followed"] == 3 and accounted(entry)
    assert entry["losses"]["transmit_unseen"] == 0


def test_nothing_is_left_in_the_cgroup(path):
    if not works(STAMPS):
        pytest.skip("this kernel has no TX timestamps")
    path.serve()
    observer = path.observe("--cgroup", path.cgroup.path)
    path.drive("", connections=1, count=10)
    attached = run(["bpftool", "cgroup", "show", path.cgroup.path]).stdout
    assert "transmit_stamps" in attached
    entry = read(observer, path)
    assert stage(entry, "transmit_queue")["source"] == STAMPS
    assert not run(["bpftool", "cgroup", "show", path.cgroup.path]).stdout.strip()


def test_root_cgroup_is_not_attached_to(start):
    """Packets are observed instead, and the observer says why."""
    lab = start(Lab())
    observer = start(Observer("--transmit", "all", ports=[lab.port]))
    Driver(lab.url, connections=1, count=10)
    observer.stop()
    entry = service(observer.summary(), lab.port)
    assert stage(entry, "transmit_queue")["source"] == PACKETS
    if works(STAMPS):
        assert "not by TX timestamps: " in observer.stderr
        assert "root cgroup" in observer.stderr


def test_off_by_default(start):
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    Driver(lab.url, connections=1, count=10)
    observer.stop()
    entry = service(observer.summary(), lab.port)
    assert entry["transmit_followed"] == 0
    for name in ("transmit_queue", "ack"):
        assert entry["stages"][name] == {"measured": False, "source": None,
                                         "reason": "not asked for: --transmit"}


@pytest.mark.parametrize("words, message", [
    (["--transmit", "1/1"], "1/N with N from 2 to 65536"),
    (["--transmit", "0.5"], "1/N with N from 2 to 65536"),
    (["--transmit", "all", "--cgroup", "web"], "the path of a cgroup's directory"),
    (["--transmit", "all", "--cgroup", "/proc"], "'/proc' is not a cgroup of version 2"),
    (["--transmit", "all", "--cgroup", str(cgroup2())], "is the root cgroup"),
])
def test_refused(words, message):
    result = run([OBSERVER, "observe", "--port", "20000", "--for", "1s", *words], check=False)
    assert result.status == 2
    assert message in result.stderr
