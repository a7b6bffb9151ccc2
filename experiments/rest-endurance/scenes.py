# SPDX-License-Identifier: MIT
"""Causes that end such a test, each provoked in its own network. Each scene has the doctor's findings and their
times, the first failing call, and whether the remedy works."""
import json
import re
import signal
import threading
import time

from experiments.common import lua_server
from experiments.common.place import CLIENT_CPU, SERVER_CPU, Place
from experiments.common.running_out import Watch
from support import documents
from support.findings import evidence
from support.programs import DRIVER

AFTERWARDS_SECONDS = 1  # in which the client continues to fail.
LONGER = 1.3  # Length of the run with the remedy, as a multiple of the time to the first failure without it.
LIMIT_SECONDS = 60  # The longest wait for the failure.


class Limited(Place):
    """A place whose processes start with few descriptors, and may raise their limit."""

    def __init__(self, soft, hard, **options):
        super().__init__(**options)
        self.limits = f"{soft}:{hard}"

    def prefix(self):
        return ["prlimit", f"--nofile={self.limits}", "--", *super().prefix()]


class Scene:
    """A server with a scarce resource, and a client that uses it up. In the classes below: `names`, the
    findings that name the cause; `over`, the one after the failure."""

    title = mistake = remedy = names = over = location = ""
    fresh = False  # whether the remedy needs a new network: the first client's ports stay in TIME_WAIT

    def __init__(self, context):
        self.context = context
        self.netns = context.netns("rest")
        self.place = Place(CLIENT_CPU, netns=self.netns)
        self.prepare()
        self.nginx = context.start(lua_server.LuaServer(
            context.source / "server.lua", "/items", {"items": "16m"}, location=self.location,
            netns=self.server_place()))
        self.path = context.work / f"{type(self).__name__}.json"

    def prepare(self):
        """Make something scarce."""

    def server_place(self):
        return Place(SERVER_CPU, netns=self.netns)

    def argv(self, seconds, remedied):
        raise NotImplementedError

    def account(self, process):
        """Return the ended client's report: calls, failures, first failure (text; seconds since 1970)."""
        raise NotImplementedError

    def ours(self, finding):
        """Whether a finding concerns this scene: the doctor also reports descriptors of unrelated processes."""
        return finding["resource"] != "descriptors" or any(
            owner["pid"] in (self.nginx.pid, *self.nginx.workers()) for owner in finding["owners"])

    def apply(self, finding):
        """Apply the finding's remedy; return the command, if it is one."""
        command = finding["command"]
        self.context.start(["sh", "-c", command], self.netns).wait()
        return command

    def ports(self, first, count):
        """Set a range of this many source ports, which TIME_WAIT blocks as towards another host. Return their number."""
        for name, value in (("ip_local_port_range", f"{first} {first + count - 1}"), ("tcp_tw_reuse", "0")):
            self.netns.exec(["sysctl", "-qw", f"net.ipv4.{name}={value}"])
        return count


class DriverScene(Scene):
    kind = ""  # the driver's name of the expected failure

    def drive(self, seconds, *options):
        self.path.unlink(missing_ok=True)
        return [DRIVER, f"{self.nginx.url}items", *options, "-d", f"{seconds:.0f}s", "--quiet", "--json", self.path]

    def account(self, process):
        driver = documents.load(self.path)["driver"]
        found = [each for each in driver["failures"] or [] if each["kind"] == self.kind]
        first = found[0]["first_ns"] if found else None
        return {"calls": driver["requests"], "failures": sum(driver["errors"].values()),
                "counted": driver["errors"][self.kind], "first": self.kind if found else None,
                "first_at": found and (driver["begin_ns"] + first) / 1e9 or None}


class Ports(DriverScene):
    title = "source ports"
    mistake = "a new connection for every call, whose port stays in TIME_WAIT for a minute"
    remedy = "a wider range, by the doctor's command"
    names, over = ("ports-exhausted-soon", "ports-cliff", "ports-exhausted"), "ports-exhausted"
    kind = "address_unavailable"

    def prepare(self):
        self.scarce = f"{self.ports(40000, self.context.pick(2000, 300))} ports"

    def argv(self, seconds, remedied):
        return self.drive(seconds, "--new-connections", "-c", "4", "--rate", self.context.pick("150", "120"))


