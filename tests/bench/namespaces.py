#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of a reading with many network namespaces.

Makes --namespaces namespaces, each with a server at the same port that has answered one request, and observes them
with --all-netns. Prints the time of a visit to the sockets, in all and for each namespace, and the observer's CPU time.
With --idle there are that many more namespaces without a server.
"""
import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import machine  # noqa: E402
from support.net import free_port  # noqa: E402
from support.process import wait_until  # noqa: E402
from support.programs import Observer  # noqa: E402

# Children with a namespace each; the first ones serve one request at the port.
SPACES = """
import ctypes, fcntl, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
port, serving, idle = map(int, sys.argv[1:])
said, say = os.pipe()
for number in range(serving + idle):
    if os.fork():
        continue
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    assert not libc.unshare(0x40000000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 1))
    if number < serving:
        listener = socket.create_server(("127.0.0.1", port))
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        client.sendall(b"question")
        server.recv(100)
        server.sendall(b"answer")
        client.recv(100)
    os.write(say, b".")
    signal.pause()
left = serving + idle
while left:
    left -= len(os.read(said, left))
print("ready", flush=True)
sys.stdin.read()
"""


def measure(args):
    port = free_port()
    observer = Observer("--all-netns", *args.option, ports=[port])
    spaces = subprocess.Popen(["/usr/bin/python3", "-c", SPACES, str(port), str(args.namespaces), str(args.idle)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert spaces.stdout.readline() == "ready\n"
        wait_until(lambda: observer.document()["namespaces"]["observed"] > args.namespaces + args.idle)
        before, began = observer.document(), time.monotonic()
        visits = []
        for _ in range(args.readings):
            time.sleep(1)
            visits.append(observer.document()["namespaces"])
        after, ended = observer.document(), time.monotonic()
        cpu = (after["cost"]["cpu_ns"] - before["cost"]["cpu_ns"]) / 1e9 / (ended - began)
        return visits, cpu, after
    finally:
        spaces.kill()
        spaces.communicate()
        observer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespaces", type=int, default=200, help="with a server (200)")
    parser.add_argument("--idle", type=int, default=0, help="without one (0)")
    parser.add_argument("--readings", type=int, default=10, help="besides those of each second (10)")
    parser.add_argument("option", nargs="*", help="of the observer, behind --")
    args = parser.parse_args()
    visits, cpu, document = measure(args)
    total = statistics.median(visit["visit_ns"] for visit in visits)
    visited = statistics.median(visit["visited"] for visit in visits)
    print(machine())
    print(f"network namespaces: {visits[-1]['observed']}, visited in a reading: {visited:.0f}")
    print(f"services: {len(document['services'])}, dropped: {document['services_dropped']}")
    print(f"a visit: {total / 1e6:.2f} ms in all, {total / visited / 1e3:.0f} µs for each")
    print(f"the observer's CPU: {100 * cpu:.1f} % of one, with two readings a second")


if __name__ == "__main__":
    main()
