# SPDX-License-Identifier: MIT
"""Where --tls finds OpenSSL: linked into a program, and as a copy that only the server's mount namespace has."""
import os
import shutil
from pathlib import Path

import pytest

from support.conditions import needs_program
from support.documents import service
from support.process import Process, run
from support.programs import Observer
from .test_clear import OPTIONS, _certificate, agrees, curl  # noqa: F401

SOURCE = Path(__file__).parents[2] / "support/tlsserver.c"
INSIDE = ("-Wl,-Bstatic", "-lssl", "-lcrypto", "-Wl,-Bdynamic")
PATHS = ("api/a", "exact", "other", "api/users/7?a=b", "exact?x")
# Mounts an empty file system over the folder, and puts what the server needs there.
APART = 'mount -t tmpfs none "$1" && cp "$2" "$1"/libssl.so.3 && shift 2 && exec "$@"'


def built(folder, *options):
    """Return a server that is linked with these options."""
    program = folder / "server"
    words = ["cc", "-O2", "-o", program, SOURCE, *options]
    if run(words, check=False).status:
        pytest.skip("there is no compiler, or no libssl-dev: tools/setup")
    return program


def served(start, certificate, *words, env=None):
    server = start(Process([*words, *certificate], env=env))
    server.port = int(server.wait_for(r"port (\d+)", "stderr")[1])
    return server


def asked(server):
    for options in (["--tls-max", "1.2"], ["--tlsv1.3"], ["--data", "a" * 500]):
        curl(*options, *(f"https://127.0.0.1:{server.port}/{path}" for path in PATHS))


def observed(start, server):
    """Return the entry of the server's service, after some requests, and its observer."""
    observer = start(Observer(*OPTIONS, ports=[server.port]))
    asked(server)
    observer.stop()
    server.stop()
    return service(observer.summary(), server.port), observer


@needs_program("curl")
@pytest.mark.parametrize("options", [("-no-pie", "-rdynamic", "-s"), ("-pie", "-rdynamic", "-s"), ("-no-pie",), ("-pie",)],
                         ids=["exported", "exported-pie", "debug", "debug-pie"])
def test_a_library_in_the_program(start, certificate, tmp_path, options):
    """Stripped programs that export its functions, and others that export nothing but have a table for debuggers."""
    server = served(start, certificate, built(tmp_path, *options, *INSIDE))
    entry, _ = observed(start, server)
    log = tmp_path / "log"
    log.write_text(server.stdout)
    assert server.stdout.count("\n") == 3 * len(PATHS)
    agrees(entry, log)


@needs_program("curl")
def test_a_program_without_names(start, certificate, tmp_path):
    """Stripped, it names none of its functions. Nothing is known, all is counted, and the report says why."""
    server = served(start, certificate, built(tmp_path, "-s", *INSIDE))
    entry, observer = observed(start, server)
    assert entry["exchanges"] == entry["responses"]["status"]["other"] == entry["routes"]["not_known"]["tls"] == 3 * len(PATHS)
    assert "--tls:" not in observer.stderr
    reason = "the program has OpenSSL, and does not name its functions"
    assert [process["tls"] for process in entry["processes"]] == [reason]
    assert f"not all is known of server {server.pid}: {reason}" in " ".join(observer.stdout.split())


@needs_program("node")
@needs_program("curl")
def test_node_is_not_known(start, certificate, tmp_path):
    """Node has the library in it, and its functions are found. It reads the socket into memory first, so no call shows its
    connection: nothing is known, rather than guessed."""
    script = tmp_path / "server.js"
    script.write_text("""
        const [certificate, key] = process.argv.slice(2).map((name) => require("fs").readFileSync(name));
        const server = require("https").createServer({cert: certificate, key}, (request, response) => {
            response.statusCode = 404;
            response.end("no");
            console.log("asked");
        });
        server.listen(0, "127.0.0.1", () => console.error(`port ${server.address().port}`));
    """)
    server = served(start, certificate, "node", script)
    observer = start(Observer(*OPTIONS, ports=[server.port]))
    asked(server)
    probes = sum("perf_event" in os.readlink(entry) for entry in Path(f"/proc/{observer.pid}/fd").iterdir())
    observer.stop()
    server.stop()
    entry = service(observer.summary(), server.port)
    assert server.stdout.count("asked") == entry["exchanges"] == 3 * len(PATHS)
    assert entry["responses"]["status"]["other"] == entry["routes"]["not_known"]["tls"] == 3 * len(PATHS)
    assert probes == 2 * 6
    assert "its library is probed, but its text is not seen on buffers in memory" in " ".join(observer.stdout.split())


def own_copy(folder):
    """Return a program that is linked with the library, and a copy of that."""
    program = built(folder, "-lssl", "-lcrypto")
    line = next(line for line in run(["ldd", program]).stdout.splitlines() if "libssl.so" in line)
    shutil.copy(line.split()[2], folder / "copy")
    return program, folder / "copy"


@needs_program("curl")
def test_a_copy_in_another_mount_namespace(start, certificate, tmp_path):
    """As in a container: the path exists for the server alone."""
    program, copy = own_copy(tmp_path)
    place = tmp_path / "place"
    place.mkdir()
    server = served(start, certificate, "unshare", "--mount", "--propagation", "private", "sh", "-c", APART, "sh", place, copy,
                    program, env={"LD_LIBRARY_PATH": str(place)})
    assert f"{place}/libssl.so.3" in Path(f"/proc/{server.pid}/maps").read_text() and not list(place.iterdir())
    entry, _ = observed(start, server)
    log = tmp_path / "log"
    log.write_text(server.stdout)
    agrees(entry, log)


@needs_program("curl")
def test_a_copy_that_was_replaced(start, certificate, tmp_path):
    """An update has removed the file that the server has mapped."""
    program, copy = own_copy(tmp_path)
    copy.rename(tmp_path / "libssl.so.3")
    server = served(start, certificate, program, env={"LD_LIBRARY_PATH": str(tmp_path)})
    (tmp_path / "libssl.so.3").unlink()
    entry, _ = observed(start, server)
    log = tmp_path / "log"
    log.write_text(server.stdout)
    agrees(entry, log)
