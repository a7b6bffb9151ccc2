# SPDX-License-Identifier: MIT
"""`sojourn serve --otlp` before a collector: what the collector gets, and how a slow or absent one is treated."""
import http.server
import json
import os
import re
import signal
import threading
import time

import pytest

from support import http as client
from support.process import Process, run
from support.programs import OBSERVER, Driver, Lab

CUMULATIVE = 2


class Collector:
    """A collector that keeps (path, headers, document, time) of each request and answers as configured."""

    def __init__(self, port=0):
        self.requests = []
        self.answers = []  # (status, headers, body) of the next requests; after them 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), json.loads(body),
                                       time.monotonic()))
                status, headers, answer = outer.answers.pop(0) if outer.answers else (200, {}, "{}")
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(answer)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count, seconds=20):
        end = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < end, f"{len(self.requests)} of {count} requests"
            time.sleep(0.05)


class Serve(Process):
    def __init__(self, port, *options):
        super().__init__([OBSERVER, "serve", "--port", port, "--listen", "127.0.0.1:0", *options])
        self.url = self.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")


def metrics_of(document):
    """Return {name: metric}, after checking what OTLP demands of each."""
    (resource,) = document["resourceMetrics"]
    attributes = {a["key"]: a["value"]["stringValue"] for a in resource["resource"]["attributes"]}
    assert attributes["service.name"] == "sojourn"
    assert attributes["host.name"] == os.uname().nodename
    (scope,) = resource["scopeMetrics"]
    assert scope["scope"]["name"] == "sojourn"
    found = {}
    for metric in scope["metrics"]:
        (kind,) = set(metric) - {"name", "description", "unit"}
        data = metric[kind]
        assert kind in ("sum", "gauge", "histogram") and metric["unit"] in ("1", "s", "By")
        if kind != "gauge":
            assert data["aggregationTemporality"] == CUMULATIVE
        for point in data["dataPoints"]:
            assert int(point["timeUnixNano"]) == pytest.approx(time.time_ns(), abs=120e9)
            if kind != "gauge":
                assert int(point["startTimeUnixNano"]) <= int(point["timeUnixNano"])
        found[metric["name"]] = data
    return found


def labels_of(point):
    return tuple(sorted((a["key"], a["value"]["stringValue"]) for a in point["attributes"]))


def samples_of(document):
    """Return {(Prometheus name, labels): value} of all that is no histogram."""
    samples = {}
    for name, data in metrics_of(document).items():
        for point in data["dataPoints"]:
            value = float(point["asInt"]) if "asInt" in point else point.get("asDouble")
            if value is not None:
                samples[name + "_total" * ("isMonotonic" in data), labels_of(point)] = value
    return samples


