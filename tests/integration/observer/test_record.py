# SPDX-License-Identifier: MIT
"""Recordings: what remains after a crash, and that their counts equal the server's."""
import json
import signal
import time

import pytest

from support.documents import parse, service
from support.process import run, wait_until
from support.programs import OBSERVER, Driver, Lab, Nginx

MAGIC = '{"schema":"sojourn.recording/1"'


class Recorder:
    """`sojourn record`, started by `start`; ends when asked to or killed."""

    def __init__(self, start, path, *options, ports=()):
        self.path = path
        before = self.readings()
        chosen = ["--port", ",".join(str(port) for port in ports)] if ports else []
        self.process = start([OBSERVER, "record", "-o", path, *chosen, *options])
        deadline = time.monotonic() + 20
        while self.readings() == before:
            assert self.process.running() and time.monotonic() < deadline, "no reading is written"
            time.sleep(0.02)

    def readings(self):
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        return text.count(b'\n{"schema":"sojourn.run/1"')

    def wait_for_more(self, count=2, seconds=10):
        """Wait until so many more readings are in the file: everything before the call is in them."""
        target, deadline = self.readings() + count, time.monotonic() + seconds
        while self.readings() < target:
            assert time.monotonic() < deadline, f"{self.readings()} readings"
            time.sleep(0.02)

    def end(self, number=signal.SIGTERM):
        self.process.stop(number=number)


def report(*words, status=0):
    """Return the document that `sojourn report` makes of it, and its messages about gaps."""
    result = run([OBSERVER, "report", *words, "-f", "json"], check=False)
    assert result.status == status, result.stderr
    return parse(result.stdout) if status == 0 else None, result.stderr


def without_past(document):
    for entry in document["services"]:
        del entry["series"], entry["samples"]
    return document


def test_a_recording_is_what_observe_reports(start, tmp_path):
    nginx, path = start(Nginx()), tmp_path / "a.rec"
    recorder = Recorder(start, path, "--interval", "200ms", "--json", tmp_path / "run.json",
                        ports=[nginx.port])
    for _ in range(3):
        Driver(nginx.url, connections=4, count=700)
        recorder.wait_for_more()
    recorder.end()
    found, said = report(path)
    assert said == ""
    direct = parse((tmp_path / "run.json").read_text())
    entry = service(found, nginx.port)
    assert entry["exchanges"] == nginx.status()["requests"] == 2100
    assert entry["stages"]["service"]["count"] == 2100
    # The series holds three bursts with silence between them, in order, and nothing else.
    counts = entry["series"]["exchanges"]
    assert sum(counts) == 2100 and len(counts) > 6
    assert sum(entry["series"]["stages"]["service"]["count"]) == 2100
    bursts = "".join("x" if count else " " for count in counts).split()
    assert len(bursts) == 3, counts
    # Every figure equals that of the observation's own document.
    assert without_past(found) == without_past(direct)
    assert recorder.process.stderr.startswith("sojourn record: ")


@pytest.mark.parametrize("when", range(3))
def test_killed_at_any_time(start, tmp_path, when):
    lab, path = start(Lab()), tmp_path / "a.rec"
    recorder = Recorder(start, path, "--interval", "10ms", "--no-doctor", ports=[lab.port])
    Driver(lab.url, connections=2, count=1000)
    recorder.wait_for_more()
    time.sleep(0.0037 * when)
    recorder.end(signal.SIGKILL)
    found, _ = report(path)
    assert service(found, lab.port)["exchanges"] == 1000
    assert sum(service(found, lab.port)["series"]["exchanges"]) == 1000


