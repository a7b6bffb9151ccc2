# SPDX-License-Identifier: MIT
"""The cost of observing, measured on the spot: the figures agree with each other, and nothing is left behind."""
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from ..conftest import in_kernel, left_in_kernel
from support.net import free_port
from support.process import run, wait_until
from support.programs import OBSERVER, Observer
from support.timing import in_quiet, timing

CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
PER_REQUEST = ("When did a request become readable?", "When did the server read it?",
               "When did the server write the response?")


def cost():
    result = run([OBSERVER, "probe", "--cost", "--json"])
    return json.loads(result.stdout)


def spreads(part):
    """Yield every figure below: an object with median, low and high."""
    if isinstance(part, dict):
        if "median" in part:
            yield part
        else:
            for below in part.values():
                yield from spreads(below)
    elif isinstance(part, list):
        for below in part:
            yield from spreads(below)


def said_by_kernel():
    """Return the clock source and the text on mitigations, as the kernel has them."""
    texts = [path.read_text() for path in
             Path("/sys/devices/system/cpu/vulnerabilities").glob("*")]
    return CLOCK_SOURCE.read_text().strip(), " ".join(texts).lower()


def test_the_host_is_named():
    clock, sentences = said_by_kernel()
    answers = [json.loads(run([OBSERVER, "probe", "--json"], check=False).stdout)["machine"]]
    with Observer("--cost", ports=[free_port()]) as observer:
        answers.append(observer.document()["cost"]["machine"])
        observer.stop()
        assert f"clock source: {clock}" in observer.stdout
    for machine in answers:
        assert machine["clock_source"] == clock
        assert ("retpolines" in machine["mitigations"]) == ("retpolines" in sentences)
        assert ("Safe RET" in machine["mitigations"]) == (": safe ret" in sentences)
        if flags := re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            assert (machine["virtualisation"] == "none") == ("hypervisor" not in flags[1].split())
    text = run([OBSERVER, "probe"], check=False).stdout
    assert f"Clock source: {clock}\n" in text and "Mitigations: " in text and "Virtualisation: " in text


def test_figures_belong_together():
    document = cost()
    found = document["cost"]
    assert document["schema"] == "sojourn.probe/1" and document["candidates"] and document["machine"]
    assert found["rounds"] >= 6 and found["exchanges"] > found["rounds"]
    for spread in spreads(found):
        assert spread["low"] <= spread["median"] <= spread["high"]
    assert found["exchange_ns"]["low"] > 0
    chosen = {row["program"]: row["hook"] for row in document["candidates"]
              if row["chosen"] and row["question"] in PER_REQUEST}
    assert {program["name"]: program["hook"] for program in found["programs"]} == chosen
    for program in found["programs"]:
        assert program["runs"] > 0
        assert all(program["run_ns"][mode]["low"] > 0 for mode in ("empty", "filtered"))
    assert [row["requests_per_s"] for row in found["rates"]] == [1000, 12_000, 100_000]
    for row in found["rates"]:
        assert row["core_percent"].keys() == {"empty", "filtered", "observed", "kept", "http"}
        for mode, share in row["core_percent"].items():
            for bound in ("median", "low", "high"):
                server_ns = found["server_ns"][mode][bound]
                assert share[bound] == pytest.approx(server_ns * row["requests_per_s"] / 1e7)


def may_be_less(one, other):
    """Whether the intervals allow that one costs less than the other. On a busy host they are wide, and say little."""
    return one["low"] < other["high"]


def difference(one, other):
    return {"low": one["low"] - other["high"], "high": one["high"] - other["low"]}


def scaled(spread, factor):
    return {bound: spread[bound] * factor for bound in ("low", "high")}


