# SPDX-License-Identifier: MIT
"""Two pods on one host: namespaces and cgroups as Kubernetes makes them, with an nginx each. Its counts and its log are
the truth; which of the pods is slow, and by how much, the test has decided."""
import contextlib
import re
from pathlib import Path

import pytest

from support import documents
from support.cgroup import Cgroup, cgroup2
from support.net import Netns, free_port
from support.process import run
from support.programs import DRIVER, OBSERVER, Lab, Nginx, Observer
from support.timing import MS, in_quiet, lies_within

LOG = "log_format times '$request_time';"
KEEP = 'proxy_http_version 1.1; proxy_set_header Connection "";'


class Pod(Netns):
    """A network namespace, and the cgroups in which the kubelet starts the container of a pod."""

    def __init__(self, stack, number):
        super().__init__(f"pod-{number}")
        self.uid = f"{number}f2a7c1e-5b1d-4c61-9d7e-{number:012d}"
        self.address = f"10.203.0.{10 + number}"
        self.cgroup = stack.enter_context(Cgroup())
        for name in (f"kubepods-pod{self.uid.replace('-', '_')}.slice", f"cri-containerd-{f'{number}e1f' * 16}.scope"):
            inner = Cgroup()
            inner.path = self.cgroup.path / name
            self.cgroup = stack.enter_context(inner)

    def prefix(self):
        return [*self.cgroup.prefix(), *super().prefix()]


@pytest.fixture(scope="module")
def host():
    """Yield the host's namespace with a bridge, and two pods on it."""
    if cgroup2() is None:
        pytest.skip("no cgroups of version 2 are mounted")
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(Netns("node"))
        pods = [stack.enter_context(Pod(stack, number)) for number in (1, 2)]
        switch.exec(["ip", "link", "add", "bridge", "type", "bridge"])
        switch.exec(["ip", "address", "add", "10.203.0.1/24", "dev", "bridge"])
        switch.exec(["ip", "link", "set", "bridge", "up"])
        for number, pod in enumerate(pods):
            run(["ip", "link", "add", f"pod{number}", "netns", switch.name, "type", "veth", "peer", "name", "eth0", "netns", pod.name])
            switch.exec(["ip", "link", "set", f"pod{number}", "master", "bridge", "up"])
            pod.exec(["ip", "address", "add", f"{pod.address}/24", "dev", "eth0"])
            pod.exec(["ip", "link", "set", "eth0", "up"])
        yield switch, pods


@pytest.fixture(name="servers")
def fixture_servers(start, host):
    """Start an nginx in each pod, at one port; the second one's waits for 20 ms."""
    port, servers = free_port(), []
    for pod in host[1]:
        lab = start(Lab("--service", "20ms" if pod is host[1][1] else "1ms", netns=pod))
        servers.append(start(Nginx(port=port, netns=pod, addresses=(pod.address,), http_block=LOG,
                                   server=f"access_log {{folder}}/times.log times; location /page {{ {KEEP} "
                                          f"proxy_pass http://{lab.address}:{lab.port}/; }}")))
    return servers


def logged(nginx):
    """Return the number of lines in nginx's log, and the mean of its times in ns."""
    times = [float(line) for line in Path(nginx.files.name, "times.log").read_text().split()]
    return len(times), sum(times) / len(times) * 1000 * MS


def report(document, tmp_path, *options):
    path = tmp_path / "run.json"
    path.write_text(document)
    return run([OBSERVER, "report", *options, path]).stdout.splitlines()


@in_quiet
def test_the_slow_pod_is_named(start, host, servers, tmp_path):
    """The first line names it. A row for each pod has nginx's own count, and its mean is that of nginx's log."""
    switch, pods = host
    observer = start(Observer("--all-netns", ports=[servers[0].port], netns=switch))
    done = run([DRIVER, "-c", "4", "-n", "300", *(nginx.url + "page" for nginx in servers), "--observer", observer.url, "--json", "-"],
               netns=switch)
    document = documents.parse(done.stdout)
    truth = [logged(nginx) for nginx in servers]
    rows = {row["place"]: row for row in document["joined"]["hosts"]}
    assert {place: row["count"] for place, row in rows.items()} == {f"pod {pod.uid}": count for pod, (count, _) in zip(pods, truth)}
    assert sum(count for count, _ in truth) == document["driver"]["requests"] == 300
    for pod, (count, mean_ns) in zip(pods, truth):
        row = rows[f"pod {pod.uid}"]
        assert row["name"] == document["host"]
        means = [row["sum"]["stages"]["service"] / count, row["sum"]["round_trip_ns"] / count]
        assert means[1] > means[0] > mean_ns / 2, (pod.uid, means, mean_ns)
        assert lies_within(means[0], mean_ns - 1.5 * MS, mean_ns + 1.5 * MS)  # the log has whole milliseconds
    lines = report(done.stdout, tmp_path)
    answer = next(line for line in lines if re.match("host |pod |no |not known|GET ", line))  # a busy machine's is "LIMITED"
    assert answer.startswith(f"pod {pods[1].uid} is the slow one: mean round trip "), lines
    counts = {match[1]: int(match[2]) for line in lines if (match := re.match(r"(pod \S+|all pods) +([\d,]+)  ", line))}
    assert counts == {**{f"pod {pod.uid}": count for pod, (count, _) in zip(pods, truth)}, "all pods": 300}, lines


@in_quiet
def test_without_a_driver(start, host, servers, tmp_path):
    """The observer alone compares the pods by the mean time there, and another program at the same port of the host is
    not among them."""
    switch, pods = host
    other = start(Nginx(port=servers[0].port, netns=switch, addresses=("10.203.0.1",)))
    observer = start(Observer("--all-netns", ports=[other.port], netns=switch))
    for nginx in (*servers, other):
        run([DRIVER, "-c", "4", "-n", "100", nginx.url + ("" if nginx is other else "page")], netns=switch)
    observer.stop()
    text = observer.json.read_text()
    lines = report(text, tmp_path)
    assert lines[0].startswith(f"pod {pods[1].uid} is the slow one: mean time at the server "), lines
    assert [match[1] for line in lines if (match := re.match(r"all pods +(\d+)  ", line))] == ["200"], lines


def test_one_pod_of_several_is_no_comparison(start, host, servers, tmp_path):
    """If the driver asks one pod, the report is of this one, whatever others ask of its neighbour."""
    switch, _ = host
    observer = start(Observer("--all-netns", ports=[servers[0].port], netns=switch))
    phase = observer.begin_phase()
    run([DRIVER, "-c", "2", "-n", "200", servers[1].url + "page"], netns=switch)
    done = run([DRIVER, "-c", "2", "-n", "60", servers[0].url + "page", "--observer", observer.url, "--json", "-"], netns=switch)
    observer.end_phase(phase)
    text = "\n".join(report(done.stdout, tmp_path))
    assert "slow one" not in text and "all pods" not in text, text
    document = documents.parse(done.stdout)
    assert document["joined"]["joined"] == document["driver"]["requests"] == 60
