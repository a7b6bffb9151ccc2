# SPDX-License-Identifier: MIT
"""The report as a page in a browser: it shows the document's own values, and loads nothing else."""
import csv
import json
import re

import pytest

from support.browser import Page, needs_browser
from support.conditions import needs_pypi
from support.documents import load, parse
from support.process import run
from support.programs import DRIVER, OBSERVER, Lab, Nginx, Observer

pytestmark = needs_browser


def member(document, path):
    for word in path.split("."):
        document = document[int(word) if word.isdigit() else word]
    return document


def report(*arguments):
    return run([OBSERVER, "report", *arguments])


def assert_same_as(page, documents):
    """Every value on the page equals the member of the document that it names."""
    assert page.cells
    for name, values in page.cells.items():
        index, _, path = name.partition(":")
        expected = member(documents[int(index)], path)
        assert all(float(value) == expected for value in values), name


MEASURED = []


@pytest.fixture
def measured(start, tmp_path):
    """Return the paths of two equal runs' documents. The first test to ask runs them for all."""
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    if not MEASURED:
        nginx = start(Nginx())
        observer = start(Observer("--route", "GET /", "--route", "/none", ports=[nginx.port]))
        for path in paths:
            run([DRIVER, nginx.url, "-c", 4, "-d", "1s", "--quiet", "--observer", observer.url,
                 "--json", path])
        observer.stop()
        MEASURED.extend(path.read_text() for path in paths)
    for path, text in zip(paths, MEASURED, strict=True):
        path.write_text(text)
    return paths


# For each chart: points beyond its axes, and labels of log axes that are no powers of ten. For the page:
# whether it is wider than the window.
CHARTS = """
const charts = drawn.map(({chart, canvas}) => {
	const {x, y} = chart.scales;
	const points = chart.options.indexAxis === "y" ? [] : chart.data.datasets.flatMap((set) => set.data)
		.filter((point) => !Number.isNaN(point.y));
	const after = chart.data.datasets.some((set) => set.label === "after its end");
	return {label: canvas.getAttribute("aria-label"), lowest: after ? 0 : Math.min(x.min, y.min), points: points.length,
		beyond: points.filter((point) => point.x < x.min - 1e-9 || point.x > x.max + 1e-9 || point.y > y.max * 1.001).length,
		zero: chart.data.datasets.filter((set) => set.data.every((value) => !(value.y ?? value))).length,
		decades: y.type === "logarithmic" ? y.ticks.filter((tick) => tick.label).map((tick) => tick.value) : null};
});
return {charts, overflow: document.documentElement.scrollWidth - innerWidth,
	parts: Object.fromEntries([...document.querySelectorAll(".bar span")].map((node) => [node.dataset.part, +node.dataset.value])),
	answer: document.querySelector(".answer").textContent, impaired: await impaired(), figures: [
	[0, 0.4, 1, 999, 999.6, 6100, 9996, 99951, 999501, 2e9, null].map(time), [0, 999, 1000, 1023488, 5e6].map(bytes),
	[0, 0.0001, 0.005, 0.0994, 0.1, 0.9949, 0.9961, 0.9999, 1, 1.5].map(percent), [0, 0.333, 3, 12.345, 99.96, 12345].map(perSecond)]};
"""
ACCESSIBLE = "return {impaired: await impaired()};"
# In the form of the text report (tests/unit/lib/base/units.c).
SHOWN = [["0 ns", "0 ns", "1 ns", "999 ns", "1.00 µs", "6.10 µs", "10.0 µs", "100 µs", "1.00 ms", "2.00 s", "–"],
         ["0 B", "999 B", "0.98 KiB", "0.98 MiB", "4.77 MiB"],
         ["0.0 %", "<0.1 %", "0.5 %", "9.9 %", "10 %", "99 %", "99.6 %", "99.9 %", "100 %", "150 %"],
         ["0", "0.33", "3", "12.3", "100", "12,345"]]


def is_drawn(found):
    """Charts stay within their axes, no line is all zeros, log axes label each decade. Nothing is wider than
    the page, and axe-core has no serious finding."""
    assert found["overflow"] <= 0 and not found["impaired"]
    for chart in found["charts"]:
        assert chart["beyond"] == 0 and chart["zero"] == 0 and chart["lowest"] >= 0, chart
        for low, high in zip(chart["decades"] or [], (chart["decades"] or [])[1:]):
            assert high / low <= 10.001, chart
    return True


