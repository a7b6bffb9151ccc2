# SPDX-License-Identifier: MIT
"""CSV and HdrHistogram logs: other programs read the run document's values from them."""
import base64
import csv
import io
import re
import shutil
import struct
import subprocess
import zlib

import pytest

from support import documents
from support.conditions import PYPI, needs_pypi
from support.process import run
from support.programs import DRIVER, OBSERVER, Lab

# Prints count, p50, p99, p99.999 and maximum of each interval, as the reference library reads them.
READER = """
import sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 2 ** 42 - 1, 2))
while (h := reader.get_next_interval_histogram()) is not None:
    print(h.get_total_count(), *(h.get_value_at_percentile(p) for p in (50, 99, 99.999)),
          h.get_max_value(), h.get_start_time_stamp(), h.get_end_time_stamp())
"""


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory):
    """Return one run's document, CSV and log, with latencies of many magnitudes."""
    folder = tmp_path_factory.mktemp("files")
    names = [folder / f"run.{suffix}" for suffix in ("json", "csv", "hlog")]
    lab = Lab("--service", "300us")
    try:
        run([DRIVER, lab.url, "-c8", "--rate=3000", "-d1700ms", "--interval=500ms", "--quiet",
             "--json", names[0], "--csv", names[1], "--hlog", names[2]])
    finally:
        lab.close()
    return documents.load(names[0])["driver"], names[1].read_text(), names[2]


def rows(text):
    assert text.count("\n") == text.count("\r\n") or "\r" not in text
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_is_the_document(files):
    driver, text, _ = files
    found = rows(text)
    intervals = [row for row in found if row["part"] == "interval"]
    assert len(intervals) == len(driver["intervals"]) >= 4
    for row, entry in zip(intervals, driver["intervals"]):
        assert int(row["requests"]) == entry["requests"]
        assert int(row["bytes_in"]) == entry["bytes_in"]
        assert round(float(row["begin_s"]) * 1e9) == entry["begin_ns"]
        assert round(float(row["duration_s"]) * 1e9) == entry["duration_ns"]
        assert row["latency"] == "response_time" and row["load"] == ""
        for name in ("p50", "p99", "p99999", "max"):
            assert row[f"{name}_ns"] == str(entry["latency"][f"{name}_ns"] or "")
    overall = {row["latency"]: row for row in found if row["part"] == "overall"}
    assert set(overall) >= {"response_time", "round_trip", "connect", "schedule_delay"}
    for name, row in overall.items():
        assert int(row["latency_count"]) == driver[name]["count"]
        assert int(row["p999_ns"]) == driver[name]["p999_ns"]
        assert abs(float(row["mean_ns"]) - driver[name]["sum_ns"] / driver[name]["count"]) <= 1


def varints(data):
    """Yield values of ZigZag LEB128, of up to nine bytes."""
    at = 0
    while at < len(data):
        value = 0
        for shift in range(0, 64, 7):
            byte = data[at]
            at += 1
            value |= (byte if shift == 56 else byte & 0x7f) << shift
            if shift == 56 or not byte & 0x80:
                break
        yield (value >> 1) ^ -(value & 1)


def decode(line):
    """Return start, length and maximum of an interval, and its counts {cell: count}, by the format's
    specification."""
    begin, length, largest, text = line.split(",")
    packed = base64.b64decode(text, validate=True)
    cookie, size = struct.unpack(">II", packed[:8])
    assert cookie == 0x1c849314 and size == len(packed) - 8
    plain = zlib.decompress(packed[8:])
    cookie, size, offset, digits, lowest, highest, ratio = struct.unpack(">IIIIQQd", plain[:40])
    assert (cookie, size, offset, digits) == (0x1c849313, len(plain) - 40, 0, 2)
    assert (lowest, highest, ratio) == (1, 2 ** 42 - 1, 1.0)
    cells, at = {}, 0
    for number in varints(plain[40:]):
        if number < 0:
            at -= number
        else:
            cells[at] = number
            at += 1
    return float(begin), float(length), float(largest), cells


