# SPDX-License-Identifier: MIT
"""Servers in Go of tests and experiments, each compiled once for all of them: golang.program(folder, "gotls", "-ldflags=-s -w")."""
import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from . import BUILD, ROOT
from .process import run

HERE = Path(__file__).resolve().parent
# Debian's compiler comes with its standard library compiled.
DEBIANS = next((path for path in ("/usr/bin/go", shutil.which("go")) if path and os.path.exists(path)), None)
DEBIANS_LIBRARIES = Path("/usr/share/gocode")

PLAIN = {"GO111MODULE": "off"}
WITH_LIBRARIES = {**PLAIN, "GOPATH": str(DEBIANS_LIBRARIES)}
# A program without symbols is the hardest to look into.
STRIPPED = ("-ldflags=-s -w",)
# name: (source, compiler, environment)
SOURCES = {
    "gotls": (HERE / "gotls/main.go", shutil.which("go"), {**PLAIN, "CGO_ENABLED": "0"}),
    "tls_server": (HERE / "foreign/tls_server.go", shutil.which("go"), PLAIN),
    "udp_server": (HERE / "foreign/udp_server.go", shutil.which("go"), PLAIN),
    "grpc_server": (HERE / "foreign/grpc_server.go", DEBIANS, WITH_LIBRARIES),
    "store": (ROOT / "experiments/key-value-writes/store.go", DEBIANS, WITH_LIBRARIES),
}
BEFOREHAND = (("gotls", *STRIPPED), ("grpc_server",), ("tls_server",), ("udp_server",), ("store",))


def compiled(name, *options):
    """Return the path of this program, which one test compiles while others wait for it."""
    source, compiler, environment = SOURCES[name]
    if not compiler:
        pytest.skip("go is not installed: tools/setup")
    made_of = (source.read_bytes(), os.stat(compiler).st_mtime_ns, compiler, options, environment)
    folder = BUILD / "tests/go"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}"
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            run([compiler, "build", "-o", f"{path}.part", *options, source], seconds=300, env=environment)
            os.rename(f"{path}.part", path)
    return path


def program(folder, *words):
    """Return the path of a copy: probes of an observer are in all processes of a file."""
    return shutil.copy(compiled(*words), Path(folder, words[0]))


def compile_beforehand():
    """Compile those of tools/check, which calls this. The first time Go compiles its library, too."""
    for words in BEFOREHAND:
        if SOURCES[words[0]][1]:
            compiled(*words)
