# SPDX-License-Identifier: MIT
"""The packaged files agree with the programs: metrics, options, privileges."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from . import BUILD
from .conditions import PYPI, needs_pypi

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
CAPABILITIES = {"BPF", "PERFMON", "NET_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH"}
# A container starts as root and changes to another user, which needs two more.
FROM_ROOT = CAPABILITIES | {"SETUID", "SETGID"}


def metrics():
    """Return the names of all samples in docs/metrics.md (a unit test compares it with the code)."""
    rows = re.findall(r"^\| `(sojourn_\w+)` \| (\w+) \|", (ROOT / "docs/metrics.md").read_text(),
                      re.MULTILINE)
    assert len(rows) > 20
    return {name + suffix for name, kind in rows
            for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}


@pytest.mark.parametrize("path", ["grafana/sojourn.json", "prometheus/alerts.yml", "prometheus/rules.yml"])
def test_only_metrics_that_exist(path):
    text = (PACKAGING / path).read_text()
    used = set(re.findall(r"(?<!:)sojourn_\w+", text))  # behind a colon: what a rule records
    assert used and used <= metrics()


def test_the_dashboard_is_one():
    """Panels do not overlap on a grid of 24 columns; each has its kind and a data source."""
    dashboard = json.loads((PACKAGING / "grafana/sojourn.json").read_text())
    panels, taken = dashboard["panels"], set()
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10
    for panel in panels:
        assert panel["targets"] and all(target["expr"] for target in panel["targets"])
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert sorted(set(letters)) == letters
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert max(x for x, _ in cells) < 24 and not cells & taken, panel["title"]
        taken |= cells
    heatmaps = [panel for panel in panels if panel["type"] == "heatmap"]
    assert heatmaps and all(target["format"] == "heatmap" for panel in heatmaps for target in panel["targets"])


# Reads the dashboard into Grafana's own types and prints it again: members that they do not know are lost.
READ_BY_GRAFANA = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()
print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""


def lost(given, read, path="dashboard"):
    """Return the paths of members that @read lacks or changes. Members only in @read are defaults of Grafana."""
    if isinstance(given, dict) and isinstance(read, dict):
        return [each for name, value in given.items() for each in lost(value, read.get(name, "nothing"), f"{path}.{name}")]
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [each for i, pair in enumerate(zip(given, read)) for each in lost(*pair, f"{path}[{i}]")]
    return [] if given == read else [path]


def read_by_grafana(dashboard):
    done = subprocess.run([PYPI / "bin/python3", "-c", READ_BY_GRAFANA], input=json.dumps(dashboard), check=True,
                          capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


@needs_pypi
def test_grafana_knows_all_of_the_dashboard():
    """Grafana's types (11.6) know every member of the dashboard; two misspelt ones are found."""
    dashboard = json.loads((PACKAGING / "grafana/sojourn.json").read_text())
    assert not lost(dashboard, read_by_grafana(dashboard))
    dashboard["panels"][0]["options"]["colourMode"] = "background"
    dashboard["panels"][3]["fieldConfig"]["defaults"]["custom"]["fill"] = 10
    assert lost(dashboard, read_by_grafana(dashboard)) == [
        "dashboard.panels[0].options.colourMode", "dashboard.panels[3].fieldConfig.defaults.custom.fill"]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
