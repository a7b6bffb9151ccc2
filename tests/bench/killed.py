#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills each part of a fleet over a NATS cluster, in each phase, and compares the counts with the servers' own.

Ten hosts are network namespaces at one switch: three NATS servers with JetStream, four agents, the coordinator, and two
web servers. Each of these has nginx, an observer and an agent beside it. Each scene is one run, in which something gets SIGKILL. If that is the
coordinator, `fleet resume` takes up the run. A line per scene has the requests by the document and by nginx, the lost members,
and the observers whose part the document has. The status is 1 if a scene differs from what is said to be kept:

 - the document has all requests that nginx has, if no process was killed that sent some
 - else it has no more than nginx, and names the killed member only
 - each observer that lived has the exchanges of its nginx, and one that was killed is named

Needs root.
"""
import argparse
import contextlib
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from common import bounded, machine, need

from support import documents
from support.nats import Agent
from support.net import Lan, free_port
from support.process import Process, own_folder, run, wait_until
from support.programs import DRIVER, Nginx, Observer

NATS, AGENTS, WEBS = ("n1", "n2", "n3"), ("a", "b", "c", "d"), ("web-1", "web-2")
RATE = 400
CLIENT, ROUTE = 4222, 6222


class Cluster:
    """Three NATS servers that store each message twice or thrice."""

    def __init__(self, stack, hosts):
        self.hosts, self.servers = hosts, {}
        self.folder = Path(stack.enter_context(own_folder("cluster")))
        routes = ", ".join(f'"nats://{host.address}:{ROUTE}"' for host in hosts.values())
        for name, host in hosts.items():
            (self.folder / name).write_text(
                f'server_name: {name}\nlisten: "{host.address}:{CLIENT}"\n'
                f'jetstream {{ store_dir: "{self.folder}/{name}.store" }}\n'
                f'cluster {{ name: tried, listen: "{host.address}:{ROUTE}", routes: [{routes}] }}\n')
        stack.callback(lambda: [server.close() for server in self.servers.values()])
        for name in hosts:
            self.start(name)

    def start(self, name):
        self.servers[name] = Process(["nats-server", "-c", self.folder / name], netns=self.hosts[name])
        self.servers[name].wait_for("Server is ready", stream="stderr")

    def url(self, number):
        return f"nats://{self.hosts[NATS[number % len(NATS)]].address}:{CLIENT}"

    def mend(self):
        """Start killed servers again."""
        for name, server in self.servers.items():
            if not server.running():
                server.close()
                self.start(name)


class Agents:
    """Agents that wait, each at one of the NATS servers."""

    def __init__(self, stack, hosts, cluster):
        self.hosts, self.cluster, self.agents = hosts, cluster, {}
        stack.callback(lambda: [agent.close() for agent in self.agents.values()])
        for name in hosts:
            self.start(name)

    def options(self, _):
        return ()

    def start(self, name):
        self.agents[name] = Agent(self.cluster.url(list(self.hosts).index(name)), name, *self.options(name),
                                  netns=self.hosts[name])

    def mend(self):
        for name, agent in self.agents.items():
            if not agent.running():
                agent.close()
                self.start(name)

    def wait_until_free(self):
        for agent in self.agents.values():
            wait_until(lambda a=agent: a.stderr.count(" is asked for by ") == a.ended(), seconds=30)


class Lookouts(Agents):
    """Agents beside observers."""

    def __init__(self, stack, hosts, cluster, port):
        self.port, self.observers = port, {}
        stack.callback(lambda: [observer.close() for observer in self.observers.values()])
        for name in hosts:
            self.observe(name, hosts[name])
        super().__init__(stack, hosts, cluster)

    def observe(self, name, host):
        self.observers[name] = Observer(ports=[self.port], netns=host)

    def options(self, name):
        return "--observer", self.observers[name].url

    def mend(self):
        for name, observer in self.observers.items():
            if not observer.running():
                observer.close()
                self.observe(name, self.hosts[name])
                self.agents[name].stop()
        super().mend()


class Site:
    def __init__(self, stack, seconds):
        lan = Lan(stack, "10.210.0")
        self.seconds, self.total = seconds, round(RATE * seconds)
        self.home = lan.host("home")
        self.cluster = Cluster(stack, {name: lan.host(name) for name in NATS})
        self.agents = Agents(stack, {name: lan.host(name) for name in AGENTS}, self.cluster)
        hosts, port = {name: lan.host(name) for name in WEBS}, free_port()
        self.nginx = {name: stack.enter_context(Nginx(port=port, addresses=(host.address,), netns=host))
                      for name, host in hosts.items()}
        self.lookouts = Lookouts(stack, hosts, self.cluster, port)
        folder = Path(stack.enter_context(own_folder("killed")))
        self.path, self.flag = folder / "run.json", folder / "flag"
        self.before = dict.fromkeys(WEBS, 0)

    def sent(self):
        """Return the requests of this run by host, which nginx has counted."""
        return {name: nginx.status()["requests"] - self.before[name] for name, nginx in self.nginx.items()}

    def all_sent(self):
        return sum(self.sent().values())

    def start(self, *options, observed=False, load=None):
        self.cluster.mend()
        self.agents.mend()
        self.lookouts.mend()
        self.agents.wait_until_free()
        for name, count in self.sent().items():
            self.before[name] += count
        for path in (self.path, self.flag):
            path.unlink(missing_ok=True)
        load = load or ["--rate", RATE, "-n", self.total]
        return Process([DRIVER, "fleet", "--via", self.cluster.url(1), "--members", len(AGENTS), "--gather", "15s", "--",
                        *(nginx.url for nginx in self.nginx.values()), *load, *options,
                        *(["--observer", "fleet"] if observed else []), "--json", self.path], netns=self.home)

    def resume(self, key):
        return run([DRIVER, "fleet", "resume", key, "--via", self.cluster.url(0)], check=False, netns=self.home)


# ---- the parts of a fleet, each with what SIGKILL does to it ----

def kill_server(name):
    return lambda site, _: site.cluster.servers[name].kill()


def kill_agent(site, _):
    site.agents.agents["b"].kill()


def kill_process_that_drives(site, _):
    os.kill(site.agents.agents["b"].child(), signal.SIGKILL)


def kill_observer(site, _):
    site.lookouts.observers["web-2"].kill()


def kill_agent_beside_it(site, _):
    site.lookouts.agents["web-2"].kill()


def kill_coordinator(_, driver):
    driver.kill()


@dataclass(frozen=True)
class Part:
    name: str
    kill: object = lambda site, driver: None
    member: bool = False       # it sends requests
    observer: bool = False     # without it the part of web-2's observer is missing
    coordinator: bool = False  # fleet resume has to take up the run


NOTHING = Part("nothing")
SERVERS = [Part(f"NATS server {name}", kill_server(name)) for name in NATS]
COORDINATOR = Part("coordinator", kill_coordinator, coordinator=True)
AGENT = Part("agent b", kill_agent, member=True)
DRIVES = Part("process that drives, of agent b", kill_process_that_drives, member=True)
OBSERVER = Part("observer of web-2", kill_observer, observer=True)
BESIDE = Part("agent beside the observer of web-2", kill_agent_beside_it, observer=True)


# ---- the phases of a run ----

def reach_run(site, _):
    wait_until(lambda: site.all_sent() >= site.total / 3, seconds=40)


def reach_warmup(site, driver):
    wait_until(lambda: site.all_sent() > 0 or not driver.running(), seconds=40)


def reach_gathered(site, driver):
    """All members are ready, and wait for the flag."""
    driver.wait_for("its results are kept at", stream="stderr", seconds=30)
    wait_until(lambda: all(agent.child() for agent in site.agents.agents.values()))
    time.sleep(0.5)


def reach_end(site, driver):
    """Members have all responses, and send their results. The coordinator does not read them yet."""
    reach_run(site, driver)
    driver.send(signal.SIGSTOP)
    wait_until(lambda: site.all_sent() == site.total)


def raise_flag(site, driver):
    site.flag.touch()
    driver.send(signal.SIGCONT)


def go_on(_, driver):
    driver.send(signal.SIGCONT)


@dataclass(frozen=True)
class Phase:
    name: str
    reach: object
    go_on: object = go_on
    options: object = lambda site: ()


BEFORE = Phase("before the start", reach_gathered, raise_flag, lambda site: ("--wait-for", site.flag))
WARMUP = Phase("in the warm-up", reach_warmup, options=lambda site: ("--warmup", "2s"))
RUN = Phase("in the run", reach_run)
END = Phase("after the end", reach_end)


def secret_of(driver):
    return re.search(r"fleet resume ([0-9a-f]{32}) ", driver.stderr)[1]


@dataclass(frozen=True)
class Scene:
    part: Part
    phase: Phase
    observed: bool = False
    also: Part = NOTHING  # killed next

    @property
    def name(self):
        names = self.part.name + (f" and {self.also.name}" if self.also is not NOTHING else "")
        return f"{names}, {self.phase.name}" + (", observed" if self.observed else "")

    def has(self, what):
        return getattr(self.part, what) or getattr(self.also, what)

    def play(self, site):
        """Return what the coordinator has said, or the one that took up its run."""
        driver = site.start(*self.phase.options(site), observed=self.observed)
        try:
            self.phase.reach(site, driver)
            key = secret_of(driver) if self.part.coordinator else None
            for part in (self.part, self.also):
                part.kill(site, driver)
            self.phase.go_on(site, driver)
            if key:
                return driver.stderr + site.resume(key).stderr
            driver.wait()
            return driver.stderr
        finally:
            driver.close()

    def expected(self):
        """Return the requests of the document: "all" of the run and of nginx, those "measured", "less", or "none"."""
        if self.phase is BEFORE and (self.part.coordinator or self.has("member") or self.has("observer")):
            return "none"
        if self.phase is WARMUP:
            return "less or none" if self.has("member") else \
                "none" if self.has("observer") or self.observed and self.has("coordinator") else "measured"
        return "less" if self.has("member") else "all"


class LeftAlone(Scene):
    """The members end the load that has no coordinator. The next one comes later."""

    @property
    def name(self):
        return "coordinator, resumed when the members had ended" + (", observed" if self.observed else "")

    def await_end(self, site):
        site.agents.wait_until_free()

    def play(self, site):
        driver = site.start(observed=self.observed, load=["-c", "8", "-d", "600s"])
        try:
            self.phase.reach(site, driver)
            key = secret_of(driver)
            driver.kill()
            self.await_end(site)
            return driver.stderr + site.resume(key).stderr
        finally:
            driver.close()

    def expected(self):
        return "part"


class Forgotten(LeftAlone):
    """The agents beside the observers give it up, too: after a minute."""

    name = "coordinator, resumed when all had given it up, observed"

    def await_end(self, site):
        def stored():
            return [agent.stderr.count("the observer's document is stored") for agent in site.lookouts.agents.values()]
        before = stored()
        wait_until(lambda: stored() == [count + 1 for count in before], seconds=90)


def scenes():
    for phase in (BEFORE, WARMUP, RUN, END):
        for part in (NOTHING, *SERVERS, COORDINATOR):
            yield Scene(part, phase)
    for phase in (BEFORE, WARMUP, RUN):
        for part in (AGENT, DRIVES):
            yield Scene(part, phase)
    for part in (AGENT, SERVERS[2]):
        yield Scene(COORDINATOR, RUN, also=part)
    yield LeftAlone(COORDINATOR, RUN)
    for phase in (BEFORE, WARMUP, RUN, END):
        for part in (NOTHING, SERVERS[0], OBSERVER, BESIDE, COORDINATOR):
            yield Scene(part, phase, observed=True)
    yield Scene(DRIVES, RUN, observed=True)
    for part in (OBSERVER, SERVERS[2]):
        yield Scene(COORDINATOR, RUN, observed=True, also=part)
    yield LeftAlone(COORDINATOR, RUN, observed=True)
    yield Forgotten(COORDINATOR, RUN, observed=True)


# Each kind of part once, in the run.
SHORT = [Scene(part, RUN, observed=True) for part in (SERVERS[1], OBSERVER, DRIVES, COORDINATOR)]


# ---- the judgement ----

@dataclass
class Found:
    sent: dict                    # by host, as nginx counts
    said: str
    requests: int | None = None   # None: there is no document
    lost: tuple = ()
    observed: dict | None = None  # exchanges by host
    missing: str = ""             # the reason why an observer's part is missing
    adds_up: bool = True


def find(site, said):
    found = Found(site.sent(), said)
    if site.path.exists() and site.path.stat().st_size:
        document = documents.parse(site.path.read_text())
        result = document["driver"]
        found.requests = result["requests"]
        found.lost = tuple(member["host"] for member in result["members"] if member["lost"])
        found.observed = {service["host"] or document["host"]: service["exchanges"] for service in document["services"] or ()}
        found.missing = result["observer_error"] or ""
        found.adds_up = result["requests"] == result["round_trip"]["count"] == \
            sum(member["requests"] for member in result["members"])
    return found


def counts_hold(scene, site, found):
    sent, requests = sum(found.sent.values()), found.requests
    if requests is None:
        return "none" in scene.expected() and (scene.phase is not BEFORE or sent == 0)
    return found.adds_up and {
        "all": requests == sent == site.total, "measured": requests == site.total < sent, "part": 0 < requests == sent,
        "less": 0 < requests <= sent, "less or none": requests <= sent, "none": False}[scene.expected()]


def observers_hold(scene, found):
    """Each that lived has nginx's own counts, without those of a warm-up."""
    if not scene.observed or found.requests is None:
        return not found.observed
    gone = {"web-2"} if scene.has("observer") else set()
    if set(found.observed) != set(WEBS) - gone or bool(found.missing) != bool(gone):
        return False
    if scene.phase is WARMUP:
        return bool(gone) or sum(found.observed.values()) == found.requests
    return all(count == found.sent[name] for name, count in found.observed.items())


