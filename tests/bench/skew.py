#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How close together the members of a fleet begin, by the kernel's stamps of their first requests at the switch.

Four hosts with the members, the coordinator and nginx are network namespaces. Members are reached by a command, or wait at a
nats-server (--via nats). Printed is the distribution over the runs, from the first member's first request to the last
member's, and to each other one's. Members take turns in one schedule, so the time of each one's
first turn is subtracted. Beside it is what the documents say (`start_skew_ns`): when the phases began, without the time until a
request left. All hosts have one clock here, so the comparison of clocks adds its noise only. Needs root.
"""
import argparse
import contextlib
import statistics
import sys

from common import bounded, machine, need

from support import documents
from support.nats import Agent, NatsServer
from support.net import Lan
from support.packets import Packets
from support.process import run
from support.programs import DRIVER, Nginx
from support.timing import MS, Untimely

NAMES = ("a", "b", "c", "d")
RATE = 400


class Site:
    def __init__(self, stack, via):
        self.lan = Lan(stack, "10.211.0")
        self.home, web = self.lan.host("home"), self.lan.host("web")
        self.hosts = {name: self.lan.host(name) for name in NAMES}
        self.nginx = stack.enter_context(Nginx(addresses=(web.address,), netns=web))
        self.words = ["--via", "ip netns exec {host}", "--hosts", ",".join(host.name for host in self.hosts.values()),
                      "--agent-program", DRIVER]
        if via == "nats":
            server = stack.enter_context(NatsServer(netns=self.home, address=self.home.address))
            self.words = ["--via", server.url, "--members", len(NAMES), "--gather", "20s"]
            for name, host in self.hosts.items():
                stack.enter_context(Agent(server.url, name, netns=host))

    def measure(self, seconds):
        """Make one run. Return {member: ns after the first one}: by the stamps, and by the document."""
        with contextlib.ExitStack() as stack:
            packets = {name: stack.enter_context(Packets(self.nginx.port, self.lan.ports[host], self.lan.switch))
                       for name, host in self.hosts.items()}
            done = run([DRIVER, "fleet", *self.words, "--", self.nginx.url, "-c", len(NAMES), "--rate", RATE, "-d", f"{seconds}s",
                        "--quiet", "--json", "-"], netns=self.home)
        first = {name: min(packet.at_ns for packet in seen.seen if packet.comes_in and packet.size)
                 for name, seen in packets.items()}
        names = {host.name: name for name, host in self.hosts.items()}
        members = documents.parse(done.stdout)["driver"]["members"]
        order = [names.get(member["host"], member["host"]) for member in members]
        at = {name: first[name] - turn * 1e9 / RATE for turn, name in enumerate(order)}
        return {name: at[name] - min(at.values()) for name in order}, \
            {name: member["start_skew_ns"] for name, member in zip(order, members)}


def show(name, values):
    values = sorted(values)
    percentile = [values[min(len(values) - 1, int(len(values) * share))] / MS for share in (0.9, 0.99)]
    print(f"{name:44}{len(values):6}{statistics.median(values) / MS:9.3f}{percentile[0]:9.3f}{percentile[1]:9.3f}"
          f"{values[-1] / MS:9.3f}{sum(value < MS for value in values) / len(values):10.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=bounded(int, 2, 10_000), default=50)
    parser.add_argument("--seconds", type=bounded(float, 0.1, 60), default=0.3, help="of each run (default: 0.3)")
    parser.add_argument("--via", choices=("command", "nats"), nargs="+", default=["command", "nats"])
    args = parser.parse_args()
    need("nginx")
    print(f"{machine()}\n{len(NAMES)} members, {args.runs} runs\n"
          f"{'ms':44}{'values':>6}{'median':>9}{'p90':>9}{'p99':>9}{'max':>9}{'below 1 ms':>10}")
    for via in args.via:
        spans, true, told = [], [], []
        with contextlib.ExitStack() as stack:
            site = Site(stack, via)
            while len(spans) < args.runs:
                try:
                    stamps, said = site.measure(args.seconds)
                except Untimely:
                    continue  # the clock was set meanwhile
                spans.append(max(stamps.values()))
                true += [value for value in stamps.values() if value]
                told += [value for value in said.values() if value]
        show(f"{via}: all members, by packets", spans)
        show(f"{via}: each after the first, by packets", true)
        show(f"{via}: each after the first, by documents", told)


if __name__ == "__main__":
    sys.exit(main())
