# SPDX-License-Identifier: MIT
"""Comparisons: equal runs show no change, different ones do if repeated, and settings are named."""
import re
import shutil

import pytest

from support.documents import load
from support.process import run
from support.programs import DRIVER, OBSERVER, Lab
from support.timing import in_quiet, timing


def drive(url, path, *options):
    run([DRIVER, url, "-c4", "-d1s", "--interval=50ms", "--quiet", "--json", path, *options], seconds=60)
    return path


def compare(*arguments):
    return run([OBSERVER, "report", "--compare", *arguments]).stdout


@pytest.fixture
def lab(start):
    return start(Lab("--service", "2ms", model="threads"))


def test_a_run_and_itself(lab, tmp_path):
    """A copy of a run's document: nothing differs."""
    path = drive(lab.url, tmp_path / "run.json")
    copy = shutil.copy(path, tmp_path / "copy.json")
    text = compare(path, copy)
    assert text.splitlines()[0] == "no change from run to copy is beyond the scatter of their intervals"
    assert "beyond the intervals' scatter" not in text and "settings differ" not in text
    assert re.search(r"^latency, p99 .*\+0\.0 % +within the intervals' scatter$", text, re.MULTILINE)


@in_quiet
def test_what_is_slower_is_worse(lab, tmp_path):
    """The server takes 2 ms, then 4 ms as requested: half of the rate, twice the latency."""
    before = drive(lab.url, tmp_path / "before.json", "-d2s")
    after = drive(f"{lab.url}?service=4ms", tmp_path / "after.json", "-d2s")
    text = compare(before, after)
    with timing():
        assert text.splitlines()[0] == "after was worse than before, beyond the scatter of their intervals"
        assert text.splitlines()[1].startswith("equal runs may differ as much")
        shown = re.search(r"^worse: (.*?)^(?:within|settings)", text, re.MULTILINE | re.DOTALL)[1]
        assert "requests/s, client" in shown and "latency, p50" in shown
        change = re.search(r"^requests/s, client .* -([\d.]+) %   beyond the intervals' scatter$", text, re.MULTILINE)
        assert 40 < float(change[1]) < 60
        assert compare(after, before).splitlines()[0].startswith("before was better than after")
    assert f"settings differ: target {lab.url} → {lab.url}?service=4ms\n" in text


@in_quiet
def test_folders_of_repeated_runs(lab, tmp_path):
    """Six runs of each, made in turn: the server takes 2 ms, then 20 ms as requested."""
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    for i in range(6):
        for folder, query in zip(folders, ("", "?service=20ms"), strict=True):
            run([DRIVER, lab.url + query, "-c4", "-d300ms", "--quiet", "--json", folder / f"{i}.json"])
    text = compare(*folders)
    with timing():
        assert text.splitlines()[0] == "after is worse than before, shown at 1 %"
        assert re.search(r"^requests/s, client .* -[\d.]+ %   p = 0\.00\d+: shown at 1 %$", text, re.MULTILINE)
        assert compare(f"{folders[1]}/", folders[0]).splitlines()[0] == "before is better than after, shown at 1 %"
    page = tmp_path / "page.html"
    run([OBSERVER, "report", "--compare", *folders, "-o", page])
    assert '"names":["before","after"],"sides"' in page.read_text()
    assert '{"names":["before, 1 of 6","before, 2 of 6",' in page.read_text()
    named = re.findall(r"^== (.*)", run([OBSERVER, "report", "-v", "--compare", *folders]).stdout, re.MULTILINE)
    assert named == [f"{side}, {i} of 6" for side in ("before", "after") for i in range(1, 7)]
    (folders[0] / "0.json").unlink()
    assert compare(*folders).splitlines()[0] == "whether after differs from before is not known: fewer than 6 runs"


def test_folders_that_cannot_be_compared(lab, tmp_path):
    (tmp_path / "empty").mkdir()
    path = drive(lab.url, tmp_path / "run.json")
    for files, why in (((path, tmp_path / "empty"), "without documents"), ((path, path), "give two documents")):
        done = run([OBSERVER, "report", "--compare", *files], check=False)
        assert done.status == 2 and why in done.stderr


def test_settings_are_named(lab, tmp_path):
    """Settings of the document and options from the command line, except output files."""
    before = drive(lab.url, tmp_path / "before.json")
    after = drive(lab.url, tmp_path / "after.json", "-c8", "--think=1ms", "--header=A: 1", "--nodelay", "off")
    named = re.search(r"^settings differ: (.*?)\n\n", compare(before, after), re.MULTILINE | re.DOTALL)[1]
    assert named.replace("\n", " ") == ("connections 4 → 8; think time none → 1.00 ms; "
                                        "options nothing → --header=A: 1 --nodelay off")


def test_too_short_to_tell(lab, tmp_path):
    """With two intervals of a second no difference is claimed."""
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        run([DRIVER, lab.url, "-d2s", "--quiet", "--json", path])
    assert compare(*paths).splitlines()[0] == "whether b differs from a is not known: fewer than 8 intervals"


def test_the_reports_follow_if_asked_for(lab, tmp_path):
    paths = [drive(lab.url, tmp_path / name, "-d1s") for name in ("a.json", "b.json")]
    short, long = compare(*paths), compare("-v", *paths)
    assert "== a" not in short and "round trip" not in short
    assert long.startswith(short)
    assert long[len(short):].startswith("\n== a\n") and "\n== b\n" in long
    assert long.count("round trip") >= 2
    assert load(paths[0])["driver"]["target"] in long
    for text, options in ((short, ()), (long, ("-v",))):
        assert re.sub(r"^    ", "", compare("-f", "markdown", *options, *paths), flags=re.MULTILINE) == text


def test_sweeps(lab, tmp_path):
    """One of the two sweeps has no plateau, so there is nothing to compare."""
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, ladder in zip(paths, ("1,2,3,4", "1,2,3"), strict=True):
        run([DRIVER, "sweep", lab.url, f"--ladder={ladder}", "-d200ms", "--warmup=100ms", "--quiet", "--json", path],
            seconds=60)
    text = compare(*paths)
    assert text.splitlines()[0].startswith("whether b differs from a is not known: they have no figure in common")
    assert "options --ladder=1,2,3,4 → --ladder=1,2,3\n" in text
