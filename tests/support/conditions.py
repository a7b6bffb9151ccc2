# SPDX-License-Identifier: MIT
"""Requirements of a test on the machine. Each is a pytest mark that skips with the reason:

    pytestmark = bpf
"""
import ctypes
import functools
import os
import platform
import re
import shutil
import struct

import pytest

from . import BUILD, ROOT

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351, "ppc64le": 361}
BPF_PROG_LOAD = 5
BPF_PROG_TYPE_TRACEPOINT = 5
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
# r0 = 0; exit
RETURN_ZERO = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)


@functools.cache
def missing_privileges():
    """Return why namespaces and BPF are unavailable; None if they are available."""
    with open("/proc/self/status", encoding="ascii") as status:
        effective = int(re.search(r"^CapEff:\s*(\w+)", status.read(), re.MULTILINE)[1], 16)
    lacking = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
    return f"needs root or {', '.join(lacking)}" if lacking else None


@functools.cache
def missing_bpf():
    """Return why this kernel does not let us load and type-check BPF programs; None if it does."""
    if missing_privileges():
        return missing_privileges()
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "the kernel has no BTF (/sys/kernel/btf/vmlinux)"
    number = BPF_SYSCALL.get(platform.machine())
    if number is None:
        return f"the number of bpf(2) is not known on {platform.machine()}"
    error = load_smallest_program(number)
    return f"the kernel refuses BPF programs: {os.strerror(error)}" if error else None


def load_smallest_program(number):
    """Return 0, or the errno of loading a program that does nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(RETURN_ZERO)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = ctypes.create_string_buffer(
        struct.pack("=IIQQ", BPF_PROG_TYPE_TRACEPOINT, 2, ctypes.addressof(code),
                    ctypes.addressof(licence)), 128)
    fd = libc.syscall(ctypes.c_long(number), BPF_PROG_LOAD, attributes, len(attributes))
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def skip_if(reason):
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def needs_program(name):
    """For another project's tool: needs_program("wrk")."""
    return skip_if(None if shutil.which(name) else f"{name} is not installed")


def needs_built(path):
    """For one of our programs, by its path in the build folder."""
    return skip_if(None if (BUILD / path).exists() else f"{path} is not built")


privileged = skip_if(missing_privileges())
bpf = skip_if(missing_bpf())

# Libraries of other projects, of which some read what we write for them.
PYPI = ROOT / "build/venv-pypi"
needs_pypi = pytest.mark.skipif(not (PYPI / "complete").exists(), reason="PyPI's libraries are not there: tools/setup --pypi")
