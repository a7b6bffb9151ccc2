# SPDX-License-Identifier: MIT
"""Compares the slowest requests with and without a mode of observing, by pairs of windows.

One load runs all the time (latencies.c). Windows of some hundredths of a second come in pairs: one of the base, one of
the judged mode, in random order. The windows of a pair are adjacent, so the machine's drift cancels. There are hundreds
of pairs.

The windows of a pair are alike in all but the mode. A request belongs to the window in which it began. Nothing changes
until all requests of a window have ended. On a saturated server those under way at its end are more than its slowest
hundredth. There are two comparisons:

- The port is in the programs' filter, or it is not. That is one bit in memory. The programs stay attached.
- A mode's programs are attached, or as many that do nothing, on hooks that no request passes (adopted.Idle). Attaching and
  detaching stall the load: the kernel rewrites its code, and waits for all CPUs. So each window follows the same steps: the
  idle programs are attached, then detached, and the window's own are attached. The load then runs for some milliseconds
  before the window opens.

Each pair compares the p99 of its two windows. Without a difference either one is equally likely to be slower. The sign
test gives the probability of the observed division, for any distribution. The same test gives an interval for the
median of the ratios.

A window's p99 comes from some dozens of requests, and misses stalls that happen once a second. So the windows of each side
are also pooled, and the p99 of the pools are compared. Their interval is from resampled pairs (bootstrap): requests of
one window depend on each other, pairs hardly do.

Each comparison has two controls, in pairs among the others. The base against itself must not differ, and a server that
loses a known share of its CPU must. If a control fails, the result says so.
"""
import array
import math
import mmap
import os
import random
import statistics
import struct
import time

from common import CLIENT_CPU, SERVER_CPU, Priority, confident, pinned, prefer
from support import BUILD

PROGRAM = BUILD / "tests" / "bench" / "latencies"
BASE, CONTROL, BURDEN = "base", "base, against itself", "server slowed down"
CONTROLS = (CONTROL, BURDEN)
BURDEN_NS = 10_000  # one percent of each millisecond
SETTLE_SECONDS = 0.005  # after a switch; several requests on each connection
RESAMPLES = 400
UNLIKELY = 0.01  # below this, the sign test shows a difference
QUANTILE = 0.99
KEPT = 0.05  # the share of slowest requests that suffices for nearly every resampled p99

# As in latencies.c.
STEPS, OCTAVE_MIN, OCTAVES = 128, 14, 18
BUCKETS = STEPS * OCTAVES
HEADER = struct.Struct("=4I")


def lower_ns(number):
    """Return the lower bound of a bucket."""
    octave, step = divmod(number, STEPS)
    return (STEPS + step) * 2 ** (octave + OCTAVE_MIN) / STEPS


def bucket(ns):
    """Return the bucket of a time."""
    octave = int(ns).bit_length() - 1
    return (octave - OCTAVE_MIN) * STEPS + ((int(ns) - (1 << octave)) * STEPS >> octave)


