# SPDX-License-Identifier: MIT
"""gRPC servers in other languages, by Debian's libraries, with their own counts and clocks: GrpcServer("go").served()"""
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .. import golang
from ..process import Process, own_folder, run
from . import HERE

JAVA_LIBRARIES = Path("/usr/share/java")
JARS = [JAVA_LIBRARIES / f"{name}.jar" for name in (
    "grpc-api", "grpc-context", "grpc-core", "grpc-netty", "grpc-stub", "guava", "jsr305", "netty-buffer", "netty-codec",
    "netty-codec-http", "netty-codec-http2", "netty-common", "netty-handler", "netty-resolver", "netty-transport",
    "opencensus-api", "perfmark-api")]


def missing(runtime):
    """Return why there is no server in this language; None if there is."""
    program, needed = {"go": (golang.DEBIANS, [golang.DEBIANS_LIBRARIES / "src/google.golang.org/grpc"]), "java": (shutil.which("java"), JARS)}[runtime]
    lacking = [] if program else [runtime]
    lacking += [str(path) for path in needed if not path.exists()]
    return f"{', '.join(lacking)}: not installed: tools/setup" if lacking else None


def needs_grpc(runtime):
    return pytest.mark.skipif(missing(runtime) is not None, reason=missing(runtime) or "")


def need_grpcio():
    """Skip the test without the library for Python."""
    if run([sys.executable, "-c", "import grpc"], check=False).status:
        pytest.skip("python3-grpcio is not installed: tools/setup")


class Waited(NamedTuple):
    """A call of Wait, by the server's clock, in ns."""

    port: int  # the client's
    handler: int
    least: int  # from the end of the socket's read of the request to the first write after the handler: to its begin,
    most: int  # and to its end


class GrpcServer(Process):
    """The methods are in grpcserver.py. Besides, Wait takes the time that its request names, like "5ms"."""

    def __init__(self, runtime, *identity):
        self.files = own_folder(runtime)
        super().__init__([*getattr(self, f"_{runtime}")(), *identity])
        with self.coming_up():
            self.port = int(self.wait_for(r"^listening on (\d+)$", seconds=60)[1])
        self.url = f"{'h2' if identity else 'h2c'}://127.0.0.1:{self.port}/test.Service/"

    def _go(self):
        return [golang.program(self.files.name, "grpc_server")]

    @staticmethod
    def _java():
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(map(str, JARS)), HERE / "GrpcServer.java"]

    def served(self):
        """End it. Return its counts, {name: count}."""
        self.stop()
        return {name: int(count) for name, count in re.findall(r"^([\w ]+)=(\d+)$", self.stdout, re.MULTILINE)}

    def waited(self):
        """Return the calls of Wait, in the order of their answers, once it has ended."""
        return [Waited(*map(int, row)) for row in re.findall(r"^waited (\d+) (\d+) (\d+) (\d+)$", self.stdout,
                                                           re.MULTILINE)]

    def close(self):
        super().close()
        self.files.cleanup()
