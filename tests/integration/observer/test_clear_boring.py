# SPDX-License-Identifier: MIT
"""Statuses, routes and streams in TLS by BoringSSL (--tls), against a server's log, and times under the test's control. Where
it names no functions, or none that show a connection, the report says why nothing is known.
"""
import pytest

from support.boringssl import FOLDER, available
from support.conditions import needs_program
from support.documents import service
from support.foreign.proxies import Envoy, needs_envoy
from support.programs import Nginx, Observer

pytest.importorskip("h2")
from .test_clear import OPTIONS, _certificate, agrees, curl  # noqa: E402, F401
from .test_clear_places import PATHS, built, served  # noqa: E402

NAMELESS = "the program has BoringSSL or a relative, and does not name its functions"


@needs_program("curl")
@pytest.mark.parametrize("options", [(), ("-D", "FIRST_READ")], ids=["accept", "first-read"])
def test_the_server_logs_the_same(start, certificate, tmp_path, options):
    """It puts its whole flight into one record, so only the text shows what clients that offer both protocols speak."""
    if not available():
        pytest.skip("android-libboringssl-dev is not installed: tools/setup")
    server = served(start, certificate, built(tmp_path, *options, "-I/usr/include/android", f"-L{FOLDER}",
                                              f"-Wl,-rpath,{FOLDER}", "-lssl", "-lcrypto"))
    observer = start(Observer(*OPTIONS, ports=[server.port]))
    words = ([], ["--http1.1"], ["--tls-max", "1.2"], ["--data", "a" * 500], ["--http1.1", "--data", "a" * 900])
    for options in words:
        curl(*options, *(f"https://127.0.0.1:{server.port}/{path}" for path in PATHS))
    observer.stop()
    server.stop()
    (tmp_path / "log").write_text(server.stdout)
    assert server.stdout.count("\n") == len(words) * len(PATHS)
    entry = service(observer.summary(), server.port)
    agrees(entry, tmp_path / "log")
    assert entry["tls"] == len(words)
    assert not {name for name, count in entry["losses"].items() if count} - {"untimed", "accept_unseen"}
    assert entry["losses"]["untimed"] <= len(words)  # a first request may come with the end of the handshake
    assert "inside TLS" not in observer.stdout


@needs_envoy
@needs_program("nginx")
@needs_program("curl")
def test_envoy_does_not_name_its_functions(start, certificate):
    """All is counted that its log has, nothing of it is known, and the report says why."""
    nginx = start(Nginx())
    envoy = start(Envoy(nginx.port, nginx.port, certificate))
    observer = start(Observer(*OPTIONS, ports=[envoy.port]))
    curl("--http1.1", *[f"https://127.0.0.1:{envoy.port}/{path}" for path in ("missing", "index.html") * 5])
    curl("--http2", f"https://127.0.0.1:{envoy.port}/missing")
    assert len(envoy.log(11)) == 11
    observer.stop()
    entry = service(observer.summary(), envoy.port)
    assert entry["exchanges"] == entry["responses"]["status"]["other"] == entry["routes"]["not_known"]["tls"] == 10
    assert entry["losses"]["multiplexed"] + entry["losses"]["tls_unknown"] == 1
    assert {process["tls"] for process in entry["processes"]} == {NAMELESS}
    assert f"inside TLS   not all is known of {entry['processes'][0]['comm']}" in observer.stdout
    assert NAMELESS in " ".join(observer.stdout.split())
