# SPDX-License-Identifier: MIT
"""The container image, built by podman from packaging/container/Dockerfile. Both programs run in it with the
privileges that are documented there and in the Kubernetes manifests. `tools/package --contain` runs this.

Its base is the clean Debian 12 of tools/package-debian, under the name in the Dockerfile.
"""
import json
import os
import re
import shutil
import subprocess

import pytest

from support import ROOT, conditions, http
from support.net import free_port
from support.process import Process, run
from support.programs import Nginx

CONTAINER = ROOT / "packaging/container"
PACKAGES = sorted((ROOT / "build-package").glob("sojourn_*.deb"))
SKIPPED = 77
BITS = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "PERFMON": 38, "BPF": 39}
pytestmark = [conditions.bpf, pytest.mark.timeout(1200)]

# The limits are this machine's: a container engine without CAP_SYS_RESOURCE may not raise them.
CONFIGURATION = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
pids_limit = 0
log_driver = "none"
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{0}/images"
runroot = "{0}/run"
"""
# A mount namespace with cgroups of version 2 only, as the engine needs.
APART = ["unshare", "--mount", "sh", "-c",
         'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', "sh"]


# Further files of the engine, wherever its images are.
BESIDES = ("/run/libpod", "/run/containers", "/var/lib/containers")


class Podman:
    """An engine whose images and containers are in one folder."""

    def __init__(self, folder):
        self.besides = [path for path in BESIDES if not os.path.exists(path)]
        (folder / "containers.conf").write_text(CONFIGURATION)
        (folder / "storage.conf").write_text(STORAGE.format(folder))
        self.env = {"CONTAINERS_CONF": str(folder / "containers.conf"),
                    "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
                    "TMPDIR": str(folder)}

    def command(self, *words):
        return [*APART, "podman", "--cgroup-manager=cgroupfs", *words]

    def run(self, *words, **options):
        return run(self.command(*words), seconds=900, env=self.env, **options)

    def start(self, *words, netns):
        return Process(self.command("run", "--rm", *words), netns=netns, env=self.env)

    def close(self):
        self.run("rm", "--all", "--force")
        self.run("rmi", "--all", "--force")
        # The engine's own parent cgroup for containers; empty.
        run([*APART, "sh", "-c", "cd /sys/fs/cgroup && [ ! -e libpod_parent ] || "
             "find libpod_parent -depth -type d -exec rmdir {} +"])
        for path in self.besides:
            shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module", name="podman")
def podman_fixture(tmp_path_factory):
    """Podman with the image, as the Dockerfile makes it."""
    for program in ("podman", "runc"):
        if not shutil.which(program):
            pytest.skip(f"no {program}: tools/setup package")
    if not PACKAGES:
        pytest.skip("no package: tools/package makes it")
    base = subprocess.run([ROOT / "tools/package-debian", "base"], check=False, text=True,
                          capture_output=True)
    if base.returncode == SKIPPED:
        pytest.skip(base.stderr.strip())
    assert base.returncode == 0, base.stderr
    folder = tmp_path_factory.mktemp("podman")
    podman = Podman(folder)
    try:
        name = re.search(r"^FROM (\S+)", (CONTAINER / "Dockerfile").read_text(), re.MULTILINE)[1]
        podman.run("import", base.stdout.strip(), f"docker.io/library/{name}")
        context = folder / "context"
        context.mkdir()
        shutil.copy(CONTAINER / "Dockerfile", context)
        shutil.copy(PACKAGES[-1], context)
        podman.run("build", "--pull=never", "--network", "host", "--tag", "sojourn", context)
        yield podman
    finally:
        podman.close()
        shutil.rmtree(folder, ignore_errors=True)


def documented(program):
    """Return the options of `docker run` from the Dockerfile's comment on a program."""
    text = re.sub(r" \\\n#\s*", " ", (CONTAINER / "Dockerfile").read_text())
    return re.search(rf"docker run --rm (.*) sojourn {program}\b", text)[1].split()


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


@pytest.fixture(name="apart")
def apart_fixture(netns):
    """A network namespace, which for `--network host` is the engine's."""
    return netns("container")


class Observed:
    """nginx in its own network namespace, and the observer's container beside it."""

    def __init__(self, podman, start, apart, options, tmp_path):
        self.netns = apart
        self.nginx = start(Nginx(netns=self.netns))
        self.port = free_port()
        pidfile = tmp_path / "pid"
        self.container = start(podman.start(
            "--pidfile", pidfile, *options, "sojourn", "sojourn", "serve", "--port", self.nginx.port,
            "--listen", f"127.0.0.1:{self.port}", netns=self.netns))
        self.container.wait_for("listening on", "stderr", 120)
        self.pid = int(pidfile.read_text())

    def get(self, path):
        return json.loads(http.request(f"http://127.0.0.1:{self.port}{path}", netns=self.netns))


def test_the_observer_counts_with_what_is_documented(podman, start, apart, tmp_path):
    options = documented("sojourn serve")
    assert {"--read-only", "--cap-drop"} <= set(options)
    observed = Observed(podman, start, apart, options, tmp_path)
    for _ in range(10):
        observed.netns.exec(["curl", "-s", *[observed.nginx.url] * 4])
    status = status_of(observed.pid)
    allowed = sum(1 << bit for bit in BITS.values())
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm")} == {allowed}
    assert "0" not in status["Uid"].split() and "0" not in status["Gid"].split()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    service = observed.get("/v1/run")["services"][0]
    assert service["exchanges"] == 40
    assert service["accepted"] == 10
    assert service["processes"][0]["open_fds"] > 0
    assert observed.get("/healthz")["looked"]
    assert observed.container.stop() == 0 and not observed.container.killed


@pytest.mark.parametrize("without, said", [
    (("--cap-add", "BPF"), "missing CAP_BPF"),
    (("--cap-add", "PERFMON"), "missing CAP_PERFMON"),
], ids=["bpf", "perfmon"])
def test_without_a_privilege_it_says_which(podman, start, apart, without, said):
    options = documented("sojourn serve")
    at = next(i for i in range(len(options)) if tuple(options[i:i + 2]) == without)
    del options[at:at + 2]
    container = start(podman.start(*options, "sojourn", "sojourn", "serve", "--port", free_port(), netns=apart))
    assert container.wait(120) == 3
    assert said in container.stderr


def test_a_profile_that_forbids_bpf_is_named(podman, start, apart, tmp_path):
    """Older engines' profiles forbid BPF without CAP_SYS_ADMIN."""
    profile = tmp_path / "seccomp.json"
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}))
    options = [word.replace("seccomp=unconfined", f"seccomp={profile}") for word in documented("sojourn serve")]
    assert f"seccomp={profile}" in options
    container = start(podman.start(*options, "sojourn", "sojourn", "serve", "--port", free_port(), netns=apart))
    assert container.wait(120) == 3
    assert "in spite of CAP_BPF" in container.stderr and "seccomp" in container.stderr


def test_the_driver_needs_none(podman, start, apart):
    """As in the Kubernetes job: user nobody, nothing writable, no capability."""
    nginx = start(Nginx(netns=apart))
    done = start(podman.start(
        "--network", "host", "--user", "65534", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "sojourn", "sojourn-drive", nginx.url, "-c", "4", "-n", "200",
        "--quiet", "--json", "-", netns=apart))
    assert done.wait(120) == 0, done.stderr
    assert json.loads(done.stdout)["driver"]["requests"] == 200
    assert nginx.status()["requests"] == 200
