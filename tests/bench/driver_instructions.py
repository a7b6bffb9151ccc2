#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The instructions that a request costs the driver in user space, by valgrind: a figure without a machine's noise.

Datagrams of 64 bytes go to an echo server from 64 sockets, a request at a time on each. The driver runs twice, for N
and 2 N requests. The difference is N requests, without start and end. The bare loop of driver.py's scene "udp" is
counted, too. The kernel's instructions are not counted, nor the waiting for memory.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import SERVER_CPU, bounded, machine, need

from driver import BARE, CONNECTIONS, OTHER, OURS, SIZE
from support.net import free_port
from support.process import Process
from support.programs import DRIVER


def counted(*command):
    """Return (instructions of a command, its output)."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                               *[str(word) for word in command]], capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"valgrind ended with status {done.returncode}:\n{done.stderr}")
    return int(found[1].replace(",", "")), done.stdout


def per_request(program, port, requests):
    once, twice = (counted(program, f"udp://127.0.0.1:{port}", "-c", CONNECTIONS, "-n", count, "--quiet", "--payload",
                           "x" * SIZE)[0] for count in (requests, 2 * requests))
    return (twice - once) / requests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=bounded(int, 1000, 10_000_000), default=50_000)
    parser.add_argument("--beside", metavar="BUILD", type=Path, help="the driver of another build, too")
    arguments = parser.parse_args()
    if arguments.beside and not (arguments.beside / "driver/sojourn-drive").exists():
        parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    need("valgrind")
    port = free_port()
    with Process(["taskset", "-c", SERVER_CPU, BARE, "serve", port]) as server:
        server.wait_for("ready")
        print(f"{machine()}\nudp, instructions per request in user space")
        print(f"  {OURS:<14}{per_request(DRIVER, port, arguments.requests):6.0f}")
        if arguments.beside:
            other = arguments.beside / "driver/sojourn-drive"
            print(f"  {OTHER:<14}{per_request(other, port, arguments.requests):6.0f}")
        total, text = counted(BARE, "ask", port, CONNECTIONS, SIZE, 5)
        print(f"  bare loop     {total / int(text):6.0f}")


if __name__ == "__main__":
    main()