def test_killed_in_the_middle_of_a_write(start, tmp_path):
    """The kernel itself cuts a write(2), by RLIMIT_FSIZE, and the program is killed before it can write the rest."""
    lab, path = start(Lab()), tmp_path / "a.rec"
    process = start(["prlimit", "--fsize=60000", "--core=0", OBSERVER, "record", "-o", path,
                     "--interval", "100ms", "--no-doctor", "--port", lab.port])
    deadline = time.monotonic() + 20
    while not path.exists() or MAGIC.encode() not in path.read_bytes():
        assert time.monotonic() < deadline and process.running()
        time.sleep(0.02)
    Driver(lab.url, connections=2, count=500)
    wait_until(lambda: path.stat().st_size == 60000)
    assert process.kill() == -signal.SIGKILL
    assert path.stat().st_size == 60000 and path.read_bytes()[-1:] != b"\n"
    found, said = report(path)
    assert "the last reading is cut off" in said and len(said.splitlines()) == 1
    entry = service(found, lab.port)
    assert 0 < entry["exchanges"] <= 500
    assert sum(entry["series"]["exchanges"]) == entry["exchanges"]
    # A new observation follows the half line.
    recorder = Recorder(start, path, "--interval", "100ms", ports=[lab.port])
    Driver(lab.url, connections=1, count=300)
    recorder.wait_for_more()
    recorder.end()
    both, said = report(path)
    assert "2 observations" in said and "lines that are no reading: 1" in said
    assert service(both, lab.port)["exchanges"] == entry["exchanges"] + 300
    assert both["duration_ns"] > found["duration_ns"]


def test_what_is_there_is_not_lost(start, tmp_path):
    lab, path = start(Lab()), tmp_path / "a.rec"
    for text in ('{"schema":"sojourn.run/1"}\n', "notes\n"):
        path.write_text(text)
        result = run([OBSERVER, "record", "-o", path, "--port", lab.port], check=False)
        assert result.status == 2 and len(result.stderr.splitlines()) == 1
        assert str(path) in result.stderr and "no recording" in result.stderr
        assert path.read_text() == text
    path.unlink()
    recorder = Recorder(start, path, ports=[lab.port])
    before = path.read_bytes()
    result = run([OBSERVER, "record", "-o", path, "--port", lab.port], check=False)
    assert result.status == 1 and "another process" in result.stderr
    assert path.read_bytes().startswith(before)
    recorder.end()


def test_bounded(start, tmp_path):
    lab, path = start(Lab()), tmp_path / "a.rec"
    recorder = Recorder(start, path, "--interval", "10ms", "--max-size", "1M", "--no-doctor",
                        ports=[lab.port])
    previous, deadline = tmp_path / "a.rec.1", time.monotonic() + 40
    for count in range(1, 1000):
        Driver(lab.url, connections=2, count=50)
        if previous.exists():
            break
        assert time.monotonic() < deadline
    recorder.wait_for_more()
    recorder.end()
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.rec", "a.rec.1"}
    assert path.stat().st_size <= 10**6 and previous.stat().st_size <= 10**6
    # The totals are of the whole time, although the file starts later.
    assert service(report(path)[0], lab.port)["exchanges"] == 50 * count


def test_each_line_stands_for_itself(start, tmp_path):
    """Any reader of JSON Lines reads it, and each reading is a run document."""
    lab, path = start(Lab()), tmp_path / "a.rec"
    recorder = Recorder(start, path, "--interval", "100ms", ports=[lab.port])
    Driver(lab.url, connections=2, count=200)
    recorder.wait_for_more()
    recorder.end()
    head, *readings = [json.loads(line) for line in path.read_text().splitlines()]
    assert head["schema"] == "sojourn.recording/1" and head["interval_ns"] == 100_000_000
    counts = [service(reading, lab.port)["exchanges"] for reading in readings]
    assert counts == sorted(counts) and counts[-1] == 200
    (tmp_path / "last.json").write_text(path.read_text().splitlines()[-1])
    assert service(report(tmp_path / "last.json")[0], lab.port)["exchanges"] == 200


@pytest.mark.parametrize("options, words", [
    ([], ["--output"]), (["-o", "-"], ["-o", "'-'"]), (["-o", ""], ["-o", "''"]),
    (["-o", "FILE", "--max-size", "999"], ["--max-size", "'999'"]),
    (["-o", "FILE", "--interval", "1ms"], ["--interval", "'1ms'"]),
    (["-o", "FILE", "wrk"], ["'wrk'"]), (["-o", "FILE", "--samples", "1"], ["--samples", "unknown"])])
def test_wrong_options_are_one_line_and_exit_2(tmp_path, options, words):
    file = str(tmp_path / "a.rec")
    result = run([OBSERVER, "record", *(file if word == "FILE" else word for word in options)],
                 check=False)
    assert result.status == 2 and len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_made(tmp_path):
    result = run([OBSERVER, "record", "-o", tmp_path / "none" / "a.rec"], check=False)
    assert result.status == 1 and "No such file" in result.stderr
    assert len(result.stderr.splitlines()) == 1
