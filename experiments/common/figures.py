# SPDX-License-Identifier: MIT
"""Figures from run documents, and their form in pages."""
NS = 1e9
STAGES = ("accept_queue", "socket_queue", "receive", "service", "respond")


def service(document, port, protocol="tcp"):
    found = [entry for entry in document["services"]
             if entry["port"] == port and entry["protocol"] == protocol]
    assert len(found) == 1, f"{len(found)} services on port {port}/{protocol}"
    return found[0]


def rate(driver):
    """Return responses per second of the driver's measured phase, or of a sweep's step."""
    return (driver["requests"] - driver.get("drained", 0)) / driver["duration_ns"] * NS


def rate_by_latency(driver):
    """Return requests divided by the sum of their latencies: a single client's rate, but no throughput with two
    or more."""
    trip = driver["round_trip"]
    return trip["count"] / trip["sum_ns"] * NS if trip["sum_ns"] else 0.0


def server_rate(observed):
    """Return exchanges per second from the first request's arrival to the last response's write; None if unknown."""
    begin, end = observed["first_message_ns"], observed["last_message_ns"]
    return observed["exchanges"] / (end - begin) * NS if begin and end > begin else None


def errors(driver):
    return sum(driver["errors"].values())


def stage_ns(observed, name):
    """Return the mean of a stage in ns over its measured exchanges; None if not measured. For accept_queue:
    over connections."""
    stage = observed["stages"].get(name)
    return stage["sum_ns"] / stage["count"] if stage and stage.get("count") else None


def residence_ns(observed):
    """Return the mean time at the server per exchange: the stages from socket_queue on, and the requests' wait
    in the accept queue; None if nothing was timed."""
    count = observed["stages"]["service"].get("count")
    if not count:
        return None
    stages = (observed["stages"][name].get("sum_ns", 0) for name in STAGES[1:])
    return (sum(stages) + observed["accept_delay_ns"]) / count


def lost(observed):
    """Return the service's losses by name, without the zeros."""
    return {name: count for name, count in observed["losses"].items() if count}


def time_text(ns):
    """Return a time in ns as text: three significant digits and a unit; None is a dash."""
    if ns is None:
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            value = ns / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{ns:.0f} ns"


def number(value, digits=0):
    """Return a number as text with commas; None is a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(part, whole):
    return "–" if not whole else f"{100 * part / whole:.1f} %"
