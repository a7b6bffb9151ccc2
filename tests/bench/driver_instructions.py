#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The instructions that a request costs the driver in user space, by valgrind: a figure without a machine's noise.

One request at a time is under way on each of 64 sockets. Scenes: "udp" has datagrams of 64 bytes and an echo server,
"http" has HTTP/1.1 keep-alive and the quick server of driver.py's scene "bound". A client runs twice, for N and 2 N
requests, or some seconds and twice as many. The difference is requests without start and end. The bare loop of driver.py is
counted over UDP, wrk over HTTP. The kernel's instructions are not counted, nor the waiting for memory.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import bounded, machine, need

from driver import BARE, CONNECTIONS, OTHER, OURS, SIZE, echo, quick_server
from support.programs import DRIVER

SECONDS = 4  # of the other clients


def counted(*command):
    """Return (instructions of a command, its output)."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                               *[str(word) for word in command]], capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"valgrind ended with status {done.returncode}:\n{done.stderr}")
    return int(found[1].replace(",", "")), done.stdout


def ours(program, options):
    """Return run(url, port, count) of a driver. It returns (instructions, requests), as all runs do."""
    def run(url, _, count):
        return counted(program, url, "-c", CONNECTIONS, "-n", count, "--quiet", *options)[0], count
    return run


def bare(_, port, seconds):
    total, text = counted(BARE, "ask", port, CONNECTIONS, SIZE, seconds)
    return total, int(text)


def wrk(url, _, seconds):
    total, text = counted("wrk", "-c", CONNECTIONS, "-t", 1, "-d", f"{seconds}s", url)
    return total, int(re.search(r"(\d+) requests in", text)[1])


def show(name, run, url, port, length):
    once, twice = (run(url, port, part) for part in (length, 2 * length))
    print(f"  {name:<14}{(twice[0] - once[0]) / (twice[1] - once[1]):6.0f}")


# Scene: the server, the driver's options, the other client.
SCENES = {
    "udp": (echo, ("--payload", "x" * SIZE), "bare loop", bare),
    "http": (quick_server, (), "wrk", wrk),
}


def count(scene, arguments):
    server, options, name, other = SCENES[scene]
    print(f"{scene}, instructions per request in user space")
    with server() as (url, port):
        show(OURS, ours(DRIVER, options), url, port, arguments.requests)
        if arguments.beside:
            show(OTHER, ours(arguments.beside / "driver/sojourn-drive", options), url, port, arguments.requests)
        show(name, other, url, port, SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=bounded(int, 1000, 10_000_000), default=50_000)
    parser.add_argument("--beside", metavar="BUILD", type=Path, help="the driver of another build, too")
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], default=[], help="default: all of them")
    arguments = parser.parse_args()
    if arguments.beside and not (arguments.beside / "driver/sojourn-drive").exists():
        parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    need("valgrind", "wrk")
    print(machine())
    for scene in arguments.scenes or SCENES:
        count(scene, arguments)


if __name__ == "__main__":
    main()
