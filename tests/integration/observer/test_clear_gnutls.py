# SPDX-License-Identifier: MIT
"""Statuses, routes and streams in TLS by GnuTLS (--tls), against a foreign server's log, and times under the test's control.
The rules are those of OpenSSL: test_clear.py, test_clear_libraries.py.
"""
import os
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.net import accepts, free_port
from support.process import Process, own_folder, run, wait_until
from support.programs import Observer
from support.timing import in_quiet

pytest.importorskip("h2")
from .test_clear import OPTIONS, _certificate, agrees, curl  # noqa: E402, F401
from .test_clear_streams import each_has_its_arrival  # noqa: E402
from .test_http2 import followed  # noqa: E402

LIGHTTPD = """
server.modules = ("mod_access", "mod_accesslog", "mod_proxy", "mod_gnutls")
server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{folder}/error.log"
accesslog.filename = "{folder}/tls.log"
accesslog.format = "%s %r"
ssl.engine = "enable"
ssl.pemfile = "{certificate}"
ssl.privkey = "{key}"
ssl.openssl.ssl-conf-cmd = ("MaxProtocol" => "{protocol}")
url.access-deny = ("denied")
$HTTP["url"] == "/exact" {{ proxy.server = ("" => (("host" => "127.0.0.1", "port" => 1))) }}
"""
NAMES = ("api/a", "api/users/7", "exact", "missing", "big", "denied")


class Lighttpd(Process):
    """lighttpd with its module for GnuTLS, in the foreground."""

    def __init__(self, certificate, protocol="TLSv1.3"):
        self.files, self.port = own_folder("lighttpd"), free_port()
        self.url = f"https://127.0.0.1:{self.port}/"
        folder = Path(self.files.name)
        (folder / "api").mkdir()
        (folder / "api/a").write_text("hello")
        (folder / "big").write_bytes(os.urandom(300_000))
        (folder / "conf").write_text(LIGHTTPD.format(folder=folder, port=self.port, certificate=certificate[0],
                                                     key=certificate[1], protocol=protocol))
        super().__init__(["lighttpd", "-D", "-f", folder / "conf"])
        with self.coming_up():
            wait_until(lambda: accepts(self.port))

    def close(self):
        super().close()
        self.files.cleanup()


def started(start, *arguments):
    if not Path("/usr/lib/lighttpd/mod_gnutls.so").exists():
        pytest.skip("lighttpd-mod-gnutls is not installed: tools/setup")
    return start(Lighttpd(*arguments))


@needs_program("lighttpd")
@needs_program("h2load")
@needs_program("curl")
def test_lighttpd_logs_the_same(start, certificate):
    servers = [started(start, certificate, protocol) for protocol in ("TLSv1.2", "TLSv1.3")]
    observer = start(Observer(*OPTIONS, ports=[server.port for server in servers]))
    for server in servers:
        urls = [server.url + name for name in NAMES]
        for options in (["--http1.1"], ["--http2"], ["--http1.1", "--data", "a" * 3000]):
            for url in urls:
                curl(*options, "--output", "/dev/null", url)
        run(["h2load", "-n", 300, "-c", 3, "-m", 20, f"{server.url}api/a", f"{server.url}big"])
    observer.stop()
    for server in servers:
        server.stop()
        log = Path(server.files.name, "tls.log")
        # It logs the preface of HTTP/2 as a request.
        log.write_text("".join(line for line in log.read_text().splitlines(True) if " PRI " not in line))
        assert log.read_text().count("\n") == 300 + 3 * len(NAMES)
        entry = service(observer.summary(), server.port)
        agrees(entry, log)
        entry["http2"]["goaways"] = 0  # some clients say goodbye, if they have time
        assert followed(entry, 300 + len(NAMES), 3 + len(NAMES))
        assert not {name for name, count in entry["losses"].items() if count} - {"untimed", "accept_unseen"}


@in_quiet
@needs_program("lighttpd")
def test_records_that_are_read_at_once(start, certificate):
    server = started(start, certificate)
    each_has_its_arrival(start, server.port, server.pid)
