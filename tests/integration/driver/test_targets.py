# SPDX-License-Identifier: MIT
"""Several URLs on one command line: each server's own counters are the truth of its row."""
import collections
import csv
import io
import re
import time
from pathlib import Path

import pytest

from support.net import free_port
from support.pki import Pki
from support.process import run
from support.programs import DRIVER, Driver, Nginx
from support.recorder import Recorder


def errors(row):
    return {kind: count for kind, count in row["errors"].items() if count}


def by_name(driver, kind="targets"):
    return {row["name"]: row for row in driver.result[kind]}


@pytest.mark.parametrize("options", [("-t2",), ("--rate=4000",),
                                     ("--new-connections", "--close=rst")])
def test_rows_are_counted_as_the_servers_count(start, options):
    servers = [start(Nginx()), start(Nginx(server="location /no { return 404; }"))]
    urls = [servers[0].url, servers[1].url, f"{servers[1].url}no"]
    driver = Driver(urls[0], *urls[1:], *options, connections=6, count=3001, check=False)
    rows, counted = by_name(driver), [server.status() for server in servers]
    assert driver.status == 1 and list(rows) == urls and driver.result["target"] is None
    assert driver.result["requests"] == 3001
    assert rows[urls[0]]["requests"] == counted[0]["requests"]
    assert rows[urls[1]]["requests"] + rows[urls[2]]["requests"] == counted[1]["requests"]
    assert max(row["requests"] for row in rows.values()) - \
        min(row["requests"] for row in rows.values()) <= 6, "each client is within its turn"
    assert [errors(row) for row in rows.values()] == [{}, {}, {"status": rows[urls[2]]["requests"]}]
    assert driver.result["connects"] == sum(each["accepts"] for each in counted)
    if "--new-connections" not in options:
        assert [each["accepts"] for each in counted] == [6, 6], "one to each server"
    for name in ("round_trip",) + (("response_time",) if driver.result["rate"] else ()):
        assert sum(row[name]["count"] for row in rows.values()) == 3001
        assert sum(row[name]["sum_ns"] for row in rows.values()) == driver.result[name]["sum_ns"]
    assert "GET 3 targets in turn" in driver.report
    assert re.search(rf"^targets +{re.escape(urls[0])} · ", driver.report, re.MULTILINE)


def test_a_target_that_is_down_holds_no_other_up(start):
    """The requests to the absent target fail in their turn; the other target gets as many."""
    nginx, gone = start(Nginx()), f"http://127.0.0.1:{free_port()}/"
    driver = Driver(gone, nginx.url, connections=4, count=400, check=False)
    rows = by_name(driver)
    assert driver.status == 1
    assert errors(rows[gone]) == {"refused": driver.result["errors"]["refused"]}
    assert rows[gone]["requests"] == 0 and not errors(rows[nginx.url])
    assert nginx.status()["requests"] == rows[nginx.url]["requests"]
    assert abs(rows[nginx.url]["requests"] - rows[gone]["errors"]["refused"]) <= 4
    assert driver.result["connects"] == 4
    explained = [entry["explanation"] for entry in driver.result["failures"]]
    assert gone.split("/")[2] in explained[0], "the numbers are of the target that failed"


def test_http_and_https_are_one_kind(start):
    pki = Pki()
    try:
        cert, key = pki.issue("server", "IP:127.0.0.1")
        servers = [start(Nginx()), start(Nginx(
            listen_options="ssl", server=f"ssl_certificate {cert}; ssl_certificate_key {key};"))]
        urls = [servers[0].url, servers[1].url.replace("http:", "https:")]
        driver = Driver(urls[0], urls[1], "--ca", pki.ca, connections=3, count=300)
        both = Driver(urls[1], f"{urls[1]}b", "--ca", pki.ca, connections=3, count=30)
    finally:
        pki.close()
    rows = by_name(driver)
    asked = [row["requests"] for row in rows.values()]
    assert sum(asked) == 300 and abs(asked[0] - asked[1]) <= 3
    assert [server.status()["requests"] for server in servers] == [asked[0], asked[1] + 30]
    assert driver.result["tls"]["count"] == 3 and driver.result["unsampled"] is None
    assert both.result["connects"] == 3 and "handshake" in both.result["unsampled"]


def test_csv_has_a_row_for_each(start, tmp_path):
    servers = [start(Nginx()), start(Nginx())]
    path = tmp_path / "run.csv"
    driver = Driver(servers[0].url, f"{servers[1].url}a,b", "--csv", path, count=100)
    found = [row for row in csv.DictReader(io.StringIO(path.read_text())) if row["part"] == "target"]
    assert [row["name"] for row in found] == [servers[0].url, f"{servers[1].url}a,b"]
    for row, server, target in zip(found, servers, driver.result["targets"]):
        assert int(row["requests"]) == server.status()["requests"] == 50
        assert row["latency"] == "round_trip"
        assert int(row["p99_ns"]) == target["round_trip"]["p99_ns"]


@pytest.mark.parametrize("words, expected", [
    (("http://a/", "h2c://b/"), "cannot be asked in turn"),
    (("http://a/",) * 65, "65 URLs are given; up to 64"),
    (("--ca=x", "http://a/", "http://b/"), "--ca: http: targets have no TLS"),
    (("sweep", "http://a/", "http://b/", "--observer=http://127.0.0.1:1"), "--observer: 'http://127.0.0.1:1' sees"),
    (("sweep", "http://a/", "h2c://b/"), "cannot be asked in turn"),
])
def test_refused(words, expected):
    refused = run([DRIVER, *words], check=False)
    assert refused.status == 2 and expected in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_statuses_are_those_of_the_log(start):
    nginx = start(Nginx(server="access_log {folder}/access.log;location /no { return 503; }"))
    driver = Driver(nginx.url, f"{nginx.url}no", "-t2", connections=4, count=800, check=False)
    nginx.stop()
    text = Path(nginx.files.name, "access.log").read_text()
    asked = collections.Counter(re.findall(r'HTTP/1.1" (\d+) ', text))
    rows = by_name(driver, "statuses")
    assert list(rows) == ["200", "503"]
    for name, row in rows.items():
        assert row["requests"] == asked[name] == row["round_trip"]["count"]
    assert rows["503"]["errors"]["status"] == asked["503"] and not errors(rows["200"])
    assert sum(row["round_trip"]["sum_ns"] for row in rows.values()) == \
        driver.result["round_trip"]["sum_ns"]
    assert re.search(rf"^statuses +200 · {asked['200']} · ", driver.report, re.MULTILINE)


def test_latencies_of_each_status(start):
    """Responses with 429 take 20 ms longer, by the server's own sleep."""
    def answer(request):
        if request.path != "/busy":
            return 200
        time.sleep(0.02)
        return 429

    with Recorder(answer) as server:
        driver = Driver(server.url, f"{server.url}busy", connections=1, count=40, check=False)
        alone = Driver(server.url, count=10)
    rows = by_name(driver, "statuses")
    assert list(rows) == ["200", "429"]
    assert rows["429"]["round_trip"]["p50_ns"] > 20_000_000 > 2 * rows["200"]["round_trip"]["p50_ns"]
    assert list(by_name(alone, "statuses")) == ["200"] and "statuses" not in alone.report
    assert by_name(alone, "statuses")["200"]["round_trip"] == alone.result["round_trip"]
