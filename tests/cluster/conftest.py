# SPDX-License-Identifier: MIT
"""The cluster of all tests here, with what the manifests are applied beside."""
import pytest

from . import cluster as node
from .cluster import STATE, kubectl
from .workloads import DRIVERS, Observer, WEB


@pytest.fixture(scope="session", name="cluster")
def cluster_fixture():
    if not STATE.name:
        pytest.skip("tools/cluster runs these tests, in namespaces that it makes")
    cluster = node.Cluster()
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session", name="observer")
def observer_fixture(cluster):
    """The DaemonSet, as docs/kubernetes.md says."""
    yield Observer(cluster)


@pytest.fixture(scope="session", name="web")
def web_fixture(cluster, observer):
    """Two pods of nginx behind the service that the driver's manifests name. They come after the observer."""
    assert observer
    kubectl("apply", "-f", "-", given=WEB)
    cluster.name_services()
    kubectl("rollout", "status", "deployment/web", "--timeout=120s")


@pytest.fixture(scope="session", name="drivers")
def drivers_fixture(cluster, web):
    """Two pods with the driver, in a namespace that allows the least only. They wait."""
    assert cluster and not web
    kubectl("create", "namespace", "load")
    kubectl("label", "namespace", "load", "pod-security.kubernetes.io/enforce=restricted")
    kubectl("apply", "-n", "load", "-f", "-", given=DRIVERS)
    names = ["driver-0", "driver-1"]
    kubectl("wait", "-n", "load", "--for=condition=Ready", *(f"pod/{name}" for name in names), "--timeout=120s")
    return names
