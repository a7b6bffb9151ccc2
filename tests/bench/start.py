#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The cost of starting.

Runs `sojourn observe --for 1ms`, which chooses, loads and attaches its programs, with and without those for streams of
HTTP/2, and `sojourn doctor --sample 0`, which looks once. Printed are the user and system CPU time and the wall time of each, as medians with their 95 % confidence.

With --beside each round also runs the commands of another build, in random order. The ratios are of this build's time
to the other's in the same round, so that the machine's drift cancels.
"""
import argparse
import os
import random
import socket
import sys
import time
from pathlib import Path

from common import ROUNDS, Priority, confident, machine, ratios

from support.programs import OBSERVER

FIGURES = {"CPU time": 0, "wall time": 1}


def run_once(argv, allowed):
    """Return (CPU seconds, wall seconds) of a command and of the processes that it has waited for."""
    begin = time.monotonic()
    scheduler = {"scheduler": (os.SCHED_RR, os.sched_param(1))} if Priority.real_time else {}
    pid = os.posix_spawn(argv[0], [str(word) for word in argv], os.environ, **scheduler,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in allowed:
        sys.exit(f"{' '.join(map(str, argv))}: ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def measure(programs, port, rounds):
    """Return {(the command's name, the program): [(CPU seconds, wall seconds)]}. The doctor's status reports findings."""
    tasks = {}
    for program in programs:
        for option in [], ["--no-http2"]:
            words = ["observe", *option, "--for", "1ms"]
            tasks[" ".join(words), program] = [program, *words, "--port", port], {0}
        tasks["doctor --sample 0", program] = [program, "doctor", "--sample", "0"], {0, 1, 2}
    found = {key: [] for key in tasks}
    for number in range(rounds + 1):
        for key in random.sample(list(tasks), len(tasks)):
            took = run_once(*tasks[key])
            if number:  # the first round reads the programs from disk
                found[key].append(took)
    return found


def print_times(found):
    for (name, program), took in found.items():
        for figure, column in FIGURES.items():
            times = [each[column] * 1000 for each in took]
            print(f"  {name:<29} {figure:<10}{confident(times, 1)} ms  ({program})")


def print_ratios(found, other):
    print("\nthis build's time to the other's")
    for name in dict.fromkeys(name for name, _ in found):
        for figure, column in FIGURES.items():
            columns = {program: [each[column] for each in found[name, program]] for program in (OBSERVER, other)}
            print(f"  {name:<29} {figure:<10}{confident(ratios(columns, OBSERVER, other))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=ROUNDS, default=40)
    parser.add_argument("--beside", metavar="BUILD", type=Path, help="another build's commands, too")
    Priority.option(parser)
    arguments = parser.parse_args()
    Priority.choose(arguments)
    other = arguments.beside and arguments.beside / "observer" / "sojourn"
    if other and not other.exists():
        parser.error(f"--beside '{arguments.beside}': wants a folder in which Sojourn is built")
    if os.geteuid():
        parser.error("the observer loads programs: it needs root")
    programs = [OBSERVER, other] if other else [OBSERVER]
    print(f"{machine()}, {arguments.rounds} rounds, medians [95 % confidence], priority: {Priority.name()}")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = measure(programs, listener.getsockname()[1], arguments.rounds)
    print_times(found)
    if other:
        print_ratios(found, other)


if __name__ == "__main__":
    main()
