# SPDX-License-Identifier: MIT
"""Members of a fleet as they are on real networks: behind sshd, cut off, late, throttled, with other clocks. The hosts are
network namespaces at one switch. The server's counts and the kernel's stamps of packets are the truth."""
import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import documents
from support.cgroup import CpuCgroup, cpu_controller
from support.conditions import needs_program, skip_if
from support.fleet import agents_in
from support.nats import Agent, NatsServer
from support.net import Lan
from support.packets import Packets
from support.process import Process, run, wait_until
from support.programs import DRIVER, OBSERVER, Lab, Nginx
from support.ssh import SSHD, Sshd, reach
from support.timing import in_quiet, timing

NAMES = ("a", "b", "c")
needs_ssh = skip_if(None if SSHD.exists() else "openssh-server is not installed")


class Site:
    def __init__(self, stack):
        self.lan = Lan(stack, "10.203.0")
        self.home, self.web = self.lan.host("home"), self.lan.host("web")
        self.hosts = {name: self.lan.host(name) for name in NAMES}

    def fleet(self, url, *options, own=(), via=None, names=NAMES):
        """Return the command line of a run whose members are processes in the hosts' namespaces."""
        hosts = [self.hosts[name].name if via is None else name for name in names]
        return [DRIVER, "fleet", "--via", via or "ip netns exec {host}", "--hosts", ",".join(hosts), "--agent-program", DRIVER,
                *own, "--", url, *options, "--json", "-"]

    def packets(self, port, stack):
        """Begin to record the packets from each host to the server's port."""
        return {name: stack.enter_context(Packets(port, self.lan.ports[host], self.lan.switch))
                for name, host in self.hosts.items()}


@pytest.fixture(scope="module")
def site():
    with contextlib.ExitStack() as stack:
        yield Site(stack)


@pytest.fixture
def nginx(start, site):
    return start(Nginx(netns=site.web, addresses=(site.web.address,)))


def driver_of(text):
    return documents.parse(text)["driver"]


def member_of(result, host):
    """Return the member of a host, which is named by its namespace, or as the test named it."""
    found, = [member for member in result["members"] if member["host"] in (host, getattr(host, "name", host))]
    return found


# ---- sshd ----

@pytest.fixture
def daemons(start, site):
    """Start an sshd on each host. On b, the key may only start an agent with ceilings."""
    forced = f'restrict,command="{DRIVER} agent --allow {site.web.address} --max-rate 200"'
    return {name: start(Sshd(host, forced if name == "b" else "")) for name, host in site.hosts.items()}


@needs_ssh
def test_over_ssh(start, site, daemons, nginx, tmp_path):
    """Through real logins nginx has what the members count. A login that ends is a lost member, and no load outlives it."""
    via = reach(tmp_path, daemons)
    result = driver_of(run(site.fleet(nginx.url, "--rate", "600", "-n", "601", via=via), netns=site.home).stdout)
    assert result["requests"] == nginx.status()["requests"] == 601
    assert [(member["host"], member["requests"], member["lost"]) for member in result["members"]] == \
        [("a", 201, False), ("b", 200, False), ("c", 200, False)]

    done = run(site.fleet(nginx.url, "--rate", "900", via=via), netns=site.home, check=False)
    assert done.status == 1 and "b: it refuses the plan: a rate of 300 is above its --max-rate 200" in done.stderr, done.stderr
    assert nginx.status()["requests"] == 601

    driver = start(Process(site.fleet(nginx.url, "--rate", "300", "-d", "60s", via=via), netns=site.home))
    wait_until(lambda: nginx.status()["requests"] >= 601 + 450)
    session, = daemons["c"].sessions()
    os.kill(session, signal.SIGKILL)
    assert driver.wait() == 1
    assert re.search(r"\bc was lost: its process ended with status 255: .*(closed|reset)", driver.stderr), driver.stderr
    result = driver_of(driver.stdout)
    assert [member["lost"] for member in result["members"]] == [False, False, True]
    assert result["requests"] <= nginx.status()["requests"] - 601
    wait_until(lambda: not any(agents_in(host) for host in site.hosts.values()))


@needs_ssh
def test_logins_that_fail(site, daemons, nginx, tmp_path):
    """A key that is not accepted, and a host that is another one: ssh's own words are in the error, and nothing is sent."""
    via = reach(tmp_path, daemons)
    daemons["b"].authorized.write_text("")
    daemons["c"].trust(daemons["a"].client.parent / "host.pub", site.hosts["c"].address)
    for names, words in ((("a", "b"), "b: its process ended with status 255, before its agent answered: .*Permission denied"),
                         (("a", "c"), "c: its process ended with status 255, before .*Host key verification failed")):
        done = run(site.fleet(nginx.url, via=via, names=names), netns=site.home, check=False)
        assert done.status == 1 and re.search(words, done.stderr), done.stderr
    assert nginx.status()["requests"] == 0


# ---- networks and hosts that fail ----