def holds(scene, site, found):
    """A member that was lost and one that was not differ in the document only if there is one."""
    expected = ("b",) if scene.has("member") else ()
    return counts_hold(scene, site, found) and observers_hold(scene, found) and \
        (found.requests is None or found.lost == expected)


def show(scene, found, good, seconds):
    requests = "-" if found.requests is None else found.requests
    observed = ", ".join(f"{name} {count}" for name, count in sorted((found.observed or {}).items()))
    print(f"{'ok  ' if good else 'FAIL'} {scene.name:66} document {requests:>6}, nginx {sum(found.sent.values()):6}, "
          f"lost {','.join(found.lost) or '-':2}{f', observed {observed}' if observed else ''} {seconds:5.1f} s", flush=True)
    if not good:
        print(f"     nginx {found.sent}, missing: {found.missing or '-'}\n{found.said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=bounded(float, 1, 600), default=3.0, help="of each run (default: 3)")
    parser.add_argument("--only", default="", help="scenes whose name has this text")
    parser.add_argument("--short", action="store_true", help="one scene for each kind of part")
    args = parser.parse_args()
    need("nats-server", "nginx")
    print(machine())
    failed = 0
    with contextlib.ExitStack() as stack:
        site = Site(stack, args.seconds)
        for scene in SHORT if args.short else scenes():
            if args.only not in scene.name:
                continue
            begin = time.monotonic()
            found = find(site, scene.play(site))
            good = holds(scene, site, found)
            failed += not good
            show(scene, found, good, time.monotonic() - begin)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