def verdict_of(path):
    lines = report(path).stdout.splitlines()
    end = next(i for i, line in enumerate(lines) if not line)
    return " ".join(" ".join(lines[1:end]).split())


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_shows_the_document(measured, tmp_path, width):
    target = tmp_path / "report.html"
    report(measured[0], "-o", target)
    # The page is self-contained: no address but those that the document names.
    text = target.read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", text)
    assert "default-src 'none'" in text
    page = Page(target, tmp_path / "profile", width, CHARTS)
    document = load(measured[0])
    assert page.console == []
    assert is_drawn(page.probe) and page.probe["figures"] == SHOWN
    assert {chart["label"] for chart in page.probe["charts"]} >= {
        "latency by percentile", "share of each part in slow requests", "timelines of the slowest exchanges"}
    assert_same_as(page, [document])
    assert {"0:driver.requests", "0:driver.round_trip.p99_ns", "0:services.0.exchanges", "0:services.0.routes.list.0.count",
            "0:joined.tail.0.sum.stages.service"} <= set(page.cells)
    for heading in ("Where a request's time goes", "Latency by percentile",
                    "What makes slow requests slow", "The slowest exchanges", "Commands"):
        assert heading in page.text
    # The verdict is the text report's, and the bar is the mean round trip.
    assert page.probe["answer"] in verdict_of(measured[0]) and len(page.probe["answer"]) > 30
    mean_ns, joined = document["driver"]["round_trip"]["mean_ns"], document["joined"]
    overhang_ns = joined["sum"]["overhang_ns"] / joined["joined"] if joined["joined"] else 0
    assert 0.98 * mean_ns <= sum(page.probe["parts"].values()) <= 1.02 * (mean_ns + overhang_ns)
    assert page.text.index(page.probe["answer"]) < page.text.index("per second, at the client")


@needs_pypi
def test_accessibility_is_looked_at(tmp_path):
    """The check that the other tests use finds two defects of a page."""
    path = tmp_path / "page.html"
    path.write_text('<html lang="en"><title>x</title><body style="background:#fff"><main><h1>x</h1><p style="color:#ddd">pale</p>'
                    '<img src="data:,"></main></body></html>')
    found = Page(path, tmp_path / "profile", probe=ACCESSIBLE).probe["impaired"]
    assert sorted(one.split(": ")[1] for one in found) == ["color-contrast", "color-contrast", "image-alt", "image-alt"]


def test_rows_by_target_and_status(start, tmp_path):
    nginx = start(Nginx(server="location /no { return 404; }"))
    path, target = tmp_path / "run.json", tmp_path / "report.html"
    run([DRIVER, nginx.url, f"{nginx.url}no", "-n", 300, "--quiet", "--json", path], check=False)
    report(path, "-o", target)
    page = Page(target, tmp_path / "profile")
    document = load(path)
    assert page.console == []
    assert_same_as(page, [document])
    shown = {f"0:driver.{kind}.{i}.{value}" for kind in ("targets", "statuses") for i in (0, 1)
             for value in ("requests", "round_trip.p99_ns", "round_trip.max_ns")}
    assert shown <= set(page.cells)
    assert [row["name"] for row in document["driver"]["statuses"]] == ["200", "404"]
    for text in ("2 targets in turn", "By step, target and status", f"{nginx.url}no"):
        assert text in page.text


SCENARIO = """
target: {url}
load: {{connections: 2, requests: 200}}
steps:
- {{name: light, path: /}}
- {{name: slow & heavy, path: "/?service=3ms"}}
"""