@contextlib.contextmanager
def parted(site, host):
    site.lan.cut(host)
    try:
        yield
    finally:
        site.lan.mend(host)


@needs_ssh
def test_a_host_that_is_cut_off(start, site, daemons, nginx, tmp_path):
    """It is named, the others go on, and its agent ends alone: its coordinator is silent."""
    driver = start(Process(site.fleet(nginx.url, "--rate", "300", "-d", "4s", "--timeout", "20s", via=reach(tmp_path, daemons),
                                      own=("--lost-after", "1s", "--on-loss", "continue")), netns=site.home))
    wait_until(lambda: nginx.status()["requests"] >= 450)  # 1.5 s: each has sent a document
    with parted(site, site.hosts["c"]):
        wait_until(lambda: not agents_in(site.hosts["c"]))
        assert driver.wait() == 1
    assert "c was lost: nothing was heard of it for 1 s" in driver.stderr, driver.stderr
    result = driver_of(driver.stdout)
    assert [member["lost"] for member in result["members"]] == [False, False, True]
    assert 0 < member_of(result, "c")["requests"] and result["requests"] <= nginx.status()["requests"]
    assert sum(member["requests"] for member in result["members"]) == result["requests"]


@needs_program("nats-server")
def test_an_agent_that_is_cut_off(start, site):
    """It is named, the others go on, and when the cable is back it takes part in the next run."""
    nginx = start(Nginx(netns=site.web, addresses=(site.web.address,),
                        server="location = /next { access_log {folder}/next.log; return 200; }"))
    server = start(NatsServer(netns=site.home, address=site.home.address))
    agents = {name: start(Agent(server.url, name, netns=host)) for name, host in site.hosts.items()}

    def fleet(path, *options):
        return [DRIVER, "fleet", "--via", server.url, "--members", "3", "--lost-after", "1s", "--on-loss", "continue", "--gather",
                "20s", "--", nginx.url + path, "--timeout", "20s", *options, "--json", "-"]
    driver = start(Process(fleet("", "--rate", "300", "-d", "4s"), netns=site.home))
    wait_until(lambda: nginx.status()["requests"] >= 450)
    with parted(site, site.hosts["c"]):
        assert driver.wait() == 1
        wait_until(lambda: not agents["c"].child())
    assert "c was lost: nothing was heard of it for 1 s" in driver.stderr, driver.stderr
    result = driver_of(driver.stdout)
    assert member_of(result, "c")["lost"] and not member_of(result, "a")["lost"] and not member_of(result, "b")["lost"]
    assert result["requests"] <= nginx.status()["requests"]
    result = driver_of(run(fleet("next", "-c", "3", "-n", "300"), netns=site.home).stdout)  # the old path may have some more
    log = Path(nginx.files.name, "next.log")
    wait_until(lambda: log.read_text().count("\n") == 300)
    assert result["requests"] == 300
    assert sorted(member["host"] for member in result["members"]) == list(NAMES)


@skip_if(None if cpu_controller() else "no cgroup can limit the CPU time")
def test_a_full_cpu_is_no_death(start, site, nginx):
    """A member that has 1 % of a CPU, and needs all of it, is slow and not lost. Its requests are counted, too."""
    with CpuCgroup(0.01) as cgroup:
        driver = start(Process(site.fleet(nginx.url, "-c", "30", "-d", "3s", "--timeout", "20s", own=("--lost-after", "1s")),
                               netns=site.home))
        wait_until(lambda: nginx.status()["requests"] >= 300)
        agent, = agents_in(site.hosts["b"])
        cgroup.take(agent)
        assert driver.wait() == 0, driver.stderr
        assert cgroup.throttled() >= 20
        wait_until(lambda: not cgroup.processes())
    result = driver_of(driver.stdout)
    assert not any(member["lost"] for member in result["members"])
    assert result["requests"] == nginx.status()["requests"]
    assert 0 < member_of(result, site.hosts["b"])["requests"] < member_of(result, site.hosts["a"])["requests"]


# ---- starts and ends ----

def first_request_ns(packets):
    return min(packet.at_ns for packet in packets.seen if packet.comes_in and packet.size)


