# SPDX-License-Identifier: MIT
"""A real observer's programs, to be attached and detached within milliseconds.

The observer chooses, configures, loads and attaches them as usual. Then it is killed while this process holds
its programs: their links end, the programs and their maps stay. From then on nothing runs in user space. One
load is measured with and without them, in windows too short for the machine to drift. Their filter, a bit per
port in their memory, can be cleared, too: then they run and return at once.
"""
import ctypes
import json
import mmap
import os
import re
import struct

from support import BUILD
from support.process import run
from support.programs import Observer

LIBBPF = ctypes.CDLL("libbpf.so.1", use_errno=True)
SOCKOPS = 3  # BPF_CGROUP_SOCK_OPS
WORD = struct.Struct("=Q")


def checked(result):
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def symbol(name, build):
    text = run(["readelf", "-sW", build / "bpf" / "sojourn_bpf.linked.o"]).stdout
    return int(re.search(rf"^\s*\d+:\s+(\w+)\s+\d+ OBJECT .* {name}$", text, re.MULTILINE)[1], 16)


def told(*words):
    return json.loads(run(["bpftool", "-j", *words]).stdout)


def numbers(observer):
    """Return the observer's attached programs by id, each with the type of its link."""
    found = {}
    for entry in os.scandir(f"/proc/{observer.pid}/fdinfo"):
        with open(entry.path, encoding="ascii") as file:
            text = file.read()
        kind, program = (re.search(rf"^{name}:\s*(\S+)", text, re.MULTILINE)
                         for name in ("link_type", "prog_id"))
        if kind and kind[1] != "iter":
            found[int(program[1])] = kind[1]
    return found


class Program:
    """One of the programs. It is attached while `link` is held."""

    def __init__(self, number, kind, cgroup):
        self.number, self.kind, self.cgroup, self.link = number, kind, cgroup, None
        self.fd = checked(LIBBPF.bpf_prog_get_fd_by_id(number))
        self.about = told("prog", "show", "id", number)
        self.name = self.about["name"]

    def attach(self):
        if self.link is not None:
            return
        if self.kind == "cgroup":
            self.link = checked(LIBBPF.bpf_link_create(self.fd, self.cgroup, SOCKOPS, None))
        else:
            self.link = checked(LIBBPF.bpf_raw_tracepoint_open(None, self.fd))

    def detach(self):
        if self.link is not None:
            os.close(self.link)
            self.link = None


class Idle:
    """Programs that do nothing, on tracepoints that no request passes. For the kernel, attaching them is the same work as
    attaching others."""

    HOOKS = (b"cgroup_mkdir", b"cgroup_rmdir", b"cgroup_rename", b"cgroup_release", b"cgroup_freeze", b"cgroup_unfreeze",
             b"cgroup_remount", b"cgroup_setup_root", b"cgroup_destroy_root", b"oom_score_adj_update")
    RETURN_0 = bytes.fromhex("b700000000000000 9500000000000000")
    RAW_TRACEPOINT = 17  # BPF_PROG_TYPE_RAW_TRACEPOINT

    def __init__(self, count):
        if count > len(self.HOOKS):
            raise SystemExit(f"{count} programs are to be compared with idle ones, of which there are {len(self.HOOKS)}")
        self.hooks, self.links = self.HOOKS[:count], []
        self.fd = checked(LIBBPF.bpf_prog_load(self.RAW_TRACEPOINT, b"bench_idle", b"GPL", self.RETURN_0,
                                               ctypes.c_size_t(len(self.RETURN_0) // 8), None))

    def attach(self):
        self.links = self.links or [checked(LIBBPF.bpf_raw_tracepoint_open(hook, self.fd)) for hook in self.hooks]

    def detach(self):
        for link in self.links:
            os.close(link)
        self.links = []

    def close(self):
        self.detach()
        os.close(self.fd)


class Memory:
    """A map of the programs, mapped: .bss, or the ring's consumer and producer."""

    def __init__(self, number, size, offset=0, writable=True):
        fd = checked(LIBBPF.bpf_map_get_fd_by_id(number))
        try:
            self.map = mmap.mmap(fd, size, mmap.MAP_SHARED, offset=offset,
                                 prot=mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
        finally:
            os.close(fd)

    def get(self, at):
        return WORD.unpack_from(self.map, at)[0]

    def set(self, at, value):
        WORD.pack_into(self.map, at, value)


class Adopted:
    """The programs of an observer with these options, of this build or another.

    At first the observer runs, and sees the connections of the load start. take() ends it and detaches its programs.
    """

    def __init__(self, port, *options, cgroup=None, build=BUILD):
        self.observer = Observer(*options, ports=[port], program=build / "observer" / "sojourn")
        try:
            self.folder = os.open(cgroup.path, os.O_RDONLY) if cgroup else None
            self.programs = [Program(number, kind, self.folder)
                             for number, kind in numbers(self.observer).items()]
            self._map(told("map", "show"))
            self.place, self.bit = symbol("observed_ports", build) + port // 64 * 8, 1 << port % 64
        except BaseException:
            self.observer.close()
            raise

    def _map(self, maps):
        # Only the maps of programs named exchange_…: other BPF objects of the observer have their own .bss.
        mine = {number for program in self.programs if program.name.startswith("exchange_")
                for number in program.about["map_ids"]}
        for entry in maps:
            if entry["id"] in mine and entry["name"].endswith(".bss"):
                self.bss = Memory(entry["id"], -(-entry["bytes_value"] // mmap.PAGESIZE) * mmap.PAGESIZE)
            elif entry["id"] in mine and entry["type"] == "ringbuf":
                self.consumer = Memory(entry["id"], mmap.PAGESIZE)
                self.producer = Memory(entry["id"], mmap.PAGESIZE, mmap.PAGESIZE, writable=False)

    def take(self):
        self.observer.kill()
        self.observer.close()

    def close(self):
        self.take()
        for program in self.programs:
            program.detach()
            os.close(program.fd)
        if self.folder is not None:
            os.close(self.folder)

    def attach(self, watched=True):
        """Attach all programs; @watched: whether the port passes their filter."""
        word = self.bss.get(self.place)
        self.bss.set(self.place, word | self.bit if watched else word & ~self.bit)
        for program in self.programs:
            program.attach()

    def detach(self):
        for program in self.programs:
            program.detach()

    def drain(self):
        """Skip the events that its user space would have read."""
        if hasattr(self, "consumer"):
            self.consumer.set(0, self.producer.get(0))


class Crowd:
    """The programs of several observers of one port, of which one observer's are attached at a time."""

    def __init__(self, port, modes, more):
        """@modes: the options of each; @more: named arguments of Adopted, for some."""
        self.members = {}
        try:
            for mode, options in modes.items():
                self.members[mode] = Adopted(port, *options, **more.get(mode, {}))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        for member in self.members.values():
            member.close()

    def take(self):
        for member in self.members.values():
            member.take()

    def switch(self, mode, watched=True):
        """Attach this mode's programs; None: no programs."""
        for name, member in self.members.items():
            if name != mode:
                member.detach()
            member.drain()
        if mode is not None:
            self.members[mode].attach(watched)
