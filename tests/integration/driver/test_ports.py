# SPDX-License-Identifier: MIT
"""Source ports: no cliff at half of the range; exhaustion is waited for and explained."""
import pytest

from ..conftest import kernel_counter, sockets
from support.programs import DRIVER, Driver, Lab, Nginx


@pytest.fixture(name="here")
def _here(netns):
    """A namespace where TIME_WAIT blocks ports, as towards any other host."""
    space = netns()
    space.exec(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=0"])
    return space


def set_range(netns, low, high):
    netns.exec(["sysctl", "-qw", f"net.ipv4.ip_local_port_range={low} {high}"])


def ports(lines):
    return [int(line.split()[-2].rpartition(":")[2]) for line in lines]


def cost(driver):
    result = driver.result
    return (result["cpu_user_ns"] + result["cpu_system_ns"]) / result["connects"]


@pytest.mark.parametrize("choice", ["range", "own"])
def test_no_cliff(start, here, choice):
    """The last 40 % of the range cost as much as the first 40 %; with plain connect() 10 times and more.
    Without Fast Open the driver cannot detect that the kernel searches evenly, and binds to ports itself."""
    set_range(here, 40000, 49999)
    if choice == "own":
        here.exec(["sysctl", "-qw", "net.ipv4.tcp_fastopen=0"])
    nginx = start(Nginx(netns=here))
    options = ("--new-connections", "--source=127.0.0.2")
    first = Driver(nginx.url, *options, connections=8, count=4000, netns=here)
    Driver(nginx.url, *options, connections=8, count=1500, netns=here)
    last = Driver(nginx.url, *options, connections=8, count=4000, netns=here)

    assert last.result["requests"] == 4000
    assert last.result["limited"] is None or last.result["limited"]["by"] == "cpu"
    assert cost(last) < 3 * cost(first)


def test_no_cliff_without_an_even_search(start, here):
    """Without Fast Open the driver cannot detect an even search of the kernel's. So it chooses ports itself,
    one after the other, at the same cost up to the end of the range."""
    set_range(here, 40000, 49999)
    here.exec(["sysctl", "-qw", "net.ipv4.tcp_fastopen=0"])
    nginx = start(Nginx(netns=here))
    first = Driver(nginx.url, "--new-connections", connections=8, count=4000, netns=here)
    used = sorted(ports(sockets("time-wait", f"dport = :{nginx.port}", here)))
    # The readiness check of nginx may still hold a port, too.
    taken = set(ports(sockets("all", "sport >= :40000", here)))
    gaps = sum(not taken.issuperset(range(port + 1, after)) for port, after in zip(used, used[1:]))
    assert len(used) == 4000 and gaps <= 1  # where the search continued at the range's other end
    Driver(nginx.url, "--new-connections", connections=8, count=1500, netns=here)
    last = Driver(nginx.url, "--new-connections", connections=8, count=4000, netns=here)
    assert last.result["requests"] == 4000
    assert cost(last) < 3 * cost(first)


def test_probing_is_silent(start, here):
    """The kernel's search is detected without a packet: the host counts the run's connections alone."""
    nginx = start(Nginx(netns=here))
    # The readiness check may have come too early and been refused.
    before, refused = (kernel_counter(name, here, "snmp", "Tcp") for name in ("ActiveOpens", "AttemptFails"))
    result = Driver(nginx.url, "--new-connections", connections=2, count=50, netns=here).result
    assert kernel_counter("ActiveOpens", here, "snmp", "Tcp") - before == result["connects"] == 50
    assert kernel_counter("AttemptFails", here, "snmp", "Tcp") == refused


def test_sources_are_used_in_turn(start, here):
    set_range(here, 40000, 40499)
    nginx = start(Nginx(netns=here, server='location /who { return 200 "$remote_addr"; }'))
    driver = Driver(nginx.url, "--new-connections", "--source=127.0.0.2,127.0.0.10-127.0.0.13",
                    connections=4, count=2400, netns=here)
    assert driver.result["requests"] == 2400  # 500 ports each
    shown = here.exec(["ss", "-Htan", "state", "time-wait"]).stdout
    for address in ("127.0.0.2", *(f"127.0.0.{i}" for i in range(10, 14))):
        assert 450 <= shown.count(f" {address}:4") <= 500


def test_exhaustion_is_back_pressure(start, here):
    """600 connections, 501 ports: those with a port do all of the work, at full speed."""
    set_range(here, 40000, 40500)
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, connections=600, count=30000, netns=here, check=False)
    result = driver.result

    assert driver.status == 1
    assert result["requests"] == nginx.status()["requests"] == 30000
    assert result["connects"] == 501
    assert 99 <= result["errors"]["address_unavailable"] < 400
    assert result["limited"]["by"] == "ports"
    assert driver.report.splitlines()[0].startswith("LIMITED BY THE DRIVER")


