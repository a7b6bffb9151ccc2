# SPDX-License-Identifier: MIT
"""The text reports without -v, which users read first. The truth is the configuration of nginx and the lab server."""
import copy
import json
import os
import re
import shlex
import subprocess
import time

import pytest

from support import documents
from support.conditions import needs_program
from support.net import free_port
from support.process import run
from support.programs import DRIVER, OBSERVER, Driver, Lab, Nginx, Observer
from support.timing import in_quiet, timing

LINES = 25


def drive(url, *options, env=None):
    """Return the report as on the user's terminal."""
    return run([DRIVER, url, *options], check=False, env=env).stdout


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("lab_options, driver_options, part, said", [
    (["--service", "20ms"], [], "service", "in service: sojourn-lab takes this long"),
    (["--read-delay", "20ms"], [], "socket queue", "unread in the socket: sojourn-lab needs more workers"),
], ids=["service", "socket queue"])
@in_quiet
def test_the_verdict_comes_first(start, lab_options, driver_options, part, said):
    lab = start(Lab(*lab_options))
    observer = start(Observer(ports=[lab.port]))
    report = drive(lab.url, "-c1", "-n40", "--observer", observer.url, *driver_options)
    observer.stop()
    head, rest = report.split("\n\n", 1)
    verdict = re.search(r"(\d+|99\.\d) % of .* passed " + re.escape(said), flat(head))
    with timing():
        assert verdict and float(verdict[1]) > 80, report
    with timing():
        assert re.search(rf"^[├└] {part} +(19|2\d)[\d.]* ms", rest, re.MULTILINE), report
    assert len(report.splitlines()) <= LINES, report
    assert "lost 0" in report and "\n-v prints more" in report
    # From the observer alone, which has no round trip.
    alone = run([OBSERVER, "report", observer.json]).stdout
    with timing():
        assert re.search(r"(\d+|99\.\d) % of the mean time at the server \((?:19|2\d)[\d.]* ms\) passed " +
                         re.escape(said), flat(alone)), alone
    assert len(alone.splitlines()) < LINES < len(run([OBSERVER, "report", "-v", observer.json]).stdout.splitlines())


def test_few_requests_are_no_throughput(start):
    """Three requests within a moment of a second are at most three per second, not thousands."""
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    began = time.monotonic()
    Driver(nginx.url, count=3)
    time.sleep(1)
    took = time.monotonic() - began
    observer.stop()
    assert nginx.status()["requests"] == 3
    rate = re.search(r"server throughput ([\d.,]+)/s \(over the whole period\)", flat(observer.stdout))
    assert rate and float(rate[1]) < 3 / took, observer.stdout


@pytest.mark.parametrize("server, said", [
    ("location /x { return 404; }", "100 % failed: 404"),
    ("location /x { return 302 /; }", "100 % redirected, not followed: 302"),
    ("location /x { return 304; }", None),
], ids=["404", "302", "304"])
def test_what_failed_is_the_headline(start, server, said):
    nginx = start(Nginx(server=server))
    report = drive(f"{nginx.url}x", "-c2", "-n50")
    assert nginx.status()["requests"] == 50
    assert (report.splitlines()[1] == said) == bool(said), report
    assert ("0 of 50 good" in report) == (said == "100 % failed: 404")
    assert ("failed" in report or "redirected" in report) == bool(said)


FINDING = {"severity": "critical", "id": "fds-exhausted", "resource": "descriptors", "port": 0, "netns": 0, "what": "no descriptor is left " * 5,
           "outlook": "accept() fails " * 9, "change": "raise the limit " * 9, "risk": "none", "command": "prlimit --pid 1 --nofile=4096:",
           "link": "docs/diagnoses.md#fds-exhausted"}


def crowded(document, folder):
    """Return paths of documents with much to say: several targets, statuses, findings; a fleet; thirty services."""
    document["driver"]["limited"] = None  # by other load on this machine
    many, fleet = copy.deepcopy(document), copy.deepcopy(document)
    document["findings"] = [dict(FINDING, object=f"server (pid {pid})") for pid in range(1, 5)]
    del many["driver"], many["joined"]
    many["services"] = [dict(service, port=port) for service in many["services"] for port in range(8000, 8030)]
    member = {"host": "host", "target": fleet["driver"]["target"], "begin_ns": fleet["driver"]["begin_ns"], "connections": 1,
              "requests": 1, "drained": 0, "errors": 0, "duration_ns": fleet["driver"]["duration_ns"],
              "latency": fleet["driver"]["round_trip"]}
    fleet["driver"]["parts"] = [dict(member, host=f"host{i}") for i in range(20)]
    for name, found in (("crowded", document), ("many", many), ("fleet", fleet)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(found))
        yield path


