# SPDX-License-Identifier: MIT
"""How an observation starts and ends, whoever ends it, and its messages when it cannot start."""
import json
import os
import signal
import subprocess
import time

import pytest

from ..conftest import in_kernel, left_in_kernel
from support.documents import parse, service
from support.net import free_port
from support.process import run
from support.programs import LAB, OBSERVER, Driver, Nginx, Observer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_with_the_complete_summary(start, number):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    Driver(nginx.url, connections=4, count=100)
    assert observer.stop(number=number) == 0
    assert not observer.killed
    assert service(observer.summary(), nginx.port)["exchanges"] == 100
    assert f"tcp 127.0.0.1:{nginx.port}" in observer.stdout
    assert "lost 0" in observer.stdout


def test_for_ends_by_itself(start):
    nginx = start(Nginx())
    began = time.monotonic()
    observer = start(Observer("--for", "500ms", ports=[nginx.port]))
    Driver(nginx.url, connections=4, count=100)
    assert observer.wait(20) == 0
    assert time.monotonic() - began >= 0.5
    document = observer.summary()
    assert service(document, nginx.port)["exchanges"] == 100
    assert document["duration_ns"] >= 500_000_000


def test_killed_at_any_moment_nothing_remains(start):
    """Programs and maps live by the observer's descriptors alone; the server never notices a kill."""
    nginx = start(Nginx())
    before = in_kernel()
    load = start(["wrk", "-c", "16", "-t", "1", "-d", "6s", nginx.url])
    for wait in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        observer = start([OBSERVER, "observe", "--port", str(nginx.port)])
        time.sleep(wait)
        observer.kill()
        assert not left_in_kernel(before)
    assert load.wait(30) == 0
    assert "Socket errors" not in load.stdout
    assert "Non-2xx" not in load.stdout
    assert not nginx.errors()


def test_command_is_run_and_its_status_returned(start):
    nginx = start(Nginx())
    result = run([OBSERVER, "observe", "--port", nginx.port, "--json", "-", "--", "sh", "-c",
                  f"curl -s -o /dev/null {nginx.url}; exit 7"], check=False)
    assert result.status == 7
    document = parse(result.stdout)
    assert service(document, nginx.port)["exchanges"] == 1
    assert document["command"][0] == "sh"

    result = run([OBSERVER, "observe", "--port", nginx.port, "--", "sh", "-c", "kill -KILL $$"],
                 check=False)
    assert result.status == 128 + signal.SIGKILL

    result = run([OBSERVER, "observe", "--port", nginx.port, "--", "/nonexistent"], check=False)
    assert result.status == 127
    assert "cannot run '/nonexistent'" in result.stderr


def test_for_ends_the_command_too(start):
    nginx = start(Nginx())
    marker = f"{time.monotonic_ns()}"
    result = run([OBSERVER, "observe", "--port", nginx.port, "--for", "300ms", "--", "sleep",
                  f"1{marker[-6:]}"], check=False, seconds=20)
    assert result.status == 128 + signal.SIGTERM
    shown = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True)
    assert f"sleep 1{marker[-6:]}" not in shown.stdout


def test_a_service_that_comes_later_is_observed(start):
    port = free_port()
    observer = start(Observer(ports=[port]))
    nginx = start(Nginx(port=port))
    Driver(nginx.url, connections=4, count=100)
    observer.stop()
    entry = service(observer.summary(), port)
    assert entry["exchanges"] == 100
    assert entry["accepted"] == 4
    assert {p["comm"] for p in entry["processes"]} == {"nginx"}


def test_pid_finds_the_listeners(start, netns):
    """--pid finds listeners in another network namespace than the observer's."""
    here = netns()
    nginx = start(Nginx(netns=here))
    observer = start(Observer("--pid", str(nginx.pid)))
    Driver(nginx.url, connections=4, count=100, netns=here)
    observer.stop()
    entry = service(observer.summary(), nginx.port)
    assert entry["exchanges"] == 100
    assert entry["netns"] == here.inode


def test_processes_in_a_container_are_named(start, tmp_path):
    """A server in a pid namespace of its own, as in a container, is named as seen from here."""
    port = free_port()
    server = start(["unshare", "--pid", "--fork", "--kill-child", LAB, "--listen",
                    f"127.0.0.1:{port}", "--protocol", "http"])
    server.wait_for("^listening on")
    observer = start(Observer(ports=[port]))
    Driver(f"http://127.0.0.1:{port}/", connections=2, count=50)
    observer.stop()
    (process,) = service(observer.summary(), port)["processes"]
    assert process["comm"] == "sojourn-lab"
    assert os.readlink(f"/proc/{process['pid']}/exe") == str(LAB.resolve())
    server.kill()  # unshare ignores SIGTERM, and stop() would wait for it


def test_other_namespaces_are_not_mixed_in(start, netns):
    """The same port in another network namespace is another service, which is not observed."""
    port = free_port()
    here, there = netns("here"), netns("there")
    observed, other = start(Nginx(port=port, netns=here)), start(Nginx(port=port, netns=there))
    observer = start(Observer(ports=[port], netns=here))
    Driver(observed.url, connections=2, count=100, netns=here)
    Driver(other.url, connections=2, count=900, netns=there)
    observer.stop()
    assert service(observer.summary(), port)["exchanges"] == 100


