# SPDX-License-Identifier: MIT
"""`sojourn serve` before real clients: Prometheus, curl with certificates, a browser."""
import contextlib
import json
import math
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest

from support import ROOT, http
from support.browser import Page, needs_browser, with_probe
from support.documents import parse, service
from support.net import free_port
from support.process import Process, run, wait_until
from support.programs import DRIVER, LAB, OBSERVER, Driver, Lab, Nginx, out_of_descriptors

TOKEN = "0123456789abcdefghijklmnopqr"


class Serve(Process):
    """`sojourn serve` on a free port: Serve(port).url"""

    def __init__(self, port, *options, netns=None):
        super().__init__([OBSERVER, "serve", "--port", port, "--listen", "127.0.0.1:0", *options],
                         netns=netns)
        with self.coming_up():
            self.url = self.wait_for(r"listening on (https?://\S+)", "stderr", 30)[1].rstrip("/")

    def get(self, path):
        return http.request(self.url + path, "GET", None)


class Prometheus(Process):
    def __init__(self, target, folder):
        self.port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
            "scrape_configs": [{"job_name": "sojourn", "static_configs": [
                {"targets": [target.removeprefix("http://")]}]}]}))
        super().__init__(["prometheus", f"--config.file={config}",
                          f"--storage.tsdb.path={folder / 'data'}",
                          "--enable-feature=exemplar-storage",
                          f"--web.listen-address=127.0.0.1:{self.port}"])

    def api(self, path, query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}query={urllib.parse.quote(query)}"
        return json.loads(http.request(url, "GET", None))["data"]

    def ask(self, query):
        return [float(one["value"][1]) for one in self.api("query?", query)["result"]]

    def exemplars(self, query):
        """Return those of the last minute, without the labels of their series."""
        now = time.time()
        return [exemplar for series in self.api(f"query_exemplars?start={now - 60}&end={now + 1}&", query)
                for exemplar in series["exemplars"]]

    def wait(self, query, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                values = self.ask(query)
            except OSError:
                values = []
            if values and condition(values):
                return values
            time.sleep(0.2)
        raise AssertionError(f"{query}: {values}")


def edges_of(text):
    return sorted({float(edge) for edge in re.findall(r'le="([\d.]+)"', text)})


def bucket_of(edges, seconds):
    return max(e for e in [0, *edges] if e <= seconds * 1.000001), min(e for e in edges if e >= seconds)


def test_the_list_of_routes(start):
    """GET / lists the routes of docs/metrics.md, and all of them answer."""
    serve = start(Serve(free_port()))
    listed = {tuple(line.split()[:2]) for line in serve.get("/").splitlines() if re.match("GET|POST", line)}
    endpoint = (ROOT / "docs/metrics.md").read_text().split("\n## The endpoint\n")[1]
    documented = re.findall(r"`(GET|POST) (?:/api)?(/[^`?]*)[^`]*`(?=[^|]*\|)", endpoint)
    assert listed == {(method, path.replace("/N/", "/{id}/")) for method, path in documented}
    for method, path in listed:
        status = run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, serve.url + path.replace("{id}", "7")])
        # 401: there is no token. 503: this host may be exhausted. 400: /v1/clients wants a port.
        assert status.stdout in (("401",) if method == "POST" else ("200", "503") if path == "/healthz"
                                 else ("400",) if path == "/v1/clients" else ("200",)), path


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_prometheus_knows_what_we_know(start, tmp_path):
    """Counts equal the driver's; a p99 of PromQL is within a bucket of ours."""
    lab = start(Lab())
    serve = start(Serve(lab.port))
    prometheus = start(Prometheus(serve.url, tmp_path))
    prometheus.wait("sojourn_exchanges_total", lambda v: v == [0])
    driver = Driver(f"{lab.url}?service=20ms", connections=4, count=200)
    assert driver.result["requests"] == 200
    assert prometheus.wait("sojourn_exchanges_total", lambda v: v[0] >= 200) == [200]
    assert prometheus.ask('sojourn_stage_seconds_count{stage="service"}') == [200]
    assert prometheus.ask("up") == [1]
    time.sleep(0.5)
    quantile = prometheus.ask('histogram_quantile(0.99, '
                              'sojourn_stage_seconds_bucket{stage="service"})')[0]
    document = parse(serve.get("/v1/run"))
    ours = document["services"][0]["stages"]["service"]["p99_ns"] / 1e9
    low, high = bucket_of(edges_of(serve.get("/metrics")), ours)
    assert low <= quantile <= high, (low, quantile, high, ours)
    for accept in ("text/plain", "application/openmetrics-text"):
        text = run(["curl", "-sf", "-H", f"Accept: {accept}", serve.url + "/metrics"]).stdout
        if accept == "text/plain":
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                  capture_output=True, check=False)
            assert done.returncode == 0 and done.stderr == "", done.stderr
        assert re.search(r"^sojourn_exchanges_total\{.*\} 200$", text, re.MULTILINE)


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_exemplars_are_requests_of_nginx(start, tmp_path):
    """A real Prometheus keeps them. Each names a request that nginx has logged at that time, and its slow stage."""
    lab = start(Lab("--service", "30ms"))
    log = tmp_path / "requests"
    nginx = start(Nginx(http_block="log_format requests '$remote_addr:$remote_port $connection_requests $msec "
                                   "$request_time';",
                        server=f"access_log {log} requests; location /slow {{ proxy_pass {lab.url}; }}"))
    serve = start(Serve(nginx.port, "--samples", "1000"))
    prometheus = start(Prometheus(serve.url, tmp_path))
    for path, count in (("", 30), ("slow", 8)):
        Driver(f"{nginx.url}{path}", connections=2, count=count)
    query = 'sojourn_stage_seconds_bucket{stage="service"}'
    wait_until(lambda: any(float(one["value"]) > 0.03 for one in prometheus.exemplars(query)), 20)
    found = prometheus.exemplars(query)
    logged = {tuple(line.split()[:2]): tuple(map(float, line.split()[2:])) for line in log.read_text().splitlines()}
    for exemplar in found:
        labels, value = exemplar["labels"], float(exemplar["value"])
        ended, seconds = logged[labels["peer"], labels["request"]]
        assert abs(exemplar["timestamp"] - ended) < 0.02, (exemplar, ended)
        assert abs(value - seconds) < 0.01 and float(labels["service"]) == pytest.approx(value, rel=0.006)
        assert {"queue", "receive", "respond"} < set(labels)
    assert {float(one["value"]) > 0.03 for one in found} == {True, False}
    assert "# {" not in run(["curl", "-sf", "-H", "Accept: text/plain", serve.url + "/metrics"]).stdout