def test_where_the_time_of_each_step_goes(start, tmp_path):
    """For one run and for two: the slow step's time is service, as configured in the lab server."""
    lab = start(Lab())
    observer = start(Observer(ports=[lab.port]))
    file, paths = tmp_path / "scenario.yaml", [tmp_path / "a.json", tmp_path / "b.json"]
    file.write_text(SCENARIO.format(url=lab.url))
    for path in paths:
        run([DRIVER, "run", file, "--quiet", "--observer", observer.url, "--json", path])
    observer.stop()
    documents = [load(path) for path in paths]
    for files, expected in ((paths[:1], documents[:1]), (["--compare", *paths], documents)):
        report(*files, "-o", tmp_path / "report.html")
        page = Page(tmp_path / "report.html", tmp_path / "profile")
        assert page.console == []
        assert_same_as(page, expected)
        shown = {f"{i}:joined.steps.{step}.{member}" for i in range(len(expected)) for step in (0, 1)
                 for member in ("count", "sum.round_trip_ns", "sum.network_ns", "sum.stages.service")}
        assert shown <= set(page.cells)
        assert "Where each step's time goes" in page.text and "slow & heavy" in page.text
    assert documents[0]["joined"]["steps"][1]["count"] == 100
    rows = list(csv.DictReader(report(paths[0], "-f", "csv").stdout.splitlines()))
    joined = {row["latency"]: float(row["mean_ns"]) for row in rows
              if row["part"] == "joined" and row["name"] == "slow & heavy"}
    assert joined["service"] > 3e6 and joined["socket_queue"] >= 0
    parts = sum(value for name, value in joined.items() if name not in ("round_trip", "wait", "overhang"))
    assert abs(parts - joined.get("overhang", 0) - joined["round_trip"]) < 10
    # With another driver's document there are no joined exchanges for all, so none by step.
    run([DRIVER, "run", file, "--quiet", "--json", tmp_path / "alone.json"])
    merged = parse(report(paths[0], tmp_path / "alone.json", "-f", "json").stdout)
    assert sum(row["requests"] for row in merged["driver"]["steps"]) == 400 and not merged.get("joined")


def swept(lab, path, ladder):
    run([DRIVER, "sweep", lab.url, f"--ladder={ladder}", "-d300ms", "--warmup=100ms", "--think=20ms", "--quiet",
         "--json", path], seconds=120)
    return load(path)


def test_a_sweep(start, tmp_path):
    """Steps and results are the document's, on the page and in the text; a sweep without a plateau says why."""
    lab = start(Lab("--service", "5ms", "--block"))
    path, target = tmp_path / "sweep.json", tmp_path / "report.html"
    for ladder in ("1,2,3", "1,2,4,8,16,32,64"):
        document = swept(lab, path, ladder)
        found = document["sweep"]
        report(path, "-o", target)
        page = Page(target, tmp_path / "profile", probe=ACCESSIBLE)
        assert page.console == [] and "Where a request's time goes" not in page.text and not page.probe["impaired"]
        assert_same_as(page, [document])
        assert {f"0:sweep.steps.{i}.{member}" for i in range(len(found["steps"]))
                for member in ("load", "latency.p50_ns", "latency.p99_ns", "errors")} <= set(page.cells)
        assert page.canvases == 2  # throughput and latency by load
        text = report(path).stdout
        rows = re.findall(r"^ +(\d+) +([\d.,]+) .*$", text, re.MULTILINE)
        assert [int(load) for load, _ in rows] == [step["load"] for step in found["steps"]]
        for (_, rate), step in zip(rows, found["steps"], strict=True):
            assert step["good"] == step["requests"]
            good = (step["requests"] - step["drained"]) / step["duration_ns"] * 1e9
            assert abs(float(rate.replace(",", "")) - good) <= max(1, 0.01 * good)
        assert "Nothing was lost" not in page.text  # unknown for a sweep
        if found["plateau"] is None:
            assert found["unfitted"] in page.text and re.search("^plateau +none: ", text, re.MULTILINE)
            assert "knee" not in page.text
        else:
            assert {"0:sweep.plateau", "0:sweep.knee"} <= set(page.cells)
            assert "◄ knee" in text
            assert re.search(rf"^plateau +{found['plateau']:,} requests/s from ", text, re.MULTILINE)
    assert ladder != "1,2,3" and len(found["steps"]) >= 5


def test_runs_side_by_side(measured, tmp_path):
    target = tmp_path / "report.html"
    report("--compare", *measured, "-o", target)
    page = Page(target, tmp_path / "profile", probe=ACCESSIBLE)
    assert page.console == [] and not page.probe["impaired"]
    assert_same_as(page, [load(path) for path in measured])
    assert any(name.startswith("1:") for name in page.cells)
    assert "Compared with the first run" in page.text
    text = report("--compare", *measured).stdout
    assert re.search(r"^requests/s, client +[\d.,]+/s +[\d.,]+/s +[+-][\d.]+ %", text, re.MULTILINE)
    # The answer comes first.
    answer = text.splitlines()[0]
    assert page.text.index(answer) < page.text.index("Where a request's time goes")


