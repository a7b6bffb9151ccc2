#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Kubernetes cluster of one node, in the namespaces that tools/cluster has made.

Usage: cluster.py COMMAND…: runs it in the cluster, with `kubectl` ready
"""
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from cluster import images  # pylint: disable=wrong-import-position
from support import ROOT
from support.pki import Pki
from support.process import Process, run, wait_until

STATE, IMAGES, DEFINITIONS = (Path(os.environ.get(f"CLUSTER_{name}", "")) for name in ("STATE", "IMAGES", "DEFINITIONS"))
NODE = os.environ.get("CLUSTER_NODE", "")
NODE_NAME = os.environ.get("CLUSTER_NODE_NAME", "")
SERVER = f"https://{NODE}:6443"
ETCD = "http://127.0.0.1:2379"
SOCKET = STATE / "containerd.sock"
PODS, SERVICES = "10.244.0.0/24", "10.96.0.0/16"
# The name of each login's token, its user and his groups.
LOGINS = {"admin": "system:masters", f"system:node:{NODE_NAME}": "system:nodes", "system:kube-proxy": ""}

CONTAINERD = f"""
version = 2
root = "{STATE}/containerd"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{STATE}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:1"
  # Lower values than this process's take CAP_SYS_RESOURCE, which a container or a virtual machine may lack.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{STATE}/cni"