@in_quiet
def test_what_does_more_costs_more():
    found = cost()["cost"]
    nothing = {"low": 0, "high": 0}
    both, server, programs = found["both_ends_ns"], found["server_ns"], found["programs_sum_ns"]
    for figures in (both, server, programs):
        assert may_be_less(nothing, figures["empty"]) and may_be_less(figures["empty"], figures["observed"])
    assert may_be_less(server["observed"], server["http"])
    # Both ends pay for the filtered mode; the client's half is no cost of the server.
    for mode in ("observed", "kept", "http"):
        client = difference(both[mode], server[mode])
        assert may_be_less(nothing, client) and may_be_less(client, both["filtered"])
    for mode, total in programs.items():
        parts = {bound: sum(program["run_ns"][mode][bound] for program in found["programs"]) for bound in ("low", "high")}
        assert may_be_less(scaled(parts, 0.9), total) and may_be_less(total, scaled(parts, 1.1))
    # An independent measurement: the kernel's own run statistics of the same programs.
    own, added = (difference(figures["observed"], figures["empty"]) for figures in (programs, server))
    assert may_be_less(scaled(own, 0.4), added) and may_be_less(added, scaled(own, 1.6))
    with timing():  # a run is short, and few of them are interrupted
        for run_ns in [programs] + [program["run_ns"] for program in found["programs"]]:
            assert 0 < run_ns["empty"]["median"] < run_ns["observed"]["median"]


def test_text_says_what_it_means():
    text = run([OBSERVER, "probe", "--cost"]).stdout
    for words in ("Mitigations: ", "Clock source: ", "One exchange with nothing attached: ", "programs that do nothing",
                  "does nothing", "port not observed", "ours, with --http "):
        assert words in text
    figure = r"(\d+ \[\d+ \.\. \d+\]|at most \d+|not known) +"
    assert len(re.findall(rf"^  exchange_\w+ +\S+ +[\d,]+ +{figure}{figure}\S", text, re.MULTILINE)) == 3
    assert re.search(r"^  at 12,000 requests/s: (\d+\.\d\d % of one core \[|at most \d|not known).*; every request sampled: ",
                     text, re.MULTILINE)
    assert not re.search(r" -\d", text)  # a cost that may be zero is never shown as negative


def test_nobody_else_is_observed(start):
    """The probe makes a network namespace of its own, which holds its own sockets alone."""
    def where(pid):
        return os.readlink(f"/proc/{pid}/ns/net")

    process = start([OBSERVER, "probe", "--cost"])
    sockets = Path(f"/proc/{process.pid}/net/tcp")
    wait_until(lambda: where(process.pid) != where("thread-self"))
    wait_until(lambda: " 01 " in sockets.read_text())  # established
    assert {line.split()[1].split(":")[0] for line in sockets.read_text().splitlines()[1:]} == {"0100007F"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind(start, number):
    before = in_kernel()
    process = start([OBSERVER, "probe", "--cost"])
    sockets = Path(f"/proc/{process.pid}/net/tcp")
    wait_until(lambda: " 01 " in sockets.read_text() and in_kernel() - before)
    time.sleep(0.3)  # in the middle of its windows
    assert process.stop(number=number) == -number
    assert not process.killed
    assert not left_in_kernel(before)


def test_without_rights_it_says_what_is_missing():
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                    "--bounding-set=-all", "--inh-caps=-all"]
    result = run([*unprivileged, OBSERVER, "probe", "--cost"], check=False)
    if "setpriv" in result.stderr:
        pytest.skip("setpriv cannot drop privileges here, or the build folder is not readable to others")
    assert result.status == 3
    assert not result.stdout
    assert "--cost" in result.stderr and "CAP_BPF" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_with_rights_to_observe_alone_the_rest_is_known():
    """The kernel's run statistics need more than CAP_BPF and CAP_PERFMON, and so does a namespace."""
    capabilities = "-all,+bpf,+perfmon"
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}",
              f"--ambient-caps={capabilities}"]
    result = run([*prefix, OBSERVER, "probe", "--cost", "--json"], check=False)
    if "setpriv" in result.stderr:
        pytest.skip("setpriv cannot set capabilities here, or the build folder is not readable to others")
    assert result.status == 0, result.stderr
    found = json.loads(result.stdout)["cost"]
    assert found["programs"] is None and found["programs_sum_ns"] is None and found["programs_reason"]
    assert found["server_ns"]["observed"] and found["exchange_ns"]["low"] > 0


@pytest.mark.parametrize("options,words", [
    (["--rate", "10"], ["--rate"]),
    (["--cost", "now"], ["'now'", "no words"]),
])
def test_wrong_options_are_named(options, words):
    result = run([OBSERVER, "probe", *options], check=False)
    assert result.status == 2
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr
