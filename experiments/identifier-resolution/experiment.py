# SPDX-License-Identifier: MIT
"""Identifier resolution: reads and creates over four interfaces, and what runs out without a delay."""
import sys
from pathlib import Path
from typing import NamedTuple

from experiments.common import figures
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from support.process import run as finish

sys.path.insert(0, str(Path(__file__).parent))

from servers import Knot, Nginx  # noqa: E402  (beside this file)

TITLE = "reads and creates over UDP, TCP, HTTP and JSON, one port per request (knot, nginx)"
PACKAGES = ("knot", "nginx", "libnginx-mod-http-js")
CLIENTS = (10, 40, 100)  # client addresses; each has THREADS clients that wait for DELAY after each answer
QUICK_CLIENTS = (5, 20)
THREADS = 10
DELAY = "10ms"
WARM_UP = {"create": 250, "resolve": 1000}
TIME_WAIT_S = 60  # TCP_TIMEWAIT_LEN of Linux
RANGE = "net.ipv4.ip_local_port_range"


class Interface(NamedTuple):
    """A protocol of clients, and its server."""

    name: str
    scheme: str
    server: str
    create: bool  # not over UDP: a lost answer looks like a lost request


INTERFACES = (Interface("TCP", "tcp", "dns", True), Interface("UDP", "udp", "dns", False),
              Interface("HTTP", "http", "http", True), Interface("JSON", "http", "http", True))


def scenario(context, interface, operation):
    kind = "read" if operation == "resolve" else "create"
    return context.source / f"{kind}-{interface.name.lower()}.yaml"


def url(interface, servers):
    return f"{interface.scheme}://127.0.0.1:{servers[interface.server].port}"


def addresses(count, network=1):
    """Return as many client addresses on the loopback network."""
    return f"127.0.{network}.1-127.0.{network}.{count}"


def warmed_up(context, interface, operation, servers, observer):
    """Warm up like the original. For creates return the counts of all three sides."""
    server, wanted = servers[interface.server], WARM_UP[operation]
    before = server.created() if operation == "create" else 0
    document = context.drive("run", scenario(context, interface, operation), "-c10", f"-n{wanted}", "-d60s",
                             url(interface, servers), observer=observer)
    if operation != "create":
        return None
    seen = figures.service(document, server.port)
    return {"interface": interface.name, "driver": document["driver"]["requests"],
            "server": server.created() - before, "sojourn": seen["exchanges"]}


def driven(context, interface, operation, servers, observer, clients):
    return context.drive(
        "run", scenario(context, interface, operation), f"-c{clients * THREADS}", "--new-connections",
        f"--think={DELAY}", f"--source={addresses(clients)}", f"-d{context.pick('3s', '700ms')}",
        url(interface, servers), observer=observer, label="driver")


def measured(context, interface, operation, servers, observer, clients):
    document = driven(context, interface, operation, servers, observer, clients)
    driver = document["driver"]
    seen = figures.service(document, servers[interface.server].port,
                           "udp" if interface.scheme == "udp" else "tcp")
    connect = driver["connect"]["mean_ns"] if interface.scheme != "udp" else 0
    accepted = figures.stage_ns(seen, "accept_queue")
    return {
        "interface": interface.name, "operation": operation, "clients": clients,
        "requests": driver["requests"], "errors": figures.errors(driver), "exchanges": seen["exchanges"],
        "rate": figures.rate(driver), "connect_ns": connect, "round_trip_ns": driver["round_trip"]["mean_ns"],
        "client_ns": connect + driver["round_trip"]["mean_ns"], "accept_queue_ns": accepted,
        "residence_ns": figures.residence_ns(seen), "socket_queue_ns": figures.stage_ns(seen, "socket_queue"),
        "service_ns": figures.stage_ns(seen, "service"), "lost": figures.lost(seen),
        "limited": (driver.get("limited") or {}).get("by"),
        "queue": seen["accept_queue"], "accepted": seen["accepted"],
        "findings": {finding["id"]: finding.get("what") for finding in document.get("findings") or []},
    }


def table_of_all(context, servers, observer):
    cells, counts = [], []
    for operation in ("resolve", "create"):
        for interface in INTERFACES:
            if operation == "create" and not interface.create:
                continue
            context.say(f"{operation} over {interface.name}")
            count = warmed_up(context, interface, operation, servers, observer)
            counts += [count] if count else []
            cells += [measured(context, interface, operation, servers, observer, clients)
                      for clients in context.pick(CLIENTS, QUICK_CLIENTS)]
    return cells, counts


def narrow(context):
    """Reads over TCP from knot with its defaults: one thread accepts, from one queue."""
    context.say("resolve over TCP, one accept queue")
    knot = Knot(context, "knot-narrow", tcp_workers=1)
    clients = context.pick(CLIENTS, QUICK_CLIENTS)[1]
    with context.observe(ports=[knot.port], label=None) as observer:
        return measured(context, INTERFACES[0], "resolve", {"dns": knot}, observer, clients)


# Without the delay

def sysctl(setting):
    """Set it in this experiment's network namespace alone."""
    finish(["sysctl", "-qw", setting])


def exhausted(context, ports):
    """Run one client address without delay, with a port per request, until a connection finds no free port."""
    server = Nginx(context, "nginx-again")
    target = f"http://127.0.0.1:{server.port}/handles/demo"
    with context.observe(ports=[server.port]) as observer:
        document = context.drive(target, f"-c{THREADS}", "--new-connections", "--source=127.0.2.1",
                                 f"-n{ports * 2}", "--fail-fast", observer=observer, label="driver, without delay")
    doctor = context.doctor("--port", server.port)
    driver = document["driver"]
    failure = next((each for each in driver["failures"] if each["kind"] == "address_unavailable"), {})
    finding = next((each for each in doctor.document["findings"] if each["id"] == "ports-exhausted"), {})
    context.note("doctor", ["sojourn", "doctor", "--port", server.port])
    return server, {
        "ports": ports, "requests": driver["requests"], "rate": figures.rate(driver),
        "first_ns": failure.get("first_ns"), "errors": failure.get("count", 0),
        "explanation": failure.get("explanation"), "preflight": _warning(document["messages"]),
        "observer": sorted({each["id"] for each in document.get("findings") or []}),
        "doctor_status": doctor.status, "doctor": sorted(doctor.ids),
        "object": finding.get("object"), "used": finding.get("used"), "capacity": finding.get("capacity"),
    }


def _warning(text):
    found = [line for line in text.splitlines() if "warning: " in line]
    return found[0].partition("warning: ")[2] if found else None


def remedies(context, server, ports, servers):
    """Return the figures of loads that do not run out of ports, each with a port per request except where noted."""
    target = f"http://127.0.0.1:{server.port}/handles/demo"
    beyond = ports + ports // 2
    fresh = ["--new-connections", f"-n{beyond}", f"-c{THREADS}"]
    ways = [("four client addresses", target, [*fresh, f"--source={addresses(4, 3)}"]),
            ("connections that end by RST", target, [*fresh, "--close=rst", "--source=127.0.4.1"]),
            ("connections kept open", target, [*fresh[1:], "--source=127.0.5.1"])]
    if not context.quick:
        rate = int(ports / TIME_WAIT_S * 0.95)
        ways.append((f"{rate} requests/s for 75 s", target,
                     [fresh[0], fresh[2], f"--rate={rate}", "-d75s", "--source=127.0.6.1"]))
    made = [_way(context, *way) for way in ways]
    made.append(_way(context, "UDP", url(INTERFACES[1], servers), fresh, scenario(context, INTERFACES[1], "resolve")))
    return made


def _way(context, what, target, words, steps=None):
    context.say(f"without delay: {what}")
    driver = context.drive(*(["run", steps] if steps else []), *words, target)["driver"]
    return {"what": what, "requests": driver["requests"], "rate": figures.rate(driver),
            "no_port": driver["errors"]["address_unavailable"], "errors": figures.errors(driver)}


# The page

def peak(cells, interface, operation):
    found = [cell for cell in cells if (cell["interface"], cell["operation"]) == (interface, operation)]
    return max(found, key=lambda cell: cell["rate"]) if found else None


def peaks_table(cells):
    rows = []
    for operation in ("resolve", "create"):
        for interface in INTERFACES:
            cell = peak(cells, interface.name, operation)
            if cell:
                rows.append([f"{operation}, {interface.name}", number(cell["rate"]), cell["clients"] * THREADS,
                             time_text(cell["client_ns"]), time_text(cell["residence_ns"]),
                             percent(cell["residence_ns"], cell["client_ns"]), time_text(cell["service_ns"])])
    return table(["", "peak/s", "with clients", "client: latency", "server: residence", "of the latency",
                  "server: service"], rows)


def cells_table(cells, operation):
    head = ["", "clients", "requests/s", "connect", "round trip", "accept queue", "socket queue", "service",
            "errors", "driver limited by"]
    return table(head, [[
        cell["interface"], cell["clients"] * THREADS, number(cell["rate"]),
        time_text(cell["connect_ns"] or None), time_text(cell["round_trip_ns"]), time_text(cell["accept_queue_ns"]),
        time_text(cell["socket_queue_ns"]), time_text(cell["service_ns"]), number(cell["errors"]),
        cell["limited"] or "–"] for cell in cells if cell["operation"] == operation])


def who_waits(cells):
    """For the most loaded runs, return the server's share of the latency, and its service's share."""
    most = max(cell["clients"] for cell in cells)
    loaded = [cell for cell in cells if cell["clients"] == most and cell["residence_ns"]]
    shares = [cell["residence_ns"] / cell["client_ns"] for cell in loaded]
    work = [cell["service_ns"] / cell["client_ns"] for cell in loaded]
    return (f"Of the time that {number(most * THREADS)} clients measure, {percent(min(shares), 1)} to {percent(max(shares), 1)} "
            f"is at the server, and {percent(min(work), 1)} to {percent(max(work), 1)} is its service. The rest is waiting: "
            "for `accept()`, in the socket, or on the client's side, where the driver has one CPU for all clients.")


def limits_text(cells):
    limited = sorted({cell["limited"] for cell in cells if cell["limited"]})
    if not limited:
        return "In no run does the driver say that it was the bottleneck itself."
    count = sum(1 for cell in cells if cell["limited"])
    return f"In {count} of {len(cells)} runs the driver says that it was the bottleneck itself " \
        f"({', '.join(f'`{by}`' for by in limited)}): there the peak is a lower bound of the server's."


def narrow_text(one, cells):
    """Describe the effect of one short accept queue, compared with the same load on many."""
    many = next(cell for cell in cells if cell["clients"] == one["clients"] and
                (cell["interface"], cell["operation"]) == ("TCP", "resolve"))
    queue = one["queue"]
    text = (f"With one thread and one queue, {one['clients'] * THREADS} clients get {number(one['rate'])} requests/s "
            f"instead of {number(many['rate'])}. They wait {time_text(one['connect_ns'])} for a connection instead of "
            f"{time_text(many['connect_ns'])}, while the service of a request takes {time_text(one['service_ns'])} "
            f"(there {time_text(many['service_ns'])}). The queue held at most {number(queue.get('depth_max'))} connections "
            f"(limit {number(queue.get('limit'))}) and overflowed {number(queue.get('overflows'))} times in the run.")
    named = [f"`{name}` ({what})" for name, what in one["findings"].items() if name.startswith("accept-queue")]
    return text + (f" The observer's doctor names it: {'; '.join(named)}." if named else
                   " The observer's doctor found nothing there.")


def exhaustion_text(found):
    if not found["errors"]:
        return f"it did not run out: {number(found['requests'])} requests were answered."
    text = (f"it has {number(found['ports'])} ports towards a server. After "
            f"{number(found['requests'])} answers, {time_text(found['first_ns'])} after the begin, the first connection found "
            f"none, at {number(found['rate'])} requests/s.")
    if found["capacity"]:
        text += (f" `sojourn doctor` (exit status {found['doctor_status']}) names `ports-exhausted` of {found['object']}: "
                 f"{number(found['used'])} of {number(found['capacity'])} used.")
    else:
        text += f" `sojourn doctor` names: {', '.join(found['doctor']) or 'nothing'}."
    return text