def test_names_from_elsewhere_are_text(measured, tmp_path):
    """A process may have any name, and so may a document."""
    document = load(measured[0])
    evil = "</script><img src=x onerror=console.error(1)><b>&amp;"
    document["host"] = evil
    document["command"] = ["sojourn-drive", evil]
    document["services"][0]["processes"][0]["comm"] = "<b>\"'</b>"
    # As of --http: what is zero needs no column.
    streams = {"reason": None, "connections": 4, "given_up": 0, "streams": 321, "reset_by_client": 7, "reset_by_server": 0,
               "refused": 0, "lost": 0, "goaways": 0}
    document["services"][0]["http2"] = streams
    path, target = tmp_path / "evil.json", tmp_path / "report.html"
    path.write_text(json.dumps(document))
    report(path, "-o", target)
    page = Page(target, tmp_path / "profile")
    assert page.console == []
    assert evil in page.text
    assert_same_as(page, [document])
    assert {name for name in page.cells if ".http2." in name} == {
        f"0:services.0.http2.{member}" for member in ("connections", "streams", "reset_by_client")}
    # In Markdown, nothing is outside of an indented block of code.
    assert all(line.startswith("    ") or not line for line in report(path, "-f", "markdown").stdout.splitlines())


HOST_ROWS = """
return {overflow: document.documentElement.scrollWidth - innerWidth, impaired: await impaired(), charts: [],
	rows: [...[...document.querySelectorAll("section")].find((node) => node.querySelector("h2")?.textContent === "Hosts")
		.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent))};
"""


def test_hosts_are_compared(measured, tmp_path):
    document = load(measured[0])
    paths, target = [tmp_path / f"{i}.json" for i in range(3)], tmp_path / "report.html"
    for i, path in enumerate(paths):
        alone = {member: value for member, value in document.items() if member not in ("driver", "joined", "phases")}
        alone["host"] = f"<b>web-{i}"
        path.write_text(json.dumps(alone))
    report(*paths, "-o", target)
    text = report(*paths).stdout
    page = Page(target, tmp_path / "profile", 500, HOST_ROWS)
    assert page.console == [] and is_drawn(page.probe)
    assert page.text.count("of the mean time at the server") == 0 and "no host is the slow one" in page.text
    head, *rows = page.probe["rows"]
    assert head == ["host", "requests", "mean at the server", "p99 service", "most of the mean"]
    assert sorted(row[0] for row in rows) == ["<b>web-0", "<b>web-1", "<b>web-2"]
    service = document["services"][0]
    for row in rows:
        assert row[1] == f"{service['exchanges']:,}"
        # The text has the same row.
        line = next(line.split() for line in text.splitlines() if line.split()[:1] == row[:1])
        assert " ".join(line[1:]) == " ".join(row[1:])


def test_only_its_own_scripts_run(measured, tmp_path):
    """If data ever became a part of the page, its policy would still refuse what bears no nonce, or another page's."""
    target, other = tmp_path / "report.html", tmp_path / "other.html"
    for path in (target, other):
        report(measured[0], "-o", path)
    nonce = re.search(r'<script nonce="(\w{32})"', other.read_text())[1]
    text = target.read_text()
    policy = re.search(r'content="(default-src[^"]*)"', text)[1]
    assert nonce not in text and "unsafe" not in policy
    assert "base-uri 'none'" in policy and "form-action 'none'" in policy
    evil = f'<script>document.title = "run"</script><script nonce="{nonce}">document.title = "run"</script>' \
        '<img src="data:," onerror="document.title = \'run\'">'
    target.write_text(text.replace("</body>", evil + "</body>"))
    page = Page(target, tmp_path / "profile")
    assert "<title>run</title>" not in page.html
    assert len([line for line in page.console if "Content Security Policy" in line]) == 3


@pytest.mark.parametrize("arguments, said", [
    (["--compare"], "two documents"),
    (["--compare", "-f", "json"], "--compare keeps"),
    (["-f", "pdf"], "text, html, markdown"),
    (["-o", "-", "--json", "-"], "only one"),
])
def test_wrong_options_write_nothing(measured, arguments, said):
    files = measured[:1] if said == "two documents" else measured
    result = run([OBSERVER, "report", *files, *arguments], check=False)
    assert result.status == 2
    assert len(result.stderr.splitlines()) == 1 and said in result.stderr
    assert result.stdout == ""
