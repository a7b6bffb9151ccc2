# SPDX-License-Identifier: MIT
"""Services come and go: each has a slot while it is used, none counts for another, and nothing is lost.

The truth is the test's own servers' and clients' counts.
"""
import json
import re
import time
from pathlib import Path

from support.asking import ASK
from support.documents import service
from support.process import Process, run, wait_until
from support.programs import OBSERVER, Driver, Lab, Observer

# Opens so many listeners, with one to three requests each over one connection. Each is closed before the next
# one is opened, or all are kept.
SHORT = ASK + """
import sys, time

kept = []
for number in range(int(sys.argv[1])):
    listener = socket.create_server(("127.0.0.1", 0))
    ask(listener, number % 3 + 1)
    if sys.argv[2] == "kept":
        kept.append(listener)
    else:
        listener.close()
print("asked", flush=True)
time.sleep(600 if kept else 0)
"""
LISTENERS = """
import resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kept = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print("ready", flush=True)
time.sleep(600)
"""
SPARE = 32  # slots beyond those of the listeners at the start


def short_services(netns, count, how="closed"):
    process = Process(["/usr/bin/python3", "-c", SHORT, count, how], netns=netns)
    process.wait_for("^asked$", seconds=60)
    return process


def exchanges_of(count):
    return sum(number % 3 + 1 for number in range(count))


def others(document, *ports):
    """Return the sums over all services but those on @ports: those with a slot, and the reclaimed rest."""
    names = ("accepted", "exchanges", "bytes_in", "bytes_out")
    rest = document.get("reclaimed", {})
    return {name: rest.get(name, 0) + sum(entry[name] for entry in document["services"] if entry["port"] not in ports)
            for name in names}


def newer_than_a_second(observer):
    """Where documents are dear, all who ask within a second get the same one."""
    time.sleep(1)
    return observer.document()


def own_port(observer):
    return int(observer.url.rsplit(":", 1)[1])


def test_a_real_server_after_many_short_ones(netns, start):
    """There are more services than slots. The sum of all is exact, and the last one is observed like the first.
    The server and the phase from before lose nothing."""
    net = netns("slots")
    before, after = start(Lab(netns=net)), None
    observer = start(Observer("--all-listeners", netns=net))
    first = Driver(before.url, connections=2, count=100, netns=net).result
    phase = observer.begin_phase()
    count, batches = 6, 12
    for _ in range(batches):
        # Slots are reclaimed once a second: each batch waits until there is room for it.
        wait_until(lambda: len(observer.document()["services"]) + count < SPARE)
        short_services(net, count).close()
    after = start(Lab(netns=net))
    driven = Driver(after.url, connections=3, count=500, netns=net).result
    again = Driver(before.url, connections=2, count=50, netns=net).result
    document = observer.end_phase(phase)
    observer.stop()
    whole = observer.summary()
    assert document["services_dropped"] == whole["services_dropped"] == 0
    assert document["reclaimed"]["services"] >= count * batches - SPARE
    real = service(document, after.port)
    assert (real["accepted"], real["exchanges"]) == (3, 500)
    assert (real["bytes_in"], real["bytes_out"]) == (driven["bytes_out"], driven["bytes_in"])
    assert real["stages"]["service"]["count"] == 500 and real["losses"]["preexisting"] == 0
    assert service(document, before.port)["exchanges"] == again["requests"] == 50
    assert service(whole, before.port)["exchanges"] == first["requests"] + again["requests"]
    exchanges = batches * exchanges_of(count)
    expected = {"accepted": count * batches, "exchanges": exchanges, "bytes_in": 8 * exchanges,
                "bytes_out": 6 * exchanges}
    ports = before.port, after.port, own_port(observer)
    assert others(document, *ports) == others(whole, *ports) == expected