def test_all_listeners(start, netns):
    here = netns()
    first, second = start(Nginx(netns=here)), start(Nginx(netns=here))
    observer = start(Observer("--all-listeners", netns=here))
    third = start(Nginx(netns=here))
    for nginx, count in ((first, 100), (second, 200), (third, 300)):
        Driver(nginx.url, connections=2, count=count, netns=here)
    observer.stop()
    document = observer.summary()
    for nginx, count in ((first, 100), (second, 200), (third, 300)):
        assert service(document, nginx.port)["exchanges"] == count
    assert document["services_dropped"] == 0


def test_interval_lines(start):
    nginx = start(Nginx())
    observer = start(Observer("--interval", "200ms", ports=[nginx.port]))
    Driver(nginx.url, connections=4, duration="1s")
    observer.stop()
    lines = [line.split() for line in observer.stdout.splitlines()
             if len(line.split()) > 5 and line.split()[1] == str(nginx.port)]
    assert len(lines) >= 4
    assert any(int(line[2]) > 0 for line in lines)


@pytest.mark.parametrize("options, words", [
    ([], ["--port", "--pid", "--all-listeners"]),
    (["--port", "80", "--all-listeners"], ["only one"]),
    (["--port", "0"], ["--port", "'0'", "1 to 65535"]),
    (["--port", "80,,81"], ["--port", "'80,,81'"]),
    (["--port", "http"], ["--port", "'http'"]),
    (["--port", "65536"], ["--port", "'65536'", "65535"]),
    (["--pid", "-1"], ["--pid", "'-1'"]),
    (["--port", "80", "--interval", "1"], None),
    (["--port", "80", "--interval", "soon"], ["--interval", "'soon'"]),
    (["--port", "80", "--interval", "1ms"], ["--interval", "10ms"]),
    (["--port", "80", "--for", "0"], ["--for", "'0'"]),
    (["--port", "80", "--listen", "127.0.0.1:99999"], ["--listen", "'127.0.0.1:99999'"]),
    (["--port", "80", "--prefer", "magic"], ["--prefer", "magic", "tp_btf/tcp_probe"]),
    (["--port", "80", "--samples", "many"], ["--samples", "0 to 1000000"]),
    (["--port", "80", "--ring", "3"], ["--ring", "4 to 1048576"]),
    (["--port", "80", "--accept-source", "magic"], ["--accept-source", "auto, accept, syscall or inferred"]),
    (["--port"], ["--port", "needs a value"]),
    (["--nonsense"], ["--nonsense", "unknown"]),
    (["--port", "80", "wrk"], ["'wrk'", "--"]),
])
def test_wrong_options_are_one_line_and_exit_2(options, words):
    if words is None:
        result = run([OBSERVER, "observe", *options, "--for", "10ms"], check=False)
        assert result.status == 0
        return
    result = run([OBSERVER, "observe", *options], check=False)
    assert result.status == 2
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_no_such_process():
    result = run([OBSERVER, "observe", "--pid", "4194000"], check=False)
    assert result.status == 1
    assert "no process 4194000" in result.stderr


def test_without_privileges_it_says_what_is_missing():
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                    "--bounding-set=-all", "--inh-caps=-all"]
    if not os.access(OBSERVER, os.X_OK):
        pytest.skip("the build folder is not readable to others")
    result = run([*unprivileged, "env", "true"], check=False)
    if result.status != 0:
        pytest.skip("setpriv cannot drop privileges here")
    result = run([*unprivileged, OBSERVER, "observe", "--port", "80"], check=False)
    if "Permission denied" in result.stderr and "setpriv" in result.stderr:
        pytest.skip("the build folder is not readable to others")
    assert result.status == 3
    assert "CAP_BPF" in result.stderr and "CAP_PERFMON" in result.stderr
    assert "sojourn report" in result.stderr


def test_refused_in_spite_of_capabilities_it_says_by_whom():
    """Root of a user namespace has all capabilities by name; so has a container under a seccomp profile."""
    namespace = ["unshare", "--user", "--map-root-user"]
    if run([*namespace, "true"], check=False).status != 0:
        pytest.skip("no user namespaces here")
    result = run([*namespace, OBSERVER, "observe", "--port", "80"], check=False)
    assert result.status == 3
    assert "in spite of CAP_BPF" in result.stderr and "seccomp" in result.stderr


def test_probe_says_what_the_kernel_allows():
    result = run([OBSERVER, "probe", "--json"], check=False)
    document = json.loads(result.stdout)
    assert document["kernel"] == os.uname().release
    works = {c["program"]: c["works"] for c in document["candidates"]}
    assert works["exchange_ready"] and works["exchange_recv"] and works["exchange_send"]
    assert all(document["stages"][stage]["measured"] for stage in
               ("accept_queue", "socket_queue", "receive", "service", "respond"))
    assert result.status == 0
    assert "When did a request become readable?" in run([OBSERVER, "probe"]).stdout
