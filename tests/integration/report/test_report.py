# SPDX-License-Identifier: MIT
"""Phases over HTTP and reports from files, with the same numbers everywhere."""
import re

import pytest

from support.documents import parse, service
from support.process import run
from support.programs import DRIVER, OBSERVER, Driver, Nginx, Observer


def test_phases_cover_what_happened_in_them(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    Driver(nginx.url, connections=2, count=100)
    first = observer.begin_phase()
    Driver(nginx.url, connections=2, count=200)
    second = observer.begin_phase()
    Driver(nginx.url, connections=2, count=400)
    inner = service(observer.end_phase(second), nginx.port)
    outer = service(observer.end_phase(first), nginx.port)
    whole = service(observer.document(), nginx.port)

    assert (inner["exchanges"], outer["exchanges"], whole["exchanges"]) == (400, 600, 700)
    assert (inner["accepted"], outer["accepted"], whole["accepted"]) == (2, 4, 6)
    for entry, count in ((inner, 400), (outer, 600), (whole, 700)):
        assert entry["stages"]["service"]["count"] == count
        assert sum(n for _, n in entry["stages"]["service"]["buckets"]) == count
        # First and last message lie within the period.
        assert 0 < entry["first_message_ns"] < entry["last_message_ns"]
    assert inner["first_message_ns"] > outer["first_message_ns"] > whole["first_message_ns"]
    observer.stop()


def test_warm_up_is_not_in_the_report(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    driver = Driver(nginx.url, "--warmup", "300ms", connections=4, duration="500ms",
                    observer=observer)
    observer.stop()
    measured = service(driver.document, nginx.port)
    assert measured["exchanges"] == driver.result["requests"] > 0
    assert service(observer.summary(), nginx.port)["exchanges"] > measured["exchanges"]


def test_report_of_two_files_is_the_merged_report(start, tmp_path):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    path = tmp_path / "driver.json"
    run([DRIVER, nginx.url, "-c", 4, "-n", 1000, "--quiet", "--json", path])
    observer.stop()

    for files in ((observer.json, path), (path, observer.json)):
        text = run([OBSERVER, "report", "-v", *files]).stdout
        assert re.search(r"^round trip .* 1,000 requests", text, re.MULTILINE)
        rows = {name: float(share) for name, share in
                re.findall(r"^[├└] ([a-z +]+?)  +.*?([\d.]+) %", text, re.MULTILINE)}
        beyond = rows.pop("after its end", 0)  # of writes that returned after their client's read, if any
        accept = "accept or socket queue" if re.search(r"accept source inferred", text) else "accept queue"
        assert list(rows) == ["network + client", accept, "socket queue", "receive", "service", "respond"]
        assert sum(rows.values()) - beyond == pytest.approx(100, abs=3)  # each is rounded
        assert "\x1b" not in text  # no colour into a file
    merged = parse(run([OBSERVER, "report", "--json", "-", observer.json, path]).stdout)
    assert service(merged, nginx.port)["exchanges"] == merged["driver"]["requests"] == 1000


def test_two_documents_of_the_same_part_are_refused(start):
    nginx = start(Nginx())
    observer = start(Observer(ports=[nginx.port]))
    observer.stop()
    result = run([OBSERVER, "report", observer.json, observer.json], check=False)
    assert result.status == 2
    assert len(result.stderr.splitlines()) == 1
    assert str(observer.json) in result.stderr


def test_every_output_carries_losses_and_cost(start):
    nginx = start(Nginx())
    observer = start(Observer("--cost", "--interval", "200ms", ports=[nginx.port]))
    Driver(nginx.url, connections=2, duration="500ms")
    document = observer.document()
    observer.stop()

    for found in (document, observer.summary()):
        entry = service(found, nginx.port)
        assert {"overlapped", "unsolicited", "unanswered", "preexisting", "cut_off", "untimed",
                "accept_unseen", "storage_failed"} <= set(entry["losses"])
        programs = {p["name"]: p for p in found["cost"]["programs"]}
        assert programs["exchange_send"]["runs"] >= entry["exchanges"]
        assert programs["exchange_send"]["run_ns"] > 0
        assert "recursion_misses" in programs["exchange_send"]
        assert found["cost"]["cpu_ns"] > 0 and found["cost"]["resident_bytes"] > 0
    header, line = observer.stdout.splitlines()[1:3]
    assert header.split()[-1] == "lost" and line.split()[-1] == "0"
    assert "lost 0" in observer.stdout
    assert "ns/run" in observer.stdout


def test_json_on_standard_output_is_nothing_else(start):
    nginx = start(Nginx())
    result = run([OBSERVER, "observe", "--port", nginx.port, "--interval", "50ms", "--json", "-",
                  "--for", "200ms"])
    parse(result.stdout)