def scraped(text):
    samples = {}
    for name, labels, value in re.findall(r"^(\w+?)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        if not name.startswith("sojourn_stage_seconds"):
            pairs = re.findall(r'(\w+)="([^"]*)"', labels)
            samples[name, tuple(sorted(pairs))] = float(value)
    return samples


def test_the_same_metrics_as_over_http(start):
    lab, collector = start(Lab()), start(Collector())
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-interval", "1s"))
    collector.wait(1)
    driver = Driver(f"{lab.url}?service=5ms", connections=4, count=200)
    assert driver.result["requests"] == 200
    seen = len(collector.requests)
    collector.wait(seen + 2)
    over_http = scraped(client.request(serve.url + "/metrics", "GET", None))
    path, headers, document, _ = collector.requests[-1]
    assert path == "/v1/metrics"
    assert headers["Content-Type"] == "application/json"
    sent = samples_of(document)
    # Findings about the host may change between the two readings.
    assert {key for key in set(sent) ^ set(over_http) if key[0] != "sojourn_finding_objects"} == set()
    sent = {key: value for key, value in sent.items() if key in over_http}
    moving = ("sojourn_observer_", "sojourn_finding", "sojourn_smoothed", "sojourn_time_wait_sockets")
    for key, value in sent.items():
        if not key[0].startswith(moving):
            assert value == over_http[key], key
    stages = {dict(labels_of(point))["stage"]: point
              for point in metrics_of(document)["sojourn_stage_seconds"]["dataPoints"]}
    service = stages["service"]
    assert int(service["count"]) == sum(map(int, service["bucketCounts"])) == 200
    assert len(service["bucketCounts"]) == len(service["explicitBounds"]) + 1
    assert service["explicitBounds"] == sorted(service["explicitBounds"])
    late = sum(int(count) for count, bound in zip(service["bucketCounts"][1:], service["explicitBounds"])
               if bound > 0.004)
    assert late == 200
    assert 200 * 0.005 <= service["sum"] < 200 * 0.1


def test_the_last_reading_is_sent_at_the_end(start):
    lab, collector = start(Lab()), start(Collector())
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-interval", "1h"))
    Driver(lab.url, connections=2, count=50)
    assert not collector.requests
    assert serve.stop() == 0
    (request,) = collector.requests
    exchanges = metrics_of(request[2])["sojourn_exchanges"]["dataPoints"]
    assert [point["asInt"] for point in exchanges] == ["50"]


def test_a_collector_that_asks_for_time_gets_it(start):
    """Retry-After is respected; meanwhile newer readings replace the one that waits."""
    lab, collector = start(Lab()), start(Collector())
    collector.answers = [(503, {"Retry-After": "3"}, ""), (429, {}, ""), (200, {}, "{}")]
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-interval", "1s"))
    collector.wait(4)
    times = [request[3] for request in collector.requests]
    assert times[1] - times[0] >= 2.9
    stamps = [int(metrics_of(request[2])["sojourn_exchanges"]["dataPoints"][0]["timeUnixNano"])
              for request in collector.requests]
    assert stamps[1] - stamps[0] >= 1.5e9
    serve.stop()
    assert len(re.findall("answers 503, trying again", serve.stderr)) == 1
    assert "takes readings again" in serve.stderr


def test_a_refusal_is_final_and_said_once(start):
    lab, collector = start(Lab()), start(Collector())
    collector.answers = [(400, {}, "no")] * 3
    serve = start(Serve(lab.port, "--otlp", collector.url + "/own/path", "--otlp-interval", "1s"))
    collector.wait(4)
    serve.stop()
    assert {request[0] for request in collector.requests} == {"/own/path"}
    assert serve.stderr.count("answers 400: not sent again") == 1
    assert "3 are missing" in serve.stderr


def test_an_answer_without_end_is_not_read(start):
    """At most 64 KiB of the answer are read; the next reading is sent as usual."""
    collector = start(Collector())
    collector.answers = [(200, {}, "x" * (10 << 20))]
    serve = start(Serve(1, "--otlp", collector.url, "--otlp-interval", "1s"))
    serve.wait_for("the collector's answer is longer than 64 KiB, trying again", "stderr", 30)
    serve.wait_for("takes readings again", "stderr", 30)


def test_points_that_were_refused_are_said(start):
    lab, collector = start(Lab()), start(Collector())
    collector.answers = [(200, {}, json.dumps({"partialSuccess": {
        "rejectedDataPoints": "7", "errorMessage": "too old"}}))]
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-interval", "1s"))
    collector.wait(2)
    serve.stop()
    assert "took all but 7 points: too old" in serve.stderr


def test_nobody_there_keeps_nothing_waiting(start, port=1):
    """Without a collector the endpoint answers, the end is prompt, and one line reports it."""
    lab = start(Lab())
    serve = start(Serve(lab.port, "--otlp", f"http://127.0.0.1:{port}", "--otlp-interval", "1s"))
    time.sleep(3.5)
    assert "sojourn_exchanges_total" in client.request(serve.url + "/metrics", "GET", None)
    begin = time.monotonic()
    assert serve.stop() == 0
    assert time.monotonic() - begin < 8
    assert serve.stderr.count("--otlp: ") == 1


def senders(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def test_who_sends_has_no_privileges_and_ends_with_it(start):
    lab, collector = start(Lab()), start(Collector())
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-interval", "1s"))
    collector.wait(1)
    (sender,) = senders(serve.pid)
    with open(f"/proc/{sender}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for which in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(status[which], 16) == 0, which
    assert (set(status["Uid"].split()), set(status["Gid"].split())) == ({"65534"}, {"65534"})
    assert not status["Groups"].strip()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    # Only standard streams, its channel and libcurl's files are open: above all no BPF.
    links = [os.readlink(f"/proc/{sender}/fd/{fd}") for fd in os.listdir(f"/proc/{sender}/fd")]
    assert not [link for link in links if "bpf" in link]
    os.kill(serve.pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{sender}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{sender}")


def test_headers_come_from_a_file(start, tmp_path):
    lab, collector = start(Lab()), start(Collector())
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer secret-token\nX-Scope-OrgID: 7\n")
    serve = start(Serve(lab.port, "--otlp", collector.url, "--otlp-header-file", headers,
                        "--otlp-interval", "1s"))
    collector.wait(1)
    assert collector.requests[0][1]["Authorization"] == "Bearer secret-token"
    assert collector.requests[0][1]["X-Scope-OrgID"] == "7"
    for pid in (serve.pid, *senders(serve.pid)):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            assert b"secret" not in file.read()


@pytest.mark.parametrize("options, said", [
    (["--otlp", "collector:4318"], "--otlp: 'collector:4318'"),
    (["--otlp", "ftp://collector"], "--otlp: 'ftp://collector'"),
    (["--otlp", "http://"], "--otlp: 'http://'"),
    (["--otlp-interval", "5s"], "--otlp"),
    (["--otlp", "http://a", "--otlp-interval", "10ms"], "--otlp-interval: '10ms'"),
    (["--otlp", "http://a", "--otlp-header-file", "/dev/null/x"], "--otlp-header-file"),
    (["--otlp", "http://a", "--otlp-ca", "/etc/hostname"], "--otlp-ca"),
])
def test_wrong_options(options, said):
    done = run([OBSERVER, "serve", *options], check=False)
    assert done.status == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ["no colon", "Content-Type: text/plain", "na me: x", ": x"])
def test_wrong_headers(line, tmp_path):
    headers = tmp_path / "headers"
    headers.write_text(f"Good: one\n{line}\n")
    done = run([OBSERVER, "serve", "--otlp", "http://a", "--otlp-header-file", headers], check=False)
    assert done.status == 2
    assert "--otlp-header-file" in done.stderr