def expressions(port):
    """Return {panel: [expression…]} of the dashboard, with its variables replaced as by Grafana."""
    dashboard = json.loads((ROOT / "packaging/grafana/sojourn.json").read_text())
    variables = {"$instance": ".*", "$port": str(port), "$__rate_interval": "5s"}
    found = {}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in variables.items():
                expression = expression.replace(name, value)
            assert "$" not in expression, expression
            found.setdefault(panel["title"], []).append(expression)
    return found


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_every_panel_of_the_dashboard_has_data(start, tmp_path):
    """In a real Prometheus, under load, with one exhausted resource: a process without a free descriptor."""
    lab = start(Lab())
    hungry = start(out_of_descriptors())
    hungry.wait_for("^full$")
    serve = start(Serve(lab.port))
    prometheus = start(Prometheus(serve.url, tmp_path))
    start([DRIVER, lab.url, "--rate", "100", "-c", "2", "-d", "1h", "--quiet"])
    prometheus.wait("rate(sojourn_exchanges_total[5s])", lambda values: values[0] > 0)
    for panel, queries in expressions(lab.port).items():
        for query in queries:
            values = prometheus.wait(query, lambda values: any(not math.isnan(value) for value in values))
            assert all(value >= 0 for value in values if not math.isnan(value)), (panel, query, values)
    assert prometheus.ask('sojourn_finding_objects{id="fds-exhausted"}') >= [1]
    assert prometheus.ask("sojourn_build_info") == [1]
    coarse, fine = (edges_of(one.get("/metrics")) for one in
                    (serve, start(Serve(lab.port, "--buckets", "fine"))))
    assert len(coarse) == 17 and len(fine) == 48


def certificate(folder, name, issuer=None, purpose=None):
    """Return a certificate for 127.0.0.1 and its key, signed by @issuer or itself. With a purpose it is no
    authority."""
    key, cert = folder / f"{name}.key", folder / f"{name}.crt"
    signer = ["-CA", folder / f"{issuer}.crt", "-CAkey", folder / f"{issuer}.key"] if issuer else []
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert, *signer,
         *(["-addext", "basicConstraints=CA:FALSE", "-addext", f"extendedKeyUsage={purpose}"] if purpose else [])])
    return cert, key


def curl(url, *options):
    done = run(["curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", *options, url],
               check=False)
    return int(done.stdout or 0)


