#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of a fleet's coordinator, and the size of its result, with many members on this machine.

Some real agents carry out their shares of a run of N members, and their messages are recorded. Then `sojourn-drive
fleet` has N members (fleet_member.c) that replay these messages, each with its own name and start, and make no load.
Printed for each N: the coordinator's CPU time before the start, during the run and after it, its highest memory,
and its open files. Then follow the seconds from the run's end to the written document, bytes per member and second in
both directions, and the sizes of documents. The requests of the result must be the sum of the recorded ones.

With `--via nats` the members are agents that wait at a nats-server, and `--via jetstream` lets it keep their results.
A second line then has the server's own costs and counts.

Each number of members is measured with two rates, so that the result's growth with the requests of a member shows.
Lines through the measured costs give those of larger fleets, which are marked as computed.
"""
import argparse
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from common import bounded, machine, resident_kib

from support import documents
from support.nats import NatsServer
from support.net import free_port
from support.process import cpu_seconds, die_with_parent, wait_until
from support.programs import DRIVER, Nginx

MEMBER = DRIVER.parent.parent / "tests" / "bench" / "fleet_member"
RECORDED = 4
SAMPLES = 20000  # of the whole run, the driver's default
MARK = "@" * 19


def options_of(url, members, rate, seconds):
    return [f"--rate={members * rate}", f"--connections={members}", f"--duration={seconds}s", url]


class Agent:
    """A real agent as member @index of @members. Keeps its hello and its documents."""

    def __init__(self, options, index, members):
        self.popen = subprocess.Popen([DRIVER, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      preexec_fn=die_with_parent)
        self.lines = [self.read_until("hello")]
        self.send({"type": "plan", "arguments": options, "member": index, "members": members, "name": f"recorded-{index}",
                   "samples": -(-SAMPLES // members), "patience_ms": 600_000})
        self.read_until("ready")

    def send(self, message):
        self.popen.stdin.write(json.dumps(message) + "\n")
        self.popen.stdin.flush()

    def read_until(self, kind):
        for line in self.popen.stdout:
            message = json.loads(line) if line.strip() else {}
            if message.get("type") == kind:
                return line
            if message.get("type") in ("refused", "error"):
                sys.exit(f"fleet: the recorded agent: {message['reason']}")
        sys.exit("fleet: the recorded agent ended")

    def keep_documents(self):
        """Read to the final document. Return the number of requests in it."""
        text = ""
        while True:
            line = self.read_until("document")
            message = json.loads(line)
            self.lines.append(re.sub(r'(\\"begin_ns\\": ?)\d{19}\b', r"\g<1>" + MARK, line))
            text += message["text"]
            if message["last"] and message["final"]:
                return documents.parse(text)["driver"]["requests"]
            if message["last"]:
                text = ""

    def close(self):
        self.popen.stdin.close()
        self.popen.wait()
        self.popen.stdout.close()


def record(folder, url, members, rate, seconds):
    """Let agents carry out their shares, and write what they sent. Return their numbers of requests."""
    count = min(RECORDED, members)
    agents = [Agent(options_of(url, members, rate, seconds), index * members // count, members) for index in range(count)]
    for agent in agents:
        agent.send({"type": "start", "at_ns": time.time_ns() + 500_000_000})
    counts = [0] * count

    def keep(number):
        counts[number] = agents[number].keep_documents()

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, agent in enumerate(agents):
        agent.close()
        (folder / f"{number}.lines").write_text("".join(agent.lines), encoding="utf-8")
    (folder / "run").write_text(f"{count} {seconds * 1_000_000_000}\n", encoding="ascii")
    return counts


class Watched:
    """A process, read every 10 ms until it ends: CPU seconds over time, peak memory, files."""

    def __init__(self, argv):
        self.popen = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.cpu, self.peak_kib, self.files = [(time.time(), 0.0)], 0, 0
        pid, status = self.popen.pid, None
        while status is None:
            self.peak_kib = max(self.peak_kib, resident_kib(pid))
            if len(self.cpu) % 50 == 1:
                self.count_files(pid)
            time.sleep(0.01)
            status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            self.cpu.append((time.time(), cpu_seconds(pid)))
        self.ended = self.cpu[-1][0]
        self.errors = self.popen.stderr.read()
        self.popen.stderr.close()
        self.status = self.popen.wait()

    def count_files(self, pid):
        try:
            self.files = max(self.files, len(os.listdir(f"/proc/{pid}/fd")))
        except OSError:
            pass

    def cpu_until(self, when):
        return max((seconds for at, seconds in self.cpu if at <= when), default=0.0)


class Pipes:
    """Members that the coordinator starts."""

    def __init__(self, folder, members):
        self.words = ["--via", f"{MEMBER} {folder} {{host}}", "--hosts", ",".join(map(str, range(members)))]

    def tell(self, seconds, members):
        """There is nobody between them and the coordinator."""

    def close(self):
        """They have ended."""


class Nats:
    """Members that wait at a nats-server of their own, which counts what it carries."""

    def __init__(self, folder, members, stores):
        self.monitor, self.stored, self.over = free_port(), 0, threading.Event()
        self.server = NatsServer(f'http: "127.0.0.1:{self.monitor}"', stores=stores)
        self.words = ["--via", self.server.url, "--members", members, "--gather", "60s"]
        self.log = folder / "agents"
        with open(self.log, "wb") as log:
            self.agents = subprocess.Popen([MEMBER, "--fleet", self.server.url, folder, str(members)], stderr=log,
                                           preexec_fn=die_with_parent)
        wait_until(lambda: self.log.read_text().count("waiting for plans") == members, seconds=120, poll_seconds=0.1)
        self.before, self.cpu = self.ask("varz"), cpu_seconds(self.server.pid)
        self.thread = threading.Thread(target=self.watch, args=(stores,))
        self.thread.start()

    def ask(self, what):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{what}", timeout=60) as answer:
            return json.load(answer)

    def watch(self, stores):
        while stores and not self.over.wait(0.5):
            self.stored = max(self.stored, self.ask("jsz")["storage"])

    def tell(self, seconds, members):
        """Print the server's costs from the coordinator's start on."""
        self.over.set()
        self.thread.join()
        now = self.ask("varz")
        status = Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii")
        peak_kib = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
        grown = {name: now[name] - self.before[name] for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes")}
        print(f"{'':>15}nats-server: {cpu_seconds(self.server.pid) - self.cpu:.2f} s of CPU, "
              f"{peak_kib / 1024:.0f} MiB at most, {grown['in_msgs']:,} messages with "
              f"{grown['in_bytes'] / 2**20:.1f} MiB in, {grown['out_msgs']:,} with {grown['out_bytes'] / 2**20:.1f} MiB out, "
              f"{(grown['in_bytes'] + grown['out_bytes']) / 2 / members / seconds:,.0f} B/s per member, "
              f"{now['slow_consumers']} slow consumers, {self.stored / 2**20:.1f} MiB stored at most", flush=True)

    def close(self):
        self.over.set()
        self.agents.terminate()
        self.agents.wait()
        self.server.close()


CHANNELS = {"pipes": Pipes, "nats": lambda folder, members: Nats(folder, members, False),
            "jetstream": lambda folder, members: Nats(folder, members, True)}


class Coordinator:
    """One run of a fleet of simulated members."""

    def __init__(self, folder, channel, options, members, seconds):
        result = folder / "result.json"
        watched = Watched([DRIVER, "fleet", *map(str, channel.words), "--", *options, "--quiet", "--json", result])
        if watched.status:
            sys.exit(f"fleet: the coordinator of {members} members ended with status {watched.status}:\n{watched.errors}")
        log = [[int(word) for word in line.split()] for line in (folder / "log").read_text(encoding="ascii").splitlines()]
        begin = min(row[1] for row in log) / 1e9
        end = begin + seconds
        self.members = members
        self.gather_seconds = begin - watched.cpu[0][0]
        self.cpu_before = watched.cpu_until(begin)
        self.cpu_during = watched.cpu_until(end) - self.cpu_before
        self.cpu_after = watched.cpu[-1][1] - watched.cpu_until(end)
        self.merge_seconds = watched.ended - end
        self.peak_kib, self.files = watched.peak_kib, watched.files
        self.in_rate = sum(row[4] for row in log) / members / seconds
        self.out_rate = sum(row[3] for row in log) / members / (watched.ended - watched.cpu[0][0])
        self.final_bytes = sum(row[5] - row[4] for row in log) / members
        self.result_bytes = result.stat().st_size
        self.document = documents.parse(result.read_text(encoding="utf-8"))["driver"]


def measure(via, url, members, rate, seconds):
    """Make one run, print and return its costs."""
    with tempfile.TemporaryDirectory(prefix="sojourn-fleet-") as name:
        folder = Path(name)
        counts = record(folder, url, members, rate, seconds)
        channel = CHANNELS[via](folder, members)
        try:
            done = Coordinator(folder, channel, options_of(url, members, rate, seconds), members, seconds)
            row(done, rate)
            channel.tell(seconds, members)
        finally:
            channel.close()
    expected = sum(counts[number % len(counts)] for number in range(members))
    if done.document["requests"] != expected or len(done.document["members"]) != members:
        sys.exit(f"fleet: {done.document['requests']} requests of {len(done.document['members'])} members are in the "
                 f"document, not {expected} of {members}")
    return done


def row(done, rate, note=""):
    print(f"{done.members:>7}{rate:>8}{done.gather_seconds:>9.2f}{done.cpu_before:>8.2f}{done.cpu_during:>8.2f}"
          f"{done.cpu_after:>8.2f}{done.merge_seconds:>9.2f}{done.peak_kib / 1024:>8.0f}{done.files:>8.0f}"
          f"{done.in_rate:>9,.0f}{done.out_rate:>7,.0f}{done.final_bytes / 1024:>8.1f}{done.result_bytes / 1024:>9,.0f}  {note}".rstrip(), flush=True)


HEADER = """\
                 seconds   coordinator's CPU s    seconds    MiB    open   B/s per member   final    result
