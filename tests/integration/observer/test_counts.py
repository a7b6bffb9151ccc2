# SPDX-License-Identifier: MIT
"""Counts of the observer equal those of the client and of nginx exactly."""
import os
import signal
import sys

import pytest

from ..conftest import kernel_counter, open_descriptors, sockets
from support import ROOT
from support.conditions import needs_program
from support.documents import service
from support.process import held_maps, run, wait_until
from support.programs import Driver, Lab, Nginx, Observer, wrk
from .scene import Scene

REQUESTS = 200_000


def lossless(document, entry):
    """Nothing was missed; otherwise an equality would hold by chance."""
    assert document["cost"]["programs"], "no program is reported"
    assert all(p["recursion_misses"] == 0 for p in document["cost"]["programs"])
    assert entry["losses"]["storage_failed"] == 0
    assert entry["losses"]["untimed"] == 0


@pytest.mark.timeout(120)
def test_driver_keep_alive(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, connections=64, count=REQUESTS, observer=observer)
    map_bytes = sum(held_maps(observer.pid).values())
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    status = nginx.status()

    assert driver.result["requests"] == REQUESTS
    assert status["requests"] == REQUESTS
    assert entry["exchanges"] == REQUESTS
    assert entry["accepted"] == status["accepts"] == 64
    assert entry["stages"]["service"]["count"] == REQUESTS
    assert entry["stages"]["receive"]["count"] == REQUESTS
    assert entry["stages"]["respond"]["count"] == REQUESTS
    assert entry["bytes_out"] == driver.result["bytes_in"]
    assert entry["bytes_in"] == driver.result["bytes_out"]
    lossless(observer.summary(), entry)
    assert map_bytes == observer.summary()["cost"]["map_bytes"]
    # The merged report covers the same requests, from the observer's phase alone.
    assert service(driver.document, nginx.port)["exchanges"] == REQUESTS


@pytest.mark.timeout(120)
def test_driver_connection_per_request(start):
    count = 20_000
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, "--new-connections", connections=16, count=count, observer=observer)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    status = nginx.status()

    assert driver.result["requests"] == count
    assert entry["exchanges"] == status["requests"] == count
    assert entry["accepted"] == status["accepts"] == count
    assert sum(entry["closes"].values()) == count
    lossless(observer.summary(), entry)


@pytest.mark.timeout(120)
def test_many_connections(start):
    """Among so many connections some hundred collide with another one's place (bpf/tcp/connection/place.h)."""
    count = 60_000
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, connections=2000, count=count, observer=observer)
    # nginx forgets a connection before the client's end has acknowledged its FIN: the close comes after that.
    wait_until(lambda: not run(["ss", "-Htn", "state", "connected", "exclude", "time-wait",
                                f"sport = :{nginx.port}"]).stdout)
    observer.stop()
    entry, joined = service(observer.summary(), nginx.port), driver.document["joined"]

    assert entry["exchanges"] == nginx.status()["requests"] == driver.result["requests"] == count
    assert entry["accepted"] == sum(entry["closes"].values()) == 2000
    assert entry["bytes_out"] == driver.result["bytes_in"]
    assert entry["bytes_in"] == driver.result["bytes_out"]
    assert joined["joined"] > count / 100
    assert joined["driver_only"] == joined["observer_only"] == joined["implausible"] == 0
    lossless(observer.summary(), entry)