def upper(cell):
    """Return the largest value of a cell: 256 cells of width one, then 128 per power of two."""
    octave = max(0, cell // 128 - 1)
    return ((cell - octave * 128) << octave) + (1 << octave) - 1


def test_hlog_is_the_document(files):
    driver, _, path = files
    lines = path.read_text().splitlines()
    assert "#[Histogram log format version 1.3]" in lines
    found = [decode(line) for line in lines if line[0] not in '#"']
    assert len(found) == len(driver["intervals"])
    for (begin, length, largest, cells), entry in zip(found, driver["intervals"]):
        latency = entry["latency"]
        assert round(begin * 1e3) == round(entry["begin_ns"] / 1e6)
        assert abs(length * 1e9 - entry["duration_ns"]) < 1e6
        assert sum(cells.values()) == latency["count"] > 0
        assert abs(largest * 1e6 - latency["max_ns"]) < 1e3
        rank, seen = -(-latency["count"] // 2), 0
        for cell in sorted(cells):
            seen += cells[cell]
            if seen >= rank:
                break
        assert upper(cell) == latency["p50_ns"]


def value_of_rank(latency, rank):
    """Return the upper edge of the document's bucket that holds this rank."""
    for index, count in latency["buckets"]:
        rank -= count
        if rank <= 0:
            break
    octave = max(0, index // 64 - 1)
    return ((index - octave * 64) << octave) + (1 << octave) - 1


@needs_pypi
def test_hlog_by_the_reference_library(files):
    driver, _, path = files
    text = subprocess.run([PYPI / "bin/python3", "-c", READER, path], check=True, capture_output=True, text=True,
                          timeout=60).stdout
    found = [[float(word) for word in line.split()] for line in text.splitlines()]
    assert len(found) == len(driver["intervals"])
    for words, entry in zip(found, driver["intervals"]):
        latency = entry["latency"]
        assert words[0] == latency["count"]
        for value, percent in zip(words[1:5], (50, 99, 99.999, 100)):
            # The library rounds the rank to the nearest, and knows the maximum only as its cell's upper edge.
            wanted = value_of_rank(latency, int(percent / 100 * latency["count"] + 0.5))
            assert wanted == value or latency["max_ns"] <= value <= latency["max_ns"] * 129 / 128
        assert abs(words[5] - (driver["begin_ns"] + entry["begin_ns"]) / 1e6) <= 2


def test_report_writes_the_same(files, tmp_path, start):
    """`sojourn report` writes the same from a document. Standard output has nothing else."""
    lab = start(Lab())
    path = tmp_path / "run.json"
    direct = run([DRIVER, lab.url, "-n500", "--json", path, "--csv=-"]).stdout
    assert rows(direct) == rows(run([OBSERVER, "report", "-f", "csv", path]).stdout)
    log = run([OBSERVER, "report", "-f", "hlog", path]).stdout
    run([OBSERVER, "report", "-o", tmp_path / "run.hlog", path])
    assert (tmp_path / "run.hlog").read_text() == log
    assert sum(decode(line)[3].values().__iter__().__next__() for line in log.splitlines()
               if line[0] not in '#"') > 0


def test_sweep(start, tmp_path):
    lab = start(Lab("--service", "1ms", model="threads"))
    run([DRIVER, "sweep", lab.url, "-d200ms", "--warmup=50ms", "--ladder=1,2,4", "--quiet",
         "--json", tmp_path / "run.json", "--csv", tmp_path / "run.csv"])
    steps = documents.load(tmp_path / "run.json")["sweep"]["steps"]
    found = [row for row in rows((tmp_path / "run.csv").read_text()) if row["part"] == "step"]
    assert [(int(row["load"]), int(row["requests"])) for row in found] == \
        [(step["load"], step["requests"]) for step in steps]


def test_refusals():
    refused = run([DRIVER, "http://127.0.0.1:1/", "--csv=-", "--json=-"], check=False)
    assert refused.status == 2 and "only one of --json, --csv and --hlog" in refused.stderr


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_document_is_on_the_disk_before_it_has_its_name(start, tmp_path):
    """A crash of the host may leave no document, but none that is empty."""
    lab, path, calls = start(Lab()), tmp_path / "run.json", tmp_path / "calls"
    run(["strace", "-f", "-y", "-e", "trace=fsync,rename,renameat,renameat2", "-o", calls,
         DRIVER, lab.url, "-n", "10", "--quiet", "--json", path])
    assert documents.load(path)["driver"]["requests"] == 10
    made = [line for line in calls.read_text().splitlines() if str(tmp_path) in line and line.endswith("= 0")]
    names = [re.search(r"(fsync|rename\w*)\(", line)[1] for line in made]
    assert names[0] == "fsync" and names[1].startswith("rename"), made
    assert f'"{path}"' in made[1]
