# SPDX-License-Identifier: MIT
"""Directory search, briefly: slapd, driver and observer count the same, and the report shows which test program
is the bottleneck."""
import hashlib
import resource
import subprocess

import pytest

from support import ROOT
from support.process import run

pytestmark = pytest.mark.timeout(240)
GENERATE = ROOT / "experiments" / "directory-search" / "generate"
PARTS = {"network + client", "accept queue", "socket queue", "receive", "service", "respond"}


def check_runs(runs):
    assert len(runs) == 8
    for each in runs:
        assert each["requests"] == each["entries"] > 0
        # Requests in flight at the phase's end are in no interval.
        assert 0 <= each["requests"] - sum(part["requests"] for part in each["intervals"]) <= each["clients"]
        assert each["exceptions"] == 0
        # slapd's own counters: without a warm-up in the same run they hold nothing else.
        assert each["server"]["searches"] == each["server"]["entries"] == each["requests"]
        assert abs(each["exchanges"] - each["requests"]) <= each["clients"]
        assert each["joined"] > 0 and set(each["parts"]) == PARTS
        assert sum(each["parts"].values()) == pytest.approx(each["mean_ns"], rel=0.1)
        assert each["residence_ns"] < each["mean_ns"] * 1.05
        assert each["retransmits"] <= each["server"]["loss_probes"] + 10
    by_load = {load: [each for each in runs if each["load"] == load] for load in ("heavy", "lighter")}
    assert [each["clients"] for each in by_load["heavy"]] == [64] * 4
    # Sixteen times the clients on one CPU: time grows by waiting rather than by service.
    for heavy, light in zip(by_load["heavy"], by_load["lighter"]):
        assert heavy["mean_ns"] > 3 * light["mean_ns"]
        waiting = [each["mean_ns"] - each["parts"]["service"] for each in (heavy, light)]
        assert waiting[0] - waiting[1] > heavy["parts"]["service"] - light["parts"]["service"]


def shape(result):
    figures = result.figures
    assert figures["entries"] == 20000
    for counts in figures["counts"]:
        assert {counts[who] for who in ("driver", "slapd", "sojourn", "entries", "slapd_entries")} == {2000}
    check_runs(figures["runs"])
    # A process for every search: slow at the client, not at the server.
    alone = figures["one_by_one"]
    assert alone["exchanges"] == 2 * alone["searches"] and alone["connections"] == alone["searches"]
    assert alone["rate"] < figures["runs"][0]["rate"] / 5
    assert alone["residence_ns"] < 0.5 * 1e9 / alone["rate"]
    many = figures["many"]
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 10100:
        assert many["connected"] == 10000 and many["processes"][0]["open_fds"] > 10000
        assert "ports-exhausted-soon" not in {found["id"] for found in many["doctor"]}
    few = figures["few"]
    assert few["limit"] == 1024
    assert "fds-exhausted" in {found["id"] for found in few["doctor"]}
    assert few["processes"][0]["open_fds"] >= 1020
    assert "fds-exhausted" in result.page and "test program" in result.page


@pytest.mark.long
@pytest.mark.alone
def test_directory_search(experiment):
    experiment("directory-search", shape)


def test_generator():
    """Reproducible for a seed, one entry longer for one more, and any number of them."""
    def made(entries):
        return run([GENERATE, "--entries", entries]).stdout

    assert hashlib.sha256(made(50).encode()).digest() == hashlib.sha256(made(50).encode()).digest()
    assert made(4321).startswith(made(4320)) and made(4321).count("\ndn: uid=user.") == 4321
    assert "\nuid: user.10004320\n" in made(4321)
    lengths = {len(line) for line in made(3000).splitlines() if line.startswith("uid: ")}
    assert len(lengths) == 1, "templates need uids of equal length"
    for wrong in ("0", "-1", "80000001", "ten", "1.5"):
        refused = run([GENERATE, f"--entries={wrong}"], check=False)
        assert refused.status == 2 and f"'{wrong}'" in refused.stderr and "80000000" in refused.stderr


def test_generator_streams():
    """The first of 80 million entries come at once, and the generator ends when its reader does."""
    with subprocess.Popen([GENERATE, "--entries", "80000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))) as generator:
        assert generator.stdout.read(1 << 16).startswith(b"dn: dc=example,dc=com\n")
        generator.stdout.close()
        assert generator.wait(20) != 0