"""
# Point to point: traffic between two pods is routed, so that it meets the rules of services.
CNI = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
    {"type": "ptp", "ipam": {"type": "host-local", "dataDir": f"{STATE}/addresses", "ranges": [[{"subnet": PODS}]],
                             "routes": [{"dst": "0.0.0.0/0"}]}}]}
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},  # only this node reaches it
    "address": NODE, "containerRuntimeEndpoint": f"unix://{SOCKET}",
    "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{os.environ.get('CLUSTER_NAME', '')}", "failCgroupV1": False,
    "clusterDNS": [NODE], "clusterDomain": "cluster.local", "resolvConf": f"{STATE}/resolv.conf",
    "failSwapOn": False, "makeIPTablesUtilChains": False, "maxOpenFiles": 10000,
    # Not to depend on how full this machine is.
    "evictionHard": {"memory.available": "20Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
    "containerLogMaxSize": "4Gi",  # the logs are truths
}
PROXY = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
    "clusterCIDR": PODS, "hostnameOverride": NODE_NAME, "clientConnection": {"kubeconfig": f"{STATE}/system:kube-proxy.json"},
    "conntrack": {"maxPerCore": 0, "min": 0},  # settings of the whole host
    "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
}


def kubeconfig(login):
    return {"apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": SERVER, "certificate-authority": f"{STATE}/ca.pem"}}],
            "users": [{"name": "it", "user": {"token": f"token-of-{login}"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}


def kubectl(*words, given=None, seconds=120):
    """Return its standard output."""
    done = subprocess.run(["kubectl", *map(str, words)], input=given, text=True, capture_output=True, check=False,
                          timeout=seconds)
    assert done.returncode == 0, f"kubectl {' '.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


def objects(*words):
    """Return what `kubectl get` knows of them."""
    found = json.loads(kubectl("get", *words, "-o", "json"))
    return found.get("items", found)


class Cluster:
    """close() ends its daemons; what they leave goes with the namespaces."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.daemons = []
        try:
            self._write()
            self._start()
        except BaseException:
            for daemon in self.daemons:
                print(f"{daemon.argv[0]}, running: {daemon.running()}\n{daemon.stderr[-2000:]}", file=sys.stderr)
            self.close()
            raise

    def close(self):
        self.stack.close()

    def _write(self):
        pki = Pki()
        self.stack.callback(pki.close)
        names = "DNS:kubernetes.default.svc,DNS:sojourn.sojourn.svc,IP:10.96.0.1,IP:127.0.0.1"
        self.cert, self.key = pki.issue("node", f"{names},IP:{NODE}")
        (STATE / "ca.pem").write_bytes(pki.ca.read_bytes())
        run(["openssl", "genrsa", "-out", STATE / "accounts.key", 2048])
        (STATE / "tokens.csv").write_text("".join(
            f'token-of-{user},{user},{user},"{group}"\n' for user, group in LOGINS.items()))
        for user in LOGINS:
            (STATE / f"{user}.json").write_text(json.dumps(kubeconfig(user)))
        os.environ["KUBECONFIG"] = str(STATE / "admin.json")
        (STATE / "containerd.toml").write_text(CONTAINERD)
        for name, what in (("kubelet", KUBELET), ("proxy", PROXY)):
            (STATE / f"{name}-configuration.json").write_text(json.dumps(what))
        for name in ("cni", "names"):
            (STATE / name).mkdir()
        (STATE / "cni/pods.conflist").write_text(json.dumps(CNI))
        (STATE / "resolv.conf").write_text(f"nameserver {NODE}\n")

    def _daemon(self, *argv):
        daemon = Process(argv, env={"HOME": str(STATE)})
        self.stack.callback(daemon.close)
        self.daemons.append(daemon)
        return daemon

    def _start(self):
        self._daemon("etcd", "--data-dir", STATE / "etcd", "--listen-client-urls", ETCD, "--advertise-client-urls", ETCD)
        self._daemon(
            "kube-apiserver", "--etcd-servers", ETCD, "--bind-address", NODE, "--tls-cert-file", self.cert,
            "--tls-private-key-file", self.key, "--token-auth-file", STATE / "tokens.csv", "--authorization-mode", "Node,RBAC",
            "--enable-admission-plugins", "NodeRestriction", "--kubelet-preferred-address-types", "InternalIP",
            "--service-cluster-ip-range", SERVICES,
            "--service-account-issuer", SERVER, "--service-account-key-file", STATE / "accounts.key",
            "--service-account-signing-key-file", STATE / "accounts.key")
        self._daemon("dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file=",
                     "--user=root", f"--listen-address={NODE}", "--bind-interfaces", "--local=/#/", f"--hostsdir={STATE}/names")
        containerd = self._daemon("containerd", "--config", STATE / "containerd.toml")
        containerd.wait_for("containerd successfully booted", "stderr", 60)
        self._import_images()
        wait_until(lambda: subprocess.run(["kubectl", "get", "--raw", "/readyz"], capture_output=True, check=False)
                   .returncode == 0, seconds=180, poll_seconds=0.5)
        for name in ("kube-controller-manager", "kube-scheduler"):
            more = ["--service-account-private-key-file", STATE / "accounts.key", "--root-ca-file", STATE / "ca.pem"]
            self._daemon(name, "--kubeconfig", STATE / "admin.json", "--leader-elect=false", "--bind-address", "127.0.0.1",
                         *(more if name == "kube-controller-manager" else []))
        self._daemon("kube-proxy", "--config", STATE / "proxy-configuration.json")
        self._daemon("kubelet", "--config", STATE / "kubelet-configuration.json", "--node-ip", NODE, "--hostname-override",
                     NODE_NAME, "--kubeconfig", STATE / f"system:node:{NODE_NAME}.json", "--root-dir", STATE / "kubelet",
                     "--cert-dir", STATE / "kubelet-certificates")
        wait_until(lambda: any(condition["type"] == "Ready" and condition["status"] == "True" for node in objects("nodes")
                               for condition in node["status"].get("conditions", [])), seconds=180, poll_seconds=0.5)
        wait_until(lambda: objects("serviceaccounts", "-n", "default"), seconds=60, poll_seconds=0.5)

    def _import_images(self):
        command = json.loads(re.search(r"^CMD (.*)", (ROOT / "packaging/container/Dockerfile").read_text(), re.MULTILINE)[1])
        name = re.search(r"image: (\S+)", (ROOT / "packaging/kubernetes/driver.yaml").read_text())[1]
        for image, layer, does in ((name, "sojourn", command), ("servers:1", "servers", ["nginx", "-g", "daemon off;"]),
                                   ("pause:1", "servers", ["sleep", "infinity"])):
            archive = STATE / "image.tar"
            images.write(archive, image, IMAGES / f"{layer}.tar", does)
            run(["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "import", archive], seconds=300)
            archive.unlink()

    def name_services(self):
        """Tell pods the addresses of all services, as the cluster's DNS server would."""
        lines = [f"{service['spec']['clusterIP']} {service['metadata']['name']}.{service['metadata']['namespace']}"
                 ".svc.cluster.local" for service in objects("services", "-A")]
        (STATE / "names/services").write_text("\n".join(lines) + "\n")


def main():
    with contextlib.closing(Cluster()):
        return subprocess.run(sys.argv[1:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
