#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills each part of a fleet over a NATS cluster, in each phase, and compares the counts with the server's own.

Nine hosts are network namespaces on one bridge: three NATS servers with JetStream, four agents, the coordinator, and
nginx. Each scene is one run, in which something gets SIGKILL. If that is the coordinator, `fleet resume` takes up the run.
Each scene names its requests, by the document and by nginx, and its lost members. The status is 1 if the
two counts differ where no member was lost, or if the document has more than nginx. Likewise if a member was lost that
nobody killed. Needs root.
"""
import argparse
import contextlib
import os
import re
import sys
import time
from pathlib import Path

from common import bounded, machine, need

from support import documents
from support.net import Netns
from support.process import Process, own_folder, run, wait_until
from support.programs import DRIVER, Nginx

NATS, AGENTS = ("n1", "n2", "n3"), ("a", "b", "c", "d")
NETWORK = "10.210.0."
RATE = 400
CLIENT, ROUTE = 4222, 6222


class Lan:
    """Hosts on one bridge, each a namespace with one address."""

    def __init__(self, stack):
        self.stack, self.count = stack, 0
        self.switch = stack.enter_context(Netns("switch"))
        self.switch.exec(["ip", "link", "add", "bridge", "type", "bridge"])
        self.switch.exec(["ip", "link", "set", "bridge", "up"])

    def host(self, name):
        netns = self.stack.enter_context(Netns(name))
        self.count += 1
        netns.address = f"{NETWORK}{self.count}"
        port = f"port{self.count}"
        run(["ip", "link", "add", port, "netns", self.switch.name, "type", "veth", "peer", "name", "wire", "netns", netns.name])
        self.switch.exec(["ip", "link", "set", port, "master", "bridge", "up"])
        netns.exec(["ip", "address", "add", f"{netns.address}/24", "dev", "wire"])
        netns.exec(["ip", "link", "set", "wire", "up"])
        return netns


class Cluster:
    """Three NATS servers that store each message twice or thrice."""

    def __init__(self, stack, hosts):
        self.hosts, self.servers = hosts, {}
        self.folder = stack.enter_context(contextlib.closing(Folder("cluster")))
        routes = ", ".join(f'"nats://{host.address}:{ROUTE}"' for host in hosts.values())
        for name, host in hosts.items():
            Path(self.folder.name, name).write_text(
                f'server_name: {name}\nlisten: "{host.address}:{CLIENT}"\n'
                f'jetstream {{ store_dir: "{self.folder.name}/{name}.store" }}\n'
                f'cluster {{ name: tried, listen: "{host.address}:{ROUTE}", routes: [{routes}] }}\n')
        stack.callback(self.close)
        for name in hosts:
            self.start(name)

    def start(self, name):
        self.servers[name] = Process(["nats-server", "-c", Path(self.folder.name, name)], netns=self.hosts[name])
        self.servers[name].wait_for("Server is ready", stream="stderr")

    def url(self, name):
        return f"nats://{self.hosts[name].address}:{CLIENT}"

    def kill(self, name):
        self.servers[name].kill()

    def mend(self):
        """Start killed servers again."""
        for name, server in self.servers.items():
            if not server.running():
                server.close()
                self.start(name)

    def close(self):
        for server in self.servers.values():
            server.close()


class Folder:
    def __init__(self, what):
        self.own = own_folder(what)
        self.name = self.own.name

    def close(self):
        self.own.cleanup()


class Agents:
    """Agents that wait, each at one of the NATS servers."""

    def __init__(self, stack, hosts, cluster):
        self.hosts, self.cluster, self.processes = hosts, cluster, {}
        stack.callback(self.close)
        for name in hosts:
            self.start(name)

    def start(self, name):
        url = self.cluster.url(NATS[AGENTS.index(name) % len(NATS)])
        self.processes[name] = Process([DRIVER, "agent", "--fleet", url, "--name", name], netns=self.hosts[name])
        self.processes[name].wait_for("waiting for plans at", stream="stderr")

    def kill(self, name):
        self.processes[name].kill()

    def kill_child(self, name):
        process = self.processes[name]
        pids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(pids[0]), 9)

    def mend(self):
        for name, process in self.processes.items():
            if not process.running():
                process.close()
                self.start(name)
        for process in self.processes.values():
            wait_until(lambda p=process: p.stderr.count(" is asked for by ") == p.stderr.count(" has ended\n"), seconds=30)

    def close(self):
        for process in self.processes.values():
            process.close()


class Site:
    def __init__(self, stack, seconds):
        lan = Lan(stack)
        self.seconds = seconds
        self.home, web = lan.host("home"), lan.host("web")
        self.cluster = Cluster(stack, {name: lan.host(name) for name in NATS})
        self.agents = Agents(stack, {name: lan.host(name) for name in AGENTS}, self.cluster)
        self.nginx = stack.enter_context(Nginx(addresses=(web.address,), netns=web))
        self.path = Path(stack.enter_context(contextlib.closing(Folder("killed"))).name, "run.json")
        self.before = 0

    def sent(self):
        return self.nginx.status()["requests"] - self.before

    def start(self, *options, rate=RATE):
        self.cluster.mend()
        self.agents.mend()
        self.before += self.sent()
        self.path.unlink(missing_ok=True)
        load = ["--rate", rate, "-n", round(rate * self.seconds)] if rate else []
        return Process([DRIVER, "fleet", "--via", self.cluster.url("n2"), "--members", len(AGENTS), "--gather", "15s", "--",
                        self.nginx.url, *load, *options, "--json", self.path], netns=self.home)

    def resume(self, key):
        return run([DRIVER, "fleet", "resume", key, "--via", self.cluster.url("n1")], check=False, netns=self.home)


def in_run(site):
    wait_until(lambda: site.sent() >= RATE * site.seconds / 3, seconds=40)


def key_of(driver):
    driver.wait_for("its results are kept at", stream="stderr", seconds=30)
    return re.search(r"\brun ([0-9a-f]{32}): ", driver.stderr)[1]


def finish(site, driver, killed=None):
    """End the run, by `killed()` and another coordinator if one is given. Return what that one says."""
    if not killed:
        driver.wait()
        return driver.stderr
    key = key_of(driver)
    driver.kill()
    if killed is not True:
        killed()
    return site.resume(key).stderr


def without_harm(site):
    return finish(site, site.start())


def server_killed(name):
    def scene(site):
        driver = site.start()
        in_run(site)
        site.cluster.kill(name)
        return finish(site, driver)
    return scene


def coordinator_killed(site):
    driver = site.start()
    in_run(site)
    return finish(site, driver, True)


def coordinator_and_server_killed(site):
    driver = site.start()
    in_run(site)
    return finish(site, driver, lambda: site.cluster.kill("n3"))


def killed_after_the_end(site):
    driver = site.start()
    in_run(site)
    driver.send(19)
    wait_until(lambda: site.sent() == round(RATE * site.seconds))
    return finish(site, driver, True)


def killed_in_the_warmup(site):
    driver = site.start("--warmup", "2s")
    wait_until(lambda: site.sent() > 0 or not driver.running())
    return finish(site, driver, True)


def killed_before_the_start(site):
    driver = site.start("--wait-for", "/nowhere/flag")
    return finish(site, driver, True)


def left_alone(site):
    driver = site.start("-c", "8", "-d", "600s", rate=0)
    in_run(site)
    return finish(site, driver, lambda: wait_until(lambda: all(
        process.stderr.endswith(" has ended\n") for process in site.agents.processes.values()), seconds=30))


def agent_killed(site):
    driver = site.start()
    in_run(site)
    site.agents.kill_child("b")
    return finish(site, driver)


def host_killed(site):
    driver = site.start()
    in_run(site)
    site.agents.kill("b")
    return finish(site, driver)


def host_and_coordinator_killed(site):
    driver = site.start()
    in_run(site)
    return finish(site, driver, lambda: site.agents.kill("b"))


# With what is expected: all requests of the run, those of a part of it, none; and the lost members.
SCENES = (
    ("nothing", without_harm, "all", ()),
    ("NATS server of agents a and d", server_killed("n1"), "all", ()),
    ("NATS server of agent b and the coordinator", server_killed("n2"), "all", ()),
    ("NATS server of agent c", server_killed("n3"), "all", ()),
    ("coordinator, before the start", killed_before_the_start, "none", ()),
    ("coordinator, in the warm-up", killed_in_the_warmup, "measured", ()),
    ("coordinator, in the run", coordinator_killed, "all", ()),
    ("coordinator and a NATS server, in the run", coordinator_and_server_killed, "all", ()),
    ("coordinator, after the end", killed_after_the_end, "all", ()),
    ("coordinator, resumed when the members had ended", left_alone, "part", ()),
    ("process that drives, of agent b", agent_killed, "less", ("b",)),
    ("agent b", host_killed, "less", ("b",)),
    ("agent b and the coordinator", host_and_coordinator_killed, "less", ("b",)),
)


def judge(site, expected, lost):
    """Return the document's requests (None: there is none), nginx's, the lost members, and whether all is as expected."""
    sent = site.sent()
    if not site.path.exists() or not site.path.stat().st_size:
        return None, sent, [], expected == "none" and sent == 0
    result = documents.parse(site.path.read_text())["driver"]
    requests, total = result["requests"], round(RATE * site.seconds)
    names = sorted(member["host"] for member in result["members"] if member["lost"])
    good = names == sorted(lost) and requests == sum(member["requests"] for member in result["members"]) \
        == result["round_trip"]["count"] and {
            "all": requests == sent == total, "measured": requests == total < sent, "part": 0 < requests == sent,
            "less": 0 < requests <= sent, "none": False}[expected]
    return requests, sent, names, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=bounded(float, 1, 600), default=3.0, help="of each run (default: 3)")
    parser.add_argument("--only", default="", help="scenes whose name has this text")
    args = parser.parse_args()
    need("nats-server", "nginx")
    print(machine())
    failed = 0
    with contextlib.ExitStack() as stack:
        site = Site(stack, args.seconds)
        for name, scene, expected, lost in SCENES:
            if args.only not in name:
                continue
            begin = time.monotonic()
            said = scene(site)
            requests, sent, names, good = judge(site, expected, lost)
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {name:50} document {requests if requests is not None else '-':>7}, nginx {sent:7}, "
                  f"lost {','.join(names) or '-':3} {time.monotonic() - begin:5.1f} s", flush=True)
            if not good:
                print(said)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
