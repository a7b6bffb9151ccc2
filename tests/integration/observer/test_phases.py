# SPDX-License-Identifier: MIT
"""Measured phases are for the observer's own user, end with their lease, and cost little. No other user of the
host can fill the observer's memory or its places for phases.
"""
import os
import re
import shutil
import select
import socket
import subprocess
import time
import urllib.error
from pathlib import Path

import pytest

from ..conftest import kernel_counter
from support import http
from support.documents import parse, service
from support.net import Netns
from support.process import Process, wait_until
from support.programs import DRIVER, Driver, Lab, Observer, own_token
from .scene import inside

NOBODY = 65534


def as_nobody(*argv):
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv],
                          capture_output=True, text=True, timeout=60, check=False)


def status(url, method="POST", token=None):
    try:
        http.request(url, method, token=token)
        return 200
    except urllib.error.HTTPError as error:
        return error.code


def test_other_users_read_and_begin_nothing(start):
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    curl = ["curl", "-s", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}"]
    assert as_nobody(*curl, f"{observer.url}/v1/services").stdout == "200"
    assert as_nobody(*curl, "-X", "POST", f"{observer.url}/v1/phases").stdout == "401"
    assert status(f"{observer.url}/v1/phases", token="0" * 32) == 401
    token = own_token(observer.url)
    path = next(Path("/run/sojourn").rglob(f"{observer.url.rsplit(':', 1)[1]}-*.token"))
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == os.geteuid()
    assert as_nobody("cat", path).returncode != 0
    assert status(f"{observer.url}/v1/phases", token=token) == 200
    observer.stop()
    assert not path.exists()


def test_a_services_folder_is_its_own(start, monkeypatch):
    """The folder belongs to the unit's user, who may not write to root's; root's drivers look there, too."""
    lab = start(Lab())
    folder = Path("/run/sojourn-serve")
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(folder))
        observer = start(Observer(ports=[lab.port]))
        assert list(folder.rglob(f"{observer.url.rsplit(':', 1)[1]}-*.token"))
        driver = Driver(lab.url, count=100, observer=observer)
        assert service(driver.document, lab.port)["exchanges"] == 100
        observer.stop()
    finally:
        if made:
            shutil.rmtree(folder)


def test_a_driver_waits_for_an_observer_that_starts_beside_it(start):
    """`sojourn observe … &` and the driver, pasted together: the driver is the first to be ready."""
    def refused():
        return kernel_counter("AttemptFails", table="snmp", row="Tcp")

    lab = start(Lab())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        before = refused()
        start(Process([DRIVER, lab.url, "-n", "1", "--observer", listener.getsockname()[1]]))
        wait_until(lambda: refused() > before)
        listener.listen()
        listener.settimeout(20)
        with listener.accept()[0] as connection:
            assert connection.recv(1000).startswith(b"POST /v1/phases?lease=")


def test_another_users_driver_is_told(start, tmp_path):
    """The message names what the user can do, before any load."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    program = tmp_path / "sojourn-drive"
    program.write_bytes(DRIVER.read_bytes())
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = as_nobody(program, lab.url, "-n", "10", "--warmup", "100ms", "--observer", observer.url)
    assert done.returncode == 1, done
    assert "the observer is another user's: run sojourn-drive as that user or root" in done.stderr
    assert service(observer.document(), lab.port)["exchanges"] == 0


@pytest.mark.parametrize("options, expected", [(["--open"], 200), ([], 401)])
def test_open_is_for_all(start, options, expected):
    lab = start(Lab())
    observer = start(Observer(*options, ports=[lab.port]))
    assert status(f"{observer.url}/v1/phases") == expected


def test_a_phase_ends_with_its_lease(start):
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    token = own_token(observer.url)

    def post(path):
        return http.request(observer.url + path, "POST", token=token)

    assert '"lease_s": 1}' in post("/v1/phases?lease=1")
    assert '"lease_s": 2}' in post("/v1/phases?lease=2")
    for _ in range(8):
        time.sleep(0.5)
        post("/v1/phases/3/renew")
    assert observer.wait_for(r"phase 2 has ended: nobody renewed it for 1 s", "stderr", 10)
    assert status(f"{observer.url}/v1/phases/2/end", token=token) == 404
    assert parse(post("/v1/phases/3/end"))["duration_ns"] >= 4e9


def test_killed_drivers_leave_their_places(start):
    """A killed driver's phase keeps one of the 64 places until its lease is over; so do phases that nobody renews."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    token = own_token(observer.url)
    driver = start([DRIVER, lab.url, "-d", "60s", "--rate", "10", "--observer", observer.url])
    while not service(observer.document(), lab.port)["exchanges"]:
        time.sleep(0.1)
    driver.kill()
    # A lease long enough for 64 requests on a busy machine.
    answers = [status(f"{observer.url}/v1/phases?lease=12", token=token) for _ in range(64)]
    assert answers == [200] * 63 + [503]
    end = time.monotonic() + 30
    while status(f"{observer.url}/v1/phases?lease=4", token=token) != 200:
        assert time.monotonic() < end
        time.sleep(0.2)


