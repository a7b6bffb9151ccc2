# SPDX-License-Identifier: MIT
"""Figures out of run documents, and how pages write them."""
NS = 1e9
STAGES = ("accept_queue", "socket_queue", "receive", "service", "respond")


def service(document, port, protocol="tcp"):
    """The document's only service on this port."""
    found = [entry for entry in document["services"]
             if entry["port"] == port and entry["protocol"] == protocol]
    assert len(found) == 1, f"{len(found)} services on port {port}/{protocol}"
    return found[0]


def rate(driver):
    """Responses per second of the driver's measured phase, or of a sweep's step."""
    return (driver["requests"] - driver.get("drained", 0)) / driver["duration_ns"] * NS


def rate_by_latency(driver):
    """Requests by the sum of their latencies: what one client would do if it were alone, and no
    throughput as soon as there are two."""
    trip = driver["round_trip"]
    return trip["count"] / trip["sum_ns"] * NS if trip["sum_ns"] else 0.0


def server_rate(observed):
    """Exchanges per second from the first request's arrival to the last response's write; None if
    that is not known."""
    begin, end = observed["first_message_ns"], observed["last_message_ns"]
    return observed["exchanges"] / (end - begin) * NS if begin and end > begin else None


def errors(driver):
    """All of the driver's errors together."""
    return sum(driver["errors"].values())


def stage_ns(observed, name):
    """Mean of a stage in ns over the exchanges that it was measured of; None if not measured. Of
    accept_queue: over connections."""
    stage = observed["stages"].get(name)
    return stage["sum_ns"] / stage["count"] if stage and stage.get("count") else None


def residence_ns(observed):
    """Mean time at the server: the stages from socket_queue on, and what requests waited in the accept
    queue, by exchange; None if nothing was timed."""
    count = observed["stages"]["service"].get("count")
    if not count:
        return None
    stages = (observed["stages"][name].get("sum_ns", 0) for name in STAGES[1:])
    return (sum(stages) + observed["accept_delay_ns"]) / count


def lost(observed):
    """What of this service was seen but not timed, by name, without the zeros."""
    return {name: count for name, count in observed["losses"].items() if count}


def time_text(ns):
    """A duration for people: 3 significant digits, with its unit."""
    if ns is None:
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            value = ns / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{ns:.0f} ns"


def number(value, digits=0):
    """A number for people: with commas; None is a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(part, whole):
    return "–" if not whole else f"{100 * part / whole:.1f} %"
