#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The observer's memory with many listeners, few of them in use.

Makes a network namespace with the listeners, lets some of them answer requests, and observes them all. Prints the
observer's own memory, that of its BPF maps and of the largest of them, the sum, and the number of services seen. Its
own memory is RssAnon; the peak VmHWM includes mapped files and maps. With --limit the observer runs in a cgroup with
this limit. The peak of the charged memory is then printed, which includes the kernel's memory for the observer.
"""
import argparse
import json
import re
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import machine, need  # noqa: E402
from support.cgroup import MemoryCgroup, memory_controller  # noqa: E402
from support.net import Netns  # noqa: E402
from support.process import Process, held_maps, run  # noqa: E402
from support.programs import OBSERVER, Observer  # noqa: E402

# Opens argv[1] listeners, and at SIGUSR1 sends argv[3] requests to each of the first argv[2].
LISTENERS = """
import signal, socket, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
count, active, times = map(int, sys.argv[1:])
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
pairs = []
for listener in listeners[:active]:
    client = socket.create_connection(listener.getsockname())
    pairs.append((client, listener.accept()[0]))
for _ in range(times):
    for client, server in pairs:
        client.sendall(b"question")
        server.recv(100)
        server.sendall(b"answer")
        client.recv(100)
print("asked", flush=True)
time.sleep(3600)
"""


def megabytes(value):
    return f"{value / (1 << 20):,.1f} MiB"


def memory(pid, name):
    return 1024 * int(re.search(name + r":\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1])


def largest_maps(pid, most=4):
    """Return [(bytes, name)] of the process's largest maps."""
    maps = held_maps(pid)
    names = {each["id"]: each.get("name", "?") for each in json.loads(run(["bpftool", "-j", "map", "show"]).stdout)}
    return sorted(((size, names.get(number, "?")) for number, size in maps.items()), reverse=True)[:most]


class Limited:
    """A network namespace for Observer whose processes start in a cgroup."""

    def __init__(self, net, cgroup):
        self.path, self.cgroup, self.net = net.path, cgroup, net

    def prefix(self):
        return self.cgroup.prefix() + self.net.prefix()


def measure(args, net, place):
    server = Process([*net.prefix(), "/usr/bin/python3", "-c", LISTENERS, args.listeners, args.active, args.requests])
    try:
        server.wait_for("^ready$", seconds=60)
        observer = Observer("--all-listeners", *args.option, netns=place, program=args.build / "observer" / "sojourn")
        observer.netns = net  # the documents are requested from outside the cgroup
        try:
            server.popen.send_signal(signal.SIGUSR1)
            server.wait_for("^asked$", seconds=600)
            document = observer.document()
            for _ in range(args.readings):
                document = observer.document()
            for size, name in largest_maps(observer.pid):
                print(f"  map {name}: {megabytes(size)}")
            return memory(observer.pid, "VmHWM"), memory(observer.pid, "RssAnon"), document
        finally:
            observer.close()
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listeners", type=int, default=10000)
    parser.add_argument("--active", type=int, default=20, help="of them")
    parser.add_argument("--requests", type=int, default=100, help="to each of these")
    parser.add_argument("--readings", type=int, default=3, help="documents that are asked for")
    parser.add_argument("--limit", type=int, metavar="MIB", help="of the observer's memory, by a cgroup")
    parser.add_argument("--build", type=Path, default=OBSERVER.parent.parent)
    parser.add_argument("option", nargs="*", help="of the observer, behind --")
    args = parser.parse_args()
    need("bpftool")
    print(machine())
    with Netns("memory") as net:
        if not args.limit:
            most, own, document = measure(args, net, net)
        else:
            if not memory_controller():
                sys.exit("memory: --limit needs a memory controller of cgroups")
            with MemoryCgroup(args.limit << 20) as cgroup:
                most, own, document = measure(args, net, Limited(net, cgroup))
                print(f"in a cgroup of {args.limit} MiB: at most {megabytes(cgroup.peak())} charged, "
                      f"{cgroup.kills()} killed, every reading answered")
    counted = sum(service["exchanges"] for service in document["services"])
    maps = document["cost"]["map_bytes"]
    print(f"{args.listeners} listeners, {args.active} used: {megabytes(own + maps)}: own memory {megabytes(own)} "
          f"(at most {megabytes(most)}), BPF maps {megabytes(maps)}; {len(document['services'])} services, "
          f"{counted} exchanges, {document['services_dropped']} not observed")


if __name__ == "__main__":
    main()
