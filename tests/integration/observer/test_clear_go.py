# SPDX-License-Identifier: MIT
"""Statuses, routes and streams in TLS of programs in Go (--tls), against the log and the clock of such a server."""
import os
import re
import socket
from pathlib import Path

import pytest

from support import golang
from support.conditions import needs_program
from support.documents import service
from support.golang import STRIPPED
from support.process import Process, at_rest, run, wait_until
from support.programs import Observer
from support.timing import in_quiet, lies_within

pytest.importorskip("h2")
from h2.config import H2Configuration  # noqa: E402
from h2.connection import H2Connection  # noqa: E402
from h2.events import StreamEnded  # noqa: E402
from .test_clear import OPTIONS, _certificate, agrees, client_context, curl  # noqa: E402, F401
from .test_clear_streams import each_has_its_arrival  # noqa: E402
from .test_http2 import HEADERS, between, followed  # noqa: E402

NAMES = ("api/a", "api/users/7", "exact", "other", f"api/{'x' * 600}")


@pytest.fixture(scope="module", name="build")
def _build(tmp_path_factory):
    """build("-ldflags=-s") returns such a program."""
    done = {}

    def build(*options):
        if options not in done:
            done[options] = golang.program(tmp_path_factory.mktemp("go"), "gotls", *options)
        return done[options]

    return build


def served(start, certificate, program, *words):
    server = start(Process([program, *certificate, *words]))
    server.port = int(server.wait_for(r"port (\d+)", "stderr")[1])
    server.url = f"https://127.0.0.1:{server.port}/"
    return server


def ended(observer, server, lines, folder):
    """Return the service's entry and the server's log."""
    wait_until(lambda: server.stdout.count("\n") >= lines and at_rest(server.pid))
    observer.stop()
    server.stop()
    assert server.stdout.count("\n") == lines
    (folder / "log").write_text(server.stdout)
    return service(observer.summary(), server.port), folder / "log"


# Another form has to be linked, and one with -buildmode=pie compiled with all of Go's library: that takes more CPU time
# than its test.
@needs_program("h2load")
@needs_program("curl")
@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.long), STRIPPED,
                                     pytest.param((*STRIPPED, "-buildmode=pie"), marks=pytest.mark.long)],
                         ids=["plain", "stripped", "pie"])
def test_the_server_logs_the_same(start, certificate, build, tmp_path, options):
    """Goroutines read and write at the same time, on threads that change, and the clients close at once."""
    server = served(start, certificate, build(*options))
    observer = start(Observer(*OPTIONS, ports=[server.port]))
    for words in (["--http1.1"], ["--http1.1", "--tls-max", "1.2"], ["--http2"], ["--http1.1", "--data", "a" * 30000]):
        curl(*words, *(server.url + name for name in NAMES))
    run(["h2load", "-n", 600, "-c", 3, "-m", 20, f"{server.url}api/users/4", f"{server.url}exact"])
    run(["h2load", "--h1", "-n", 300, "-c", 4, f"{server.url}api/users/4", f"{server.url}exact"])
    entry, log = ended(observer, server, 900 + 4 * len(NAMES), tmp_path)
    assert followed(entry, 600 + len(NAMES), 4, **{"goaways": n for n in [entry["http2"]["goaways"]] if n})
    agrees(entry, log)
    assert not {name for name, count in entry["losses"].items() if count} - {"untimed", "accept_unseen"}


@needs_program("curl")
def test_text_on_a_stack_that_moves(start, certificate, build, tmp_path):
    server = served(start, certificate, build(*STRIPPED), "raw")
    observer = start(Observer(*OPTIONS, ports=[server.port]))
    curl(*[server.url + name for name in NAMES] * 40)
    entry, log = ended(observer, server, 40 * len(NAMES), tmp_path)
    agrees(entry, log)


@in_quiet
def test_records_that_are_read_at_once(start, certificate, build):
    """Go's server asks for exactly what it reads, so how much longer records are than their text shows at their second read."""
    server = served(start, certificate, build(*STRIPPED))
    each_has_its_arrival(start, server.port, server.pid, before=3)


@in_quiet
def test_times_are_those_of_the_server(start, certificate, build):
    """The handler says when it began and ended, the client when it asked and was answered. The service is between both."""
    server = served(start, certificate, build(*STRIPPED))
    observer = start(Observer("--tls", "--samples", "100000", ports=[server.port]))
    context, asks, asked = client_context(), H2Connection(H2Configuration(client_side=True)), {}
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", server.port)) as plain, context.wrap_socket(plain) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asks.initiate_connection()
        for index, ms in enumerate((0, 1, 5, 50, 1, 5, 50)):
            headers = [(name, f"/sleep?{ms}" if name == ":path" else value) for name, value in HEADERS]
            asked[index] = between(lambda headers=headers, index=index: exchanged(client, asks, 2 * index + 1, headers))
    observer.stop()
    server.stop()
    slept = [(int(begun), int(end)) for begun, end in re.findall(r"slept (\d+) (\d+)", server.stdout)]
    samples = service(observer.summary(), server.port)["samples"]
    services = dict(zip(samples["index"], samples["stages"]["service"]))
    assert len(slept) == len(asked) and len(services) >= len(asked) - 1  # the first one may come with the handshake's end
    for index, measured in services.items():
        assert lies_within(measured, slept[index][1] - slept[index][0], asked[index][1] - asked[index][0])


def exchanged(client, asks, stream, headers):
    asks.send_headers(stream, headers, end_stream=True)
    client.sendall(asks.data_to_send())
    while not any(isinstance(event, StreamEnded) for event in asks.receive_data(client.recv(65536))):
        pass


@needs_program("curl")
def test_the_program_goes_on(start, certificate, build):
    """Probes come and go while it runs: it must not end by them."""
    server = served(start, certificate, build(*STRIPPED))
    for _ in range(3):
        observer = start(Observer("--tls", ports=[server.port]))
        assert sum("perf_event" in os.readlink(entry) for entry in Path(f"/proc/{observer.pid}/fd").iterdir()) > 6
        run(["h2load", "-n", 200, "-c", 4, "-m", 5, f"{server.url}api/a"])
        observer.stop()
    curl(server.url)
    assert server.running() and not server.stderr.count("fatal")
