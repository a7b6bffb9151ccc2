# SPDX-License-Identifier: MIT
"""The manifests of packaging/kubernetes on a cluster. `tools/cluster` runs this.

The truths are the logs of the pods' own nginx, and what Kubernetes says of pods.
"""
import base64
import contextlib
import copy
import json
import os
import re
import shutil
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request

import pytest

from support import ROOT, http
from support.process import Process, wait_until
from support.programs import DRIVER, OBSERVER

from .cluster import DEFINITIONS, NODE, STATE, kubectl, objects
from .workloads import IMAGE, MANIFESTS, NATS, changed, container_id, drive, pods, process_of, served, served_by_all

KEPT = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39}
pytestmark = pytest.mark.timeout(600)


def observer_pod():
    (pod,) = pods("app=sojourn", "sojourn").values()
    return pod


def observer_status():
    return next(status for status in observer_pod()["status"]["containerStatuses"] if status["name"] == "sojourn")


def assert_counts_agree(observer):
    """Each request that a pod's log has was counted as that pod's, and no other."""
    for name in pods("app=web"):
        wait_until(lambda name=name: observer.counted(name) == served(name), seconds=30, poll_seconds=0.5)
        assert served(name)


def test_the_observer_has_the_privileges_that_are_documented(observer):
    pod = observer_pod()
    assert observer and observer_status()["ready"]
    with open(f"/proc/{process_of(pod)}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm")} == {sum(1 << bit for bit in KEPT.values())}
    assert "0" not in status["Uid"].split() + status["Gid"].split()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_its_metrics_take_tls_and_the_token(observer):
    assert "sojourn_services" in observer.get("/metrics")
    assert [observer.status("/metrics", token) for token in (None, "wrong")] == [401, 401]
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(observer.URL.replace("https", "http") + "/metrics", timeout=10)


def test_each_pods_requests_are_those_of_its_log(observer, drivers):
    before = served_by_all()
    assert drive(drivers[0], "-c", "16", "-n", "5000")["driver"]["status"]["2xx"] == 5000
    wait_until(lambda: served_by_all() == before + 5000, seconds=30, poll_seconds=0.5)
    assert_counts_agree(observer)


def test_labels_are_kubernetes_own_names(observer, drivers):
    assert drivers
    found = {labels["pod"]: labels for labels, _ in observer.samples("sojourn_service_info") if "pod" in labels}
    for name, pod in pods("app=web").items():
        labels = found[name]
        assert (labels["namespace"], labels["container"]) == ("default", "nginx")
        assert labels["container_id"] == container_id(pod)
        assert labels["pod_uid"] == pod["metadata"]["uid"]
        assert labels["pod_uid"] in labels["cgroup"] and labels["port"] == "8080"


def is_served():
    """Return whether the service leads to pods that listen: kube-proxy learns of new ones later than Kubernetes."""
    address = objects("service", "server")["spec"]["clusterIP"]
    with contextlib.suppress(OSError):
        for _ in range(20):
            socket.create_connection((address, 8080), timeout=2).close()
        return True
    return False


def test_pods_that_come_again_are_followed(observer, drivers):
    first = set(pods("app=web"))
    kubectl("delete", "pod", *first)
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")
    wait_until(lambda: len(pods("app=web")) == 2 and not first & set(pods("app=web")), 60, 0.2)
    wait_until(is_served, seconds=60, poll_seconds=0.2)
    assert drive(drivers[0], "-c", "16", "-n", "3000")["driver"]["status"]["2xx"] == 3000
    wait_until(lambda: served_by_all() == 3000, seconds=30, poll_seconds=0.5)
    assert_counts_agree(observer)


