# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests, all of which observe and so need BPF."""
import contextlib
import ctypes
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from support import conditions
from support.programs import OBSERVER


CLONE_NEWNET = 0x40000000
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
    text = subprocess.run(["bpftool", "prog", "show"], check=True, capture_output=True,
                          text=True).stdout
    return {int(match[1]) for match in re.finditer(rf"^(\d+): .*\bname ({names})\b", text, re.MULTILINE)}


def is_anothers(pid):
    """Whether the process belongs to a test that runs in parallel: not our descendant, and not in our network."""
    if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/thread-self/ns/net").st_ino:
        return False
    while pid > 1 and pid != os.getpid():
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return pid != os.getpid()


def held_by_others():
    """Return the ids of the programs that observers of other tests hold."""
    held = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        # A process or one of its descriptors may go away meanwhile.
        with contextlib.suppress(OSError):
            if comm.read_text(errors="replace") != "sojourn\n" or not is_anothers(int(comm.parent.name)):
                continue
            for entry in comm.parent.glob("fdinfo/*"):
                with contextlib.suppress(OSError):
                    held.update(map(int, re.findall(r"^prog_id:\s*(\d+)", entry.read_text(),
                                                    re.MULTILINE)))
    return held


def left_in_kernel(before):
    """Return the ids of the programs loaded since @before that no other test's observer holds. Wait for them to
    go: the kernel frees programs after a grace period."""
    left = in_kernel() - before
    for _ in range(100):
        left -= held_by_others() if left else set()
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
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            checked(LIBC.setns(home.fileno(), CLONE_NEWNET))


@pytest.fixture(autouse=True)
def nothing_left_in_kernel():
    before = in_kernel()
    yield
    assert not left_in_kernel(before), "BPF programs were left in the kernel"


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