class Descriptors(DriverScene):
    title = "the server's descriptors"
    mistake = "more connections than the server may have files"
    remedy = "a higher limit, by the doctor's command, while the server runs"
    names, over = ("fds-exhausted-soon", "fds-near-limit", "fds-exhausted"), None
    kind = "timeout"

    def server_place(self):
        files = self.context.pick(400, 100)
        self.scarce = f"{files} files per process"
        return Limited(files, 4096, cpu=SERVER_CPU, netns=self.netns)

    def argv(self, seconds, remedied):
        self.log_from = len(self.nginx.errors())
        self.logged_at = None
        threading.Thread(target=self.watch_log, daemon=True).start()
        return self.drive(seconds, "-c", self.context.pick("500", "140"), "--connect-rate",
                          self.context.pick("25", "25"), "--think", "200ms", "--timeout", "2s")

    def watch_log(self):
        """Record when nginx first logs that it lacks descriptors. The client notices only at its time-out."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.logged_at is None and self.nginx.running() and time.monotonic() < deadline:
            if "Too many open files" in self.nginx.errors()[self.log_from:]:
                self.logged_at = time.time()
            time.sleep(0.02)

    def account(self, process):
        told = super().account(process)
        lines = [line for line in self.nginx.errors()[self.log_from:].splitlines()
                 if "Too many open files" in line]
        if lines:
            told.update(first="nginx: " + re.sub(r"^\S+ \S+ |\d+#\d+: |, while.*", "", lines[0]),
                        first_at=self.logged_at, counted=len(lines), failures=told["failures"] or len(lines))
        return told


class NeverClosed(Scene):
    fresh = True
    briefly = 200  # ports in the quick form
    title = "responses that are never closed"
    mistake = "a client that keeps every response, so that no connection becomes free for the next call"
    remedy = "a client that closes its responses"
    names, over = ("ports-exhausted-soon", "ports-cliff", "ports-exhausted"), "ports-exhausted"

    def prepare(self):
        self.scarce = f"{self.ports(40000, self.context.pick(600, self.briefly))} ports"

    def argv(self, seconds, remedied):
        return [self.context.source / "client.py", "127.0.0.1", self.nginx.port, "--rate",
                self.context.pick("40", "50"), "--seconds", f"{seconds:.0f}", *(["--close"] if remedied else [])]

    def account(self, process):
        told = json.loads(process.stdout)
        return {**told, "counted": told["failures"]}

    def apply(self, finding):
        return None  # the second run has another client


class GivenUp(NeverClosed):
    title = "the same, and the server closes idle connections"
    mistake = "as before; the server closes what was idle for a second, the client does not notice"
    names = ("close-wait-leak",)
    briefly = 800  # slow enough to be named: growth must last for some seconds
    location = "keepalive_timeout 1s;"


SCENES = (Ports, Descriptors, NeverClosed, GivenUp)


def failed_calls(looks):
    """Return the connect() calls that failed for lack of a port, as counted by the doctor's events."""
    return sum(evidence(finding, "failed in the sample") for look in looks for finding in look["findings"]
               if finding["resource"] in ("ephemeral_ports", "port_failures"))


def block(text, names):
    """Return the first of these findings in the doctor's output; all of it if there is none."""
    found = [part for part in re.split(r"\n(?=CRITICAL |WARNING |NOTICE |\n)", text) if part.split()[1:2] and part.split()[1] in names]
    return found[0] if found else text


def until_it_fails(scene, watch):
    """Wait for the finding, query as a user would, wait for the failure. Return the user's view."""
    watch.until(lambda firsts: any(name in firsts for name in scene.names), LIMIT_SECONDS)
    text = block(watch.text(), scene.names)
    if scene.over:
        watch.until(lambda firsts: scene.over in firsts, LIMIT_SECONDS)
    else:
        deadline = time.monotonic() + LIMIT_SECONDS
        while scene.logged_at is None and time.monotonic() < deadline:
            time.sleep(0.05)
    time.sleep(AFTERWARDS_SECONDS)
    return text


def let_end(process, watch):
    """End the client by Ctrl-C, and wait for two more readings of the doctor: they have seen all of the client."""
    process.send(signal.SIGINT)
    process.wait(30)
    seen = len(watch.looks())
    deadline = time.monotonic() + 10
    while len(watch.looks()) < seen + 2 and time.monotonic() < deadline:
        time.sleep(0.05)


def without(scene, watch):
    """Return the failing run: (its figures, the finding that named the cause or None)."""
    began = time.time()
    client = scene.context.start(scene.argv(2 * LIMIT_SECONDS, False), scene.place, label=scene.title)
    text = until_it_fails(scene, watch)
    let_end(client, watch)
    told, firsts = scene.account(client), watch.firsts()
    named = next((finding for name, finding in firsts.items() if name in scene.names), None)
    return {**told, "began": began, "text": text, "failed_calls": failed_calls(watch.looks()),
            "fails_after": told["first_at"] and told["first_at"] - began,
            "found": [{"id": name, "after": finding["at"] - began, "severity": finding["severity"],
                       "prediction": finding["outlook"]} for name, finding in firsts.items()],
            "named": named and named["id"], "named_after": named and named["at"] - began,
            "owner": named and named["owners"] and named["owners"][0]["comm"]}, named


def remedied(scene, wrong):
    """Run the same client for longer than it took to fail; return its figures, and the findings."""
    seconds = max(2, LONGER * (wrong["fails_after"] or 5))
    with watching(scene) as watch:
        client = scene.context.start(scene.argv(seconds, True), scene.place, label=f"{scene.title}, remedied")
        client.wait(seconds + 30)
        return {**scene.account(client), "seconds": seconds,
                "found": [name for name in watch.firsts() if name in scene.names]}


def interval(context):
    return context.pick("1s", "400ms")


def watching(scene):
    return Watch(scene.context, "--port", scene.nginx.port, place=scene.place, ours=scene.ours,
                 interval=interval(scene.context), label="doctor")


def played(context, kind):
    scene = kind(context)
    with watching(scene) as watch:
        wrong, finding = without(scene, watch)
    command = scene.apply(finding) if finding else None
    if scene.fresh:
        scene.nginx.close()
        scene = kind(context)
    right = remedied(scene, wrong)
    scene.nginx.close()
    return {"title": scene.title, "mistake": scene.mistake, "remedy": scene.remedy, "scarce": scene.scarce,
            "command": command, "wrong": wrong, "right": right}


def all_played(context):
    """Play all scenes at the same time: each has its own network and little to do. If the experiment is
    interrupted a thread continues, but all that it started ends with the context."""
    results = {}

    def play(kind):
        try:
            results[kind] = played(context, kind)
        except BaseException as error:  # raised by the waiting thread
            results[kind] = error

    threads = [threading.Thread(target=play, args=(kind,), daemon=True) for kind in SCENES]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    for result in results.values():
        if isinstance(result, BaseException):
            raise result
    return [results[kind] for kind in SCENES]