def test_exhaustion_costs_little(start, here):
    """One connection per request and every port in TIME_WAIT: a few attempts, not a storm."""
    set_range(here, 40000, 40500)
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, "--new-connections", connections=64, duration="2s", netns=here,
                    check=False)
    result = driver.result

    assert driver.status == 1
    assert result["requests"] == 501
    assert result["errors"]["address_unavailable"] < 64 + 200
    assert result["cpu_user_ns"] + result["cpu_system_ns"] < 0.5e9


def test_exhausted_count_ends(start, here):
    """A counted run without any port gives up after its time limit per request."""
    set_range(here, 40000, 40009)
    nginx = start(Nginx(netns=here))
    driver = Driver(nginx.url, "--new-connections", "--timeout=500ms", connections=2, count=15,
                    netns=here, check=False)
    assert driver.status == 1
    assert driver.result["requests"] == 10
    assert driver.result["errors"]["address_unavailable"] >= 5


def test_bad_sources(start, here):
    nginx = start(Nginx(netns=here))
    for source, status, words in (("192.0.2.1", 1, "Cannot assign requested address"),
                                  ("::1", 1, "another family"),
                                  ("127.0.0.9-127.0.0.2", 2, "must go up"),
                                  ("localhost", 2, "not an address")):
        driver = Driver(nginx.url, f"--source={source}", count=1, netns=here, check=False)
        assert driver.status == status
        assert "--source" in driver.process.stderr
        assert words in driver.process.stderr
        assert len(driver.process.stderr.splitlines()) == 1


def shown(netns, port, *sources):
    """Return how many sockets `ss` shows from these addresses and the range to the server."""
    filter_ = f"dport = :{port} and sport >= :40000 and sport <= :49999"
    lines = [line.split() for line in sockets("connected", filter_, netns)]
    return sum(line[3].rpartition(":")[0] in sources for line in lines)


@pytest.mark.parametrize("address, sources", [
    ("127.0.0.1", []), ("127.0.0.1", ["127.0.0.2", "127.0.0.3", "127.0.0.4"]), ("::1", [])])
def test_ports_in_use_are_those_of_ss(start, here, address, sources):
    """TIME_WAIT of this run and of an earlier one counts; other addresses and targets have ports of their own."""
    set_range(here, 40000, 49999)
    lab, other = start(Lab(address=address, netns=here)), start(Lab(address=address, netns=here))
    if ":" not in address:
        Driver(lab.url, "--new-connections", "--source=127.0.0.9", connections=2, count=50, netns=here)
    Driver(other.url, "--new-connections", connections=2, count=50, netns=here)
    options = ["--new-connections", *([f"--source={','.join(sources)}"] if sources else [])]
    result = Driver(lab.url, *options, "--rate=400", connections=8, duration="3200ms", netns=here).result
    used = shown(here, lab.port, *(sources or [f"[{address}]" if ":" in address else address]))

    assert result["requests"] <= used <= result["requests"] + 8
    assert result["ports"] == {"used": used, "capacity": 10000 * max(1, len(sources)),
                               "towards": lab.url[7:].strip("/")}
    seen = [interval["ports"] for interval in result["intervals"]]
    known = [value for value in seen if value is not None]
    assert len(known) >= 2 and known == sorted(known) and seen[-1] == used, seen
    # Ports in use at an interval's end were opened before it.
    opened = 0
    for interval in result["intervals"][:-1]:
        opened += interval["connects"]
        assert interval["ports"] is None or 0.5 * opened < interval["ports"] < 1.5 * opened + 20, seen


