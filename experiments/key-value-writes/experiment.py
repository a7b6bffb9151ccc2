# SPDX-License-Identifier: MIT
"""Key-value writes: the clients' measurements compared with the server's work, from 1 to 25 clients."""
import re
from typing import NamedTuple

from experiments.common import figures
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from experiments.common.place import CLIENT, SERVER, SERVER_CPU, Place
from experiments.common.plot import COUNTS, panels
from support.net import free_port
from support.process import run as finish

TITLE = "writes to a key-value store: throughput at the client and at the server (redis)"
PACKAGES = ("redis-server", "redis-tools")
CLIENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25)
QUICK_CLIENTS = (1, 4, 25)
MOST = 25
HALF = 0.5
NEARLY_ALL = 0.8  # of a CPU


class Case(NamedTuple):
    """A server size, with or without trace messages."""

    name: str
    share: float  # of the server's CPU
    traced: bool


CASES = (Case("one CPU", 1, False), Case("one CPU, traced", 1, True), Case("half a CPU", HALF, False))


class Redis:
    """Debian's redis-server, and its own counts."""

    def __init__(self, context, place):
        self.port = free_port()
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.process = context.start(["redis-server", context.source / "redis.conf", "--port", self.port,
                                      "--dir", context.work], place, label="server")
        self.process.wait_for("Ready to accept connections")

    def _info(self, section, pattern):
        text = finish(["redis-cli", "-p", self.port, "info", section]).stdout
        return [float(value) for value in re.findall(pattern, text, re.MULTILINE)]

    def writes(self):
        return int(sum(self._info("commandstats", r"^cmdstat_set:calls=(\d+)")))

    def cpu_seconds(self):
        """Return user and system time of its main thread."""
        return sum(self._info("cpu", r"^used_cpu_(?:sys|user)_main_thread:([\d.]+)"))


def measured(context, redis, observer, clients):
    before = redis.writes(), redis.cpu_seconds()
    document = context.drive("run", context.source / "writes.yaml", f"-c{clients}",
                             f"-d{context.pick('3s', '500ms')}", f"--warmup={context.pick('500ms', '100ms')}",
                             redis.url, observer=observer, label="driver")
    writes, cpu = (now - then for now, then in zip((redis.writes(), redis.cpu_seconds()), before))
    driver, seen = document["driver"], figures.service(document, redis.port)
    return {
        "clients": clients, "requests": driver["requests"], "errors": figures.errors(driver),
        "rate": figures.rate(driver), "rate_by_latency": figures.rate_by_latency(driver),
        "server_rate": figures.server_rate(seen), "exchanges": seen["exchanges"],
        "round_trip_ns": driver["round_trip"]["mean_ns"], "p99_ns": driver["round_trip"]["p99_ns"],
        "residence_ns": figures.residence_ns(seen),
        "socket_queue_ns": figures.stage_ns(seen, "socket_queue"),
        "service_ns": figures.stage_ns(seen, "service"),
        "server_cpu_ns": cpu / writes * 1e9 if writes else None,
        "driver_cpu": (driver["cpu_user_ns"] + driver["cpu_system_ns"]) / driver["duration_ns"],
        "limited": (driver.get("limited") or {}).get("by"), "lost": figures.lost(seen),
    }


def divided(context, redis):
    """Return the service time at the most clients, by the state of the server's thread."""
    with context.observe("--cpu", ports=[redis.port], label="observer, with --cpu") as observer:
        document = context.drive("run", context.source / "writes.yaml", f"-c{MOST}",
                                 f"-d{context.pick('3s', '500ms')}", redis.url, observer=observer)
    seen = figures.service(document, redis.port)
    parts = seen.get("cpu") or {}
    return {name: part["sum_ns"] / part["count"] for name, part in parts.items() if part.get("count")}


def counted(context, redis, observer):
    """Count the same writes by driver, Redis and observer. Without warm-up all of them are measured."""
    wanted, before = context.pick(50000, 5000), redis.writes()
    document = context.drive("run", context.source / "writes.yaml", f"-c{MOST}", f"-n{wanted}", "--warmup=0", "-d60s",
                             redis.url, observer=observer)
    return {"driver": document["driver"]["requests"], "server": redis.writes() - before,
            "sojourn": figures.service(document, redis.port)["exchanges"]}