def test_a_container_that_starts_again_is_followed(observer, drivers):
    name, pod = next(iter(pods("app=web").items()))
    before, logged = observer.counted(name), served(name)
    assert before == logged
    kubectl("exec", name, "--", "sh", "-c", "kill -QUIT 1")
    wait_until(lambda: pods("app=web").get(name) and container_id(pods("app=web")[name]) != container_id(pod), 60, 0.2)
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    drive(drivers[0], "-c", "4", "-n", "1000", url=f"http://{pod['status']['podIP']}:8080/")
    wait_until(lambda: served(name) == 1000, seconds=30, poll_seconds=0.5)
    wait_until(lambda: observer.counted(name) == before + 1000, seconds=30, poll_seconds=0.5)
    of_container = {labels["container_id"] for labels, _ in observer.samples("sojourn_exchanges_total")
                    if labels.get("pod") == name}
    assert container_id(pods("app=web")[name]) in of_container


def run_job(name, manifest):
    """Run a job of the namespace `load` to its end; return its log."""
    kubectl("apply", "-n", "load", "-f", "-", given=manifest)
    kubectl("wait", "-n", "load", "--for=condition=complete", f"job/{name}", "--timeout=180s", seconds=200)
    log = kubectl("logs", "-n", "load", f"job/{name}")
    kubectl("delete", "-n", "load", f"job/{name}")
    return log


def test_the_drivers_job_as_it_is(observer, drivers):
    """Its warm-up is in the servers' logs, and not in its report."""
    assert drivers
    before = served_by_all()
    report = run_job("sojourn-drive", changed("driver.yaml"))
    assert "64 connections" in report
    measured = int(re.search(r"([\d,]+) requests", report)[1].replace(",", ""))
    assert 0 < measured < served_by_all() - before
    for name in pods("app=web"):
        wait_until(lambda name=name: observer.counted(name) >= served(name), seconds=30, poll_seconds=0.5)


def test_the_drivers_job_reports_what_the_servers_logged(drivers):
    assert drivers
    before = served_by_all()
    report = run_job("sojourn-drive", changed("driver.yaml", ("-d, 30s, --warmup, 5s", '-n, "20000"')))
    assert "20,000 requests" in report
    wait_until(lambda: served_by_all() == before + 20000, seconds=30, poll_seconds=0.5)


def fleet(*words):
    with contextlib.closing(Process([DRIVER, "fleet", *words])) as process:
        assert process.wait(200) == 0, process.stdout + process.stderr
        return json.loads(process.stdout)


@pytest.fixture(scope="module", name="nats")
def nats_fixture(cluster):
    """A NATS server, nats.default.svc; yields its address."""
    kubectl("apply", "-f", "-", given=NATS)
    kubectl("wait", "--for=condition=Ready", "pod/nats", "--timeout=60s")
    cluster.name_services()
    return objects("service", "nats")["spec"]["clusterIP"]


@contextlib.contextmanager
def agents():
    """The job of agents.yaml."""
    # This node has not four CPUs to give; the namespace is not the server's.
    kubectl("apply", "-n", "load", "-f", "-", given=changed(
        "agents.yaml", ("nats://nats:4222", "nats://nats.default.svc:4222"), ('cpu: "1"', "cpu: 50m")))
    yield
    kubectl("wait", "-n", "load", "--for=condition=complete", "job/sojourn-agents", "--timeout=60s")
    kubectl("delete", "-n", "load", "job/sojourn-agents")


def test_agents_drive_as_one(nats, drivers):
    assert drivers
    before = served_by_all()
    with agents():
        document = fleet("--via", f"nats://{nats}:4222", "--members", "4", "--gather", "2m", "--",
                         "http://server.default.svc:8080/", "-c", "16", "--rate", "1000", "-d", "5s", "--quiet", "--json", "-")
        result = document["driver"]
        assert {member["host"] for member in result["members"]} == \
            {pod["metadata"]["name"] for pod in objects("pods", "-n", "load", "-l", "app=sojourn-agents")}
    assert result["requests"] == result["status"]["2xx"] == sum(member["requests"] for member in result["members"]) > 0
    assert len(result["members"]) == 4
    wait_until(lambda: served_by_all() == before + result["requests"], seconds=30, poll_seconds=0.5)