class Latencies:
    """The load, and the histogram of each window."""

    def __init__(self, nginx, arguments, windows):
        self.nginx, self.arguments, self.windows, self.last = nginx, arguments, windows, 0
        self.port, self.process = nginx.port, None
        self.file = os.memfd_create("latencies")
        size = HEADER.size + (windows + 1) * BUCKETS * 4
        os.ftruncate(self.file, size)
        self.map = mmap.mmap(self.file, size)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process:
            self.process.kill()
            self.process.wait()
        os.close(self.file)

    def begin(self):
        self.process = pinned([str(word) for word in (
            PROGRAM, self.port, self.arguments.connections, SERVER_CPU, f"/proc/{os.getpid()}/fd/{self.file}")],
            cpu=CLIENT_CPU)
        prefer(self.arguments.urgent, self.nginx.workers()[0], self.process.pid)
        Priority.give(self.process.pid)
        while not self._header()[2]:
            self._check()
            time.sleep(0.01)

    def _check(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the load ended with status {self.process.returncode}")

    def _header(self):
        return HEADER.unpack_from(self.map)

    def _set(self, place, value):
        struct.pack_into("=I", self.map, place * 4, value)

    def burden(self, burden_ns):
        self._set(1, burden_ns)

    def window(self):
        """Open a window for its time, wait for the last requests that began in it, and return its number."""
        self.last += 1
        self._set(0, self.last)
        time.sleep(self.arguments.tail_window)
        self._set(0, 0)
        time.sleep(SETTLE_SECONDS)
        while self._header()[3]:
            self._check()
            time.sleep(SETTLE_SECONDS)
        return self.last

    def counts(self, number):
        """Return {bucket: requests} of a window."""
        begin = HEADER.size + number * BUCKETS * 4
        found = array.array("I", self.map[begin:begin + BUCKETS * 4])
        return {place: count for place, count in enumerate(found) if count}


def measured(load, prepare, modes):
    """Return {mode: [(counts of the base, counts with it) of each pair]}. @prepare(mode) does what makes a window one of this
    mode, or of the base."""
    found = {mode: [] for mode in modes}
    for _ in range(load.arguments.tails):
        for mode in random.sample(list(found), len(found)):
            numbers = {}
            for each in random.sample([BASE, mode], 2):
                load.burden(load.arguments.burden * BURDEN_NS if each == BURDEN else 0)
                prepare(BASE if each in CONTROLS else each)
                time.sleep(SETTLE_SECONDS)
                numbers[each] = load.window()
            found[mode].append((numbers[BASE], numbers[mode]))
    load.burden(0)
    return {mode: [tuple(load.counts(number) for number in pair) for pair in numbers]
            for mode, numbers in found.items()}


# ---- evaluation ----

def quantile(counts, total=None):
    """Return the QUANTILE in ns, linear within a bucket. Of @total requests, @counts may lack fast ones."""
    total = total or sum(counts.values())
    above = total * (1 - QUANTILE)  # how many are slower
    for number in sorted(counts, reverse=True):
        if counts[number] >= above:
            low, high = lower_ns(number), lower_ns(number + 1)
            return high - (high - low) * above / counts[number]
        above -= counts[number]
    raise ValueError("fewer requests are kept than the quantile is of")


def pooled(windows):
    """Return the sum of all windows."""
    found = {}
    for counts in windows:
        for number, count in counts.items():
            found[number] = found.get(number, 0) + count
    return found


def slow_part(windows):
    """Return [(the slowest requests, all requests, their number)]: nearly any resampled p99 is among the slowest ones."""
    pool = pooled(windows)
    left, floor = sum(pool.values()) * KEPT, 0
    for floor in sorted(pool, reverse=True):
        left -= pool[floor]
        if left <= 0:
            break
    return [({number: count for number, count in counts.items() if number >= floor}, counts, sum(counts.values()))
            for counts in windows]


def quantile_of(parts):
    total = sum(count for _, _, count in parts)
    slow = pooled(slow for slow, _, _ in parts)
    if sum(slow.values()) < total * (1 - QUANTILE):
        slow = pooled(counts for _, counts, _ in parts)
    return quantile(slow, total)


def resampled(pairs):
    """Return (ratio of the pools' p99, its lower and upper bound with 95 % confidence)."""
    sides = [slow_part(windows) for windows in zip(*pairs)]
    ratios = []
    for _ in range(RESAMPLES):
        chosen = random.choices(range(len(pairs)), k=len(pairs))
        base, mine = (quantile_of([side[number] for number in chosen]) for side in sides)
        ratios.append(mine / base)
    ratios.sort()
    base, mine = (quantile_of(side) for side in sides)
    return mine / base, ratios[int(RESAMPLES * 0.025)], ratios[int(RESAMPLES * 0.975)]


def improbability(slower, faster):
    """Two-sided sign test: return the probability of so uneven a division without a difference."""
    count, least = slower + faster, min(slower, faster)
    tail = sum(math.comb(count, k) for k in range(least + 1))
    return min(1.0, 2 * tail / 2 ** count) if count else 1.0


class Verdict:
    """The result of one mode's pairs."""

    def __init__(self, pairs):
        self.pairs = [pair for pair in pairs if all(pair)]
        self.ratios = [quantile(mine) / quantile(base) for base, mine in self.pairs]
        self.slower = sum(ratio > 1 for ratio in self.ratios)
        self.probability = improbability(self.slower, sum(ratio < 1 for ratio in self.ratios))
        self.pooled, self.least, self.most = resampled(self.pairs)

    def is_slower(self):
        """Return whether the sign test or the pools' interval shows that it is slower. Stalls widen the pools' interval."""
        return self.least > 1 or (self.probability < UNLIKELY and self.slower > len(self.ratios) / 2)

    def line(self):
        return f"pooled {self.pooled:.3f} [{self.least:.3f} .. {self.most:.3f}]; of windows {confident(self.ratios)}, " \
            f"{self.slower} of {len(self.ratios)} slower (p = {self.probability:.2g})"


def print_verdicts(what, found, arguments):
    base = statistics.median(quantile(base) for pairs in found.values() for base, _ in pairs if base)
    pairs = len(next(iter(found.values())))
    verdicts = {mode: Verdict(pairs) for mode, pairs in found.items()}
    print(f"\np99 of {pairs} pairs of windows within one load, ratios [95 % confidence]: {what}, where it is "
          f"{base / 1000:,.0f} µs, median of windows")
    for mode, verdict in verdicts.items():
        print(f"  {mode:<25} {verdict.line()}")
    print(f"  (slowed down: a real-time thread takes {arguments.burden} % of the server's CPU)")
    if verdicts[CONTROL].probability < UNLIKELY:
        print("  not known: the base differs from itself, so the other differences may be the method's")
    if not verdicts[BURDEN].is_slower():
        print("  not known: the slowed server was not found, so such a difference would be overlooked: --tails")