def swept(context, redis, observer):
    """Return plateau and knee from `sojourn-drive sweep`, with loads up to the most clients."""
    payload = r"*3\r\n$3\r\nSET\r\n$8\r\nkey{{client:5}}\r\n$16\r\n{{random-hex:16}}\r\n"
    ladder = ",".join(map(str, context.pick(CLIENTS, QUICK_CLIENTS)))
    document = context.drive("sweep", redis.url, "--framing", "resp", "--payload", payload, "--ladder", ladder,
                             f"-d{context.pick('1s', '200ms')}", f"--warmup={context.pick('300ms', '50ms')}",
                             observer=observer, label="sweep")
    sweep = document["sweep"]
    three = sweep.get("three_quarters") or {}
    return {"plateau": sweep.get("plateau"), "knee": sweep.get("knee"), "unfitted": sweep.get("unfitted"),
            "three_quarters": three.get("load"),
            "three_quarters_ns": three["latency"]["mean_ns"] if three else None}


def measured_case(context, case):
    """Measure each case on its own server; None if this host cannot halve a CPU."""
    quota = context.quota(case.share) if case.share < 1 else None
    if case.share < 1 and quota is None:
        return None
    redis = Redis(context, Place(SERVER_CPU, quota) if quota else SERVER)
    if case.traced:
        context.start(["sh", "-c", 'exec redis-cli -p "$0" monitor >/dev/null', redis.port], CLIENT,
                      label="trace messages")
    with context.observe(ports=[redis.port]) as observer:
        made = {"name": case.name, "steps": [measured(context, redis, observer, clients)
                                             for clients in context.pick(CLIENTS, QUICK_CLIENTS)]}
        if case is CASES[0]:
            made["counts"] = counted(context, redis, observer)
        if case is CASES[0] or not context.quick:
            made["sweep"] = swept(context, redis, observer)
    made["cpu"] = divided(context, redis)
    redis.process.close()
    return made


# The page

def steps_table(case):
    head = ["clients", "client: 1 ÷ mean latency", "client: writes/s", "server: writes/s", "round trip",
            "network + client", "socket queue", "service", "p99", "driver's CPU"]
    return table(head, [[
        step["clients"], number(step["rate_by_latency"]), number(step["rate"]), number(step["server_rate"]),
        time_text(step["round_trip_ns"]), time_text(step["round_trip_ns"] - step["residence_ns"]),
        time_text(step["socket_queue_ns"]), time_text(step["service_ns"]), time_text(step["p99_ns"]),
        percent(step["driver_cpu"], 1)] for step in case["steps"]])


def best(case):
    return max(case["steps"], key=lambda step: step["server_rate"])


def cases_table(cases):
    rows = []
    for case in cases:
        sweep, top = case.get("sweep") or {}, best(case)
        rows.append([case["name"], number(top["server_rate"]), top["clients"], number(sweep.get("plateau")),
                     number(sweep.get("knee")), number(sweep.get("three_quarters")),
                     time_text(sweep.get("three_quarters_ns")), time_text(case["steps"][-1]["server_cpu_ns"])])
    return table(["server", "most writes/s", "with clients", "plateau (sweep)", "knee (sweep)",
                  "75 % of it", "round trip there", "server's CPU time per write"], rows)


def cpu_table(cases):
    names = ("running", "runnable", "blocked")
    return table(["server", *names], [[case["name"], *(time_text(case["cpu"].get(name)) for name in names)]
                                      for case in cases])


def first_mistake(plain):
    one, most = plain["steps"][0], plain["steps"][-1]
    fell = most["rate_by_latency"] < one["rate_by_latency"]
    return (f"From 1 to {most['clients']} clients it {'falls' if fell else 'rises'} from "
            f"{number(one['rate_by_latency'])} to {number(most['rate_by_latency'])} per second, while the server "
            f"goes from {number(one['server_rate'])} to {number(most['server_rate'])} writes per second.")


