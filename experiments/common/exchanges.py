# SPDX-License-Identifier: MIT
"""Single exchanges that both sides know, from a merged document with --keep-samples, by the scenario's step.

Sojourn joins them itself (`joined.steps`), by the driver's own step. As a check, here the step follows from the
index on the connection, as long as no request of the run failed. A client repeats its steps in order, on one
connection. That is verified: the observer's count of each request's bytes must equal the step's, by the
driver's count.
"""
from collections import Counter

STAGES = ("accept_queue", "socket_queue", "receive", "service", "respond")
SERVER = ("receive", "service", "respond")  # the server's own time; the other stages are queueing
QUEUES = ("accept_queue", "socket_queue")
CPU = ("running_ns", "runnable_ns")


def _by_key(samples):
    """Return {(client, port, server, port, index): row} of samples, without duplicates."""
    flows = samples["flows"]
    names = list(zip(flows["client"], flows["client_port"], flows["server"], flows["server_port"]))
    keys = [(*names[flow], index) for flow, index in zip(samples["flow"], samples["index"])]
    counts = Counter(keys)
    return {key: row for row, key in enumerate(keys) if counts[key] == 1}


def pairs(document, service):
    """Yield a dict per exchange that both sides sampled: index, bytes_in, round_trip, network, overhang, the
    stages, and running and runnable if known. All times are in ns."""
    sent, seen = document["driver"]["samples"], service["samples"]
    rows = _by_key(seen)
    for key, row in _by_key(sent).items():
        other = rows.get(key)
        if other is not None:
            yield _pair(sent, row, seen, other, key[-1])


def _pair(sent, row, seen, other, index):
    pair = {name: seen["stages"][name][other] or 0 for name in STAGES}
    rest = sent["round_trip_ns"][row] - sum(pair.values())
    pair.update(index=index, bytes_in=seen["bytes_in"][other], round_trip=sent["round_trip_ns"][row],
                network=max(rest, 0), overhang=max(-rest, 0))
    if seen.get("running_ns") and seen["running_ns"][other] is not None:
        pair.update(running=seen["running_ns"][other], runnable=seen["runnable_ns"][other])
    return pair


def _sums(chosen):
    server = sum(pair[name] for pair in chosen for name in SERVER)
    total = sum(pair["round_trip"] for pair in chosen)
    on_cpu = [pair for pair in chosen if "running" in pair]
    return {
        "count": len(chosen), "round_trip_ns": total, "server_ns": server, "client_ns": total - server,
        "queue_ns": sum(pair[name] for pair in chosen for name in QUEUES),
        "network_ns": sum(pair["network"] - pair["overhang"] for pair in chosen),
        "divided": len(on_cpu), "running_ns": sum(pair["running"] for pair in on_cpu),
        "runnable_ns": sum(pair["runnable"] for pair in on_cpu),
    }


def by_step(document, service):
    """Return for each step of the driver's scenario the sums over its exchanges, in integers: round_trip_ns =
    server_ns + client_ns, and client_ns = queue_ns + network_ns. Also count exchanges with another step's
    bytes."""
    steps = document["driver"]["steps"]
    if any(sum(step["errors"].values()) for step in steps):
        return None  # after a failure a client restarts its cycle, so the index does not give the step
    chosen = [[] for _ in steps]
    for pair in pairs(document, service):
        chosen[pair["index"] % len(steps)].append(pair)
    return [{"name": step["name"], "requests": step["requests"],
             "mean_ns": step["round_trip"]["mean_ns"], **_sums(found),
             "foreign": sum(pair["bytes_in"] * step["requests"] != step["bytes_out"] for pair in found)}
            for step, found in zip(steps, chosen)]


def totals(steps):
    names = [name for name, value in steps[0].items() if isinstance(value, int) and name != "mean_ns"]
    return {name: sum(step[name] for step in steps) for name in names}
