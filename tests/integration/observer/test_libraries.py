# SPDX-License-Identifier: MIT
"""With --tls the observer looks into files that any user can make: none of them may hold it up or end it."""
import os
import re
import struct
import sys
import threading
from pathlib import Path

import pytest

from support.documents import service
from support.pki import Pki
from support.process import Process, run
from support.programs import Nginx, Observer

FUNCTIONS = ("SSL_write", "SSL_write_ex", "SSL_do_handshake", "SSL_accept", "SSL_read", "SSL_read_ex")
# Listens, maps the files named, and says so.
LISTENER = """
import mmap, signal, socket, subprocess, sys
held = []
with socket.create_server(("127.0.0.1", 0)) as listener:
    for name in sys.argv[1:]:
        with open(name, "rb") as file:
            held.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ))
    if sys.argv[1].endswith(".hidden"):
        subprocess.run(["mount", "--bind", sys.argv[1] + "-fifo", sys.argv[1]], check=True)
    print("port", listener.getsockname()[1], flush=True)
    signal.pause()
"""


def library(symbols=None):
    """Return a shared library with OpenSSL's functions. With `symbols` it says that it has so many."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in FUNCTIONS)
    table, at = bytes(24), 1
    for number, name in enumerate(FUNCTIONS):
        table += struct.pack("<IBBHQQ", at, 0x12, 0, 1, 0x800 + 16 * number, 16)
        at += len(name) + 1
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, 0x1000, 24 * symbols if symbols else len(table), 2, 0, 8, 24) + \
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 0x400, len(names), 0, 0, 1, 0)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0x200, 0, 64, 56, 1, 64, 3, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000)
    text = bytearray(0x1000)
    for place, part in ((0, header), (64, segment), (0x200, sections), (0x400, names), (0x800, b"\x90" * 0x100)):
        text[place:place + len(part)] = part
    return bytes(text) + table


@pytest.fixture(name="nginx")
def _nginx(start):
    pki = start(Pki())
    cert, key = pki.issue("server", "IP:127.0.0.1")
    return start(Nginx(listen_options="ssl", server=f"ssl_certificate {cert}; ssl_certificate_key {key};"))


def listener_with(start, *names, prefix=()):
    process = start(Process([*prefix, sys.executable, "-c", LISTENER, *names]))
    return int(process.wait_for(r"port (\d+)")[1])


DESCRIPTORS = 512


class Limited:
    """Where an observer with few descriptors runs."""

    path = "/proc/self/ns/net"

    def prefix(self):
        return ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]


def known_beside(start, nginx, *ports):
    """An observer of nginx, and of the ports, knows nginx's statuses, ends when it shall, and says why it did not look."""
    observer = start(Observer("--tls", ports=[*ports, nginx.port], netns=Limited()))
    run(["curl", "--silent", "--insecure", "--output", "/dev/null"] + [f"https://127.0.0.1:{nginx.port}/"] * 7)
    probes = sum("perf_event" in os.readlink(entry) for entry in Path(f"/proc/{observer.pid}/fd").iterdir())
    observer.stop()
    assert service(observer.summary(), nginx.port)["responses"]["statuses"] == [[200, 7]]
    return observer.stderr, probes


def test_a_table_without_end(start, nginx, tmp_path):
    """A sparse file of 2 TiB that says it has 64 thousand million functions."""
    path = tmp_path / "libssl.so.3"
    path.write_bytes(library(symbols=1 << 36))
    os.truncate(path, 1 << 41)
    assert "File too large" in known_beside(start, nginx, listener_with(start, path))[0]


def test_a_file_that_shrinks(start, nginx, tmp_path):
    """Its owner cuts it while it is read. A mapping would end the observer by SIGBUS."""
    paths, ended = [tmp_path / f"libssl.so.{number}" for number in range(8)], threading.Event()
    whole = library(symbols=150_000) + bytes(24 * 150_000)
    for path in paths:
        path.write_bytes(whole)

    def cut():
        while not ended.is_set():
            for path in paths:
                os.truncate(path, 0x1000)
                os.truncate(path, len(whole))

    ports = [listener_with(start, path) for path in paths]
    thread = threading.Thread(target=cut)
    thread.start()
    try:
        known_beside(start, nginx, *ports)
    finally:
        ended.set()
        thread.join()


def test_a_fifo_in_its_place(start, nginx, tmp_path):
    """In its own mount namespace a process puts another file over the one that it has mapped."""
    path = tmp_path / "libssl.so.hidden"
    path.write_bytes(library())
    os.mkfifo(f"{path}-fifo")
    port = listener_with(start, path, prefix=["unshare", "--mount", "--propagation", "private"])
    assert "Exec format error" in known_beside(start, nginx, port)[0]


def test_any_number_of_files(start, nginx, tmp_path):
    """A user's files take few of the observer's descriptors, and nginx's own library keeps its place."""
    paths = [tmp_path / f"libssl.so.{number}" for number in range(20)]
    for path in paths:
        path.write_bytes(library())
        os.chown(path, 65534, 65534)
    said, probes = known_beside(start, nginx, *(listener_with(start, path) for path in paths))
    assert len(re.findall("too many such files were found", said)) == 1, said
    assert 3 * 12 <= probes <= (DESCRIPTORS / 24 / 2 / 4 + 1) * 12