def test_a_fleet_by_kubectl_exec(drivers):
    before = served_by_all()
    document = fleet("--via", "kubectl exec -n load -i {host} --", "--hosts", ",".join(drivers), "--",
                     "http://server.default.svc:8080/", "-c", "8", "-n", "4000", "--quiet", "--json", "-")
    assert document["driver"]["requests"] == document["driver"]["status"]["2xx"] == 4000
    assert [member["host"] for member in document["driver"]["members"]] == drivers
    wait_until(lambda: served_by_all() == before + 4000, seconds=30, poll_seconds=0.5)


def test_one_pod_on_the_node(start, drivers, tmp_path):
    """Of load on all pods, the observer of one has its part, and its own too."""
    name, other = pods("app=web")
    script = tmp_path / "drive.sh"
    address = pods("app=web")[name]["status"]["podIP"]
    script.write_text("".join(f"kubectl exec -n load {drivers[0]} -- sojourn-drive http://{host}:8080/ -c 4 -n {count}\n"
                              for host, count in (("server.default.svc", 2000), (address, 500))))
    before = served(name), served(other)
    observer = start([OBSERVER, "observe", "--pod", f"default/{name}", "--json", tmp_path / "run.json", "--", "sh", "-e", script])
    assert observer.wait(120) == 0, observer.stdout + observer.stderr
    wait_until(lambda: served(name) + served(other) == sum(before) + 2500, seconds=30, poll_seconds=0.5)
    used = [service for service in json.loads((tmp_path / "run.json").read_text())["services"] if service["exchanges"]]
    assert [(service["pod"], service["pod_namespace"]) for service in used] == [(name, "default")]
    assert used[0]["exchanges"] == served(name) - before[0] >= 500
    assert served(other) > before[1]


PROMETHEUS = """
scrape_configs:
  - job_name: sojourn
    scrape_interval: 1s
    honor_labels: true
    scheme: https
    tls_config: {{ca_file: {state}/ca.pem}}
    authorization: {{credentials_file: {state}/secret/token}}
    static_configs: [{{targets: ["{node}:9180"]}}]
  - job_name: kube-state-metrics
    scrape_interval: 1s
    honor_labels: true
    static_configs: [{{targets: ["127.0.0.1:8081"]}}]
"""


@pytest.fixture(name="prometheus")
def prometheus_fixture(start, tmp_path):
    """Start Prometheus with a configuration; ask(kind of query, its words) returns what its API has."""
    def begin(configuration):
        (tmp_path / "prometheus.yml").write_text(configuration)
        start(["prometheus", "--config.file", tmp_path / "prometheus.yml", "--storage.tsdb.path", tmp_path / "data",
               "--web.listen-address", "127.0.0.1:9090"])
        return ask

    def ask(kind, **words):
        with contextlib.suppress(OSError):
            return json.loads(http.request(f"http://127.0.0.1:9090/api/v1/{kind}?{urllib.parse.urlencode(words)}"))["data"]
        return {}
    return begin


def samples(ask, promql):
    """Return [(labels, value)]."""
    return [(sample["metric"], float(sample["value"][1])) for sample in ask("query", query=promql).get("result", ())]


@pytest.fixture(name="query")
def query_fixture(start, prometheus, observer):
    """Prometheus, which scrapes the observer and kube-state-metrics; query(PromQL): [(labels, value)]"""
    assert observer
    start(["kube-state-metrics", "--kubeconfig", STATE / "admin.json", "--host", "127.0.0.1", "--port", "8081",
           "--telemetry-host", "127.0.0.1", "--telemetry-port", "8082", "--resources", "pods",
           "--metric-labels-allowlist", "pods=[app]"])
    ask = prometheus(PROMETHEUS.format(state=STATE, node=NODE))
    return lambda promql: samples(ask, promql)