def test_services_without_a_slot_are_told(netns, start):
    """More services exist at the same time than slots. Those without one are counted and found. A listener
    without connections loses its slot, and its later requests count for no other service."""
    net = netns("slots")
    idle = start(Lab(netns=net))
    observer = start(Observer("--all-listeners", netns=net))
    observer.document()  # the observer's own endpoint is used, and so has a slot
    count = 3 * SPARE
    many = start(short_services(net, count, "kept"))
    document = observer.document()
    seen = others(document, own_port(observer), idle.port)
    assert seen["accepted"] + document["connections_dropped"] == count
    assert document["services_dropped"] == document["connections_dropped"] > 0
    found = [finding for finding in document["findings"] if finding["id"] == "services-unobserved"]
    assert len(found) == 1 and found[0]["severity"] == "warning"
    assert any(str(document["connections_dropped"]) in text for text in found[0]["evidence"])
    assert json.loads(observer.get("/healthz"))["status"] == "warning"
    # The idle server's slot goes to the next server in use; later there is none for the idle server itself.
    wait_until(lambda: idle.port not in [entry["port"] for entry in observer.document()["services"]])
    server = start(Lab(netns=net))
    Driver(server.url, connections=2, count=200, netns=net)
    Driver(idle.url, connections=3, count=60, netns=net)
    dropped = document["connections_dropped"] + 3
    document = observer.document()
    assert (service(document, server.port)["accepted"], service(document, server.port)["exchanges"]) == (2, 200)
    assert document["connections_dropped"] == dropped
    # These services have ended, so their slots are free.
    many.close()
    wait_until(lambda: observer.document().get("reclaimed", {}).get("services", 0) > 0)
    Driver(idle.url, connections=2, count=50, netns=net)
    Driver(server.url, connections=2, count=200, netns=net)
    observer.stop()
    whole = observer.summary()
    assert (service(whole, server.port)["accepted"], service(whole, server.port)["exchanges"]) == (4, 400)
    assert (service(whole, idle.port)["accepted"], service(whole, idle.port)["exchanges"]) == (2, 50)
    assert whole["connections_dropped"] == dropped
    assert others(whole, server.port, idle.port, own_port(observer)) == seen


def test_many_listeners_and_cpus_within_the_memory(netns, start):
    """As with 128 CPUs, slots are large, and CPUs share copies of them. The observer's memory stays within --memory,
    idle listeners take none, and unobserved services are reported."""
    net = netns("slots")
    used, most, limit = 20, 80, 256_000_000
    idle = start(Process(["/usr/bin/python3", "-c", LISTENERS, 4000], netns=net))
    idle.wait_for("^ready$")
    observer = start(Observer("--all-listeners", "--memory", "256M", "--cpus", "128", netns=net))
    observer.document()
    start(short_services(net, used, "kept"))
    document = newer_than_a_second(observer)
    seen = others(document, own_port(observer))
    assert (seen["accepted"], seen["exchanges"]) == (used, exchanges_of(used))
    assert document["services_dropped"] == 0 and document["cost"]["sharing_cpus"] == 32
    start(short_services(net, most, "kept"))
    document = newer_than_a_second(observer)
    seen = others(document, own_port(observer))
    assert seen["accepted"] + document["connections_dropped"] == used + most
    assert seen["accepted"] > used and document["connections_dropped"] > 0
    assert document["listeners_idle"] > 3900
    # Map pages that were read count in both.
    status = Path(f"/proc/{observer.pid}/status").read_text(encoding="ascii")
    assert document["cost"]["map_bytes"] + 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1]) < limit
    observer.stop()
    assert "services dropped: no slot was left" in observer.stdout
    assert "listeners that nobody has used" in observer.stdout


def test_too_little_memory_is_refused():
    # It is refused before any program is tried, which this one may not.
    done = run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", OBSERVER, "observe", "--all-listeners",
                "--memory", "2M"], check=False)
    assert done.status == 2
    assert len(done.stderr.splitlines()) == 1 and "--memory: 1.9" in done.stderr and "1 service may take" in done.stderr
