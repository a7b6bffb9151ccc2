#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of the same question with other tools: how long requests of a port wait in the socket, and how long
they are served.

One thread exchanges with itself over loopback (pingpong.c). Within that load the default's programs are
attached by turns with a script of bpftrace. The script has the same three tracepoints, the same filter by port,
a map by socket and two histograms, as its user would write it. It has neither accept, receive, respond nor
transmit, no ends of connections, no pipelining, no TLS.

Before and after each turn nothing is attached; medians of the differences have their 95 % confidence. Then the
kernel times each one's programs for a second (run statistics). These figures include other sockets of this
host, whose runs return at the filter. Two runs of each program per exchange are the load's own.

Ends with an error if the script did not see every exchange made while it was attached.
"""
import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import time

from common import ROUNDS, bounded, confident, machine, need, prefer

from adopted import LIBBPF, Crowd, checked
from observer import DEFAULT, OFF, PingPong, WARM_SECONDS, switch
from support.process import Process, run

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
PEER = "bpftrace"
NAMES = {DEFAULT: "sojourn", PEER: PEER}
TRACEFS = "/sys/kernel/tracing"
RUN_TIME = 0  # BPF_STATS_RUN_TIME


def programs():
    return {about["id"]: about for about in json.loads(run(["bpftool", "-j", "prog", "show"]).stdout)}


class Peer(Process):
    """bpftrace with the script, attached while it runs. Its tracefs is mounted for it alone."""

    def __init__(self, port):
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


    def seen(self):
        """End it; return the number of responses in its histogram, which it prints at the end."""
        self.stop(number=signal.SIGINT, seconds=30)
        found = self.stdout.split("@service:")[1]
        return sum(int(count) for count in re.findall(r"^\[[^)\]]*[)\]]\s+(\d+) \|", found, re.MULTILINE))


def windows(load, arguments):
    """Return the median of some windows, in ns per exchange."""
    found = [load.window() for _ in range(arguments.windows)]
    return statistics.median(window[0] for window in found if window)


def attached(mode, crowd, load):
    """Return a context in which @mode's programs are attached."""
    if mode == PEER:
        return Peer(load.port)
    switch(crowd, mode)
    return contextlib.nullcontext()


def measured(crowd, load, arguments):
    """Return {mode: [(ns of an exchange, that of its neighbours with nothing attached)]}."""
    found = {mode: [] for mode in (DEFAULT, PEER)}
    switch(crowd, OFF)
    before = windows(load, arguments)
    for _ in range(arguments.rounds):
        for mode, pairs in found.items():
            with attached(mode, crowd, load):
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


def compare(load, arguments):
    with Crowd(load.port, {DEFAULT: []}, {}) as crowd:
        load.begin()
        time.sleep(WARM_SECONDS)
        crowd.take()
        found = measured(crowd, load, arguments)
        base = statistics.median(base for pairs in found.values() for _, base in pairs)
        print(f"\none exchange, both ends: {base:,.0f} ns not observed")
        for mode, pairs in found.items():
            print(f"  {NAMES[mode]:<15} adds {confident([mine - base for mine, base in pairs], 0)} ns")
        switch(crowd, DEFAULT)
        print_timed(NAMES[DEFAULT], timed({program.number: program.name for program in
                                      crowd.members[DEFAULT].programs}, load))
        switch(crowd, OFF)
        with Peer(load.port) as peer:
            first = load.count()
            found = timed(peer.numbers, load)
            made = load.exchanges(load.count() - first)
            seen = peer.seen()
            if seen < made:
                raise SystemExit(f"{PEER} saw {seen:,} of at least {made:,} exchanges")
            print_timed(PEER, found)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=15)
    parser.add_argument("--windows", type=bounded(int, 1, 1000), default=12, help="of each turn")
    parser.add_argument("--window", type=bounded(float, 0.01, 60), default=0.025, help="seconds of each")
    parser.add_argument("--urgent", action="store_true",
                        help="the load gets the CPU before all else that runs here (autogroups)")
    return parser.parse_args()


def main():
    arguments = parse()
    need("bpftrace")
    with contextlib.ExitStack() as stack:
        stack.callback(prefer, arguments.urgent, "self", nice=0)
        prefer(arguments.urgent, "self")
        version = subprocess.run(["bpftrace", "--version"], check=True, capture_output=True, text=True).stdout.strip()
        print(f"{machine()}; {version}; {arguments.rounds} rounds, medians [95 % confidence]")
        with Load(arguments) as load:
            compare(load, arguments)


if __name__ == "__main__":
    main()