def documented_queries():
    page = (ROOT / "docs/kubernetes.md").read_text().split("## Pods in metrics")[1]
    return [" ".join(block.split()) for block in re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)[:2]]


def test_documented_queries_join_with_kube_state_metrics(observer, query, drivers):
    rate, quantile = documented_queries()
    assert rate.count("rate(") == rate.count("[1m])") == 1
    total = rate.replace("rate(sojourn", "sojourn").replace("[1m])", "")
    wait_until(lambda: query(total) and query(rate) and query(quantile), seconds=60, poll_seconds=0.5)
    drive(drivers[0], "-c", "8", "-n", "1000")
    (owner,) = {pod["metadata"]["ownerReferences"][0]["name"] for pod in pods("app=web").values()}
    wait_until(lambda: ({"label_app": "web"}, sum(map(observer.counted, pods("app=web")))) in query(total), 60, 0.5)
    assert {"label_app": "web"} in [labels for labels, value in query(rate) if value > 0]
    assert {"owner_name": owner} in [labels for labels, value in query(quantile) if value > 0]


def test_the_kubelets_probes_hold(observer):
    """It has not restarted the observer, which it asked all the time."""
    assert observer
    status = observer_status()
    assert status["ready"] and status["restartCount"] == 0
    events = objects("events", "-n", "sojourn")
    assert not [event["message"] for event in events if event["reason"] == "Unhealthy"]


@pytest.fixture(scope="module", name="announced")
def announced_fixture(observer, nats):
    """The observer with its agent, of the kustomization fleet/."""
    assert observer and nats
    kubectl("apply", "--validate=strict", "-k", MANIFESTS / "fleet")
    kubectl("-n", "sojourn", "rollout", "status", "daemonset/sojourn", "--timeout=180s", seconds=200)
    return observer


def counted_in(document):
    """Return the exchanges of each pod of nginx in a run document."""
    return {service["pod"]: service["exchanges"] for service in document["services"]
            if service["exchanges"] and service["port"] == 8080}


def drive_observed(pod, *words):
    """Run in a pod what finds the observers at the NATS server. Return the document and what each pod's log has of it."""
    before = {name: served(name) for name in pods("app=web")}
    document = json.loads(kubectl("exec", "-n", "load", pod, "--", "sojourn-drive", *words, "--quiet", "--json", "-", seconds=200))
    wait_until(lambda: served_by_all() >= sum(before.values()) + document["driver"]["requests"], seconds=30, poll_seconds=0.5)
    return document, {name: served(name) - count for name, count in before.items()}


def test_a_fleet_finds_the_observers(announced, drivers):
    """Targets are named by a service. Its address is not that of the pods, so that single exchanges cannot be joined."""
    assert announced
    with agents():
        document, logged = drive_observed(
            drivers[0], "fleet", "--via", "nats://nats.default.svc", "--members", "4", "--gather", "2m", "--",
            "http://server.default.svc:8080/", "-c", "16", "--rate", "1000", "--warmup", "1s", "-d", "5s", "--observer", "fleet")
    result = document["driver"]
    assert not result.get("observer_error")
    assert result["requests"] == sum(counted_in(document).values()) > 0
    # The warm-up is in the logs alone.
    assert all(0 < count < logged[name] for name, count in counted_in(document).items()) and len(logged) == 2
    assert not document["joined"]["joined"]


def test_a_driver_finds_the_observers_of_pods(announced, drivers):
    assert announced
    targets = [f"http://{pod['status']['podIP']}:8080/" for pod in pods("app=web").values()]
    document, logged = drive_observed(drivers[0], *targets, "-c", "8", "-n", "4000", "--observer", "nats://nats.default.svc")
    assert not document["driver"].get("observer_error")
    assert counted_in(document) == logged and sum(logged.values()) == 4000
    assert document["joined"]["joined"] == 4000


