# SPDX-License-Identifier: MIT
"""Key-value writes: the clients' measurements compared with the server's work, from 1 to 25 clients."""
import re
from typing import NamedTuple

from experiments.common import figures
from experiments.common.debian import NotToBeHad
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from experiments.common.place import CLIENT, SERVER, SERVER_CPU, Place
from experiments.common.plot import COUNTS, panels
from support import golang, http
from support.foreign.grpc import missing
from support.net import free_port
from support.process import run as finish

TITLE = "writes to a key-value store: throughput at the client and at the server (gRPC, redis)"
PACKAGES = ("golang-go", "golang-google-grpc-dev", "redis-server", "redis-tools")
CLIENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25)
QUICK_CLIENTS = (1, 4, 25)
MOST = 25
HALF = 0.5
NEARLY_ALL = 0.8  # of a CPU


class Grpc:
    """The store in store.go, as the published one was, and its own counts."""

    NAME, COUNT = "gRPC store", "the store"
    OBSERVED = ("--http",)
    WHY = "On one CPU the goroutines of all connections take turns between the read of a request and the write of its answer."
    REQUEST = ("--grpc", "--body", "key{{client:5}}={{random-hex:16}}")

    def __init__(self, context, place, traced):
        program = golang.program(context.work, "store")
        words = ["sh", "-c", 'exec "$0" trace 2>/dev/null', program] if traced else [program]
        self.process = context.start(words, place, label=f"{self.NAME}{', traced' if traced else ''}")
        found = self.process.wait_for(r"listening on (\d+) counting on (\d+)")
        self.port, self.counts = int(found[1]), f"http://127.0.0.1:{found[2]}/"
        self.url = f"h2c://127.0.0.1:{self.port}/store.Store/Put"

    def written(self):
        """Return writes so far, and the CPU time of the process in ns."""
        return [int(word) for word in http.request(self.counts).split()]

    def driven(self, _):
        """Return what `sojourn-drive` is given to write."""
        return [self.url, *self.REQUEST]


class Redis:
    """Debian's redis-server, and its own counts."""

    NAME, COUNT = "redis", "redis (`cmdstat_set`)"
    OBSERVED = ()
    WHY = "Its one loop reads the requests of all clients that are ready, and then writes all answers."
    REQUEST = ("--framing", "resp", "--payload", r"*3\r\n$3\r\nSET\r\n$8\r\nkey{{client:5}}\r\n$16\r\n{{random-hex:16}}\r\n")

    def __init__(self, context, place, traced):
        self.port = free_port()
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.process = context.start(["redis-server", context.source / "redis.conf", "--port", self.port,
                                      "--dir", context.work], place, label=self.NAME)
        self.process.wait_for("Ready to accept connections")
        if traced:
            context.start(["sh", "-c", 'exec redis-cli -p "$0" monitor >/dev/null', self.port], CLIENT,
                          label=f"trace messages of {self.NAME}")

    def _info(self, section, pattern):
        text = finish(["redis-cli", "-p", self.port, "info", section]).stdout
        return sum(float(value) for value in re.findall(pattern, text, re.MULTILINE))

    def written(self):
        """Return writes so far, and the CPU time of its main thread in ns."""
        return int(self._info("commandstats", r"^cmdstat_set:calls=(\d+)")), \
            self._info("cpu", r"^used_cpu_(?:sys|user)_main_thread:([\d.]+)") * 1e9

    def driven(self, context):
        """Return what `sojourn-drive` is given to write."""
        return ["run", context.source / "writes.yaml", self.url]


class Case(NamedTuple):
    """A store, the size of its server, with or without trace messages."""

    store: type
    name: str
    share: float  # of the server's CPU
    traced: bool
    quick: bool  # also in the quick form


CASES = (Case(Grpc, "one CPU", 1, False, True), Case(Grpc, "one CPU, traced", 1, True, False),
         Case(Grpc, "half a CPU", HALF, False, False),
         Case(Redis, "one CPU", 1, False, True), Case(Redis, "one CPU, traced", 1, True, True),
         Case(Redis, "half a CPU", HALF, False, True))


