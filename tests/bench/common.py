# SPDX-License-Identifier: MIT
"""Code shared by the benchmarks: pinning, CPU time of a command, interleaving, medians, the machine."""
import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.process import die_with_parent, run, set_autogroup  # noqa: E402
from support.programs import OBSERVER, Nginx  # noqa: E402

SERVER_CPU, CLIENT_CPU = 0, 1
BODY = "x" * 200


def conditions():
    """Return the factors of the cost of system calls and BPF programs on this host, from `sojourn probe`."""
    found = json.loads(run([OBSERVER, "probe", "--json"], check=False).stdout)["machine"]
    mitigations = found["mitigations"]
    return f"mitigations: {'not known' if mitigations is None else ', '.join(mitigations) or 'none'}; " \
        f"clock source: {found['clock_source'] or 'not known'}; " \
        f"virtualisation: {found['virtualisation'] or 'not known'}"


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, " \
        f"Linux {platform.release()}, {conditions()}, {now:%Y-%m-%d}"


def bounded(kind, least, most, why=""):
    """Return an argparse type: an int or a float in this range, else an error and status 2."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            word = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"'{text}' is not allowed: a {word} from {least:,} to {most:,}{why}")
        return value
    return parse


# The argparse type of numbers of rounds whose figures are printed with quartiles.
ROUNDS = bounded(int, 2, 10_000, "; quartiles need two")


def need(*programs):
    packages = {"ab": "apache2-utils", "h2load": "nghttp2-client", "wrk": "wrk",
                "nginx": "nginx-light", "bpftrace": "bpftrace", "perf": "linux-perf", "tcpdump": "tcpdump",
                "bpftool": "bpftool", "redis-server": "redis-server", "redis-benchmark": "redis-tools",
                "pgbench": "postgresql", "valgrind": "valgrind"}
    missing = [packages[name] for name in programs if not shutil.which(name)]
    if missing:
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def pinned_nginx(cgroup=None, **options):
    """Start nginx with one worker on the server's core, and a short answer, so that the request's own cost shows."""
    if os.cpu_count() < 2:
        sys.exit("the benchmark pins server and client to a core each: it needs two")
    nginx = Nginx(body=BODY, netns=cgroup, **options)
    for pid in (nginx.pid, *nginx.workers()):
        os.sched_setaffinity(pid, {SERVER_CPU})
        Priority.give(pid)
    return nginx


def resident_kib(pid):
    """Return the peak memory so far; 0 before exec, as until then it is the parent's, which ru_maxrss includes."""
    try:
        if os.readlink(f"/proc/{pid}/exe") == os.readlink("/proc/self/exe"):
            return 0
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            found = re.search(r"^VmHWM:\s+(\d+)", file.read(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) if found else 0


class Priority:
    """Whether --real-time puts server and client before other programs.

    SCHED_RR, not SCHED_FIFO: threads of one program on one core must alternate, or a busy one keeps the other
    from ending the run.
    """
    real_time = False

    @classmethod
    def option(cls, parser):
        parser.add_argument("--real-time", action="store_true",
                            help="server and clients before other programs (SCHED_RR): for a machine "
                            "that is not theirs alone; needs root")

    @classmethod
    def choose(cls, arguments):
        cls.real_time = arguments.real_time
        if cls.real_time and os.geteuid():
            sys.exit("--real-time needs root")

    @classmethod
    def give(cls, pid):
        if cls.real_time:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))

    @classmethod
    @contextlib.contextmanager
    def first(cls):
        """Put this process, which runs rarely and briefly, before those that give() has put before others."""
        if cls.real_time:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))
        try:
            yield
        finally:
            if cls.real_time:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    @classmethod
    def name(cls):
        return "real-time" if cls.real_time else "usual"


class Timed:
    """A command run to its end on the client's core: its output and its CPU seconds."""

    def __init__(self, argv, cpu=CLIENT_CPU):
        with tempfile.TemporaryFile("w+") as out:
            pid = os.fork()
            if pid == 0:
                os.sched_setaffinity(0, {cpu})
                Priority.give(0)
                os.dup2(out.fileno(), 1)
                os.execvp(argv[0], [str(word) for word in argv])
            self.resident_kib = 0
            while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                self.resident_kib = max(self.resident_kib, resident_kib(pid))
                time.sleep(0.05)
            _, self.status, usage = os.wait4(pid, 0)
            out.seek(0)
            self.text = out.read()
        self.user, self.system = usage.ru_utime, usage.ru_stime
        if self.status:
            raise SystemExit(f"{argv[0]} ended with status {self.status}:\n{self.text}")

    @property
    def cpu(self):
        return self.user + self.system


def pinned(argv, cpu=CLIENT_CPU, stdin=None, stdout=subprocess.DEVNULL):
    """Start a command on the client's core, in its own session; the caller ends it."""
    def prepare():
        die_with_parent()
        os.sched_setaffinity(0, {cpu})

    return subprocess.Popen(argv, stdin=stdin, stdout=stdout, start_new_session=True, preexec_fn=prepare)


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:8.3f}  [{low:.3f} .. {high:.3f}]"


def confident(values, digits=3):
    """Return the median and its bounds with 95 % confidence, for any distribution. The bounds are the values
    at ranks n/2 ± 0.98 √n: each value is below the true median with probability 1/2."""
    ordered, count = sorted(values), len(values)
    rank = max(0, int(count / 2 - 0.98 * count ** 0.5))
    return f"{statistics.median(ordered):.{digits}f} [{ordered[rank]:.{digits}f} .. " \
        f"{ordered[count - 1 - rank]:.{digits}f}]"


def prefer(wanted, *pids, nice=-20):
    """Give the sessions of these processes priority over all others; needs root."""
    for pid in pids if wanted else ():
        set_autogroup(pid, nice)


def ratios(results, mode, base):
    """Return, for each round, this mode's figure divided by the base's in the same round."""
    return [mine / theirs for mine, theirs in zip(results[mode], results[base])]