def where_it_waits(plain):
    """Return the growth between one client and the most, by the figures."""
    one, most = plain["steps"][0], plain["steps"][-1]
    parts = {"the socket queue": "socket_queue_ns", "service": "service_ns"}
    grew = {name: most[key] - one[key] for name, key in parts.items()}
    grew["network and client"] = (most["round_trip_ns"] - most["residence_ns"]) - \
        (one["round_trip_ns"] - one["residence_ns"])
    total = most["round_trip_ns"] - one["round_trip_ns"]
    parts_text = ", ".join(f"{time_text(abs(ns))} {'more' if ns >= 0 else 'less'} in {name}"
                     for name, ns in sorted(grew.items(), key=lambda item: -item[1]))
    text = f"With {most['clients']} clients instead of one a round trip takes {time_text(abs(total))} " \
        f"{'more' if total >= 0 else 'less'}. By part it takes {parts_text}."
    if most["service_ns"] > 2 * most["server_cpu_ns"]:
        text += (f" The service of {time_text(most['service_ns'])} is not the cost of one write: the server "
                 f"itself accounts {time_text(most['server_cpu_ns'])} of CPU time for that. Its one loop reads the requests of "
                 "all clients that are ready, and then writes all answers.")
    return text


def who_is_the_limit(plain):
    top = best(plain)
    server = top["server_cpu_ns"] * top["server_rate"] / 1e9
    text = f"At the most writes per second the server's thread uses {percent(server, 1)} of its CPU, and the " \
        f"driver {percent(top['driver_cpu'], 1)} of the other."
    if top["limited"]:
        return text + f" The driver says that it was the bottleneck itself (`{top['limited']}`), so that this " \
            "plateau is only a lower bound of the server's."
    text += " The driver does not say that it was the bottleneck."
    if max(server, top["driver_cpu"]) < NEARLY_ALL:
        text += " Neither used nearly all of a CPU: each waited for the other, or for a CPU that another process had. " \
            "A quieter machine would do more."
    return text


def effect(cases, name, what):
    """Return the ratio of a case's plateau to the first one's."""
    found = next((case for case in cases if case["name"] == name), None)
    if found is None:
        return f"{what}: not measured, for this host has no cgroups that limit CPU time."
    ratio = best(found)["server_rate"] / best(cases[0])["server_rate"]
    return f"{what}: {ratio:.2f} of the most writes per second without."


def drawing(cases):
    @panels(2)
    def draw(axes):
        left, right = axes
        for case in cases:
            clients = [step["clients"] for step in case["steps"]]
            line, = left.plot(clients, [step["server_rate"] for step in case["steps"]], "o-", label=case["name"])
            left.plot(clients, [step["rate_by_latency"] for step in case["steps"]], "--", color=line.get_color())
        left.set_title("writes/s; dashed: 1 ÷ mean latency")
        plain = cases[0]["steps"]
        parts = [("service", [step["service_ns"] / 1e3 for step in plain]),
                 ("socket queue", [step["socket_queue_ns"] / 1e3 for step in plain]),
                 ("network + client", [max(0, step["round_trip_ns"] - step["residence_ns"]) / 1e3 for step in plain])]
        right.stackplot([step["clients"] for step in plain], *(values for _, values in parts),
                        labels=[name for name, _ in parts], alpha=0.85)
        right.set_title(f"round trip, µs ({cases[0]['name']})")
        for axis in axes:
            axis.set_xlabel("clients")
            axis.set_ylim(bottom=0)
            axis.yaxis.set_major_formatter(COUNTS)
            axis.legend(loc="upper left")
        left.legend(loc="best")
    return draw


def run(context):
    cases = []
    for case in CASES:
        context.say(case.name)
        made = measured_case(context, case)
        cases += [made] if made else []
    plain, counts = cases[0], cases[0]["counts"]
    fields = {
        "commands": code(context.command_lines()),
        "plain": steps_table(plain), "cases": cases_table(cases), "cpu": cpu_table(cases),
        "others": "\n\n".join(f"{case['name'][0].upper()}{case['name'][1:]}:\n\n{steps_table(case)}" for case in cases[1:]),
        "first_mistake": first_mistake(plain), "waits": where_it_waits(plain), "limit": who_is_the_limit(plain),
        "trace": effect(cases, CASES[1].name, "With trace messages"),
        "half": effect(cases, CASES[2].name, "On half a CPU"),
        "counts": table(["the driver", "redis (`cmdstat_set`)", "Sojourn"],
                        [[number(counts[who]) for who in ("driver", "server", "sojourn")]]),
        "lost": "; ".join(f"{case['name']}: " + (", ".join(
            f"{name} {number(sum(step['lost'].get(name, 0) for step in case['steps']))}" for name in sorted(
                {name for step in case["steps"] for name in step["lost"]})) or "nothing") for case in cases),
    }
    return Page({"cases": cases}, fields, {"throughput": drawing(cases)})