def test_tls_and_tokens(start, tmp_path):
    nginx = start(Nginx())
    cert, key = certificate(tmp_path, "server")
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    serve = start(Serve(nginx.port, "--tls-cert", cert, "--tls-key", key, "--token-file", token))
    assert serve.url.startswith("https://")
    url = serve.url + "/v1/services"
    bearer = ["-H", f"Authorization: Bearer {TOKEN}"]
    assert curl(url, "--cacert", cert, *bearer) == 200
    assert curl(url, "--cacert", cert) == 401
    # A probe shows nothing, and learns only that the observer lives.
    assert curl(serve.url + "/livez", "--cacert", cert) == 200
    assert curl(serve.url + "/livez", "--cacert", cert, "-X", "POST") == 401
    assert curl(serve.url + "/livez", "--cacert", cert, "-H", "Host: elsewhere.test") == 421
    assert curl(serve.url + "/healthz", "--cacert", cert) == 401
    assert curl(url, "--cacert", cert, "-H", "Authorization: Bearer " + TOKEN[:-1] + "x") == 401
    assert curl(url, *bearer) == 0  # the client does not know the certificate's issuer
    assert curl(url.replace("https", "http"), *bearer) == 0


def test_the_driver_is_let_in(start, tmp_path):
    """An observer with TLS and a token brackets the driver's phase; without either the driver says why not."""
    nginx = start(Nginx())
    cert, key = certificate(tmp_path, "server")
    token, other = tmp_path / "token", tmp_path / "other"
    token.write_text(TOKEN + "\n")
    other.write_text(TOKEN[:-1] + "x")
    serve = start(Serve(nginx.port, "--tls-cert", cert, "--tls-key", key, "--token-file", token))
    known = ("--observer-ca", cert)
    by_file = Driver(nginx.url, *known, "--observer-token-file", token, observer=serve, count=300)
    by_variable = run(["env", f"SOJOURN_OBSERVER_TOKEN={TOKEN}", DRIVER, nginx.url, "-n200", *known,
                       "--observer", serve.url, "--json", "-"])
    for document, count in ((by_file.document, 300), (parse(by_variable.stdout), 200)):
        assert document["services"][0]["exchanges"] == count
        assert TOKEN not in json.dumps(document)
    for options, expected in ((known, "wants a bearer token: --observer-token-file"),
                              ((*known, "--observer-token-file", other), "another bearer token"),
                              (("--observer-token-file", token), "certificate")):
        refused = run([DRIVER, nginx.url, "-n10", *options, "--observer", serve.url], check=False)
        assert refused.status == 1 and expected in refused.stderr, refused.stderr
    assert nginx.status()["requests"] == 500, "no load without the observer"


def test_exchanges_are_joined_if_they_are_kept(start):
    """Without --samples the report says how to get them; with it each exchange of the driver is one of the observer."""
    nginx = start(Nginx())
    without = Driver(nginx.url, observer=start(Serve(nginx.port)), count=100)
    assert "the observer took no samples (sojourn serve does with --samples)" in without.report
    kept = Driver(nginx.url, observer=start(Serve(nginx.port, "--samples", "1000")), count=100)
    assert kept.document["joined"]["joined"] == 100