def test_a_late_member_is_told(start, site, nginx, tmp_path):
    """A member is held when the others begin: how late it was is what the kernel's stamps say, and the report names it."""
    with contextlib.ExitStack() as stack:
        packets = site.packets(nginx.port, stack)
        at = time.time() + 3
        driver = start(Process(site.fleet(nginx.url, "-c", "3", "-d", "2s", "--start-at", f"{at:.3f}"), netns=site.home))
        wait_until(lambda: all(agents_in(host) for host in site.hosts.values()))
        time.sleep(max(0, at - 0.4 - time.time()))  # it has the start
        agent, = agents_in(site.hosts["b"])
        os.kill(agent, signal.SIGSTOP)
        wait_until(lambda: nginx.status()["requests"] > 0)
        time.sleep(1.3)
        os.kill(agent, signal.SIGCONT)
        assert driver.wait() == 0, driver.stderr
    result = driver_of(driver.stdout)
    assert result["requests"] == nginx.status()["requests"] and not any(member["lost"] for member in result["members"])
    first = {name: first_request_ns(seen) for name, seen in packets.items()}
    true_ns = first["b"] - min(first.values())
    told_ns = member_of(result, site.hosts["b"])["start_skew_ns"]
    assert true_ns > 9e8 and abs(told_ns - true_ns) < 0.1 * true_ns, (told_ns, true_ns)
    path = tmp_path / "run.json"
    path.write_text(driver.stdout)
    text = run([OBSERVER, "report", path]).stdout
    row = re.search(rf"{site.hosts['b'].name} .* from (\S+) (\S+)", text)
    assert row and row[2] == "s" and abs(float(row[1]) * 1e9 - told_ns) < 0.01 * told_ns, text
    assert re.search(r"/s while any driver measured, ", text), text  # its intervals begin at other times


AHEAD = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	static int (*real)(clockid_t, struct timespec *);
	int err;
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	err = real(clock, ret_time);
	if (!err && clock == CLOCK_REALTIME)
		ret_time->tv_sec += 3;
	return err;
}
"""


@needs_program("cc")
def test_a_clock_that_is_ahead(site, nginx, tmp_path):
    """One member's wall clock is ahead by 3 s: that is measured within its uncertainty, and does not move its start."""
    source, library, reaching = tmp_path / "ahead.c", tmp_path / "ahead.so", tmp_path / "reach"
    source.write_text(AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    reaching.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in {site.hosts['b'].name}) export LD_PRELOAD={library};; esac\n"
                        'exec ip netns exec "$host" "$@"\n')
    reaching.chmod(0o755)
    words = site.fleet(nginx.url, "-c", "3", "-d", "1s")
    words[words.index("ip netns exec {host}")] = f"{reaching} {{host}}"
    with contextlib.ExitStack() as stack:
        packets = site.packets(nginx.port, stack)
        result = driver_of(run(words, netns=site.home).stdout)
    assert result["requests"] == nginx.status()["requests"]
    for name, host in site.hosts.items():
        member = member_of(result, host)
        truth_ns = 3_000_000_000 if name == "b" else 0
        assert abs(member["clock_offset_ns"] - truth_ns) <= member["clock_uncertainty_ns"], member
        assert member["start_skew_ns"] < 1_000_000_000
    first = [first_request_ns(seen) for seen in packets.values()]
    assert max(first) - min(first) < 1_000_000_000, "three seconds are not in it"


@in_quiet
def test_members_begin_together(site, nginx):
    """Members take turns in one schedule. By the kernel's stamps, their first requests are in time to less than 1 % of the run.
    The document says the same."""
    with contextlib.ExitStack() as stack:
        packets = site.packets(nginx.port, stack)
        result = driver_of(run(site.fleet(nginx.url, "--rate", "300", "-d", "1s"), netns=site.home).stdout)
    first = {name: first_request_ns(packets[name]) - turn * 1e9 / 300 for turn, name in enumerate(NAMES)}
    skews = {name: member_of(result, host)["start_skew_ns"] for name, host in site.hosts.items()}
    with timing():
        assert max(first.values()) - min(first.values()) < 0.01 * result["duration_ns"], first
        for name, at_ns in first.items():
            assert abs(at_ns - min(first.values()) - skews[name]) < 0.005 * result["duration_ns"], (first, skews)


def test_the_rate_is_that_of_the_shared_time(start, site, tmp_path):
    """One member has two of three connections, so it is done when the other one has half of its requests. The rate counts
    the responses until then, by the server's packets, and not the time when one sends alone."""
    lab = start(Lab(netns=site.web, address=site.web.address))
    with contextlib.ExitStack() as stack:
        packets = site.packets(lab.port, stack)
        done = run(site.fleet(f"{lab.url}?service=4ms", "-c", "3", "-n", "1200", names=("a", "b")), netns=site.home)
    result = driver_of(done.stdout)
    first_ns = min(first_request_ns(packets[name]) for name in ("a", "b"))
    assert [part["requests"] for part in result["parts"]] == [600, 600]
    path = tmp_path / "run.json"
    path.write_text(done.stdout)
    text = run([OBSERVER, "report", path]).stdout
    rate, seconds = re.search(r" ([\d,.]+)/s while all drivers measured, ([\d.]+) s", text).groups()
    assert float(seconds) == int(min(part["duration_ns"] for part in result["parts"]) / 1e9)
    answered = sum(1 for name in ("a", "b") for packet in packets[name].seen
                   if not packet.comes_in and packet.size and packet.at_ns < first_ns + float(seconds) * 1e9)
    assert abs(float(rate.replace(",", "")) * float(seconds) - answered) <= 0.02 * answered, (rate, seconds, answered)
    assert float(rate.replace(",", "")) > 1.2 * result["requests"] / (result["duration_ns"] / 1e9)
