# SPDX-License-Identifier: MIT
"""Caveats on a report's figures are in the report: their source, the number of exchanges, the losses."""
import json
import re
import shutil
import signal

import pytest

from support.browser import Page
from support.documents import service
from support.process import run
from support.programs import OBSERVER, Driver, Lab, Nginx, Observer

needs_chromium = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")


def test_samples_lost_are_told(start):
    """4 KiB of ring for 20,000 exchanges, and no driver that would miss them."""
    lab = start(Lab())
    observer = start(Observer("--ring", "4", ports=[lab.port]))
    observer.send(signal.SIGSTOP)  # else it may take them as fast as they come
    Driver(lab.url, connections=8, count=20_000)
    observer.send(signal.SIGCONT)
    observer.stop()
    entry = service(observer.summary(), lab.port)
    told = re.search(r"^(?:caveats)? +([\d,]+) samples lost: .*ring full", observer.stdout, re.MULTILINE)
    assert entry["samples"]["lost"] > 0
    assert int(told[1].replace(",", "")) == entry["samples"]["lost"]


@pytest.mark.parametrize("chosen", ["auto", "inferred", "syscall"])
def test_the_accept_source_is_told(start, chosen):
    """Connections of one request each, which every source can time."""
    nginx = start(Nginx())
    observer = start(Observer("--accept-source", chosen, ports=[nginx.port]))
    driver = Driver(nginx.url, "--new-connections", connections=2, count=100, observer=observer)
    observer.stop()
    source = service(driver.document, nginx.port)["stages"]["accept_queue"]["source"]
    assert source == chosen or chosen == "auto" and source in ("accept", "inferred")
    for report in (observer.stdout, driver.report):
        assert re.search(rf"^connections +accepted [\d,]+ · accept source {source} \((from the first read|when accept\(\) returned)\)( · |$)", report, re.MULTILINE), report


@pytest.mark.parametrize("kept", [20_000, 500], ids=["all", "some"])
def test_of_which_the_slowest_are(start, tmp_path, kept):
    lab = start(Lab())
    observer = start(Observer("--samples", kept, ports=[lab.port]))
    driver = Driver(lab.url, connections=4, count=4000, observer=observer)
    observer.stop()
    joined = driver.document["joined"]["joined"]
    said = f"\nslowest of those sampled, {joined:,} of 4,000 requests:\n"
    assert (joined == 4000) == (kept == 20_000)
    assert (said in driver.report) == (kept == 500)
    assert re.search(r"^slowest +[\d.]+ [mµ]?s  (at |(to [\d.]+ [mµ]?s: )?\d+ requests  )", driver.report, re.MULTILINE)
    if shutil.which("chromium"):
        path = tmp_path / "run.json"
        path.write_text(json.dumps(driver.document))
        run([OBSERVER, "report", path, "-o", tmp_path / "report.html"])
        page = Page(tmp_path / "report.html", tmp_path / "profile")
        assert page.console == []
        assert ("The slowest exchanges of those sampled" in page.text) == (kept == 500)
        assert (f"of {joined:,} of 4,000 requests: slower ones may not be" in page.text) == (kept == 500)


@needs_chromium
def test_the_page_has_caveats(start, tmp_path):
    """The document's own words and counts: sources, lost samples, responses not seen to leave."""
    nginx = start(Nginx())
    observer = start(Observer("--transmit", "all", ports=[nginx.port]))
    Driver(nginx.url, "--new-connections", connections=2, count=500)
    observer.stop()
    document = observer.summary()
    entry = service(document, nginx.port)
    source = entry["stages"]["transmit_queue"]["source"]
    for unseen, lost, told in ((0, 0, False), (51, 17, True)):
        entry["losses"]["transmit_unseen"], entry["samples"]["lost"] = unseen, lost
        path = tmp_path / "run.json"
        path.write_text(json.dumps(document))
        run([OBSERVER, "report", path, "-o", tmp_path / "report.html"])
        page = Page(tmp_path / "report.html", tmp_path / "profile")
        assert page.console == []
        assert f"transmit queue by {source}" in page.text
        accept = entry["stages"]["accept_queue"]["source"]
        name = "accept or socket queue" if accept == "inferred" else "accept queue"
        assert f"{name} by {accept}" in page.text
        assert ("51 of 500 responses followed were not seen to leave" in page.text) == told
        assert ("samples lost: single exchanges that found the ring full17" in page.text) == told
        text = run([OBSERVER, "report", "-v", path]).stdout
        assert ("the means are of those seen" in re.sub(r"\s+", " ", text)) == told