def quoted(what, text):
    return f"{what}\n\n> {text}" if text else f"{what} nothing."


def remedies_table(made):
    return table(["", "requests", "requests/s", "found no port", "other errors"],
                 [[way["what"], number(way["requests"]), number(way["rate"]), number(way["no_port"]),
                   number(way["errors"] - way["no_port"])] for way in made])


def lost_text(cells):
    total = {}
    for cell in cells:
        for name, count in cell["lost"].items():
            total[name] = total.get(name, 0) + count
    return ", ".join(f"{name} {number(count)}" for name, count in sorted(total.items())) or "nothing"


def datagrams_text(cells):
    """Describe UDP's losses, by both sides' counts."""
    udp = [cell for cell in cells if cell["interface"] == "UDP"]
    missed, dropped = (sum(values) for values in zip(*((cell["errors"], cell["lost"].get("dropped", 0))
                                                       for cell in udp)))
    if not missed and not dropped:
        return "Over UDP every question was answered, and no datagram was dropped at the server."
    return f"Over UDP the driver missed {number(missed)} answers; the kernel dropped {number(dropped)} datagrams at " \
        "the server, whose receive buffer was full. A client alone cannot tell these from a slow server."


def draw_latency(cells):
    most = max(cell["clients"] for cell in cells)
    loaded = [cell for cell in cells if cell["clients"] == most]

    def draw(axes):
        names = [f"{cell['operation']}\n{cell['interface']}" for cell in loaded]
        bottom = [0.0] * len(loaded)
        parts = {"connect": lambda cell: cell["connect_ns"],
                 "network + client": lambda cell: cell["round_trip_ns"] - cell["residence_ns"],
                 "accept queue and others": lambda cell: cell["residence_ns"] - cell["socket_queue_ns"] -
                 cell["service_ns"],
                 "socket queue": lambda cell: cell["socket_queue_ns"], "service": lambda cell: cell["service_ns"]}
        for part, value in parts.items():
            heights = [max(0, value(cell)) / 1e6 for cell in loaded]
            axes.bar(names, heights, 0.65, bottom, label=part)
            bottom = [low + height for low, height in zip(bottom, heights)]
        axes.set_title(f"what the client waits for, {number(most * THREADS)} clients (mean, ms)")
        axes.grid(axis="x", visible=False)
        axes.legend(loc="best")
    return draw


def run(context):
    servers = {"dns": Knot(context), "http": Nginx(context)}
    # On loopback, connections reuse ports in TIME_WAIT after a second; between hosts they do not.
    sysctl("net.ipv4.tcp_tw_reuse=0")
    with context.observe(ports=[f"{servers['dns'].port}/udp", servers["dns"].port, servers["http"].port]) as observer:
        cells, counts = table_of_all(context, servers, observer)
    one = narrow(context)
    if context.quick:
        sysctl(f"{RANGE}=40000 41999")
    low, high = map(int, finish(["sysctl", "-n", RANGE]).stdout.split())
    context.say("without delay")
    server, found = exhausted(context, high - low + 1)
    ways = remedies(context, server, high - low + 1, servers)
    fields = {
        "commands": code(context.command_lines()), "peaks": peaks_table(cells),
        "resolve": cells_table(cells, "resolve"), "create": cells_table(cells, "create"),
        "counts": table(["creates of the warm-up", "the driver", "the server holds", "Sojourn"],
                        [[count["interface"], *(number(count[who]) for who in ("driver", "server", "sojourn"))]
                         for count in counts]),
        "waits": who_waits(cells), "limits": limits_text(cells), "narrow": narrow_text(one, cells),
        "lost": lost_text(cells),
        "datagrams": datagrams_text(cells),
        "exhaustion": exhaustion_text(found), "preflight": quoted("The driver warned before the run:", found["preflight"]),
        "explanation": quoted("Beside its errors it says afterwards:", found["explanation"]),
        "ports": number(high - low + 1), "sustained": number((high - low + 1) // TIME_WAIT_S),
        "remedies": remedies_table(ways),
    }
    return Page({"cells": cells, "counts": counts, "narrow": one, "exhausted": found, "remedies": ways}, fields,
                {"latency": draw_latency(cells)})