def test_mutual_tls(start, tmp_path):
    """Only client certificates of the authority are accepted, not the authority's own, and no TLS older than 1.2."""
    cert, key = certificate(tmp_path, "server")
    authority = certificate(tmp_path, "authority")
    friend = certificate(tmp_path, "friend", "authority", "clientAuth")
    colleague = certificate(tmp_path, "colleague", "authority", "serverAuth")
    stranger = certificate(tmp_path, "stranger", purpose="clientAuth")
    serve = start(Serve(1, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", authority[0]))
    url = serve.url + "/healthz"
    assert curl(url, "--cacert", cert, "--cert", friend[0], "--key", friend[1]) == 200
    for other in (colleague, stranger, authority):
        assert curl(url, "--cacert", cert, "--cert", other[0], "--key", other[1]) in (0, 403), other
    assert curl(url, "--cacert", cert) in (0, 403)


def handshake(url, *options):
    done = subprocess.run(["openssl", "s_client", "-connect", url.removeprefix("https://"), *options],
                          input="", capture_output=True, text=True, timeout=20, check=False)
    return done.stdout


def test_tls_is_new_and_keeps_secrets_forward(start, tmp_path):
    cert, key = certificate(tmp_path, "server")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    serve = start(Serve(1, "--tls-cert", cert, "--tls-key", key, "--token-file", token))
    assert "New, TLSv1.3, Cipher is " in handshake(serve.url)
    assert "New, TLSv1.2, Cipher is ECDHE-" in handshake(serve.url, "-tls1_2")
    weak = ["-cipher", "DEFAULT@SECLEVEL=0"]
    for old in (["-tls1_1", *weak], ["-tls1", *weak], ["-tls1_2", "-cipher", "kRSA@SECLEVEL=0"]):
        assert "Cipher is (NONE)" in handshake(serve.url, *old), old


def test_renewed_without_a_restart(start, tmp_path):
    """The next connection gets the new certificate, the next request needs the new token. A file that is no
    certificate changes nothing."""
    cert, key = certificate(tmp_path, "server")
    new_cert, new_key = certificate(tmp_path, "renewed")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    serve = start(Serve(1, "--tls-cert", cert, "--tls-key", key, "--token-file", token))
    assert f"every user of this host can read '{token}': chmod 600" in serve.output("stderr")
    url, old = serve.url + "/healthz", tmp_path / "old.crt"
    shutil.copy(cert, old)
    bearer = ["-H", f"Authorization: Bearer {TOKEN}"]
    assert curl(url, "--cacert", old, *bearer) == 200

    cert.write_text("nothing of the kind")
    wait_until(lambda: curl(url, "--cacert", old, *bearer) == 200 and
               f"'{cert}' has changed and cannot be used, as it is not a PEM file" in serve.output("stderr"))
    new_key.rename(key)
    new_cert.rename(cert)
    wait_until(lambda: curl(url, "--cacert", cert, *bearer) == 200)
    assert curl(url, "--cacert", old, *bearer) == 0

    token.write_text(TOKEN[::-1])
    wait_until(lambda: curl(url, "--cacert", cert, "-H", f"Authorization: Bearer {TOKEN[::-1]}") == 200)
    assert curl(url, "--cacert", cert, *bearer) == 401


def test_another_authority_without_a_restart(start, tmp_path):
    """The next connection needs a certificate of the new authority; the old one's clients are out."""
    cert, key = certificate(tmp_path, "server")
    authority = certificate(tmp_path, "authority")[0]
    friend = certificate(tmp_path, "friend", "authority", "clientAuth")
    successor = certificate(tmp_path, "successor")[0]
    colleague = certificate(tmp_path, "colleague", "successor", "clientAuth")
    asked = tmp_path / "asked.crt"
    shutil.copy(authority, asked)
    serve = start(Serve(1, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", asked))
    url = serve.url + "/healthz"

    def answer(client):
        return curl(url, "--cacert", cert, "--cert", client[0], "--key", client[1])

    assert answer(friend) == 200 and answer(colleague) in (0, 403)
    successor.rename(asked)
    wait_until(lambda: answer(colleague) == 200)
    assert answer(friend) in (0, 403)


@pytest.mark.parametrize("options, said", [
    (["--listen", "0.0.0.0:0"], "--open"),
    (["--listen", "[::]:0"], "--open"),
    (["--tls-cert", "/dev/null"], "PEM"),
    (["--token-file", "/nonexistent"], "--token-file"),
    (["--token-file", "/dev/null"], "22 characters"),
    (["--host", "a:80"], "without a port"),
])
def test_what_is_not_safe_is_refused(options, said):
    done = run([OBSERVER, "serve", "--port", "1", *options], check=False)
    assert done.status == 2
    assert len(done.stderr.splitlines()) == 1 and said in done.stderr


def test_thousand_connections_and_slow_ones_do_no_harm(start):
    """Silent connections do not stop the observation. After they have gone, the next one is answered (for their
    time limit see unit.observer.http_abuse)."""
    nginx = start(Nginx())
    serve = start(Serve(nginx.port))
    host, port = serve.url.removeprefix("http://").split(":")
    script = ("import socket, sys, time\n"
              "s = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(1000)]\n"
              "for one in s: one.send(b'GET / HT')\n"
              "print('ready', flush=True)\n"
              "time.sleep(60)\n")
    held = start(Process(["python3", "-c", script, host, port]))
    held.wait_for("ready")
    assert Driver(nginx.url, connections=2, count=100).result["requests"] == 100
    held.close()
    assert curl(serve.url + "/healthz", "--retry", "5", "--retry-all-errors") == 200
    assert json.loads(serve.get("/v1/services"))["services"][0]["exchanges"] == 100


# A user's actions on the page, and its contents after each.
VISIT = """
const rows = () => [...document.querySelectorAll(".services tbody tr")];
const names = () => rows().map((row) => row.querySelector(".which").textContent);
const head = (text) => [...document.querySelectorAll(".services thead button")].find((button) => button.textContent === text);
const until = async (what) => { for (let i = 0; i < 200 && !what(); i++) await sleep(20); return what(); };
const found = {};

await until(() => rows().length);
const opened = state.now;
found.painted_at = state.before === null ? "first" : "later";
found.first = Object.fromEntries(rows().map((row) => [row.querySelector("[data-member]").dataset.member, {
	cells: Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.className, cell.textContent])),
	points: row.querySelector(".spark polyline").getAttribute("points").split(" ").length,
	parts: [...row.querySelectorAll(".bar span")].map((part) => +part.dataset.value)}]));
found.canvases = document.querySelectorAll("canvas").length;
found.cards = document.querySelectorAll(".finding").length === state.judged.findings.length;

head("service").click();
found.ascending = [names(), head("service").parentNode.ariaSort];
head("service").click();
found.descending = [names(), head("service").parentNode.ariaSort];
const filter = document.querySelector("input[type=search]");
filter.value = "nginx";
filter.dispatchEvent(new Event("input"));
found.filtered = names();

document.querySelector(".services .which").click();
await until(() => document.querySelector("#detail canvas"));
found.expanded = document.querySelector(".services .which").ariaExpanded;
found.command = document.querySelector(".command code").textContent;
found.statuses = detail.statuses.textContent;
found.charts = drawn.map(({chart, canvas}) => ({label: canvas.getAttribute("aria-label"), lines: chart.data.datasets.map((set) => set.label),
	beyond: chart.data.datasets.flatMap((set) => set.data).filter(({x}) => x < chart.scales.x.min - 0.001 || x > chart.scales.x.max + 0.001).length}));
found.exchanges = state.detail.services.filter((service) => service.series).flatMap((service) => service.series.exchanges).reduce((a, b) => a + b);
const span = document.querySelector("select");
span.value = [...span.options].find((option) => option.textContent === "24 hours").value;
span.dispatchEvent(new Event("change"));
await until(() => state.past && state.asked.detail.path.includes("last=86400") && document.querySelector("#detail canvas"));
found.day = serviceLike(state.past, openKey()).series.exchanges.reduce((a, b) => a + b);

filter.value = "";
filter.dispatchEvent(new Event("input"));
location.hash = "tcp:BUSY";
await until(() => detail.key && detail.key.startsWith("tcp:BUSY") && detail.heated.size && detail.clients.textContent);
[...document.querySelectorAll("button")].find((button) => button.textContent === "pause").click();
await until(() => !asking);
const timed = ({services}) => services.find(({port}) => port === BUSY).stages.service.count;
found.heat = [cellsOf(detail.key, "service", 0).reduce((sum, {n}) => sum + n, 0), timed(state.now) - timed(opened)];
found.clients = detail.clients.textContent;
found.labels = drawn.map(({canvas}) => canvas.getAttribute("aria-label"));
found.impaired = await impaired();
const {duration_ns} = state.now;
await sleep(2500);
found.paused = state.now.duration_ns === duration_ns;
state.judged = {not_seen: [], findings: [{severity: "critical", id: "x", object: "<b>here</b>", what: "no more", command: "do this"}]};
draw();
found.card = document.querySelector(".finding").textContent;
found.pill = document.querySelector(".pill").textContent;
found.overflow = document.documentElement.scrollWidth - innerWidth;
return found;
"""


@needs_browser
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_lives(start, tmp_path, width):
    """Full at its first paint; sorted, filtered and opened as the user wants; its values are the service's."""
    nginx, lab, busy = start(Nginx()), start(Lab()), start(Lab())
    serve = start(Serve(f"{nginx.port},{lab.port},{busy.port}", "--route", "GET /"))
    Driver(nginx.url, connections=2, count=321)
    load = start(Process([DRIVER, busy.url, "-c1", "--rate=1000", "-d60s", "--quiet"]))
    for query in ("", "?last=86400&step=10", f"?last=1&port={nginx.port}"):
        past = service(parse(serve.get("/v1/past" + query)), nginx.port)
        assert sum(past["series"]["exchanges"]) == past["exchanges"] == 321
    with with_probe(serve.url, VISIT.replace("BUSY", str(busy.port))) as url:
        page = Page(url + "/", tmp_path, width, milliseconds=20000)
    load.stop(number=signal.SIGINT)
    assert page.console == []
    found = page.probe
    # The heatmap shows all exchanges timed since the page was opened; the driver has one connection.
    shown, timed = found["heat"]
    assert shown == timed > 0
    assert "Clients now: 1 address, 1 connection" in found["clients"] and "127.0.0.11100 %" in found["clients"]
    assert any(label.startswith("service: how often which latency") for label in found["labels"])
    assert found["painted_at"] == "first" and found["cards"] and found["canvases"] == 0
    first = found["first"][f"exchanges {nginx.port}"]
    assert first["points"] >= 1 and len(first["parts"]) >= 2 and min(first["parts"]) > 0
    for cell in ("waiting", "service99"):
        assert re.match(r"[\d.]+ (ns|µs|ms|s)", first["cells"][cell]), first
    assert re.fullmatch(r"\d+ / \d+", first["cells"]["queue"].replace(",", ""))
    assert found["first"][f"exchanges {lab.port}"]["cells"]["service99"] == "–"
    names = [f"tcp 127.0.0.1:{port}" for port in sorted((nginx.port, lab.port, busy.port))]
    for order, expected in (("ascending", names), ("descending", names[::-1])):
        shown, told = found[order]
        assert [name.split(" ")[0] + " " + name.split(" ")[1] for name in shown] == expected and told == order
    assert len(found["filtered"]) == 1 and "nginx" in found["filtered"][0]
    assert found["expanded"] == "true" and found["exchanges"] == found["day"] == 321
    assert "200321100 %" in found["statuses"] and "GET /321" in found["statuses"]
    assert found["command"].startswith(f"sojourn-drive http://127.0.0.1:{nginx.port}/ ") and " --observer http" in found["command"]
    lines = {chart["label"]: chart["lines"] for chart in found["charts"]}
    assert {"requests/s", "accepts/s"} <= set(lines["requests and accepts per second"])
    assert "service" in lines["mean of each stage"] and "service" in lines["p99 of each stage"]
    assert all(chart["beyond"] == 0 for chart in found["charts"])
    assert found["paused"] and found["overflow"] <= 0 and not found["impaired"]
    assert found["card"].startswith("critical: no more (<b>here</b>)") and "do this" in found["card"]
    assert found["pill"] == "critical: 1"


# capabilities(7), by number
DAC_READ_SEARCH, SYS_PTRACE, PERFMON, BPF = 2, 19, 38, 39
DAC_OVERRIDE, FOWNER = 1, 3


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


USER = next((entry for entry in pwd.getpwall() if entry.pw_name == "sojourn"), pwd.getpwnam("nobody"))


def owner_of(pid):
    """Return (uid, gid) of a process, which must have no other user or group."""
    status = status_of(pid)
    assert not status["Groups"].strip()
    (uid,), (gid,) = set(status["Uid"].split()), set(status["Gid"].split())
    return int(uid), int(gid)


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_it_gives_up_what_it_does_not_need(start):
    """User, capabilities, no_new_privs and seccomp are as expected in the kernel's own view, and the observer still counts."""
    nginx = start(Nginx())
    serve = start(Serve(nginx.port))
    status = status_of(serve.pid)
    assert owner_of(serve.pid) == (USER.pw_uid, USER.pw_gid)
    allowed = sum(1 << n for n in (DAC_READ_SEARCH, SYS_PTRACE, PERFMON, BPF))
    for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        assert int(status[name], 16) & ~allowed == 0, name
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    Driver(nginx.url, connections=2, count=50)
    document = parse(serve.get("/v1/run"))
    assert document["services"][0]["exchanges"] == 50
    assert document["services"][0]["processes"][0]["open_fds"] > 0


def test_as_another_user_it_sees_and_does_what_root_does(start):
    """Descriptors of root's server are counted, and running out of them is found. Root's driver finds the token, not that
    of a killed observer, and begins and ends its phase. In the end the token is gone."""
    lab = start(Process(["prlimit", "--nofile=64:64", LAB, "--listen", "127.0.0.1:0"]))
    port = int(lab.wait_for(r"^listening on \S+:(\d+)$")[1])
    at = free_port()
    older = Path(f"/run/sojourn/{at}-{os.stat('/proc/self/ns/net').st_ino}.token")
    older.parent.mkdir(exist_ok=True)
    older.write_text("0" * 32 + "\n")
    serve = start(Serve(port, "--listen", f"127.0.0.1:{at}"))
    token = older.parent / str(USER.pw_uid) / older.name
    assert not older.exists()
    assert (token.stat().st_uid, token.stat().st_mode & 0o777) == (0, 0o600)
    driver = Driver(f"http://127.0.0.1:{port}/", count=100, observer=serve)
    assert service(driver.document, port)["exchanges"] == 100

    def is_found():
        found = parse(serve.get("/v1/run"))["findings"]
        return [one for one in found if one["resource"] == "descriptors"
                and lab.pid in [owner["pid"] for owner in one["owners"]]]

    with contextlib.ExitStack() as held:
        for _ in range(70):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        wait_until(is_found, 60)
    (process,) = parse(serve.get("/v1/run"))["services"][0]["processes"]
    assert (process["pid"], process["fd_limit"]) == (lab.pid, 64)
    assert serve.stop() == 0 and not token.exists()


@pytest.mark.parametrize("name", ["daemon", "root"])
def test_the_user_is_chosen(start, name):
    serve = start(Serve(free_port(), "--user", name))
    uids = set(status_of(serve.pid)["Uid"].split())
    assert uids == {str(pwd.getpwnam(name).pw_uid)}
    assert "stays root" not in serve.stderr


def test_files_are_made_by_a_process_apart(start, tmp_path):
    """Files, also a recording's next one, belong to the user who started the observer, whose own user may not write there."""
    tmp_path.chmod(0o700)
    nginx, path, document = start(Nginx()), tmp_path / "run.rec", tmp_path / "run.json"
    previous = tmp_path / "run.rec.1"
    for words in (["record", "-o", path], ["record", "-o", path, "--max-size", "1M", "--interval", "10ms"],
                  ["observe", "--json", document, "--quiet"]):
        observer = start(Process([OBSERVER, *words, "--port", nginx.port, "--listen", "127.0.0.1:0"]))
        observer.wait_for("listening on", "stderr", 30)
        status = status_of(observer.pid)
        assert owner_of(observer.pid) == (USER.pw_uid, USER.pw_gid) and status["Seccomp"] == "2"
        assert int(status["CapEff"], 16) & (1 << DAC_OVERRIDE | 1 << FOWNER) == 0
        Driver(nginx.url, connections=2, count=50)
        if "--max-size" in words:
            wait_until(previous.exists, 60)
        assert observer.stop() == 0, observer.stderr
        if "record" in words:
            run([OBSERVER, "report", path, "--json", document])
        assert service(json.loads(document.read_text()), nginx.port)["exchanges"] == 50
        document.unlink()
    assert {(one.stat().st_uid, one.stat().st_mode & 0o777) for one in (path, previous)} == {(0, 0o600)}
    assert {one.name for one in tmp_path.iterdir()} == {path.name, previous.name}


def test_a_document_that_cannot_be_written_any_more_is_said(start, tmp_path):
    """The folder is gone in the meantime, or the process that writes is."""
    folder = tmp_path / "folder"
    for spoil, said in ((lambda observer: folder.rmdir(), "No such file"),
                        (lambda observer: os.kill(children_of(observer.pid)[0], signal.SIGKILL),
                         "Broken pipe|Connection reset by peer")):
        folder.mkdir(exist_ok=True)
        observer = start(Process([OBSERVER, "observe", "--json", folder / "run.json", "--port", free_port(),
                                  "--listen", "127.0.0.1:0"]))
        observer.wait_for("listening on", "stderr", 30)
        spoil(observer)
        assert observer.stop() == 1
        assert re.search(rf"cannot write '{folder}/run.json': ({said})", observer.stderr), observer.stderr


def test_a_pipe_without_a_reader_keeps_nobody(start, tmp_path):
    """The first signal ends the observation, the second one the wait for a reader; then no process is left."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    observer = start(Process([OBSERVER, "observe", "--json", pipe, "--port", free_port(), "--listen", "127.0.0.1:0"]))
    observer.wait_for("listening on", "stderr", 30)
    (scribe,) = children_of(observer.pid)
    observer.send(signal.SIGTERM)
    wait_until(lambda: any("sojourn-document" in os.readlink(fd) for fd in Path(f"/proc/{scribe}/fd").iterdir()), 30)
    observer.send(signal.SIGTERM)
    assert observer.wait(30) == -signal.SIGTERM
    wait_until(lambda: not Path(f"/proc/{scribe}").exists(), 30)


@pytest.mark.parametrize("prefix, options, status, said", [
    ([], ["--user", "nobody-has-this-name"], 2, "--user: 'nobody-has-this-name': this host has no such user"),
    (["setpriv", "--bounding-set=-setuid", "--"], ["--user", "daemon"], 1, "--user: 'daemon': only root"),
])
def test_a_user_that_it_cannot_be_is_refused(prefix, options, status, said):
    result = run([*prefix, OBSERVER, "serve", "--port", free_port(), "--listen", "127.0.0.1:0", *options], check=False)
    assert result.status == status and said in result.stderr


def test_without_the_capability_to_change_it_says_that_it_is_root(start):
    """The observer has only the five capabilities, as in a container that lacks SETUID and SETGID."""
    kept = "-all,+bpf,+perfmon,+net_admin,+sys_ptrace,+dac_read_search"
    nginx = start(Nginx())
    serve = start(Process(["setpriv", f"--inh-caps={kept}", f"--bounding-set={kept}", "--", OBSERVER, "serve",
                           "--port", nginx.port, "--listen", "127.0.0.1:0"]))
    url = serve.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    status = status_of(serve.pid)
    assert (set(status["Uid"].split()), status["Seccomp"]) == ({"0"}, "2")
    Driver(nginx.url, connections=2, count=50)
    assert service(parse(http.request(url + "/v1/run", "GET", None)), nginx.port)["exchanges"] == 50
    assert serve.stderr.count("stays root") == 1


def test_roots_drivers_find_the_token_of_a_container(start):
    """Root of a container can change to another user, but cannot give that user a folder."""
    kept = "-all,+bpf,+perfmon,+net_admin,+sys_ptrace,+dac_read_search,+setuid,+setgid"
    lab = start(Lab())
    serve = start(Process(["setpriv", f"--inh-caps={kept}", f"--bounding-set={kept}", "--", OBSERVER, "serve",
                           "--port", lab.port, "--listen", "127.0.0.1:0"]))
    serve.url = serve.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    assert owner_of(serve.pid) == (USER.pw_uid, USER.pw_gid)
    driver = Driver(lab.url, count=100, observer=serve)
    assert service(driver.document, lab.port)["exchanges"] == 100
    assert serve.stop() == 0
    (left,) = Path("/run/sojourn").glob(f"{serve.url.rsplit(':', 1)[1]}-*.token")
    left.unlink()


@pytest.mark.parametrize("more", [[], ["sys_ptrace", "dac_read_search"]], ids=["three", "five"])
def test_few_capabilities_are_enough(start, more):
    """Another user, with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN only, or also with the two that show other
    users' open files."""
    nginx = start(Nginx())
    held = ",".join(["-all", *(f"+{name}" for name in ("bpf", "perfmon", "net_admin", *more))])
    done = start(Process(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                          f"--inh-caps={held}", f"--ambient-caps={held}",
                          f"--bounding-set={held}", "--no-new-privs", OBSERVER, "serve",
                          "--port", nginx.port, "--listen", "127.0.0.1:0"]))
    url = done.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    Driver(nginx.url, connections=2, count=50)
    document = parse(http.request(url + "/v1/run", "GET", None))
    service = document["services"][0]
    assert service["exchanges"] == 50
    assert service["stages"]["service"]["count"] == 50
    if more:
        assert service["processes"][0]["open_fds"] > 0
        assert not [said for said in document["not_seen"] if "CAP_SYS_PTRACE" in said]


def test_root_without_one_capability_stays_in_its_network_namespace(start):
    """With CAP_SYS_ADMIN and without CAP_NET_ADMIN, as in some containers, it looked at a namespace of its own."""
    nginx = start(Nginx())
    done = start(Process(["setpriv", "--inh-caps=-net_admin", "--bounding-set=-net_admin", OBSERVER, "serve",
                          "--port", nginx.port, "--listen", "127.0.0.1:0"]))
    url = done.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")
    Driver(nginx.url, connections=2, count=50)
    document = parse(http.request(url + "/v1/run", "GET", None))
    (found,) = document["services"]
    assert (found["port"], found["exchanges"]) == (nginx.port, 50)


@pytest.mark.parametrize("prefix", ["", "\0"], ids=["path", "abstract"])
def test_it_tells_the_service_manager_when_it_answers(start, tmp_path, prefix):
    """systemd's protocol, with Type=notify."""
    name = f"{prefix}{tmp_path}/notify"
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(30)
        start(Process([OBSERVER, "serve", "--port", free_port(), "--listen", f"127.0.0.1:{port}"],
                      env={"NOTIFY_SOCKET": name.replace("\0", "@")}))
        assert manager.recv(4096) == b"READY=1"
        assert curl(f"http://127.0.0.1:{port}/healthz") == 200


def test_a_service_manager_that_is_gone_is_said(start, tmp_path):
    serve = start(Process([OBSERVER, "serve", "--port", free_port(), "--listen", "127.0.0.1:0"],
                          env={"NOTIFY_SOCKET": str(tmp_path / "gone")}))
    serve.wait_for("listening on", "stderr", 30)
    assert f"NOTIFY_SOCKET={tmp_path / 'gone'}: No such file" in serve.stderr


def test_a_reader_that_does_not_read_holds_little(start):
    """The endpoint's send buffers, by the kernel's figure (ss), do not grow to megabytes. With many readers the next caller
    would wait for them (tests/bench/endpoint.py)."""
    lab = start(Lab())
    serve = start(Serve(lab.port))
    port = int(serve.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as reader:
        reader.sendall(f"GET /v1/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert reader.recv(8, socket.MSG_PEEK) == b"HTTP/1.1"
        shown = run(["ss", "-Htnm", "state", "established", f"( sport = :{port} )"]).stdout
    (room,) = re.findall(r"\btb(\d+)", shown)
    assert int(room) <= 128 << 10
