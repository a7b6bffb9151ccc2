# SPDX-License-Identifier: MIT
"""Workloads beside the manifests, and the truths on them: the logs of nginx, the names of Kubernetes."""
import json
import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from support import ROOT
from support.process import wait_until

from .cluster import NODE, STATE, kubectl, objects

MANIFESTS = ROOT / "packaging/kubernetes"
IMAGE = re.search(r"image: (\S+)", (MANIFESTS / "driver.yaml").read_text())[1]
# Each request of nginx is one line of its pod's log.
WEB = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  nginx.conf: |
    error_log stderr;
    pid /tmp/nginx.pid;
    events {}
    http {
      log_format counted 'served $connection $connection_requests';
      access_log /dev/stdout counted;
      keepalive_requests 1000000000;
      server { listen 8080; location / { return 200 ok; } }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: nginx
          image: servers:1
          volumeMounts: [{name: configuration, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}]
      volumes: [{name: configuration, configMap: {name: web}}]
---
apiVersion: v1
kind: Service
metadata: {name: server}
spec: {selector: {app: web}, ports: [{port: 8080}]}
"""
NATS = """
apiVersion: v1
kind: Pod
metadata: {name: nats, labels: {app: nats}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: nats, image: "servers:1", command: [nats-server, -js, -sd, /tmp/store]}]
---
apiVersion: v1
kind: Service
metadata: {name: nats}
spec: {selector: {app: nats}, ports: [{port: 4222}]}
"""
# As packaging/kubernetes/driver.yaml has it.
SECURITY = """{runAsNonRoot: true, runAsUser: 65534, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true,
                        capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"""
DRIVERS = "---".join(f"""
apiVersion: v1
kind: Pod
metadata: {{name: driver-{number}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: driver
      image: {IMAGE}
      command: [sleep, infinity]
      securityContext: {SECURITY}
""" for number in range(2))


def changed(name, *changes):
    """Return the manifest with these texts replaced, each of which it has once."""
    text = (MANIFESTS / name).read_text()
    for old, new in changes:
        assert text.count(old) == 1, f"{name}: {old}"
        text = text.replace(old, new)
    return text


class Observer:
    """The DaemonSet of observer/, as docs/kubernetes.md has it applied."""

    TOKEN, PHASE_TOKEN = "a-token-of-this-test-only", "another-token-of-this-test"
    URL = f"https://{NODE}:9180"

    def __init__(self, cluster):
        folder = STATE / "secret"
        folder.mkdir()
        (folder / "tls.crt").write_bytes(cluster.cert.read_bytes())
        (folder / "tls.key").write_bytes(cluster.key.read_bytes())
        (folder / "ca.crt").write_bytes((STATE / "ca.pem").read_bytes())
        (folder / "token").write_text(self.TOKEN + "\n")
        (folder / "phase-token").write_text(self.PHASE_TOKEN)
        kubectl("apply", "-f", MANIFESTS / "observer/namespace.yaml")
        kubectl("-n", "sojourn", "create", "secret", "generic", "sojourn", *(f"--from-file={file}" for file in folder.iterdir()))
        kubectl("apply", "--validate=strict", "-k", MANIFESTS / "observer")
        kubectl("-n", "sojourn", "rollout", "status", "daemonset/sojourn", "--timeout=120s", seconds=150)
        wait_until(lambda: self.status("/metrics") == 200, seconds=60, poll_seconds=0.2)

    def get(self, path, token=TOKEN):
        query = urllib.request.Request(self.URL + path, headers={"Authorization": f"Bearer {token}"} if token else {})
        trusted = ssl.create_default_context(cafile=STATE / "ca.pem")
        with urllib.request.urlopen(query, timeout=20, context=trusted) as response:
            return response.read().decode()

    def status(self, path, token=TOKEN):
        try:
            self.get(path, token)
        except urllib.error.HTTPError as error:
            return error.code
        except (urllib.error.URLError, ConnectionError):
            return None
        return 200

    def samples(self, name):
        """Return [(labels, value)] of a metric."""
        lines = re.findall(rf"^{name}\{{(.*)\}} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)) for labels, value in lines]

    def counted(self, pod):
        """Return the exchanges of a pod."""
        return sum(value for labels, value in self.samples("sojourn_exchanges_total") if labels.get("pod") == pod)


def pods(selector, namespace="default"):
    """Return the pods that run and are to stay, by their names."""
    return {pod["metadata"]["name"]: pod for pod in objects("pods", "-n", namespace, "-l", selector)
            if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")}


def container_id(pod):
    """Return that of the first container in its manifest."""
    name = pod["spec"]["containers"][0]["name"]
    (status,) = [status for status in pod["status"]["containerStatuses"] if status["name"] == name]
    return status["containerID"].removeprefix("containerd://")


def served(pod):
    """Return the requests in the log of a pod's nginx."""
    return kubectl("logs", pod).count("served ")


def served_by_all():
    return sum(map(served, pods("app=web")))


def process_of(pod):
    """Return the pid of the first process in a pod's container."""
    number = container_id(pod)
    for folder in Path("/proc").glob("[0-9]*"):
        if number in (folder / "cgroup").read_text(encoding="ascii", errors="replace"):
            return int(folder.name)
    raise LookupError(number)


def drive(pod, *options, url="http://server.default.svc:8080/"):
    """Drive from within a pod; return the run document."""
    return json.loads(kubectl("exec", "-n", "load", pod, "--", "sojourn-drive", url, *options, "--quiet", "--json", "-"))