def test_an_observer_that_hangs_is_started_again(observer):
    before = observer_status()
    os.kill(process_of(observer_pod()), signal.SIGSTOP)
    wait_until(lambda: observer_status()["restartCount"] == before["restartCount"] + 1 and observer_status()["ready"],
               seconds=180, poll_seconds=0.5)
    assert observer_status()["containerID"] != before["containerID"]
    assert any("Liveness probe failed" in event["message"] for event in objects("events", "-n", "sojourn"))
    wait_until(lambda: observer.status("/metrics") == 200, seconds=60, poll_seconds=0.2)


@pytest.fixture(scope="module", name="monitor")
def monitor_fixture(observer):
    """The PodMonitor, as the API server has it by the operator's own definition, in which unknown members are errors."""
    assert observer
    kubectl("create", "-f", DEFINITIONS)
    kubectl("wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com", "--timeout=60s")
    kubectl("apply", "--validate=strict", "-k", MANIFESTS / "podmonitor")
    return objects("podmonitor", "sojourn", "-n", "sojourn")


def secret_value(key):
    return base64.b64decode(objects("secret", key["name"], "-n", "sojourn")["data"][key["key"]]).decode()


def discovered():
    """Return what Prometheus' discovery of pods has of the namespace. Debian's is built without it."""
    found, of = [], "__meta_kubernetes_"
    for pod in objects("pods", "-n", "sojourn"):
        labels = {f"{of}pod_label_{name}".replace("-", "_"): value for name, value in pod["metadata"]["labels"].items()}
        labels |= {name.replace("_pod_label_", "_pod_labelpresent_"): "true" for name in labels}
        labels |= {f"{of}namespace": "sojourn", f"{of}pod_name": pod["metadata"]["name"], f"{of}pod_phase": pod["status"]["phase"]}
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", ({},)):
                found.append({"targets": [f"{pod['status']['podIP']}:{port.get('containerPort', 80)}"], "labels": labels | {
                    f"{of}pod_container_name": container["name"], f"{of}pod_container_port_name": port.get("name", "")}})
    return found


