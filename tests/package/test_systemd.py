# SPDX-License-Identifier: MIT
"""The package under systemd. Debian 12 with its own kernel boots in an emulated machine; there the package is
installed, started, killed, upgraded, stopped and purged. `tools/package --boot` runs this."""
import json
import re

import pytest

from support import ROOT

from . import machine as emulated

CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_NET_ADMIN": 12, "CAP_SYS_PTRACE": 19, "CAP_PERFMON": 38,
                "CAP_BPF": 39}
pytestmark = emulated.LIMIT


@pytest.fixture(scope="module", name="machine")
def machine_fixture(tmp_path_factory):
    return emulated.boot("systemd.sh", tmp_path_factory.mktemp("machine"))


def test_installed_it_is_not_started(machine):
    machine.output("install")
    assert machine.said("dormant")[1] == "inactive"
    assert machine.said("dormant_enabled")[1] == "disabled"


def test_the_unit_is_as_documented(machine):
    """systemd accepts the unit, and rates it as in docs/operation.md."""
    assert machine.said("verify") == (0, "", "")
    rated = re.search(r"Overall exposure level for sojourn.service: (\S+)", machine.output("security"))[1]
    assert f"rates its exposure {rated}," in " ".join((ROOT / "docs/operation.md").read_text().split())


def test_started_it_answers(machine):
    """At once: `systemctl start` returns when it observes."""
    machine.output("start")
    assert json.loads(machine.output("ready"))["status"] == "ok"


def test_it_has_no_more_than_it_needs(machine):
    status = dict(line.split(":\t", 1) for line in machine.output("process").splitlines() if ":\t" in line)
    allowed = sum(1 << bit for bit in CAPABILITIES.values())
    assert int(status["CapBnd"], 16) == allowed
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm")} == {allowed & ~(1 << CAPABILITIES["CAP_NET_ADMIN"])}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert all(int(uid) >= 61184 for uid in status["Uid"].split()), "a user of DynamicUser="
    assert re.search(r"^Max locked memory\s+unlimited", machine.output("limits"), re.MULTILINE)


def test_it_counts_exactly(machine):
    served = len(machine.output("truth").splitlines())
    service = json.loads(machine.output("document"))["services"][0]
    assert service["exchanges"] == served == 40
    assert service["accepted"] == 10
    assert service["stages"]["service"]["count"] == 40
    assert re.search(r'^sojourn_exchanges_total\{.*port="80".*\} 40$', machine.output("metrics"),
                     re.MULTILINE)
    assert service["processes"][0]["open_fds"] > 0, "of another user's process"


def test_killed_it_is_started_again(machine):
    assert json.loads(machine.output("restarted"))["looked"]


def test_upgraded_it_goes_on_with_its_options(machine):
    machine.output("upgrade")
    assert machine.output("upgraded_options") == 'SOJOURN_OPTIONS="--port 80"'
    assert machine.output("upgraded_command") .endswith(" /usr/bin/sojourn serve --port 80")
    assert machine.said("upgraded_same")[0] == 1, "another process"
    assert json.loads(machine.output("upgraded"))["status"] == "ok"


def test_wrong_options_are_said_once(machine):
    assert machine.said("wrong")[0] != 0
    assert machine.output("wrong_state") == "failed"
    assert machine.output("wrong_restarts") == "0"
    assert "--port: 'nonsense' is not allowed" in machine.output("wrong_journal")


def test_stopped_it_leaves_nothing(machine):
    machine.output("stop")
    assert machine.output("stop_result").split() == ["success", "0", "inactive"]
    assert len(machine.programs("running")) > len(machine.programs("before"))
    assert machine.programs("stopped") == machine.programs("before")
    assert machine.output("running.pinned") == machine.output("stopped.pinned") == ""


def test_removed_it_keeps_its_options(machine):
    machine.output("remove")
    assert machine.said("removed_processes")[1] == ""
    assert machine.output("removed_options") == 'SOJOURN_OPTIONS="--port 80"'
    assert machine.programs("removed") == machine.programs("before")


def test_purged_it_is_gone(machine):
    """Including the link by which an administrator had it started at boot."""
    machine.output("purge")
    assert machine.output("purged") == ""
    assert machine.output("failed") == ""