def test_ports_of_several_targets(start, here):
    """The fullest target is reported; UDP has no TCP ports."""
    set_range(here, 40000, 49999)
    few, many = start(Lab(netns=here)), start(Lab(netns=here))
    Driver(many.url, "--new-connections", connections=2, count=200, netns=here)
    result = Driver(few.url, many.url, "--new-connections", connections=2, count=100, netns=here).result
    assert result["ports"]["towards"] == many.url[7:].strip("/")
    assert result["ports"]["used"] == shown(here, many.port, "127.0.0.1") >= 250
    result = Driver(f"udp://127.0.0.1:{many.port}", "--payload=x", "--timeout=100ms", connections=1, count=2,
                    netns=here, check=False).result
    assert result["ports"] == {"used": None, "capacity": None, "towards": ""}


def test_ports_of_others_are_not_counted(start, here):
    """Only the run's own addresses count, also in the explanation: never more than there are."""
    set_range(here, 40000, 40500)
    nginx = start(Nginx(netns=here))
    Driver(nginx.url, "--new-connections", "--source=127.0.0.2-127.0.0.4", connections=4, count=600, netns=here)
    driver = Driver(nginx.url, "--new-connections", "--source=127.0.0.9", "--timeout=500ms", connections=4,
                    duration="1s", netns=here, check=False)
    (found,) = driver.result["failures"]
    of_all = here.exec(["ss", "-Htan", "state", "time-wait", f"dport = :{nginx.port}"]).stdout
    assert len(of_all.splitlines()) == 1101  # the wrong number
    assert of_all.count(" 127.0.0.9:4") == driver.result["ports"]["used"] == 501
    assert f"501 of 501 ports towards 127.0.0.1:{nginx.port} in use, 100 % TIME_WAIT" in found["explanation"]


def test_ports_in_use_are_foretold(start, here):
    """Ports that an earlier run left in TIME_WAIT are missing for the next; after a reset, or from another
    address, they are free."""
    set_range(here, 40000, 40500)
    nginx = start(Nginx(netns=here))
    Driver(nginx.url, "--new-connections", connections=4, count=501, netns=here)
    assert len(sockets("time-wait", f"dport = :{nginx.port}", here)) == 501

    def warned(*options, **how):
        driver = Driver(nginx.url, *options, "--timeout=200ms", netns=here, check=False, **how)
        return driver.process.stderr
    full = "501 of 501 are in use now"
    assert full in warned("--new-connections", connections=2, count=3)
    assert full in warned("--new-connections", "--rate=100", duration="0.5s")
    assert full in warned(connections=20, count=20)
    assert full in here.exec([DRIVER, "sweep", nginx.url, "--ladder=1,2,3", "--duration=100ms", "--warmup=0", "--timeout=200ms",
                              "--quiet"], check=False).stderr
    assert warned("--source=127.0.0.2", connections=100, count=100) == ""

    def checked(*options):
        ended = here.exec([DRIVER, nginx.url, "--check", *options], check=False)
        assert (ended.status, ended.stdout) == (0, "the options are valid\n")
        return ended.stderr
    before = nginx.status()["accepts"]
    assert f"needs 16 source ports, and {full}" in checked()
    assert "2,000 source ports, and 601 of 1,002" in checked("-c2000", "--source=127.0.0.1,127.0.0.2")
    assert checked("--source=127.0.0.2") == ""
    assert nginx.status()["accepts"] == before