members  rate   to start  before  during   after  to end  at most   files       in    out     KiB       KiB"""


class Computed:
    """A fleet's costs by lines through measured ones, with the rates per member of the largest of these.

    The lines are Theil's: the median of the slopes between any two points, so one disturbed run does not tilt them.
    """

    LINEAR = ("gather_seconds", "cpu_before", "cpu_during", "cpu_after", "merge_seconds", "peak_kib", "files",
              "result_bytes")
    KEPT = ("in_rate", "out_rate", "final_bytes")

    def __init__(self, done, members):
        self.members = members
        for name in self.LINEAR:
            points = [(one.members, getattr(one, name)) for one in done]
            per = statistics.median((b - a) / (more - fewer)
                                    for (fewer, a), (more, b) in itertools.combinations(points, 2))
            setattr(self, name, statistics.median(value + per * (members - count) for count, value in points))
        for name in self.KEPT:
            setattr(self, name, getattr(done[-1], name))


def compute(done, members, rate, seconds):
    computed = Computed(done, members)
    row(computed, rate, "computed")
    print(f"{'':>15}computed for {members:,}: {computed.in_rate * members * 8 / 1e6:,.0f} Mbit/s to the coordinator, "
          f"{100 * computed.cpu_during / seconds:.0f} % of a core in the run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=bounded(int, 2, 1024), nargs="+", default=[100, 250, 500, 1000])
    parser.add_argument("--seconds", type=bounded(int, 2, 3600), default=10, help="of each run")
    parser.add_argument("--rate", type=bounded(int, 1, 10000), nargs="+", default=[50, 1000], help="requests/s of a member")
    parser.add_argument("--via", choices=CHANNELS, default="pipes", help="how messages pass (default: pipes)")
    parser.add_argument("--computed", type=bounded(int, 2, 100_000), nargs="*", default=[10_000],
                        help="numbers of members to compute the costs of")
    args = parser.parse_args()
    args.members = sorted(set(args.members))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    print(f"{machine()}\n{RECORDED} recorded agents, runs of {args.seconds} s, at most {soft} open files\n{HEADER}")
    nginx = Nginx(body="x" * 200)
    try:
        for rate in args.rate:
            done = []
            for members in args.members:
                done.append(measure(args.via, nginx.url, members, rate, args.seconds))
            for members in args.computed if len(done) > 1 else ():
                compute(done, members, rate, args.seconds)
    finally:
        nginx.close()


if __name__ == "__main__":
    main()
