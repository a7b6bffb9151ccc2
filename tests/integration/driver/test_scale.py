# SPDX-License-Identifier: MIT
"""The driver's own cost, by the kernel's figures: memory, alone and per connection, and how gently it
opens many connections."""
import json
import os
import re
import resource
import time

import pytest

from ..conftest import kernel_counter, sockets
from support.process import Process
from support.programs import DRIVER, Lab, Nginx

FEW, MANY = 100, 10_000
MIB_KIB = 1024


def memory(process, name):
    with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.MULTILINE)[1])


@pytest.fixture(name="many_files", autouse=True)
def _many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < MANY + 100:
        pytest.skip(f"needs a hard limit of {MANY + 100} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def own_kib(process):
    """Return the process's private memory, without files that it shares with others."""
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+)", file.read(), re.MULTILINE))


@pytest.mark.parametrize("more", [[], ["--rate=5k"]])
def test_ten_mebibytes_resident(start, more):
    """The whole peak, shared libraries included."""
    nginx = start(Nginx())
    driver = start(Process([DRIVER, nginx.url, "-c", 64, "-d", "60s", "--quiet", *more]))
    time.sleep(2)
    assert len(sockets("established", f"dport = :{nginx.port}")) == 64
    assert memory(driver, "VmHWM") <= 10 * MIB_KIB


def test_ten_mebibytes_while_writing(start, tmp_path):
    """A document of many exchanges, too. Its reader waits within the samples, and the driver with it."""
    nginx, fifo = start(Nginx()), tmp_path / "run.json"
    os.mkfifo(fifo)
    driver = start(Process([DRIVER, nginx.url, "-c", 8, "-n", 15_000, "--quiet", "--json", fifo]))
    with open(fifo, "rb") as file:
        text = file.read(400_000)
        most = memory(driver, "VmHWM")
        text += file.read()
    assert len(json.loads(text)["driver"]["samples"]["round_trip_ns"]) == 15_000
    assert most <= 10 * MIB_KIB


def established(port, count, seconds=60):
    deadline = time.monotonic() + seconds
    while len(sockets("established", f"dport = :{port}")) < count:
        assert time.monotonic() < deadline, f"{count} connections are not open"
        time.sleep(0.2)


@pytest.mark.timeout(180)
@pytest.mark.alone  # a server without CPU time accepts nothing
def test_ten_thousand_connections(start):
    """Each takes up to 4 KiB of the driver's memory, and no full accept queue drops one."""
    lab = start(Lab("--backlog", "4096"))
    few = start(Process([DRIVER, lab.url, "-c", FEW, "-d", "120s", "--quiet"]))
    established(lab.port, FEW)
    time.sleep(1)
    before = own_kib(few)
    few.stop()
    many = start(Process([DRIVER, lab.url, "-c", MANY, "-d", "120s", "--quiet"]))
    established(lab.port, MANY)
    time.sleep(1)
    each = (own_kib(many) - before) * 1024 / (MANY - FEW)
    assert each <= 4096
    for dropped in ("ListenDrops", "ListenOverflows", "TCPReqQFullDrop", "TCPReqQFullDoCookies", "TCPSynRetrans"):
        assert kernel_counter(dropped) == 0, dropped