def on_terminal(width, path, **environment):
    """Return the report as on a terminal of this width. The documents are made up, so it warns of them elsewhere."""
    command = f"stty cols {width} rows 50; {shlex.join(map(str, (OBSERVER, 'report', path)))} 2>/dev/null"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], check=True, capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm-256color", **environment})
    return done.stdout.replace("\r\n", "\n")


@needs_program("script")
def test_it_fits_on_a_screen(start, tmp_path):
    """At most 25 lines, none wider than the terminal but a command to copy; colours and signs as the user wants."""
    nginx = start(Nginx(server="location /no { return 404; } location /half { return 503; }"))
    observer = start(Observer("--http", ports=[nginx.port]))
    path = tmp_path / "run.json"
    run([DRIVER, nginx.url, f"{nginx.url}no", f"{nginx.url}half", "-c4", "-n3000", "--quiet", "--observer", observer.url,
         "--json", path], check=False)
    observer.stop()
    for each in crowded(documents.load(path), tmp_path):
        for width in (60, 80, 200):
            plain, coloured = on_terminal(width, each, LC_ALL="C", NO_COLOR="1"), on_terminal(width, each, LC_ALL="C.UTF-8")
            lines = plain.splitlines()
            assert len(lines) <= LINES and plain.isascii() and not re.search(r"[?\x1b]", plain), plain
            assert not [line for line in lines if len(line) > width and "prlimit" not in line], plain
            assert "\x1b[" in coloured and "·" in coloured and coloured.count("\n") == len(lines)
            assert "lost 0" in plain and "-v prints more" in plain
            assert re.search(r"^ *and \d+ more|^drivers +\d+ with -v", plain, re.MULTILINE), plain
        whole = run([OBSERVER, "report", "-v", each]).stdout
        assert len(whole.splitlines()) > LINES and not re.search(r"^ *and \d+ more(:| with)", whole, re.MULTILINE)
        if each.name.startswith("many"):
            assert all(f":{port} nginx" in whole for port in range(8000, 8030))


def test_nobody_listens(start):
    report = drive(f"http://127.0.0.1:{free_port()}/", "-c1", "-n20", "-d500ms")
    assert "\n100 % failed: refused\nerrors " in report
    assert "0 of " in report and "requests ·" not in report


def test_a_broken_assertion_stands_in_the_report(start):
    lab = start(Lab())
    report = drive(lab.url, "-c1", "-n20", "--assert", "p99<1ns", "--assert", "errors<1%")
    assert re.search(r"^broken: p99<1ns is [\d.]+ [mµ]s$", report, re.MULTILINE), report
    assert report.count("broken:") == 1


def test_a_locale_without_utf8_gets_ascii(start):
    lab = start(Lab())
    options = [lab.url, "-c1", "-n50", "-v"]
    plain = run([DRIVER, *options], env={"LC_ALL": "C"}).stdout
    assert plain.isascii() and " us" in plain and " | " in plain
    assert "µs" in run([DRIVER, *options], env={"LC_ALL": "C.UTF-8"}).stdout


@needs_program("curl")
def test_http2_is_not_divided(start):
    """Without its streams HTTP/1.1 beside it is timed, but that is no tree of the driver's requests."""
    nginx = start(Nginx(listen_options="http2"))
    plain = start(Nginx())
    observer = start(Observer("--no-http2", ports=[nginx.port, plain.port]))
    run(["curl", "--silent", "--output", "/dev/null", plain.url])
    report = drive(nginx.url.replace("http:", "h2c:"), "-c2", "-n200", "--observer", observer.url)
    observer.stop()
    assert "not known where the time goes: the service speaks HTTP/2" in flat(report), report
    assert "without --no-http2 the observer times them" in flat(report), report
    assert not re.search(r"^[├└] ", report, re.MULTILINE)
    assert re.search(r"^caveats +2 multiplexed", report, re.MULTILINE) or " 2 multiplexed" in report