def scraped_by(monitor, folder, token=None):
    """Return the configuration of Prometheus that the operator makes of a PodMonitor (pkg/prometheus/promcfg.go of
    the operator 0.83), for the members which ours has. Unknown ones fail."""
    spec, of = copy.deepcopy(monitor["spec"]), "__meta_kubernetes_"
    (endpoint,) = spec.pop("podMetricsEndpoints")
    ((label, value),) = spec.pop("selector")["matchLabels"].items()
    authorization, tls = endpoint.pop("authorization"), endpoint.pop("tlsConfig")
    (folder / "ca.crt").write_text(secret_value(tls["ca"]["secret"]))
    (folder / "pods.json").write_text(json.dumps(discovered()))
    job = {
        "job_name": "podMonitor/sojourn/sojourn/0", "scrape_interval": "1s",
        "honor_labels": endpoint.pop("honorLabels"), "scheme": endpoint.pop("scheme"),
        "authorization": {"type": authorization.get("type", "Bearer"),
                          "credentials": token or secret_value(authorization["credentials"]).strip()},
        "tls_config": {"ca_file": str(folder / "ca.crt"), "server_name": tls["serverName"]},
        "file_sd_configs": [{"files": [str(folder / "pods.json")]}],
        "relabel_configs": [
            {"source_labels": [f"{of}pod_phase"], "regex": "(Failed|Succeeded)", "action": "drop"},
            {"source_labels": [f"{of}pod_label_{label}", f"{of}pod_labelpresent_{label}"], "regex": f"({value});true",
             "action": "keep"},
            {"source_labels": [f"{of}pod_container_port_name"], "regex": endpoint.pop("port"), "action": "keep"},
            *({"source_labels": [f"{of}{name}"], "target_label": to} for name, to in
              (("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))),
            {"target_label": "job", "replacement": "sojourn/sojourn"}]}
    assert not endpoint and not spec
    return json.dumps({"scrape_configs": [job]})


def targets(ask):
    """Return [(pod, state, address, reason)] of what Prometheus scrapes."""
    return [(found["labels"]["pod"], found["health"], found["scrapeUrl"], found["lastError"])
            for found in ask("targets").get("activeTargets", ())]


def test_prometheus_scrapes_by_the_podmonitor(observer, monitor, prometheus, drivers, tmp_path):
    """It finds the DaemonSet's pods alone, gets in with the Secret's token and authority, and has the counts of the logs."""
    assert observer
    ask = prometheus(scraped_by(monitor, tmp_path))
    expected = [(name, "up", f"https://{NODE}:9180/metrics", "") for name in pods("app=sojourn", "sojourn")]
    assert len(expected) == 1
    wait_until(lambda: targets(ask) == expected, seconds=60, poll_seconds=0.5)
    before = {name: served(name) for name in pods("app=web")}
    drive(drivers[0], "-c", "8", "-n", "1000")
    wait_until(lambda: served_by_all() == sum(before.values()) + 1000, seconds=30, poll_seconds=0.5)
    truth = {("default", name, "nginx"): observer.counted(name) for name in before}
    assert len(truth) == 2 and all(truth.values())
    promql = 'sum by (namespace, pod, container) (sojourn_exchanges_total{job="sojourn/sojourn", namespace="default", port="8080"})'
    wait_until(lambda: {(labels["namespace"], labels["pod"], labels["container"]): count
                        for labels, count in samples(ask, promql)} == truth, seconds=30, poll_seconds=0.5)


def test_prometheus_needs_the_secrets_token(monitor, prometheus, tmp_path):
    ask = prometheus(scraped_by(monitor, tmp_path, token="another"))
    wait_until(lambda: any(reason for *_, reason in targets(ask)), seconds=60, poll_seconds=0.5)
    assert [(state, reason) for _, state, _, reason in targets(ask)] == [("down", "server returned HTTP status 401 Unauthorized")]


def test_a_kustomization_of_ones_own(observer, tmp_path):
    """That of docs/kubernetes.md is accepted, too: it takes image, Secret and options from one place."""
    assert observer
    page = (ROOT / "docs/kubernetes.md").read_text()
    block = re.search(r"(?:^    .*\n)*^    kind: Kustomization\n(?:^    .*\n|\n(?=    ))*", page, re.MULTILINE)[0]
    (tmp_path / "kustomization.yaml").write_text(re.sub("^    ", "", block, flags=re.MULTILINE))
    shutil.copytree(MANIFESTS, tmp_path / "sojourn/packaging/kubernetes")
    shutil.copytree(STATE / "secret", tmp_path, dirs_exist_ok=True)
    made = kubectl("kustomize", tmp_path)
    assert "image: registry.example/sojourn:" in made and f"image: {IMAGE}" not in made
    kubectl("apply", "--validate=strict", "--dry-run=server", "-k", tmp_path)


@pytest.mark.parametrize("token, ready", [(True, True), (False, False)])
def test_health_as_a_probe_takes_the_token(observer, token, ready):
    header = [{"name": "Authorization", "value": f"Bearer {observer.TOKEN}"}] if token else []
    probe = {"httpGet": {"path": "/healthz", "port": 9180, "scheme": "HTTPS", "httpHeaders": header}, "periodSeconds": 1}
    kubectl("-n", "sojourn", "patch", "daemonset", "sojourn", "--type=json", "-p", json.dumps(
        [{"op": "add", "path": "/spec/template/spec/containers/0/readinessProbe", "value": probe}]))
    if ready:
        kubectl("-n", "sojourn", "rollout", "status", "daemonset/sojourn", "--timeout=120s", seconds=150)
    else:
        wait_until(lambda: any("statuscode: 401" in event["message"] for event in objects("events", "-n", "sojourn")),
                   seconds=120, poll_seconds=0.5)
        assert not observer_status()["ready"]
