#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare a Prometheus's native histograms with custom buckets (NHCB) with the run document, number by number.

Needs Prometheus 3, which Debian does not have: --prometheus is the program. It scrapes one `sojourn serve` of a small
nginx twice, as classic histograms and with convert_classic_histograms_to_nhcb. Under load histogram_quantile() of both
must have a value in each stage. After the load these must hold, for coarse and for fine buckets:

  bounds      each of a native histogram is an upper bound of a bucket of the run document
  counts      up to each bound, and in all, are those of the document, as is the sum
  quantiles   are those of the classic histogram, and the p99 is in the bucket that has the document's p99
"""
import argparse
import contextlib
import json
import math
import sys
import tempfile
import time
import urllib.parse
from decimal import Decimal
from pathlib import Path

from common import bounded

from support import http
from support.documents import parse, service
from support.net import free_port
from support.process import Process, run, wait_until
from support.programs import DRIVER, OBSERVER, Driver, Nginx

STAGES = ("accept_queue", "socket_queue", "receive", "service", "respond")
JOBS = {"classic": False, "native": True}  # and whether it converts
CLASSIC, NATIVE = ("sojourn_stage_seconds_bucket", "sojourn_stage_seconds")
QUANTILES = (0.5, 0.9, 0.99, 0.999)
ROUNDING = 1e-9  # of floating point
SUB = 64  # buckets of a power of two: docs/run-document.md, Histograms


def upper_ns(index):
    """Return the largest value of a bucket of the run document."""
    if index < SUB:
        return index
    octave, place = divmod(index, SUB)
    return ((SUB + place + 1) << (octave - 1)) - 1


def prometheus_of(program, target, folder, port):
    config = Path(folder, "prometheus.yml")
    config.write_text(json.dumps({
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": [{"job_name": job, "convert_classic_histograms_to_nhcb": convert, "static_configs": [
            {"targets": [target.removeprefix("http://")]}]} for job, convert in JOBS.items()]}), encoding="ascii")
    return Process([program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"])


def ask(port, query):
    answer = http.request(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}", "GET", None)
    return json.loads(answer)["data"]["result"]


def values(port, query):
    return [float(one["value"][1]) for one in ask(port, query)]


def ours(url, port):
    """Return {stage: [(upper bound of a bucket in ns, values up to there)]} of the run document, and its stages."""
    stages = service(parse(http.request(url + "/v1/run", "GET", None)), port)["stages"]
    found = {}
    for name in STAGES:
        total, found[name] = 0, []
        for index, count in stages[name]["buckets"]:
            total += count
            found[name].append((upper_ns(index), total))
    return found, stages


def native_of(port, stage):
    """Return [(upper bound in ns, values up to there)] of a native histogram, its count, and its sum in seconds."""
    histogram = ask(port, f'{NATIVE}{{job="native",stage="{stage}"}}')[0]["histogram"][1]
    total, found = 0, []
    for _, _, upper, count in histogram["buckets"]:
        total += int(count)
        found.append((math.inf if upper == "+Inf" else Decimal(upper) * 10 ** 9, total))
    return found, int(histogram["count"]), float(histogram["sum"])


def up_to(buckets, bound):
    return max((total for upper, total in buckets if upper <= bound), default=0)


def differences(prometheus, url, port):
    """Yield where the native histograms differ from the run document, a sentence each."""
    document, stages = ours(url, port)
    bounds = {upper_ns(index) for index in range(SUB * 35)}
    for stage, buckets in document.items():
        native, count, seconds = native_of(prometheus, stage)
        if count != stages[stage]["count"]:
            yield f"{stage}: {count} values, the document has {stages[stage]['count']}"
        if not math.isclose(seconds * 1e9, stages[stage]["sum_ns"], rel_tol=ROUNDING):
            yield f"{stage}: {seconds} s in sum, the document has {stages[stage]['sum_ns']} ns"
        for bound, total in native:
            if bound != math.inf and (bound != int(bound) or int(bound) not in bounds):
                yield f"{stage}: {bound} ns is no upper bound of a bucket"
            if total != up_to(buckets, bound):
                yield f"{stage}: {total} values up to {bound} ns, the document has {up_to(buckets, bound)}"


def quantile(prometheus, job, stage, which):
    name = NATIVE if JOBS[job] else CLASSIC
    return values(prometheus, f'histogram_quantile({which}, {name}{{job="{job}",stage="{stage}"}})')[0]


def different_quantiles(prometheus, url, port):
    stages = service(parse(http.request(url + "/v1/run", "GET", None)), port)["stages"]
    for stage in STAGES:
        for which in QUANTILES:
            classic, native = (quantile(prometheus, job, stage, which) for job in JOBS)
            if not math.isclose(classic, native, rel_tol=ROUNDING):
                yield f"{stage}: quantile {which}: {native} s, of the classic histogram {classic} s"
        p99, bounds = stages[stage]["p99_ns"], [bound for bound, _ in native_of(prometheus, stage)[0]]
        upper = min(bound for bound in bounds if bound >= p99)
        lower = max((bound for bound in bounds if bound < p99), default=0)
        native = quantile(prometheus, "native", stage, 0.99)
        if not float(lower) * (1 - ROUNDING) <= native * 1e9 <= float(upper) * (1 + ROUNDING):
            yield f"{stage}: p99 is {native} s, the document's {p99} ns"


def under_load(prometheus):
    """Whether a rate of each stage has a quantile, of both forms alike."""
    try:
        asked = [values(prometheus, f"histogram_quantile(0.99, rate({name}{{job=\"{job}\"}}[5s]))")
                 for job, name in (("classic", CLASSIC), ("native", NATIVE))]
    except OSError:
        return False
    return all(sum(not math.isnan(value) for value in each) >= len(STAGES) for each in asked)


def compare(stack, program, buckets, requests):
    nginx = stack.enter_context(Nginx(body="x" * 200))
    serve = stack.enter_context(Process([OBSERVER, "serve", "--port", nginx.port, "--listen", "127.0.0.1:0",
                                         "--buckets", buckets]))
    url = serve.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    port = free_port()
    stack.enter_context(prometheus_of(program, url, stack.enter_context(tempfile.TemporaryDirectory()), port))
    with Process([DRIVER, nginx.url, "-c", 16, "--rate", 500, "--new-connections", "-d", "1h", "--quiet"]):
        wait_until(lambda: under_load(port), seconds=60)
    Driver(nginx.url, connections=16, count=requests)
    end = time.monotonic() + 30
    while (found := [*differences(port, url, nginx.port), *different_quantiles(port, url, nginx.port)]) and time.monotonic() < end:
        time.sleep(0.5)  # a last scrape is older than the document
    total = service(parse(http.request(url + "/v1/run", "GET", None)), nginx.port)["exchanges"]
    series = [int(values(port, f'count({{job="{job}",__name__=~"{NATIVE}.*"}})')[0]) for job in JOBS]
    print(f"{buckets}: {total:,} exchanges, {len(STAGES)} stages, {series[1]} native series for {series[0]} classic ones, "
          f"{len(found)} differences", *found, sep="\n  ")
    return not found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prometheus", default="prometheus", help="the program, of version 3 or later")
    parser.add_argument("--requests", type=bounded(int, 1, 10_000_000), default=100_000)
    options = parser.parse_args()
    try:
        version = run([options.prometheus, "--version"]).stdout.splitlines()[0]
    except OSError as error:
        parser.error(f"--prometheus {options.prometheus}: {error.strerror}")
    if int(version.split()[2].split(".")[0]) < 3:
        parser.error(f"--prometheus {options.prometheus}: is '{version}', and versions before 3 do not know such histograms")
    print(version)
    same = True
    for buckets in ("coarse", "fine"):
        with contextlib.ExitStack() as stack:
            same &= compare(stack, options.prometheus, buckets, options.requests)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
