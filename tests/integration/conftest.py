# SPDX-License-Identifier: MIT
"""What the integration tests share: they all observe, so they all need BPF."""
import ctypes
import os
import re
import subprocess

import pytest

from support import conditions


CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(conditions.bpf)


def left_in_kernel():
    """How many BPF programs of ours are loaded, by their names."""
    names = "|".join((
        "conn_state", "conn_reset", "conn_retransmit", "exchange_ready", "exchange_recv",
        "exchange_send", "exchange_recvmsg", "exchange_segment", "exchange_sendmsg",
        "exchange_sendpage", "accept_exit", "accept_uring.*", "accept_arg", "accept_flags", "sockets_visit",
        "transmit_start", "transmit_segmen.?", "transmit_stamps",
        "udp_ready", "udp_recv", "udp_send", "udp_drop", "event_conn_stat", "event_backlog_r",
        "event_descripto", "event_file", "event_port", "event_returned"))
    text = subprocess.run(["bpftool", "prog", "show"], check=True, capture_output=True,
                          text=True).stdout
    return len(re.findall(rf"name ({names})\b", text))


def sockets(state, filter_, netns=None):
    """The sockets that `ss` shows in this state, one line each."""
    prefix = netns.prefix() if netns else []
    text = subprocess.run([*prefix, "ss", "-Htan", "state", state, filter_], check=True,
                          capture_output=True, text=True).stdout
    return text.splitlines()


def kernel_counter(name, netns=None, table="netstat", row="TcpExt"):
    """A counter of a network namespace, from a row of /proc/net/netstat or snmp."""
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
    """Every test, and all that it starts, lives in a network namespace of its own: no port,
    TIME_WAIT or connection of the host's is in the way, and none of it is observed."""
    with open("/proc/self/ns/net", encoding="ascii") as home:
        checked(LIBC.unshare(CLONE_NEWNET))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            checked(LIBC.setns(home.fileno(), CLONE_NEWNET))


@pytest.fixture(autouse=True)
def nothing_left_in_kernel():
    """Whatever a test does, its programs are gone when its observer is."""
    before = left_in_kernel()
    yield
    # Programs are freed after a grace period of the kernel's.
    for _ in range(100):
        if left_in_kernel() <= before:
            return
        subprocess.run(["sleep", "0.05"], check=True)
    assert left_in_kernel() <= before, "BPF programs were left in the kernel"
