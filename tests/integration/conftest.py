# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests, all of which observe and so need BPF."""
import contextlib
import ctypes
import fcntl
import os
import re
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from support import conditions
from support.loaded import programs
from support.process import stat_fields, wait_until
from support.programs import OBSERVER


CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
LIBC = ctypes.CDLL(None, use_errno=True)


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(conditions.bpf)


def in_kernel():
    """Return the ids of our BPF programs that are loaded, found by their names."""
    names = "|".join((
        "conn_state", "conn_reset", "conn_retransmit", "exchange_ready", "exchange_recv",
        "exchange_send", "exchange_recvmsg", "exchange_segment", "exchange_sendmsg",
        "exchange_sendpage", "accept_exit", "accept_uring.*", "accept_arg", "accept_flags", "sockets_visit",
        "transmit_start", "transmit_segmen.?", "transmit_stamps",
        "udp_ready", "udp_recv", "udp_send", "udp_drop", "event_conn_stat", "event_backlog_r",
        "event_descripto", "event_file", "event_port", "event_returned", "probe_empty"))
    return {number for number, name in programs().items() if re.match(rf"({names})\b", name)}


def is_anothers(pid):
    """Whether the process belongs to a test that runs in parallel: not our descendant, and not in our network."""
    if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/thread-self/ns/net").st_ino:
        return False
    while pid > 1 and pid != os.getpid():
        pid = int(stat_fields(f"/proc/{pid}")[1])
    return pid != os.getpid()


def observers():
    """Return the process ids of all running programs named sojourn."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            if comm.read_text(errors="replace") == "sojourn\n":
                found.append(int(comm.parent.name))
    return found


def ours():
    """Return the process ids of the observers of this test."""
    found = []
    for pid in observers():
        with contextlib.suppress(OSError):
            if not is_anothers(pid):
                found.append(pid)
    return found


def held(whose):
    """Return the ids of the programs that observers hold for which whose(pid) is true."""
    found = set()
    for pid in observers():
        # A process or one of its descriptors may go away meanwhile.
        with contextlib.suppress(OSError):
            if not whose(pid):
                continue
            for entry in Path(f"/proc/{pid}/fdinfo").glob("*"):
                with contextlib.suppress(OSError):
                    found.update(map(int, re.findall(r"^prog_id:\s*(\d+)", entry.read_text(), re.MULTILINE)))
    return found


def left_in_kernel(before):
    """Return the ids of the programs loaded since @before that no other test's observer holds. Wait for them to
    go: the kernel frees programs after a grace period."""
    left = in_kernel() - before
    for _ in range(100):
        left -= held(is_anothers) if left else set()
        if not left:
            break
        time.sleep(0.05)
        left &= in_kernel()
    return left


def sockets(state, filter_, netns=None):
    prefix = netns.prefix() if netns else []
    text = subprocess.run([*prefix, "ss", "-Htan", "state", state, filter_], check=True,
                          capture_output=True, text=True).stdout
    return text.splitlines()


def kernel_counter(name, netns=None, table="netstat", row="TcpExt"):
    prefix = netns.prefix() if netns else []
    text = subprocess.run([*prefix, "cat", f"/proc/self/net/{table}"], check=True,
                          capture_output=True, text=True).stdout
    names, values = [line.split()[1:] for line in text.splitlines()
                     if line.startswith(f"{row}:")]
    return int(dict(zip(names, values))[name])


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def checked(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@pytest.fixture(autouse=True)
def own_network():
    """Run every test, with all that it starts, in a network namespace of its own. The host's ports, TIME_WAIT
    sockets and connections are neither in the way nor observed."""
    with open("/proc/self/ns/net", encoding="ascii") as home:
        checked(LIBC.unshare(CLONE_NEWNET))
        try:
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
            yield
        finally:
            checked(LIBC.setns(home.fileno(), CLONE_NEWNET))


def accepting():
    """Return whether a thread of this process is in accept(2) or accept4(2)."""
    numbers = {"x86_64": {"43", "288"}, "aarch64": {"202", "242"}}.get(os.uname().machine, set())
    for path in Path("/proc/self/task").glob("*/syscall"):
        with contextlib.suppress(OSError):  # it has just ended
            if path.read_text(encoding="ascii").split()[0] in numbers:
                return True
    return False


@pytest.fixture(autouse=True)
def nobody_accepts(own_network):
    """Fail if a thread is left that would take a later test's connection (support.net.serve_each says how)."""
    yield
    wait_until(lambda: not accepting(), seconds=5)


class Loaded:
    """The programs that were loaded since the session began, and that no observer holds any more. The kernel frees
    them after a grace period. No test waits for it: a later one looks."""
    LONGEST_SECONDS = 30

    def __init__(self):
        self.before = in_kernel()
        self.unheld = {}  # id: (when it was first seen without an observer, after which test)

    def look(self, test):
        """Return the tests after which programs were left for too long."""
        now = time.monotonic()
        loaded = in_kernel() - self.before
        unheld = loaded - held(lambda pid: True) if loaded else set()
        self.unheld = {number: self.unheld.get(number, (now, test)) for number in unheld}
        return {test for since, test in self.unheld.values() if now - since > self.LONGEST_SECONDS}


@pytest.fixture(scope="session")
def loaded():
    seen = Loaded()
    yield seen
    deadline = time.monotonic() + 2 * Loaded.LONGEST_SECONDS
    while seen.unheld and time.monotonic() < deadline:
        time.sleep(0.2)
        left = seen.look("the end")
        assert not left, f"BPF programs were left in the kernel, first seen after {left}"


@pytest.fixture(autouse=True)
def nothing_left_in_kernel(request, loaded, own_network):  # looks while the test's network is still its own
    """Fail if an observer of this test goes on, or if the kernel keeps programs that nobody holds."""
    yield
    wait_until(lambda: not ours(), seconds=5)
    left = loaded.look(request.node.name)
    assert not left, f"BPF programs were left in the kernel, first seen after {left}"


def messages(kmsg):
    """Return the kernel's messages since the last call; some may be lost."""
    texts = []
    while True:
        try:
            texts.append(os.read(kmsg, 8192).decode(errors="replace"))
        except BrokenPipeError:
            continue
        except BlockingIOError:
            return texts


@pytest.fixture(autouse=True)
def no_call_refused():
    """Fail if a confined observer made a system call that is not on its list (observer/process/calls.c): the kernel logs it."""
    kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(kmsg, 0, os.SEEK_END)
        yield
        refused = [text for text in messages(kmsg) if "type=1326" in text and f'exe="{OBSERVER}"' in text]
    finally:
        os.close(kmsg)
    assert not refused, "".join(refused)
