# SPDX-License-Identifier: MIT
"""Small servers in other languages, with their own counts: Foreign("go", certificate).requests()"""
import shutil
import urllib.request
from pathlib import Path

import pytest

from .. import golang
from ..process import Process, own_folder, run

HERE = Path(__file__).parent
RUNTIMES = ("go", "node", "java")


def needs_runtime(name):
    return pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed")


class Foreign(Process):
    """An HTTPS server on `port`, by the language's own library."""

    def __init__(self, runtime, certificate, *options):
        self.files = own_folder(runtime)
        super().__init__([*getattr(self, f"_{runtime}")(certificate), *options])
        with self.coming_up():
            match = self.wait_for(r"listening on (\d+) counting on (\d+)", seconds=60)
        self.port = int(match[1])
        self.url = f"https://127.0.0.1:{self.port}/"
        self.counts = f"http://127.0.0.1:{match[2]}/"

    def _go(self, certificate):
        return [golang.program(self.files.name, "tls_server"), *certificate]

    @staticmethod
    def _node(certificate):
        return ["node", HERE / "tls_server.js", *certificate]

    def _java(self, certificate):
        store = Path(self.files.name, "keys.p12")
        run(["openssl", "pkcs12", "-export", "-in", certificate[0], "-inkey", certificate[1],
             "-out", store, "-passout", "pass:secret"])
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", HERE / "TlsServer.java", store]

    def requests(self):
        with urllib.request.urlopen(self.counts) as answer:
            return int(answer.read())

    def close(self):
        super().close()
        self.files.cleanup()
