#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of the same question with other tools: how long requests of a port wait in the socket, and how long
they are served.

One thread exchanges with itself over loopback (pingpong.c). Within that load the default's programs are attached
by turns with those of each peer:

  bpftrace  a script with the same three tracepoints, the same filter by port, a map by socket and two histograms,
            as its user would write it. It has neither accept, receive, respond nor transmit, no ends of
            connections, no pipelining, no TLS.
  Rezolus   its sampler tcp_packet_latency alone: from a segment to the next read, of all sockets of the host in
            one histogram. It has no filter by port, no service time and no connections. Debian does not have it:
            cargo install rezolus --locked --version 5.4.0 (with clang). --rezolus names another place. If it is
            missing or does not attach, the command reports that and continues.

Before and after each turn nothing is attached; medians of the differences have their 95 % confidence. Then the
kernel times each one's programs for a second (run statistics). These figures include other sockets of this host.
Two runs of each program per exchange are the load's own.

Ends with an error if a peer did not see every exchange made while it was attached.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import tempfile
import time
from pathlib import Path

from common import ROUNDS, bounded, confident, machine, need, prefer

from adopted import LIBBPF, Crowd, checked
from observer import DEFAULT, OFF, PingPong, WARM_SECONDS, switch
from support.net import free_port
from support.process import Process, run, wait_until

SCRIPT = """
tracepoint:sock:sk_data_ready /((struct sock *)args->skaddr)->__sk_common.skc_num == PORT/ {
	@arrived[args->skaddr] = nsecs;
}
tracepoint:sock:sock_recv_length /args->ret > 0 && ((struct sock *)args->sk)->__sk_common.skc_num == PORT/ {
	$arrived = @arrived[args->sk];
	if ($arrived) { @queue = hist(nsecs - $arrived); @read[args->sk] = nsecs; delete(@arrived[args->sk]); }
}
tracepoint:sock:sock_send_length /args->ret > 0 && ((struct sock *)args->sk)->__sk_common.skc_num == PORT/ {
	$read = @read[args->sk];
	if ($read) { @service = hist(nsecs - $read); delete(@read[args->sk]); }
}
interval:ms:200 { printf("attached\\n"); }
END { clear(@arrived); clear(@read); }
"""
BPFTRACE, REZOLUS = "bpftrace", "Rezolus"
NAMES = {DEFAULT: "sojourn"}
REZOLUS_CONFIG = """
[general]
listen = "127.0.0.1:PORT"
[scheduler]
policy = "normal"
[log]
level = "info"
[defaults]
enabled = false
[samplers.tcp_packet_latency]
enabled = true
"""
REZOLUS_READ = "tcp_rcv_space_adjust"  # adds to the histogram
REZOLUS_PROGRAMS = (REZOLUS_READ, "tcp_probe", "tcp_destroy_sock")
TRACEFS = "/sys/kernel/tracing"
RUN_TIME = 0  # BPF_STATS_RUN_TIME


def programs():
    return {about["id"]: about for about in json.loads(run(["bpftool", "-j", "prog", "show"]).stdout)}


class Bpftrace(Process):
    """bpftrace with the script, attached while it runs. Its tracefs is mounted for it alone."""

    def __init__(self, port, _arguments):
        before = programs()
        script = SCRIPT.replace("PORT", str(port))
        mount = "" if os.path.exists(f"{TRACEFS}/events") else f"mount -t tracefs nodev {TRACEFS} && "
        super().__init__(["unshare", "-m", "sh", "-c", f"{mount}exec bpftrace -B none -e \"$0\"", script])
        try:
            self.wait_for("^attached$", seconds=60)
            self.numbers = {number: about["name"] for number, about in programs().items()
                            if number not in before and about["type"] == "tracepoint"}
        except BaseException:
            self.close()
            raise

    def seen(self, _timed, _made):
        """End it; return the number of responses in its histogram, which it prints at the end."""
        self.stop(number=signal.SIGINT, seconds=30)
        found = self.stdout.split("@service:")[1]
        return sum(int(count) for count in re.findall(r"^\[[^)\]]*[)\]]\s+(\d+) \|", found, re.MULTILINE))

    @staticmethod
    def version(_arguments):
        return run(["bpftrace", "--version"]).stdout.strip()


class Rezolus(Process):
    """Rezolus's agent with one sampler."""

    def __init__(self, _port, arguments):
        before = programs()
        self.files = tempfile.TemporaryDirectory(prefix="sojourn-bench.")
        config = Path(self.files.name, "agent.toml")
        config.write_text(REZOLUS_CONFIG.replace("PORT", str(free_port())), encoding="ascii")
        super().__init__([arguments.rezolus, config])
        try:
            self.numbers = {}
            wait_until(lambda: self._attached(before), seconds=30)
        except BaseException:
            self.close()
            raise

    def _attached(self, before):
        if not self.running():
            raise self.error("ended")
        self.numbers = {number: about["name"] for number, about in programs().items()
                        if number not in before and about["name"] in REZOLUS_PROGRAMS}
        return len(self.numbers) == len(REZOLUS_PROGRAMS)

    def close(self):
        super().close()
        self.files.cleanup()

    def seen(self, found, made):
        """Return the exchanges that it saw: each has two reads, one at either end."""
        return int(found.get(REZOLUS_READ, (0, 0))[1] * made / 2 + 0.5)

    @staticmethod
    def version(arguments):
        return run([arguments.rezolus, "--version"]).stdout.strip()