@needs_program("wrk")
@pytest.mark.timeout(120)
def test_wrk_keep_alive(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    seen = runs = 0
    while seen < REQUESTS / 2:
        seen += wrk(nginx.url, connections=64, seconds=1)["requests"]
        runs += 1
    wait_until(lambda: nginx.status()["active"] == 0)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    status = nginx.status()

    # wrk exits at its deadline with requests in flight. nginx counts those that it has read; wrk counts none.
    # The observer counts them as answered or, where the client was gone, as unanswered.
    unanswered = entry["losses"]["unanswered"]
    assert entry["exchanges"] <= status["requests"] <= entry["exchanges"] + unanswered
    assert unanswered <= 64 * runs
    assert 0 <= entry["exchanges"] - seen <= 64 * runs
    assert entry["accepted"] == status["accepts"]
    lossless(observer.summary(), entry)


@needs_program("wrk")
def test_wrk_connection_per_request(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    wrk(nginx.url, connections=16, seconds=1, headers=["Connection: close"])
    wait_until(lambda: nginx.status()["active"] == 0)  # wrk exits before its last requests are read
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    status = nginx.status()

    unanswered = entry["losses"]["unanswered"]
    assert unanswered <= 16
    assert entry["exchanges"] <= status["requests"] <= entry["exchanges"] + unanswered
    assert entry["accepted"] == status["accepts"]
    assert sum(entry["closes"].values()) == status["accepts"]
    lossless(observer.summary(), entry)


def test_several_workers_and_ports(start):
    """Counts are per port, and exact when several processes serve one port."""
    first, second = start(Nginx(workers=2)), start(Nginx(workers=2))
    observer = start(Observer(ports=[first.port, second.port]))
    Driver(first.url, connections=16, count=5000)
    Driver(second.url, connections=16, count=7000)
    observer.stop()
    document = observer.summary()

    assert service(document, first.port)["exchanges"] == 5000
    assert service(document, second.port)["exchanges"] == 7000
    served = {process["pid"] for process in service(document, first.port)["processes"]}
    assert set(first.workers()) <= served
    assert not set(second.workers()) & served


def test_a_process_that_has_ended_is_none_of_the_services(start):
    """Its parent, this test, has not waited for it: /proc still has it, without descriptors."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    Driver(lab.url, count=10)
    assert service(observer.document(), lab.port)["processes"]
    os.kill(lab.pid, signal.SIGKILL)
    os.waitid(os.P_PID, lab.pid, os.WEXITED | os.WNOWAIT)
    observer.stop()
    assert service(observer.summary(), lab.port)["processes"] == []
    assert "fds" not in observer.stdout


def test_ipv6(start):
    nginx = start(Nginx(addresses=("::1",)))
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, connections=8, count=3000)
    observer.stop()
    entry = service(observer.summary(), nginx.port)

    assert driver.result["requests"] == 3000
    assert entry["exchanges"] == 3000
    assert entry["accepted"] == 8
    assert entry["address"] == "::1"


def test_existing_connections_are_picked_up(start):
    import http.client

    nginx = start(Nginx())
    clients = [http.client.HTTPConnection("127.0.0.1", nginx.port) for _ in range(5)]
    for client in clients:
        client.request("GET", "/")
        client.getresponse().read()
    observer = start(Observer(ports=[nginx.port]))
    for client in clients:
        client.request("GET", "/")
        client.getresponse().read()
    observer.stop()
    entry = service(observer.summary(), nginx.port)

    assert entry["losses"]["preexisting"] == 5
    assert entry["accepted"] == 0
    assert entry["exchanges"] == 5
    assert entry["stages"]["service"]["count"] == 5
    assert entry["connections"] == len(sockets("established", f"sport = :{nginx.port}")) == 5
    for client in clients:
        client.close()


def test_connections_that_the_client_has_closed_are_open(start):
    scene = Scene(start)
    pairs = [scene.connect() for _ in range(3)]
    pairs[0][0].close()
    assert pairs[0][1].recv(1) == b""
    there = [len(sockets(state, f"sport = :{scene.port}")) for state in ("close-wait", "established")]
    scene.observer.stop()
    assert there == [1, 2]
    assert service(scene.observer.summary(), scene.port)["connections"] == sum(there)
    for end in scene.ends:
        end.close()


@pytest.mark.parametrize("words", [(), ("--all-netns",)])
def test_time_wait_equals_ss(start, netns, words):
    """If nginx closes first, the TIME_WAIT sockets are the service's; if the client does, they are not."""
    here = netns()
    nginx = start(Nginx(netns=here))
    observer = start(Observer(*words, ports=[nginx.port], netns=here))
    Driver(nginx.url, "-H", "Connection: close", "--new-connections", connections=4, count=500,
           netns=here)
    document = observer.document()
    shown = len(sockets("time-wait", f"sport = :{nginx.port}", here))
    entry = service(document, nginx.port)

    # Sometimes both ends close at once; on a busy machine one in six.
    assert 300 <= shown <= 500
    assert entry["time_wait"] == shown
    assert entry["time_wait_created"] == shown
    assert sum(entry["closes"].values()) == 500
    assert entry["closes"]["closed_by_server"] >= 300

    Driver(nginx.url, "--new-connections", connections=4, count=300, netns=here)
    entry = service(observer.document(), nginx.port)
    assert sum(entry["closes"].values()) == 800
    assert entry["closes"]["closed_by_client"] >= 200
    assert entry["time_wait"] == len(sockets("time-wait", f"sport = :{nginx.port}", here))
    assert entry["time_wait_created"] <= shown + 100
    observer.stop()


def test_fin_wait2_is_not_time_wait(start):
    """The server has closed, the client has not. The kernel keeps the same minisocket as for TIME_WAIT, but it
    waits for the client's FIN. `ss` does not show it as TIME-WAIT either."""
    import socket

    nginx = start(Nginx(server="lingering_close off;"))
    observer = start(Observer(ports=[nginx.port]))
    clients = [socket.create_connection(("127.0.0.1", nginx.port)) for _ in range(3)]
    for client in clients:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while client.recv(65536):
            pass
    while len(sockets("fin-wait-2", f"sport = :{nginx.port}")) < 3:
        pass  # the client's kernel delays the ACK of the FIN
    assert service(observer.document(), nginx.port)["time_wait"] == 0
    for client in clients:
        client.close()
    assert len(sockets("time-wait", f"sport = :{nginx.port}")) == 3
    entry = service(observer.document(), nginx.port)
    assert entry["time_wait"] == entry["time_wait_created"] == 3
    observer.stop()


def test_descriptors_equal_proc(start):
    import socket

    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    idle = [socket.create_connection(("127.0.0.1", nginx.port)) for _ in range(40)]
    Driver(nginx.url, connections=1, count=10)
    (worker,) = nginx.workers()
    while open_descriptors(worker) < 40:
        pass
    entry = service(observer.document(), nginx.port)
    (process,) = [p for p in entry["processes"] if p["pid"] == worker]

    assert process["open_fds"] == open_descriptors(worker)
    with open(f"/proc/{worker}/limits", encoding="ascii") as limits:
        (line,) = [line for line in limits if line.startswith("Max open files")]
    assert process["fd_limit"] == int(line.split()[3])
    for connection in idle:
        connection.close()
    observer.stop()


def test_accept_queue_depth_limit_and_overflows(start, netns):
    """A server never accepts: the queue fills up, then connections are dropped."""
    import json
    import subprocess
    import sys

    here = netns()
    server = start([*here.prefix(), sys.executable, "-c", (
        "import socket, time\n"
        "s = socket.socket()\n"
        "s.bind(('127.0.0.1', 0))\n"
        "s.listen(8)\n"
        "print(s.getsockname()[1], flush=True)\n"
        "time.sleep(60)\n")])
    port = int(server.wait_for(r"^(\d+)$")[1])
    observer = start(Observer(ports=[port], netns=here))
    before = kernel_counter("ListenDrops", here)
    client = start([*here.prefix(), sys.executable, "-c", (
        "import socket, time\n"
        "kept = [socket.socket() for _ in range(20)]\n"
        "for s in kept:\n"
        "    s.setblocking(False)\n"
        f"    s.connect_ex(('127.0.0.1', {port}))\n"
        "time.sleep(0.3)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n")])
    client.wait_for("^ready$")
    entry = service(observer.document(), port)
    dropped = kernel_counter("ListenDrops", here) - before
    shown = subprocess.run([*here.prefix(), "ss", "-Htln", f"sport = :{port}"], check=True,
                           capture_output=True, text=True).stdout.split()

    assert dropped > 0
    assert entry["accept_queue"]["depth"] == int(shown[1]) == 9  # a backlog of N admits N + 1
    assert entry["accept_queue"]["depth_max"] == 9
    assert entry["accept_queue"]["limit"] == int(shown[2]) == 8
    assert abs(entry["accept_queue"]["overflows"] - dropped) <= 2, json.dumps(entry["accept_queue"])
    assert entry["accepted"] == 9
    observer.stop()


def shown_by_ss(port, netns):
    """Return ((mean srtt, lowest min RTT in ns), unacknowledged bytes, connections) from `ss -tin`."""
    import re
    import subprocess

    text = subprocess.run([*netns.prefix(), "ss", "-Htin", "state", "established",
                           f"sport = :{port}"], check=True, capture_output=True, text=True).stdout
    srtt = [float(value) * 1e6 for value in re.findall(r"\brtt:([\d.]+)/", text)]
    lowest = [float(value) * 1e6 for value in re.findall(r"minrtt:([\d.]+)", text)]
    unacknowledged = sum(int(line.split()[1]) for line in text.splitlines()[::2])
    known = (sum(srtt) / len(srtt), min(lowest)) if lowest else None
    return known, unacknowledged, len(srtt)


@pytest.mark.timeout(90)
def test_round_trip_times_and_retransmissions_equal_ss(start, netns):
    """A large response passes a 5 Mbit/s queue that holds a few packets, so some are dropped."""
    import sys

    from support.net import veth
    from support.process import run, wait_until

    client, server = netns("client"), netns("server")
    veth(client, server)
    nginx = start(Nginx(addresses=("10.200.0.2", "127.0.0.1"), netns=server,
                        server="location /big { root {folder}; }"))
    with open(f"{nginx.files.name}/big", "wb") as file:
        file.write(bytes(200_000))
    server.exec(["tc", "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", "5mbit", "burst",
                 "6000", "limit", "12000"])
    observer = start(Observer(ports=[nginx.port], netns=server))
    idle = start([*client.prefix(), sys.executable, "-c", (
        "import socket, time\n"
        f"s = socket.create_connection(('10.200.0.2', {nginx.port}))\n"
        "s.sendall(b'GET /big HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
        "while s.recv(65536):\n"
        "    pass\n")])
    run([*client.prefix(), "curl", "--silent", "--fail", "--output", "/dev/null",
         f"http://10.200.0.2:{nginx.port}/big"], seconds=30)
    for _ in range(200):  # until both responses are written and fully acknowledged
        before = *shown_by_ss(nginx.port, server), kernel_counter("RetransSegs", server, "snmp", "Tcp")
        entry = service(observer.document(), nginx.port)
        after = *shown_by_ss(nginx.port, server), kernel_counter("RetransSegs", server, "snmp", "Tcp")
        # The kernel says the same before and after, with nothing in flight: so it was during the reading, too.
        if before == after and before[1:3] == (0, 1) and entry["bytes_out"] >= 400_000:
            break
        run(["sleep", "0.1"])
    (srtt_ns, lowest_ns), *rest, sent_again = after
    assert before == after and rest == [0, 1], "it does not come to rest"
    assert entry["connections"] == 1
    # ss rounds to microseconds.
    assert entry["srtt_ns"] == pytest.approx(srtt_ns, abs=1000)
    assert entry["min_rtt_ns"] == pytest.approx(lowest_ns, abs=1000)
    assert sent_again > 0, "nothing was dropped: the test shows nothing"
    assert entry["retransmits"] == sent_again
    idle.stop()
    observer.stop()


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.cpu_count() < 2, reason="server and client have a core each")
def test_five_million_requests():
    """At full speed, each request, byte and connection is counted, or a reported loss explains the difference."""
    bench = run([sys.executable, ROOT / "tests" / "bench" / "counts.py"], seconds=880)
    print(bench.stdout)
    assert "5,000,000 requests" in bench.stdout