@pytest.mark.parametrize("tests", ["alerts_test.yml", "rules_test.yml"])
def test_rules_and_alerts_are_true(tests):
    done = subprocess.run(["promtool", "test", "rules", tests], text=True,
                          cwd=PACKAGING / "prometheus", capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PODS = """
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      # Two nodes' observers; two pods of one application, and one of another.
      - {{series: 'sojourn_exchanges_total{{instance="a",namespace="shop",pod="web-1",port="80"}}', values: 0+15x20}}
      - {{series: 'sojourn_exchanges_total{{instance="b",namespace="shop",pod="web-2",port="80"}}', values: 0+30x20}}
      - {{series: 'sojourn_exchanges_total{{instance="b",namespace="shop",pod="mail-1",port="25"}}', values: 0+75x20}}
      - {{series: 'sojourn_exchanges_total{{instance="b",namespace="test",pod="web-1",port="80"}}', values: 0+1500x20}}
      - {{series: 'sojourn_exchanges_total{{instance="b",port="22"}}', values: 0+150x20}}
      # Two instances of kube-state-metrics report the same pods.
      - {{series: 'kube_pod_labels{{instance="k1",namespace="shop",pod="web-1",label_app="web"}}', values: 1x20}}
      - {{series: 'kube_pod_labels{{instance="k2",namespace="shop",pod="web-1",label_app="web"}}', values: 1x20}}
      - {{series: 'kube_pod_labels{{instance="k1",namespace="shop",pod="web-2",label_app="web"}}', values: 1x20}}
      - {{series: 'kube_pod_labels{{instance="k1",namespace="shop",pod="mail-1",label_app="mail"}}', values: 1x20}}
      - {{series: 'kube_pod_owner{{instance="k1",namespace="shop",pod="web-1",owner_name="web"}}', values: 1x20}}
      - {{series: 'kube_pod_owner{{instance="k1",namespace="shop",pod="web-2",owner_name="web"}}', values: 1x20}}
      # Of 100 requests 50 are below 1 ms and 50 between 1 and 2 ms: p99 is 1.98 ms.
{buckets}
    promql_expr_test:
      - {{expr: {rates}, eval_time: 4m,
         exp_samples: [{{labels: '{{label_app="web"}}', value: 3}}, {{labels: '{{label_app="mail"}}', value: 5}}]}}
      - {{expr: {quantile}, eval_time: 4m, exp_samples: [{{labels: '{{owner_name="web"}}', value: 0.00198}}]}}
"""


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_documented_joins_with_pods_are_right(tmp_path):
    page = (ROOT / "docs/kubernetes.md").read_text()
    rates, quantile = (json.dumps(" ".join(block.split()))
                       for block in re.findall(r"(?:^    .*\n)+", page.split("## Pods in metrics")[1], re.MULTILINE)[:2])
    buckets = "\n".join(
        f"""      - {{series: 'sojourn_stage_seconds_bucket{{stage="{stage}",namespace="shop",pod="{pod}",le="{edge}"}}', """
        f"values: 0+{count}x20}}"
        for stage, pod, counts in (("service", "web-1", (50, 50, 50)), ("service", "web-2", (0, 50, 50)),
                                   ("respond", "web-1", (0, 0, 50)))
        for edge, count in zip(("0.001", "0.002", "+Inf"), counts))
    (tmp_path / "pods.yml").write_text(PODS.format(buckets=buckets, rates=rates, quantile=quantile))
    done = subprocess.run(["promtool", "test", "rules", "pods.yml"], text=True, cwd=tmp_path, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested():
    names = re.findall(r"alert: (\w+)", (PACKAGING / "prometheus/alerts.yml").read_text())
    tested = (PACKAGING / "prometheus/alerts_test.yml").read_text()
    for name in names:
        assert re.search(rf"alertname: {name}\n\s+eval_time: \S+\n\s+exp_alerts:\n", tested), name


def test_no_engines_profile_forbids_bpf():
    """Podman's profile of Debian 12 allows BPF only with CAP_SYS_ADMIN."""
    assert "--security-opt seccomp=unconfined" in (PACKAGING / "container/Dockerfile").read_text()
    assert "seccompProfile: {type: Unconfined}" in (PACKAGING / "kubernetes/observer/observer.yaml").read_text()


def test_the_unit_is_started_when_it_answers_and_not_again_in_vain():
    """2 and 3 are the exit codes of wrong options, and of a kernel that does not allow observing."""
    unit = (PACKAGING / "sojourn.service").read_text().splitlines()
    assert {"Type=notify", "RestartPreventExitStatus=2 3"} <= set(unit)


def kept_by_the_program():
    return set(re.findall(r"\{CAP_(\w+), CALLS_OBSERVE\}", (ROOT / "observer/process/confine.c").read_text()))


def test_privileges_are_the_same_everywhere():
    # CAP_NET_ADMIN is needed only to open some sources, so the program gives it up afterwards.
    assert kept_by_the_program() == CAPABILITIES - {"NET_ADMIN"}
    unit = (PACKAGING / "sojourn.service").read_text()
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        assert set(re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)[0].split()) == \
            {f"CAP_{name}" for name in CAPABILITIES}
    manifest = (PACKAGING / "kubernetes/observer/observer.yaml").read_text()
    # The manifest observes pods, in network namespaces of their own.
    assert set(re.search(r"add: \[(.*)\]", manifest)[1].split(", ")) == FROM_ROOT | {"SYS_ADMIN"}
    assert set(re.findall(r"--cap-add (\w+)", (PACKAGING / "container/Dockerfile").read_text())) \
        == FROM_ROOT


def manifests():
    """Return every manifest with a container of ours, and its text."""
    texts = {path: path.read_text() for path in sorted((PACKAGING / "kubernetes").rglob("*.yaml"))}
    return {path: text for path, text in texts.items() if "image: sojourn" in text}


@pytest.mark.parametrize("path", manifests(), ids=lambda path: path.stem)
def test_options_of_manifests_exist(path):
    words = re.search(r"command: \[(.*)\]", path.read_text())[1]
    program = [BUILD / "observer/sojourn", "serve"]
    if words.startswith("sojourn-drive"):
        program = [BUILD / "driver/sojourn-drive", *re.findall(r"^sojourn-drive, (agent)", words)]
    text = subprocess.run([*program, "--help"], check=True, capture_output=True, text=True).stdout
    options = re.findall(r"(--[a-z-]+)", words)
    assert options and all(re.search(rf"{option}\b", text) for option in options)


def test_versions_are_the_same():
    version = re.search(r"project\(sojourn VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f"({version})" in (PACKAGING / "changelog").read_text()
    assert len(manifests()) == 4
    for text in manifests().values():
        assert f"image: sojourn:{version}\n" in text