PEERS = {BPFTRACE: Bpftrace, REZOLUS: Rezolus}


def usable(load, arguments):
    """Return the names of those that can be compared here; print why the others cannot."""
    found = []
    for name, peer in PEERS.items():
        try:
            peer(load.port, arguments).close()
            found.append(name)
            print(f"{name}: {peer.version(arguments)}")
        except (OSError, AssertionError) as error:
            lines = str(error).strip().splitlines()
            print(f"{name}: not compared: {lines[0]}" + (f" … {lines[-1]}" if len(lines) > 1 else ""))
    return found


def windows(load, arguments):
    """Return the median of some windows, in ns per exchange."""
    found = [load.window() for _ in range(arguments.windows)]
    return statistics.median(window[0] for window in found if window)


def attached(mode, crowd, load, arguments):
    """Return a context in which @mode's programs are attached."""
    if mode in PEERS:
        return PEERS[mode](load.port, arguments)
    switch(crowd, mode)
    return contextlib.nullcontext()


def measured(crowd, load, peers, arguments):
    """Return {mode: [(ns of an exchange, that of its neighbours with nothing attached)]}."""
    found = {mode: [] for mode in (DEFAULT, *peers)}
    switch(crowd, OFF)
    before = windows(load, arguments)
    for _ in range(arguments.rounds):
        for mode, pairs in found.items():
            with attached(mode, crowd, load, arguments):
                mine = windows(load, arguments)
            switch(crowd, OFF)
            after = windows(load, arguments)
            pairs.append((mine, (before + after) / 2))
            before = after
    return found


def timed(numbers, load):
    """Return {program: (ns per run, runs per exchange)} of a second with run statistics."""
    statistics_on = checked(LIBBPF.bpf_enable_stats(RUN_TIME))
    try:
        first, count = programs(), load.count()
        time.sleep(1)
        last, count = programs(), load.exchanges(load.count() - count)
    finally:
        os.close(statistics_on)
    found = {}
    for number, name in numbers.items():
        runs, run_ns = (last[number].get(what, 0) - first[number].get(what, 0) for what in ("run_cnt", "run_time_ns"))
        if runs > count / 100:
            found[name] = run_ns / runs, runs / count
    return found


def print_timed(name, found):
    total = sum(ns * runs for ns, runs in found.values())
    print(f"\n{name}: {total:.0f} ns of one exchange by run statistics")
    for program, (ns, runs) in found.items():
        print(f"  {program:<20}{ns:6.0f} ns/run, {runs:.2f} runs per exchange")


class Load(PingPong):
    """A PingPong that counts the exchanges of its batches."""

    BATCH = 100  # as in pingpong.c

    def exchanges(self, batches):
        return batches * self.BATCH


def compare_timed(name, load, arguments):
    with PEERS[name](load.port, arguments) as peer:
        first = load.count()
        found = timed(peer.numbers, load)
        made = load.exchanges(load.count() - first)
        seen = peer.seen(found, made)
        if seen < made * 0.99:
            raise SystemExit(f"{name} saw {seen:,} of at least {made:,} exchanges")
        print_timed(name, found)


def compare(load, arguments):
    with Crowd(load.port, {DEFAULT: []}, {}) as crowd:
        load.begin()
        time.sleep(WARM_SECONDS)
        crowd.take()
        switch(crowd, OFF)
        peers = usable(load, arguments)
        found = measured(crowd, load, peers, arguments)
        base = statistics.median(base for pairs in found.values() for _, base in pairs)
        print(f"\none exchange, both ends: {base:,.0f} ns not observed")
        for mode, pairs in found.items():
            print(f"  {NAMES.get(mode, mode):<15} adds {confident([mine - base for mine, base in pairs], 0)} ns")
        switch(crowd, DEFAULT)
        print_timed(NAMES[DEFAULT], timed({program.number: program.name for program in
                                      crowd.members[DEFAULT].programs}, load))
        switch(crowd, OFF)
        for name in peers:
            compare_timed(name, load, arguments)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=15)
    parser.add_argument("--windows", type=bounded(int, 1, 1000), default=12, help="of each turn")
    parser.add_argument("--window", type=bounded(float, 0.01, 60), default=0.025, help="seconds of each")
    parser.add_argument("--urgent", action="store_true",
                        help="the load gets the CPU before all else that runs here (autogroups)")
    parser.add_argument("--rezolus", metavar="PROGRAM", help="where Rezolus is, if not on the PATH or in ~/.cargo/bin",
                        default=shutil.which("rezolus") or os.path.expanduser("~/.cargo/bin/rezolus"))
    return parser.parse_args()


def main():
    arguments = parse()
    need("bpftrace")
    with contextlib.ExitStack() as stack:
        stack.callback(prefer, arguments.urgent, "self", nice=0)
        prefer(arguments.urgent, "self")
        print(f"{machine()}; {arguments.rounds} rounds, medians [95 % confidence]")
        with Load(arguments) as load:
            compare(load, arguments)


if __name__ == "__main__":
    main()
