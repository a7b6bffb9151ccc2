# SPDX-License-Identifier: MIT
"""Failures are explained with this host's numbers, foretold, and decide the exit code."""
import re
import shlex

import pytest

from support.net import free_port
from support.programs import DRIVER, Driver, Lab, Nginx
from support.process import run


@pytest.fixture(name="here")
def _here(netns):
    """A namespace of 501 ports, each blocked by TIME_WAIT."""
    space = netns()
    space.exec(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=0",
                "net.ipv4.ip_local_port_range=40000 40500"])
    return space


def failure(driver, kind):
    (found,) = [entry for entry in driver.result["failures"] if entry["kind"] == kind]
    assert found["count"] == driver.result["errors"][kind]
    assert found["first_ns"] <= found["last_ns"] <= driver.result["duration_ns"] + 1e9
    return found


def test_ports_are_explained(start, here):
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, "--new-connections", connections=16, duration="1s", netns=here,
                    check=False)
    found = failure(driver, "address_unavailable")

    assert driver.status == 1
    assert (f"501 of 501 ports towards 127.0.0.1:{nginx.port} in use, 100 % TIME_WAIT: add source "
            "addresses (--source), keep connections alive, or stay below 8/s"
            ) == found["explanation"]
    assert "100 % TIME_WAIT" in " ".join(driver.report.split())
    assert re.search(r"has 501 source ports, each blocked for 60 s", driver.process.stderr)


def test_preflight(start, here):
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, connections=600, count=1000, netns=here, check=False)
    assert "needs 600 source ports and has 501" in driver.process.stderr
    assert "give 2 source addresses" in driver.process.stderr

    driver = Driver(nginx.url, "--source=127.0.0.2,127.0.0.3", connections=600, count=1000,
                    netns=here)
    assert driver.process.stderr == ""
    assert driver.result["failures"] == []
    assert driver.result["limited"] is None or driver.result["limited"]["by"] != "ports"


SCENARIO = """\
order: {order}
steps:
  - name: one
    path: /one
  - name: two
    target: {second}
    path: /two
"""


@pytest.mark.parametrize("order, two, warned", [
    ("cycle", False, True), ("cycle", True, False), ("mix", False, True), ("mix", True, False)])
def test_preflight_of_scenarios(start, here, tmp_path, order, two, warned):
    """Of one server all requests count; of two in a cycle, half; of a mix of two it is not known."""
    nginx, other = start(Nginx(netns=here)), start(Nginx(netns=here))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(order=order, second=other.url if two else nginx.url))
    command = [DRIVER, "run", path, "-c4", "-n600", "--new-connections", "--quiet", nginx.url]
    if not two:
        command += ["--fail-fast", "--timeout=1s"]
    ended = run(command, netns=here, check=False)
    assert ended.status != 2, ended.stderr
    assert ("has 501 source ports, each blocked for 60 s" in ended.stderr) == warned, ended.stderr


def test_descriptors(start):
    """What the hard limit does not allow is refused before any load."""
    nginx = start(Nginx())
    command = shlex.join([str(DRIVER), nginx.url, "-c100", "-n100"])
    result = run(["sh", "-c", f"ulimit -n 64; {command}"], check=False)
    assert result.status == 1
    assert "hard limit is 64" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_refused_is_explained():
    port = free_port()
    driver = Driver(f"http://127.0.0.1:{port}/", connections=2, count=4, check=False)
    assert driver.status == 1
    assert f"127.0.0.1:{port}" in failure(driver, "refused")["explanation"]


def test_timeout_is_explained(start):
    lab = start(Lab("--service", "500ms"))
    driver = Driver(lab.url, "--timeout=100ms", count=2, check=False)
    found = failure(driver, "timeout")
    assert "100 ms (--timeout)" in found["explanation"]
    assert found["first_ns"] >= 100e6
    assert found["last_ns"] >= 200e6


def test_fail_fast(start):
    nginx = start(Nginx(server="location /no { return 404; }"))
    driver = Driver(nginx.url + "no", "--fail-fast", connections=4, duration="30s", check=False)
    assert driver.status == 1
    assert driver.result["duration_ns"] < 5e9
    assert driver.result["errors"]["status"] >= 1

    driver = Driver(nginx.url, "--fail-fast", connections=4, count=2000)
    assert driver.result["requests"] == 2000


def test_assertions_set_the_exit_code(start):
    nginx = start(Nginx(server="location /no { return 404; }"))
    good = Driver(nginx.url, "--assert=p99<10s", "--assert=errors<0.1%", "--assert=rate>1",
                  count=500)
    assert good.process.stderr == ""

    bad = Driver(nginx.url, "--assert=p99<1ns", "--assert=requests>=500", count=500, check=False)
    assert bad.status == 1
    assert len(bad.process.stderr.splitlines()) == 1
    assert "'p99<1ns' does not hold: it is" in bad.process.stderr

    # An assertion about errors decides how many are too many.
    allowed = Driver(nginx.url + "no", "--assert=errors<=100%", count=50, check=False)
    assert allowed.status == 0
    refused = Driver(nginx.url + "no", "--assert=errors<5%", count=50, check=False)
    assert refused.status == 1
    assert "it is 100 %" in refused.process.stderr
    wrong = Driver(nginx.url, "--assert=p98<1ms", count=1, check=False)
    assert wrong.status == 2
