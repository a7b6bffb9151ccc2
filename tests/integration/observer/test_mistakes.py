# SPDX-License-Identifier: MIT
"""Everyday mistakes with the observer, and the message for each."""
import re
import signal

import pytest

from support import documents, http
from support.conditions import bpf, needs_program
from support.net import free_port
from support.process import run, wait_until
from support.programs import OBSERVER, Driver, Nginx
from support.terminal import Terminal

REFUSED = {
    "mistyped option": (["observe", "--prot", "80"], 2, "--prot: unknown option: did you mean --port?"),
    "nothing alike": (["serve", "--frobnicate"], 2, "--frobnicate: unknown option, see --help"),
    "mistyped command": (["obsrve", "--port", "80"], 2, "'obsrve' is no command: did you mean observe?"),
    "a port for a command": (["8080"], 2, "'8080' is no command: did you mean sojourn observe --port 8080?"),
    "options without a command": (["--port", "8080"], 2, "--port: options follow a command, e.g. sojourn observe --port 8080"),
    "a port without its option": (["live", "8000-8010"], 2, "'8000-8010': unexpected: did you mean --port 8000-8010?"),
    "the driver's option": (["observe", "--port", "80", "--duration", "2s"], 2, "did you mean --for?"),
    "no command": (["frobnicate"], 2, "'frobnicate' is no command: allowed are observe, "),
    "help of no command": (["help", "frobnicate"], 2, "'frobnicate' is no command: allowed are observe, "),
    "report as PDF": (["report", "-o", "x.pdf", "run.json"], 2,
                      "--output: 'x.pdf': no form of a report ends so: allowed are .txt, .html, .md, .json, .csv and "),
    "ports the wrong way round": (["observe", "--port", "9000-8000"], 2, "--port: '9000-8000' is not allowed: "
                                  "give ports from 1 to 65535 like 80, 8000-8010 or 53/udp, separated by commas"),
    "a port for the doctor": (["doctor", "8080"], 64, "'8080': unexpected: did you mean --port 8080?"),
    "no last port": (["live", "--port", "8000-"], 2, "like 80, 8000-8010 or 53/udp"),
    "many ports": (["serve", "--port", "80,8000-8063"], 2,
                   "give at most 64 ports; --all-listeners takes those that have a listener"),
    "a value of two lines": (["observe", "--port", "a\nb\x1b[31mc"], 2, "--port: 'a b [31mc' is not allowed: give ports"),
    "two hosts": (["serve", "--host", "a.example,b.example"], 2,
                  "--host: 'a.example,b.example' is not allowed: give a host's name without a port"),
    "no folder": (["observe", "--port", "1", "--json", "/nonexistent/run.json"], 2,
                  "--json: cannot write '/nonexistent/run.json': No such file or directory"),
    "a folder": (["observe", "--port", "1", "--json", "/"], 2, "--json: cannot write '/': Is a directory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """Refused before anything is loaded, in one line."""
    words, status, message = REFUSED[name]
    ended = run([OBSERVER, *words], check=False)
    assert (ended.status, ended.stdout) == (status, "")
    (line,) = ended.stderr.splitlines()
    assert message in line


def test_report_without_an_ending(tmp_path):
    """The name of a device or pipe implies no format, so it gets text."""
    path = tmp_path / "report"
    nothing = run([OBSERVER, "report", "-o", path, "/nonexistent"], check=False)
    assert "cannot read '/nonexistent'" in nothing.stderr
    named = run([OBSERVER, "report", "-f", "text", "-o", tmp_path / "x.pdf", "/nonexistent"], check=False)
    assert "cannot read '/nonexistent'" in named.stderr


@pytest.mark.parametrize("command", ["observe", "live", "serve", "record", "doctor", "report", "probe"])
def test_help_is_a_command(command):
    shown = run([OBSERVER, "help", command]).stdout
    assert shown == run([OBSERVER, command, "--help"]).stdout
    assert shown.startswith(f"Usage: sojourn {command} ")


@bpf
@pytest.mark.parametrize("files", [6, 13, 31, 40])
def test_no_room_for_files_is_no_refusal(files):
    """Wherever files run out, the status is 1, at which systemd restarts the unit, and not that of a refusing kernel."""
    limited = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", OBSERVER]
    ended = run([*limited, "observe", "--port", "1", "--for", "1ms"], check=False)
    assert ended.status == 1
    assert "Too many open files" in ended.stderr
    probed = run([*limited, "probe"], check=False)
    assert probed.status == 1
    assert "cannot try the kernel's programs: Too many open files" in probed.stderr


@bpf
@pytest.mark.parametrize("command", ["serve", "observe"])
def test_busy_port_has_an_owner(start, command):
    nginx = start(Nginx())
    ended = run([OBSERVER, command, "--port", nginx.port, "--listen", nginx.port], check=False)
    assert ended.status == 1
    (line,) = ended.stderr.splitlines()
    # The master and its worker both hold it.
    assert any(f"--listen: 127.0.0.1:{nginx.port} is in use by nginx (pid {pid}): " in line
               for pid in (nginx.pid, *nginx.workers())), line


@bpf
def test_address_of_another_host():
    ended = run([OBSERVER, "serve", "--port", free_port(), "--listen", "192.0.2.1:0", "--open"], check=False)
    assert ended.status == 1
    assert ended.stderr.endswith("--listen: 192.0.2.1: this host has no such address\n")


def seen_of(port, metrics):
    found = re.search(rf'^sojourn_exchanges_total{{[^}}]*port="{port}"[^}}]*}} (\d+)$', metrics, re.MULTILINE)
    return found and int(found[1])


@bpf
@pytest.mark.parametrize("command", ["observe", "serve"])
def test_nothing_listens_yet(start, tmp_path, command):
    """The message comes at once; a server that starts later is still observed. In a range of ports one listener suffices."""
    there, port, document = start(Nginx()), free_port(), tmp_path / "run.json"
    words = ["--json", document] if command == "observe" else []
    observer = start([OBSERVER, command, "--port", f"{port},{port}/udp,{there.port - 1}-{there.port + 1}", "--listen", "0", *words])
    url = observer.wait_for(r"listening on (http://\S+)", "stderr", 30)[1]
    first, second, *_ = observer.stderr.splitlines()
    assert f"--port {port}: nothing listens there now: waiting. Listeners are at " in first
    assert f"--port {port}/udp: nothing is bound there now: waiting" in second
    assert f"{there.port}" not in observer.stderr.replace(first, "").replace(second, "")
    assert Driver(start(Nginx(port=port)).url, count=5).result["requests"] == 5
    assert Driver(there.url, count=3).result["requests"] == 3
    if command == "serve":
        wait_until(lambda: seen_of(port, http.request(f"{url}/metrics")) == 5)
    assert observer.stop(number=signal.SIGINT) == 0
    if command == "observe":
        services = {(service["protocol"], service["port"]): service for service in documents.load(document)["services"]}
        assert services["tcp", port]["exchanges"] == 5 and services["tcp", there.port]["exchanges"] == 3


@bpf
def test_nothing_listens_on_many_ports(start):
    """One sentence names the first ports, and the number of the others. A range counts once."""
    there, ports = start(Nginx()), sorted(free_port() for _ in range(6))
    observer = start([OBSERVER, "serve", "--port", ",".join(map(str, [*ports, there.port, "2-9"])), "--listen", "0"])
    observer.wait_for(r"listening on http://\S+", "stderr", 30)
    silent, = [line for line in observer.stderr.splitlines() if "nothing" in line]
    assert f"--port {', '.join(map(str, ports[:4]))} and 3 more: nothing listens there now: waiting. Listeners are at " in silent


@bpf
@needs_program("tmux")
def test_live_says_that_nothing_listens(start):
    """The message is printed before the view starts and after it ends. The view shows the message, too,
    until a server listens."""
    terminal, port = start(Terminal()), free_port()
    terminal.run(f"clear; {OBSERVER} live --interval 300ms --port {port}")
    terminal.wait_for(rf"- {port}: nothing listens there now: waiting")
    start(Nginx(port=port))
    terminal.wait_for(r"Findings: none")
    terminal.keys("q")
    terminal.wait_for(rf"warning: --port {port}: nothing listens there now")
