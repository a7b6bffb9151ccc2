#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The memory of driver and observer per connection.

In a network namespace, drivers keep N connections to nginx open and use each of them some times, at a
steady rate, while `sojourn observe` observes. A process may have as many descriptors as RLIMIT_NOFILE allows. So every
10,000 connections have a driver with a source address of its own, and a worker of nginx with a listener. The drivers together and the observer are each in a memory cgroup. Printed
for each N: their own memory (RssAnon), and the memory that the drivers' cgroup is charged for, the highest of each.
The latter includes the kernel's for its sockets. Printed of the observer's cgroup is the growth under load: its
storage in the server's sockets. The last lines are the bytes for each further connection. Memory that is linear in
the number of connections has the same in each of these lines. The very last one is what 1,000,000 of them need,
computed from the fewest and the most.
"""
import argparse
import contextlib
import re
import resource
import sys
import time
from pathlib import Path

from common import bounded, machine, need

from support import documents
from support.cgroup import MemoryCgroup, memory_controller
from support.net import Netns
from support.process import Process, own_folder
from support.programs import DRIVER, Nginx, Observer

LIMIT = 8 << 30
EACH = 10000  # connections of a driver, and of a worker of nginx
MILLION = 1000000
STEADY_BYTES = 64 << 10
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
COLUMNS = ("drivers' own", "drivers charged", "observer's own", "charged more")


def anonymous(pid):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^RssAnon:\s+(\d+)", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


def settled(cgroup):
    """Return what is charged once it is steady: the kernel frees the memory of the observer's rehearsal later."""
    before = None
    for _ in range(30):
        now = cgroup.charged()
        if before is not None and abs(now - before) < STEADY_BYTES:
            return now
        before = now
        time.sleep(1)
    sys.exit("connections: the observer's memory is not steady without load")


def own_of(processes):
    """Return what these have together. One that has just ended has nothing."""
    own = 0
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            own += anonymous(process.pid)
    return own


def watch(watched):
    """Return the peaks of these (processes, cgroup), own and charged in turn, while the first process runs."""
    peaks = [0] * 2 * len(watched)
    while watched[0][0][0].running():
        for number, (processes, cgroup) in enumerate(watched):
            peaks[2 * number] = max(peaks[2 * number], own_of(processes))
            peaks[2 * number + 1] = max(peaks[2 * number + 1], cgroup.charged())
        time.sleep(0.05)
    return peaks


def start_driver(net, nginx, number, connections, path, arguments):
    return Process([DRIVER, nginx.url, "-c", connections, "-n", arguments.uses * connections, "--rate",
                    arguments.uses * connections // arguments.seconds, "--timeout", "30s", "--samples", "0", "--source",
                    f"127.0.1.{1 + number}", "--quiet", "--json", path], netns=net)


def check(drivers, paths, connections, observer):
    """Nothing failed, and the observer has counted every request."""
    statuses = [driver.wait() for driver in drivers]
    results = [documents.load(path)["driver"] for path in paths]
    connects, requests = (sum(result[name] for result in results) for name in ("connects", "requests"))
    if any(statuses) or connects != connections:
        sys.exit(f"connections: status {statuses}, {connects} connections, not {connections}:\n"
                 + "".join(driver.stderr for driver in drivers))
    exchanges = sum(service["exchanges"] for service in observer.document()["services"])
    if exchanges != requests:
        sys.exit(f"connections: {exchanges} exchanges observed, not {requests}")


def measure(net, connections, arguments):
    shares = [min(EACH, connections - first) for first in range(0, connections, EACH)]
    with contextlib.ExitStack() as stack:
        place, kernel = (stack.enter_context(MemoryCgroup(LIMIT, net)) for _ in range(2))
        folder = stack.enter_context(own_folder("connections"))
        nginx = stack.enter_context(contextlib.closing(Nginx(netns=net, workers=len(shares), listen_options="reuseport backlog=4096",
                                                             modules=f"worker_rlimit_nofile {FILES};")))
        observer = stack.enter_context(contextlib.closing(Observer(ports=[nginx.port], netns=kernel)))
        observer.netns = net  # documents are requested from outside the cgroup
        before = settled(kernel)
        paths = [Path(folder, f"{number}.json") for number in range(len(shares))]
        drivers = [stack.enter_context(contextlib.closing(start_driver(place, nginx, number, share, paths[number], arguments)))
                   for number, share in enumerate(shares)]
        peaks = watch(((drivers, place), ((observer,), kernel)))
        peaks[3] -= before
        check(drivers, paths, connections, observer)
        return peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=bounded(int, 1, 200000), nargs="+", default=[20000, 40000, 60000])
    parser.add_argument("--uses", type=bounded(int, 1, 1000), default=2, help="requests on each connection")
    parser.add_argument("--seconds", type=bounded(int, 1, 3600), default=10, help="of each run")
    arguments = parser.parse_args()
    need("nginx")
    if not memory_controller():
        sys.exit("connections: it needs a memory controller of cgroups")
    print(f"{machine()}\nMiB with so many connections\n{'':>12}{''.join(f'{name:>18}' for name in COLUMNS)}")
    rows = []
    with Netns("connections") as net:
        for connections in sorted(arguments.connections):
            rows.append((connections, measure(net, connections, arguments)))
            print(f"{connections:>12,}{''.join(f'{value / (1 << 20):>18.1f}' for value in rows[-1][1])}", flush=True)
    print("bytes for each further connection")
    for (fewer, before), (more, after) in zip(rows, rows[1:]):
        each = [(b - a) / (more - fewer) for a, b in zip(before, after)]
        print(f"{f'{fewer:,}..{more:,}':>14}{''.join(f'{value:>18,.0f}' for value in each)[2:]}")
    if len(rows) > 1:
        (fewest, first), (most, last) = rows[0], rows[-1]
        needed = [b + (b - a) * (MILLION - most) / (most - fewest) for a, b in zip(first, last)]
        print(f"MiB, computed\n{MILLION:>12,}{''.join(f'{value / (1 << 20):>18,.1f}' for value in needed)}")


if __name__ == "__main__":
    main()
