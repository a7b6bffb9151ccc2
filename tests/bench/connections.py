#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The memory of driver and observer per connection.

In a network namespace, `sojourn-drive` keeps N connections to nginx open and uses each of them some times, at a
steady rate, while `sojourn observe` observes. Driver and observer are each in a memory cgroup of their own. Printed
for each N: their own memory (RssAnon), and the memory that the driver's cgroup is charged for, the highest of each.
The latter includes the kernel's for its sockets. Printed of the observer's cgroup is the growth under load: its
storage in the server's sockets. The last lines are the bytes for each further connection. Memory that is linear in
the number of connections has the same in each of these lines.
"""
import argparse
import re
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
STEADY_BYTES = 64 << 10
COLUMNS = ("driver's own", "driver charged", "observer's own", "charged more")


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


def watch(watched):
    """Return the peaks of these (process, cgroup), own and charged in turn, while the first process runs."""
    peaks = [0] * 2 * len(watched)
    while watched[0][0].running():
        for number, (process, cgroup) in enumerate(watched):
            try:
                peaks[2 * number] = max(peaks[2 * number], anonymous(process.pid))
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has just ended
            peaks[2 * number + 1] = max(peaks[2 * number + 1], cgroup.charged())
        time.sleep(0.05)
    return peaks


def measure(net, connections, arguments):
    with MemoryCgroup(LIMIT, net) as place, MemoryCgroup(LIMIT, net) as kernel, own_folder("connections") as folder:
        nginx = Nginx(netns=net)
        try:
            observer = Observer(ports=[nginx.port], netns=kernel)
            observer.netns = net  # documents are requested from outside the cgroup
            path, before = Path(folder, "run.json"), settled(kernel)
            driver = Process([DRIVER, nginx.url, "-c", connections, "-n", arguments.uses * connections, "--rate",
                              arguments.uses * connections // arguments.seconds, "--timeout", "30s", "--samples", "0",
                              "--quiet", "--json", path], netns=place)
            try:
                peaks = watch(((driver, place), (observer, kernel)))
                peaks[3] -= before
                status = driver.wait()
                result = documents.load(path)["driver"]
                if status or result["connects"] != connections:
                    sys.exit(f"connections: status {status}, {result['connects']} connections, not {connections}:\n"
                             f"{driver.stderr}")
                exchanges = sum(service["exchanges"] for service in observer.document()["services"])
                if exchanges != result["requests"]:
                    sys.exit(f"connections: {exchanges} exchanges observed, not {result['requests']}")
                return peaks
            finally:
                driver.close()
                observer.close()
        finally:
            nginx.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=bounded(int, 1, 15000), nargs="+", default=[5000, 10000, 15000])
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


if __name__ == "__main__":
    main()