def measured(context, store, observer, clients):
    before = store.written()
    document = context.drive(*store.driven(context), f"-c{clients}", f"-d{context.pick('3s', '500ms')}",
                             f"--warmup={context.pick('500ms', '100ms')}", observer=observer,
                             label=f"driver of {store.NAME}")
    writes, cpu_ns = (now - then for now, then in zip(store.written(), before))
    driver, seen = document["driver"], figures.service(document, store.port)
    return {
        "clients": clients, "requests": driver["requests"], "errors": figures.errors(driver),
        "rate": figures.rate(driver), "rate_by_latency": figures.rate_by_latency(driver),
        "server_rate": figures.server_rate(seen), "exchanges": seen["exchanges"],
        "round_trip_ns": driver["round_trip"]["mean_ns"], "p99_ns": driver["round_trip"]["p99_ns"],
        "residence_ns": figures.residence_ns(seen),
        "socket_queue_ns": figures.stage_ns(seen, "socket_queue"),
        "service_ns": figures.stage_ns(seen, "service"),
        "server_cpu_ns": cpu_ns / writes if writes else None,
        "driver_cpu": (driver["cpu_user_ns"] + driver["cpu_system_ns"]) / driver["duration_ns"],
        "limited": (driver.get("limited") or {}).get("by"), "lost": figures.lost(seen),
    }


def divided(context, store):
    """Return the service time at the most clients, by the state of the server's thread."""
    with context.observe("--cpu", *store.OBSERVED, ports=[store.port],
                         label=f"observer of {store.NAME}, with --cpu") as observer:
        document = context.drive(*store.driven(context), f"-c{MOST}", f"-d{context.pick('3s', '500ms')}",
                                 observer=observer)
    seen = figures.service(document, store.port)
    parts = seen.get("cpu") or {}
    return {name: part["sum_ns"] / part["count"] for name, part in parts.items() if part.get("count")}


def counted(context, store, observer):
    """Count the same writes by driver, store and observer. Without warm-up all of them are measured."""
    wanted, before = context.pick(50000, 5000), store.written()[0]
    document = context.drive(*store.driven(context), f"-c{MOST}", f"-n{wanted}", "--warmup=0", "-d60s",
                             observer=observer)
    return {"driver": document["driver"]["requests"], "server": store.written()[0] - before,
            "sojourn": figures.service(document, store.port)["exchanges"]}


def swept(context, store, observer):
    """Return plateau and knee from `sojourn-drive sweep`, with loads up to the most clients."""
    ladder = ",".join(map(str, context.pick(CLIENTS, QUICK_CLIENTS)))
    document = context.drive("sweep", store.url, *store.REQUEST, "--ladder", ladder,
                             f"-d{context.pick('1s', '200ms')}", f"--warmup={context.pick('300ms', '50ms')}",
                             observer=observer, label=f"sweep of {store.NAME}")
    sweep = document["sweep"]
    three = sweep.get("three_quarters") or {}
    return {"plateau": sweep.get("plateau"), "knee": sweep.get("knee"), "unfitted": sweep.get("unfitted"),
            "three_quarters": three.get("load"),
            "three_quarters_ns": three["latency"]["mean_ns"] if three else None}


def is_plain(case):
    return case.share == 1 and not case.traced