def anonymous_bytes(pid):
    return 1024 * int(re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1])


def settled_bytes(pid, bound):
    """Return the process's own memory once it has not grown for 8 seconds, or is beyond the bound. That of each
    phase once grew with every second (tools/mutate: "a phase's series")."""
    most, grown = anonymous_bytes(pid), time.monotonic()
    while time.monotonic() < grown + 8 and most < bound:
        time.sleep(0.5)
        if anonymous_bytes(pid) > most + (1 << 20):
            most, grown = anonymous_bytes(pid), time.monotonic()
    return most


@pytest.mark.timeout(180)
def test_phases_at_idle_listeners_cost_nearly_nothing(start):
    """Earlier versions kept a whole reading of every listener per phase, later ones each phase's points of all."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(60)]
    observer = start(Observer("--memory", "256M", ports=[s.getsockname()[1] for s in listeners]))
    token = own_token(observer.url)
    before = anonymous_bytes(observer.pid)
    for _ in range(64):
        http.request(f"{observer.url}/v1/phases", "POST", token=token)
    bound = before + (64 << 20)
    assert settled_bytes(observer.pid, bound) < bound
    assert anonymous_bytes(observer.pid) + observer.document()["cost"]["map_bytes"] < 256_000_000
    for listener in listeners:
        listener.close()


SERVICES = 150
# Opens argv[1] listeners, and at a line of input sends 20 requests to each.
USED = """
import socket, sys
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print("ready", flush=True)
input()
kept = []
for listener in listeners:
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
    kept += client, server
    for _ in range(20):
        client.sendall(b"question")
        server.recv(100)
        server.sendall(b"answer")
        client.recv(100)
print("used", flush=True)
sys.stdin.read()
"""


def exchanges_of(document, observer):
    """Those of all services, without the observer's own endpoint."""
    own = int(observer.url.rsplit(":", 1)[1])
    return sum(entry["exchanges"] for entry in document["services"] if entry["port"] != own)


@pytest.mark.timeout(120)
def test_drivers_beside_many_used_services(start):
    """A phase costs what its services have counted, not the size of their readings: the second was refused at 110."""
    with Netns("phases") as net, \
            subprocess.Popen([*net.prefix(), "/usr/bin/python3", "-c", USED, str(SERVICES)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) as server:
        lab = start(Lab(netns=net))
        assert server.stdout.readline() == "ready\n"
        observer = start(Observer("--all-listeners", "--memory", "1G", netns=net))
        print(file=server.stdin, flush=True)
        assert server.stdout.readline() == "used\n"
        assert exchanges_of(observer.document(), observer) == SERVICES * 20
        before = anonymous_bytes(observer.pid)
        phases = [observer.begin_phase() for _ in range(8)]
        assert anonymous_bytes(observer.pid) - before < 8 * SERVICES * 32 * 1024
        drivers = [start(Process([DRIVER, lab.url, "-n", "200", "--rate", "100", "--observer", observer.url], netns=net))
                   for _ in range(2)]
        for driver in drivers:
            assert driver.wait(60) == 0, driver.stderr
        assert [exchanges_of(observer.end_phase(phase), observer) for phase in phases] == 8 * [400]
        assert exchanges_of(observer.document(), observer) == SERVICES * 20 + 400
        observer.stop()
        lab.stop()
        server.stdin.close()


def answers_within(port, request):
    """Make @request, and /healthz again and again until its answer is there; return how many answers of /healthz were before."""
    head = f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    asker, maker = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
    with asker, maker:
        answers = 0
        maker.sendall((request[0] + head + "".join(f"{line}\r\n" for line in request[1:]) + "\r\n").encode())
        while not select.select([maker], [], [], 0)[0]:
            asker.sendall(f"GET /healthz{head}\r\n".encode())
            ready, _, _ = select.select([asker, maker], [], [], 30)
            if maker in ready:
                break
            assert asker.recv(65536).startswith(b"HTTP/1.1 200")
            answers += 1
        assert maker.recv(65536).startswith(b"HTTP/1.1 201")
    return answers


@pytest.mark.timeout(120)
def test_health_checks_are_answered_within_readings(start):
    """A phase begins with a reading of all services. One answer may come before the reading, and one with its end.
    tools/mutate: "health checks wait for readings"."""
    with Netns("health") as net, \
            subprocess.Popen([*net.prefix(), "/usr/bin/python3", "-c", USED, "300"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        observer = start(Observer("--all-listeners", netns=net))
        print(file=server.stdin, flush=True)
        assert server.stdout.readline() == "used\n"
        port, token = int(observer.url.rsplit(":", 1)[1]), own_token(observer.url, net)
        with inside(net):
            answers = [answers_within(port, ("POST /v1/phases", f"Authorization: Bearer {token}")) for _ in range(10)]
        assert max(answers) >= 4, answers
        observer.stop()
        server.stdin.close()
