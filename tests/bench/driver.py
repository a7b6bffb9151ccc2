#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How much load a CPU second of the driver makes, beside wrk's.

nginx with one worker on one core, the client on another, 64 connections; sojourn-drive and wrk take
turns. Prints requests per second and per CPU second of the client, keep-alive and with a connection
per request, and the ratio of each round's pair.
"""
import argparse
import json
import re
import statistics
import sys
import tempfile

from common import Timed, machine, need, pinned_nginx, ratios, spread

from support.programs import DRIVER

CONNECTIONS = 64


def drive(nginx, seconds, fresh):
    """(requests, requests per second, the finished command)"""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        done = Timed([DRIVER, nginx.url, "-c", CONNECTIONS, "-d", f"{seconds}s", "--quiet",
                      "--json", file.name, *(["-H", "Connection: close", "--new-connections"]
                                             if fresh else [])])
        with open(file.name, encoding="utf-8") as written:
            driver = json.load(written)["driver"]
    if any(driver["errors"].values()):
        sys.exit(f"sojourn-drive had errors: {driver['errors']}")
    return driver["requests"], driver["requests"] / driver["duration_ns"] * 1e9, done


def wrk(nginx, seconds, fresh):
    done = Timed(["wrk", "-c", CONNECTIONS, "-t", 1, "-d", f"{seconds}s",
                  *(["-H", "Connection: close"] if fresh else []), nginx.url])
    requests = int(re.search(r"(\d+) requests in", done.text)[1])
    return requests, float(re.search(r"Requests/sec:\s+([\d.]+)", done.text)[1]), done


def compare(nginx, arguments, fresh):
    rates, per_cpu, memory = ({"sojourn-drive": [], "wrk": []} for _ in range(3))
    for _ in range(arguments.rounds):
        for name, client in (("sojourn-drive", drive), ("wrk", wrk)):
            requests, rate, done = client(nginx, arguments.seconds, fresh)
            rates[name].append(rate)
            per_cpu[name].append(requests / done.cpu)
            memory[name].append(done.resident_kib / 1024)
    print("\none connection per request" if fresh else "\nkeep-alive")
    for name, values in per_cpu.items():
        print(f"  {name:<14}{statistics.median(rates[name]):10,.0f} requests/s"
              f"{statistics.median(values):12,.0f} per CPU second"
              f"{statistics.median(memory[name]):8.1f} MiB")
    print(f"  ratio per CPU second {spread(ratios(per_cpu, 'sojourn-drive', 'wrk'))}")
    print(f"  ratio of rates       {spread(ratios(rates, 'sojourn-drive', 'wrk'))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4, help="length of each run")
    arguments = parser.parse_args()
    need("wrk", "nginx")
    print(f"{machine()}\n{arguments.rounds} rounds of {arguments.seconds} s, {CONNECTIONS} "
          "connections, medians [quartiles]")
    with pinned_nginx() as nginx:
        wrk(nginx, 1, False)
        for fresh in (False, True):
            compare(nginx, arguments, fresh)


if __name__ == "__main__":
    main()