def measured_case(context, case):
    """Measure each case on its own server; None if this host cannot halve a CPU."""
    quota = context.quota(case.share) if case.share < 1 else None
    if case.share < 1 and quota is None:
        return None
    store = case.store(context, Place(SERVER_CPU, quota) if quota else SERVER, case.traced)
    with context.observe(*store.OBSERVED, ports=[store.port], label=f"observer of {store.NAME}") as observer:
        made = {"store": store.NAME, "name": case.name, "why": store.WHY, "count": store.COUNT,
                "steps": [measured(context, store, observer, clients)
                          for clients in context.pick(CLIENTS, QUICK_CLIENTS)]}
        if is_plain(case):
            made["counts"] = counted(context, store, observer)
        if is_plain(case) or not context.quick:
            made["sweep"] = swept(context, store, observer)
    made["cpu"] = divided(context, store)
    store.process.close()
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
        rows.append([f"{case['store']}, {case['name']}", number(top["server_rate"]), top["clients"], number(sweep.get("plateau")),
                     number(sweep.get("knee")), number(sweep.get("three_quarters")),
                     time_text(sweep.get("three_quarters_ns")), time_text(case["steps"][-1]["server_cpu_ns"])])
    return table(["server", "most writes/s", "with clients", "plateau (sweep)", "knee (sweep)",
                  "75 % of it", "round trip there", "server's CPU time per write"], rows)


def cpu_table(cases):
    names = ("running", "runnable", "blocked")
    return table(["server", *names], [[f"{case['store']}, {case['name']}", *(time_text(case["cpu"].get(name)) for name in names)]
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
                 f"itself accounts {time_text(most['server_cpu_ns'])} of CPU time for that. {plain['why']}")
    return text


def who_is_the_limit(plain):
    top = best(plain)
    server = top["server_cpu_ns"] * top["server_rate"] / 1e9
    text = f"At the most writes per second the server uses {percent(server, 1)} of its CPU, and the " \
        f"driver {percent(top['driver_cpu'], 1)} of the other."
    if top["limited"]:
        return text + f" The driver says that it was the bottleneck itself (`{top['limited']}`), so that this " \
            "plateau is only a lower bound of the server's."
    text += " The driver does not say that it was the bottleneck."
    if max(server, top["driver_cpu"]) < NEARLY_ALL:
        text += " Neither used nearly all of a CPU: each waited for the other, or for a CPU that another process had. " \
            "A quieter machine would do more."
    return text


def effect(plain, cases, name, what):
    """Return the ratio of a case's plateau to the plain one's."""
    found = next((case for case in cases if case["name"] == name), None)
    if found is None:
        return f"{what}: not measured."
    ratio = best(found)["server_rate"] / best(plain)["server_rate"]
    return f"{what}: {ratio:.2f} of the most writes per second without."


def lost(case):
    sums = {name: sum(step["lost"].get(name, 0) for step in case["steps"])
            for step in case["steps"] for name in step["lost"]}
    return f"- {case['store']}, {case['name']}: " + (", ".join(f"{name} {number(sums[name])}" for name in sorted(sums)) or "nothing")


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


def told(cases, store):
    """Return the fields of one store: its plain case is the first."""
    mine = [case for case in cases if case["store"] == store.NAME]
    plain = mine[0]
    fields = {
        "plain": steps_table(plain),
        "others": "\n\n".join(f"{case['name'][0].upper()}{case['name'][1:]}:\n\n{steps_table(case)}" for case in mine[1:]),
        "first_mistake": first_mistake(plain), "waits": where_it_waits(plain), "limit": who_is_the_limit(plain),
        "trace": effect(plain, mine, "one CPU, traced", "With trace messages"),
        "half": effect(plain, mine, "half a CPU", "On half a CPU"),
        "counts": table(["the driver", plain["count"], "Sojourn"],
                        [[number(plain["counts"][who]) for who in ("driver", "server", "sojourn")]]),
    }
    return {f"{store.__name__.lower()}_{name}": text for name, text in fields.items()}


def run(context):
    reason = missing("go")
    if reason:
        raise NotToBeHad(reason)
    cases = []
    for case in CASES:
        if case.quick or not context.quick:
            context.say(f"{case.store.NAME}, {case.name}")
            made = measured_case(context, case)
            cases += [made] if made else []
    fields = {"commands": code(context.command_lines()), "cases": cases_table(cases), "cpu": cpu_table(cases),
              "lost": "\n".join(map(lost, cases)), **told(cases, Grpc), **told(cases, Redis)}
    plots = {store.__name__.lower(): drawing([case for case in cases if case["store"] == store.NAME])
             for store in (Grpc, Redis)}
    return Page({"cases": cases}, fields, plots)
