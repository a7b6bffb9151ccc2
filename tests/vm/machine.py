# SPDX-License-Identifier: MIT
"""Boots kernels, two at a time, runs scenes.sh in each, and keeps the output for the tests."""
import csv
import functools
import io
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import ROOT, documents
from support.process import stay_aside

SKIPPED = 77  # tools/vm: this machine cannot run it
LIMIT_SECONDS = 900
PANIC = re.compile(r"Kernel panic - not syncing: Fatal exception in interrupt")
SCENES = Path(__file__).with_name("scenes.sh")


class Scene:
    """The results of a lab server, an observer and a driver: the observer's entry on the server's port, and the server's
    own times. The observer may have seen other scenes, too."""

    def __init__(self, port, observed, parts):
        self.status = int(observed["status"])
        self.stderr = observed["stderr"]
        self.run = json.loads(observed["run"])
        self.service = documents.service(self.run, port)
        self.other = documents.service(json.loads(observed.get("other", observed["run"])), port)
        self.driver = json.loads(parts["drive"])["driver"]
        self.time_wait = int(parts["time_wait"])  # sockets of the port, in the kernel's own list
        self.truth = [{name: value if name == "peer" else int(value) for name, value in row.items()}
                      for row in csv.DictReader(io.StringIO(parts["truth"]))]

    def stage(self, name):
        stage = self.service["stages"][name]
        assert stage.get("measured", True), stage
        return stage

    def mean_truth(self, begin, end):
        return sum(row[end] - row[begin] for row in self.truth) / len(self.truth)

    def median_truth(self, begin, end):
        """Return the median of these times. It is one of them, as p50 is."""
        return statistics.median_low(row[end] - row[begin] for row in self.truth)


class Machine:
    """A booted kernel's output, by name; machine.scene("service"), machine.said("probe")"""

    def __init__(self, kernel, text, seconds):
        self.kernel = kernel
        self.seconds = seconds
        pieces = re.split(r"^=== (\S+)\r?\n", text, flags=re.MULTILINE)
        self.parts = {name: body.strip("\n") for name, body in zip(pieces[1::2], pieces[2::2])}

    def said(self, name):
        """Return (exit status, standard output, standard error)."""
        return (int(self.parts[f"{name}.status"]), self.parts[f"{name}.stdout"],
                self.parts[f"{name}.stderr"])

    @functools.cached_property
    def probe(self):
        return json.loads(self.said("probe")[1])

    def measures(self, *stages):
        return all(self.probe["stages"][stage]["measured"] for stage in stages)

    def parts_of(self, name):
        return {part.removeprefix(f"{name}."): text for part, text in self.parts.items()
                if part.startswith(f"{name}.")}

    def scene(self, name):
        parts = self.parts_of(name)
        observer, port = parts["seen"].split()
        return Scene(int(port), self.parts_of(observer), parts)

    def runs(self):
        return [json.loads(text) for part, text in self.parts.items() if part.endswith((".run", ".other"))]

    def scene_seconds(self):
        return {name.removesuffix(".seconds"): float(said)
                for name, said in self.parts.items() if name.endswith(".seconds")}


def modules(kernel):
    """Return options of tools/vm for the module files that were unpacked with a kernel."""
    image = subprocess.run([ROOT / "tools" / "vm-kernel", kernel], check=False, text=True,
                           capture_output=True).stdout.strip()
    found = Path(image).parent.parent.glob("lib/modules/**/*.ko*") if image else ()
    return [word for path in sorted(found) for word in ("--file", path)]


class Fleet:
    """The machines that the selected tests need. Each takes one CPU, so two run at a time."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(max_workers=2)
        self.running = set()
        self.booting = {}
        self.died = []  # what machines said that were booted again

    def boot(self, kernel, parameters="", scenes="all", script="scenes.sh"):
        """Start the machine unless it is already running; return a future of its Machine, or of the reason why
        not."""
        key = (kernel, parameters, scenes, script)
        if key not in self.booting:
            self.booting[key] = self.pool.submit(self.run, *key)
        return self.booting[key]

    def run(self, kernel, parameters, scenes, script):
        begun = time.monotonic()
        version, *architecture = kernel.split()
        files = [*(f"--{name}" for name in architecture), "--file", SCENES.with_name(script)]
        if script != SCENES.name:
            files += modules(kernel)
        elif not architecture and shutil.which("setpriv"):
            files += ["--file", shutil.which("setpriv")]
        command = [ROOT / "tools" / "vm", "--limit", str(LIMIT_SECONDS), *files, "--append", parameters, version,
                   "--", "sh", f"/{script}", scenes]
        status, out, err = self.run_once(command)
        # The emulation has broken a kernel: within an interrupt its flags register had bits that no processor sets.
        if status and PANIC.search(err):
            self.died.append(f"{kernel}: booted again after\n{err}")
            status, out, err = self.run_once(command)
        if status == SKIPPED:
            return err.strip()
        assert status == 0, f"{err[-8000:]}\n{out[-4000:]}"
        return Machine(version, out, time.monotonic() - begun)

    def run_once(self, command):
        """Return (exit status, standard output, standard error)."""
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, start_new_session=True, preexec_fn=stay_aside) as process:
            self.running.add(process)
            out, err = process.communicate()
            self.running.discard(process)
        return process.returncode, out, err

    def close(self):
        """End all machines; no test waits for them any more."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self.running):
            os.killpg(process.pid, signal.SIGTERM)
        self.pool.shutdown()

    def report(self):
        """Print a line for each machine: where its time went. Before that, why some were booted again."""
        yield from self.died
        for key, future in self.booting.items():
            if not future.done() or future.cancelled() or future.exception():
                continue
            machine = future.result()
            if isinstance(machine, Machine):
                scenes = ", ".join(f"{name} {seconds:.0f}"
                                   for name, seconds in machine.scene_seconds().items())
                yield f"{' '.join(filter(None, key))}: {machine.seconds:.0f} s ({scenes})"


def key_of(parameter):
    """Return the key of a test's parameter: a kernel, or (kernel, its parameters, scenes, script). A kernel is
    a version such as 6.12, or with another architecture 6.12 arm64."""
    return (parameter,) if isinstance(parameter, str) else parameter


@functools.cache
def shared_fleet():
    """Return the only fleet. pytest makes the fixture again in each test file that imports it."""
    return Fleet()


@pytest.fixture(scope="session", name="fleet")
def fleet_fixture(request):
    """Boot the machines of all selected tests; at the end, print where their time went."""
    fleet = shared_fleet()
    for item in request.session.items:
        if hasattr(item, "callspec") and "vm" in item.callspec.params:
            fleet.boot(*key_of(item.callspec.params["vm"]))
    yield fleet
    fleet.close()
    plugins = request.config.pluginmanager
    terminal = plugins.get_plugin("terminalreporter")
    with plugins.get_plugin("capturemanager").global_and_fixture_disabled():
        terminal.line("")
        for line in fleet.report():
            terminal.line(line)
    fleet.booting.clear()


@pytest.fixture
def vm(request, fleet):
    """Return the Machine that the parameter names; skip the test if it cannot run here."""
    answer = fleet.boot(*key_of(request.param)).result()
    if isinstance(answer, str):
        pytest.skip(answer)
    return answer
