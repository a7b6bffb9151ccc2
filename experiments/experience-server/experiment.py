# SPDX-License-Identifier: MIT
"""Sessions at an experience server: six steps without a pause, by clients that start on one signal, for servers
of several sizes. For each step, the server's time and the rest add up to the round trip."""
import json
import time

from experiments.common import exchanges, lua_server
from experiments.common import figures as fig
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from experiments.common.place import CLIENT, SERVER_CPU, Place
from experiments.common.plot import COUNTS, panels
from support import documents
from support.programs import DRIVER, OBSERVER

TITLE = "sessions in six steps: the server's time and everything else (nginx with Lua)"
PACKAGES = ("nginx",)
UNPACKED = lua_server.PACKAGES

SIZES = (("quarter", 0.25), ("half", 0.5), ("whole", 1))  # shares of a CPU
LEVELS = (1, 4, 16, 64)  # connections
DRIVERS = 4
QUICK_SIZES, QUICK_LEVELS = SIZES[1:], (1, 32)
FULL_SECONDS, QUICK_SECONDS, WARM_SECONDS = 8, 1.5, 1
LADDER, QUICK_LADDER = "1..64", "1,4,16"
THREE_QUARTERS = 0.75
SAMPLES = 24000  # of all drivers of a run together
READY_SECONDS = 0.4  # for drivers to read their scenario and wait; the page shows how far apart they started


class Server:
    """nginx of one size, with an observer beside it."""

    def __init__(self, context, size, share):
        quota = context.quota(share) if share < 1 else None
        self.context, self.size, self.share = context, size, share
        self.limited = share == 1 or quota is not None
        self.nginx = context.start(lua_server.LuaServer(
            context.source / "server.lua", "/sessions", {"sessions": "256m"},
            netns=Place(SERVER_CPU, quota)))
        self.nginx.netns = None  # queried from here
        self.observer = context.observe("--cpu", "--samples", str(SAMPLES), "--ring", "8192",
                                        ports=[self.nginx.port])

    def close(self):
        self.observer.close()
        self.nginx.close()


def driver_words(context, connections, seconds, rate, flag):
    rates = ["--rate", round(rate)] if rate else []
    return [DRIVER, "run", context.source / "scenario.yaml", "--wait-for", flag, "-c", connections, "-d",
            f"{seconds}s", *rates, "--samples", SAMPLES // DRIVERS, "--quiet", "--json"]


def start_drivers(context, server, connections, seconds, rate, label):
    count, flag = min(DRIVERS, connections), context.work / "green"
    flag.unlink(missing_ok=True)
    running = []
    for number in range(count):
        path = context.work / f"driver{number}.json"
        path.unlink(missing_ok=True)
        words = driver_words(context, connections // count, seconds, rate and rate / count, flag)
        running.append((context.start([*words, path, server.nginx.url], place=CLIENT,
                                      label=label), path))
    return running, flag


def together(context, server, connections, seconds, rate=None, label=None):
    """Run several drivers from one start signal, in one phase of the observer's; return the run's figures."""
    running, flag = start_drivers(context, server, connections, seconds, rate, label)
    time.sleep(READY_SECONDS)
    before = server.nginx.status()["requests"]
    phase = server.observer.begin_phase()
    flag.touch()
    for process, _ in running:
        process.wait(seconds + 60)
    observed = server.observer.end_phase(phase)
    answered = server.nginx.status()["requests"] - before
    for process, path in running:
        if not path.exists():
            raise process.error("ended without a result")
        process.close()
    parts = [documents.load(path) for _, path in running]
    figures = figures_of(merged(context, observed, parts), parts, server)
    return {**figures, "connections": connections, "asked_rate": rate, "nginx_requests": answered}


def merged(context, observed, parts):
    """Run `sojourn report` on the observer's phase and the drivers' documents."""
    paths = []
    for number, document in enumerate((observed, *parts)):
        paths.append(context.work / (f"driver{number - 1}.json" if number else "observer.json"))
        paths[-1].write_text(json.dumps(document), encoding="utf-8")
    result = context.work / "joined.json"
    words = [OBSERVER, "report", *paths, "--keep-samples", "--json", result]
    report = context.start(words, place=CLIENT, label="report" if len(parts) == DRIVERS else None)
    if report.wait(120):
        raise report.error("failed")
    report.close()
    return documents.load(result)


def figures_of(document, parts, server):
    driver, observed = document["driver"], fig.service(document, server.nginx.port)
    latency = driver["response_time" if driver["rate"] else "round_trip"]
    begins = [part["driver"]["begin_ns"] for part in parts]
    divided = exchanges.by_step(document, observed)
    return {
        "size": server.size, "drivers": len(parts), "rate": fig.rate(driver),
        "requests": driver["requests"], "unsent": driver["unsent"], "errors": fig.errors(driver),
        "exchanges": observed["exchanges"], "mean_ns": latency["mean_ns"], "p50_ns": latency["p50_ns"],
        "p99_ns": latency["p99_ns"], "round_trip_ns": driver["round_trip"]["mean_ns"],
        "apart_ns": max(begins) - min(begins), "steps": divided,
        "limited": sorted({part["driver"]["limited"]["by"] for part in parts
                           if part["driver"]["limited"]}),
        "lost": fig.lost(observed), "joined": {
            name: document["joined"][name] for name in ("joined", "implausible", "ambiguous", "repeated")},
        "joined_sum": document["joined"]["sum"], "joined_steps": document["joined"]["steps"], "tail": document["joined"]["tail"],
    }


def at_size(context, size, share):
    """Return all runs of one size of the server; None if this host cannot make it that small."""
    server = Server(context, size, share)
    try:
        if not server.limited:
            return None
        seconds = context.pick(FULL_SECONDS, QUICK_SECONDS)
        together(context, server, DRIVERS, WARM_SECONDS)
        runs = []
        for connections in context.pick(LEVELS, QUICK_LEVELS):
            runs.append(together(context, server, connections, seconds,
                                 label=f"driver, {connections} connections"))
            context.say(f"{size}, {connections} connections: {runs[-1]['rate']:,.0f}/s, "
                        f"{fig.time_text(runs[-1]['mean_ns'])}")
        most = max(runs, key=lambda run: run["rate"])
        calm = together(context, server, most["connections"], seconds, THREE_QUARTERS * most["rate"],
                        "driver at a rate")
        context.say(f"{size}, at {calm['rate']:,.0f}/s: {fig.time_text(calm['mean_ns'])}")
        return {"size": size, "share": share, "runs": runs, "plateau": most["rate"], "calm": calm,
                "sweep": sweep(context, server) if share == 1 else None}
    finally:
        server.close()


def sweep(context, server):
    """Run the first step alone, in the driver's own search for the knee."""
    context.say("sweep")
    found = context.drive(
        "sweep", f"{server.nginx.url}sessions", "--ladder", context.pick(LADDER, QUICK_LADDER),
        "--body", '{"user": "{{uuid}}"}', "-H", "Content-Type: application/json", "--expect-status", "201",
        *context.pick([], ["-d", "700ms", "--warmup", "200ms"]), observer=server.observer,
        label="sweep")["sweep"]
    calm = found.get("three_quarters")
    return {"knee": found.get("knee"), "plateau": found.get("plateau"),
            "unfitted": found.get("unfitted"), "stopped": found.get("stopped"),
            "steps": [(step["load"], fig.rate(step),
                       step["latency"]["mean_ns"]) for step in found["steps"]],
            "calm_rate": calm and fig.rate(calm),
            "calm_mean_ns": calm and calm["latency"]["mean_ns"]}


# The page

def mean(run, name, count="count"):
    """Return the mean over all joined exchanges of a run, in ns; None if there are none."""
    total = exchanges.totals(run["steps"]) if run["steps"] else {}
    return total[name] / total[count] if total.get(count) else None


def all_runs(sizes):
    return [run for size in sizes for run in (*size["runs"], size["calm"])]


def parts_row(run):
    names = ("round_trip_ns", "server_ns", "client_ns", "queue_ns", "network_ns")
    return [*(time_text(mean(run, name)) for name in names), time_text(mean(run, "running_ns", "divided")),
            time_text(run["p99_ns"])]


PARTS = ["round trip", "= server", "+ all else", "of which queued at the server", "of which network + client",
         "server on CPU", "p99"]


def loads_table(sizes):
    return table(["server", "clients", "drivers", "requests/s", *PARTS],
                 [[f"{size['share']:g} CPU", run["connections"], run["drivers"], number(run["rate"]),
                   *parts_row(run)] for size in sizes for run in size["runs"]])


def calm_table(sizes):
    return table(["server", "most requests/s", "75 % of it", "sent", "response time", *PARTS],
                 [[f"{size['share']:g} CPU", number(size["plateau"]), number(size["calm"]["asked_rate"]),
                   number(size["calm"]["rate"]), time_text(size["calm"]["mean_ns"]),
                   *parts_row(size["calm"])] for size in sizes])


def steps_table(run):
    rows = [[step["name"], number(step["count"]), time_text(step["server_ns"] / step["count"]),
             time_text(step["client_ns"] / step["count"]), time_text(step["round_trip_ns"] / step["count"]),
             time_text(step["mean_ns"]), time_text(step["queue_ns"] / step["count"])]
            for step in run["steps"] if step["count"]]
    return table(["step", "joined", "server", "+ all else", "= round trip", "round trip of all, by the driver",
                  "queued at the server"], rows)


def counted(sizes):
    """Return every run's three counts, as one row of sums, and in how many runs they differed."""
    runs = all_runs(sizes)
    names = ("requests", "nginx_requests", "exchanges")
    unequal = sum(len({run[name] for name in names}) > 1 for run in runs)
    rows = [[number(sum(run[name] for run in runs)) for name in names]]
    text = table(["the drivers", "nginx (`stub_status`)", "Sojourn"], rows)
    return f"{text}\n\nRuns in which the three were not equal: {unequal} of {len(runs)}."


def off_of_step(step, joined):
    """Return by how many exchanges and ns a step's sums differ from Sojourn's own join."""
    sums = joined["sum"]
    return {"exchanges": step["count"] - joined["count"],
            "round trip": step["round_trip_ns"] - sums["round_trip_ns"],
            "server": step["server_ns"] - sum(sums["stages"][name] or 0 for name in exchanges.SERVER),
            "queues": step["queue_ns"] - sum(sums["stages"][name] or 0 for name in exchanges.QUEUES),
            "network": step["network_ns"] - sums["network_ns"] + sums["overhang_ns"]}


def off(run):
    """Return the largest of these differences over all steps of a run."""
    each = [off_of_step(step, joined) for step, joined in zip(run["steps"], run["joined_steps"])]
    return {name: max(abs(one[name]) for one in each) for name in each[0]}


def sums(sizes):
    runs = [run for run in all_runs(sizes) if run["steps"]]
    total = [exchanges.totals(run["steps"]) for run in runs]
    worst = {name: max((abs(off(run)[name]) for run in runs), default=None)
             for name in ("exchanges", "round trip", "server", "queues", "network")}
    aside = sum(run["joined"][name] for run in runs for name in ("implausible", "ambiguous"))
    return (f"{number(sum(each['count'] for each in total))} exchanges were joined one by one and divided by step, "
            f"{number(sum(each['foreign'] for each in total))} of them with the bytes of another step than their place "
            f"in the cycle says. Sojourn joins by the step that the driver names (`joined.steps`). The greatest differences of "
            f"a step from that: "
            + ", ".join(f"{number(value)}{'' if name == 'exchanges' else ' ns'} ({name})"
                        for name, value in worst.items())
            + f". Sojourn left {number(aside)} exchanges out as doubtful.")


def shape(sizes):
    """Return how the server's time and the rest change from the lowest load to the highest."""
    lines = []
    for size in sizes:
        low, high = size["runs"][0], size["runs"][-1]
        trip, server, on_cpu = (mean(high, name, count) / mean(low, name, count) for name, count in (
            ("round_trip_ns", "count"), ("server_ns", "count"), ("running_ns", "divided")))
        queued = mean(high, "queue_ns") / mean(high, "round_trip_ns")
        lines.append(f"- **{size['share']:g} CPU**: with {high['connections']} clients instead of "
                     f"{low['connections']} the round trip is {trip:.1f} times as long, the server's time {server:.1f} "
                     f"times, of that its time on a CPU {on_cpu:.1f} times. {percent(queued, 1)} of the round trip is "
                     f"then waiting in the server's sockets. {verdict(trip, server)}")
    return "\n".join(lines)


def verdict(trip, server):
    if server < 1.5 and trip > 3:
        return "This is the published shape: flat service, and the rest is queueing."
    if server < trip / 3:
        return "Nearly the published shape: service grows, but far less than the round trip."
    return "This is not the published shape."


def tail(run):
    """Return which part held the requests beyond p99."""
    slow = next(each for each in run["tail"] if each["per_mille"] == 990)
    if not slow["count"]:
        return "No joined request was slower than the 99th percentile."
    parts = {name.replace("_", " "): value for name, value in slow["sum"]["stages"].items() if value}
    parts["network + client"] = slow["sum"]["network_ns"]
    name, value = max(parts.items(), key=lambda item: item[1])
    return (f"Of the {number(slow['count'])} joined requests slower than the 99th percentile "
            f"({time_text(slow['above_ns'])}), {percent(value, slow['sum']['round_trip_ns'])} of the time was {name}; "
            f"{percent(slow['sum']['stages']['service'], slow['sum']['round_trip_ns'])} was service.")


def sweep_text(found):
    if found is None:
        return "No sweep was made."
    steps = "\n".join(f"- with {load} connections {number(rate)}/s" for load, rate, _ in found["steps"])
    if not found["plateau"]:
        return f"No knee was found: {found['unfitted']}.\n\n{steps}"
    text = f"There is a plateau of {number(found['plateau'])}/s from {number(found['knee'], 1)} connections on."
    if found["calm_mean_ns"]:
        text += f" At 75 % of it, {number(found['calm_rate'])}/s, the mean is {time_text(found['calm_mean_ns'])}."
    return f"{text}\n\n{steps}"


def limits(sizes):
    named = sorted({name for run in all_runs(sizes) for name in run["limited"]})
    if not named:
        return "In no run did a driver say that it was the bottleneck itself."
    count = sum(bool(run["limited"]) for run in all_runs(sizes))
    return f"In {count} of {len(all_runs(sizes))} runs a driver said that it was late or the bottleneck itself " \
        f"({', '.join(named)}): it shares its CPU with the other drivers and the observer."


def not_timed(sizes):
    names = sorted({name for run in all_runs(sizes) for name in run["lost"]})
    return ", ".join(f"{name} {number(sum(run['lost'].get(name, 0) for run in all_runs(sizes)))}"
                     for name in names) or "nothing"


def curves(sizes):
    @panels(2)
    def draw(axes):
        left, right = axes
        for size in sizes:
            clients = [run["connections"] for run in size["runs"]]
            line, = left.plot(clients, [run["rate"] for run in size["runs"]], "o-", label=f"{size['share']:g} CPU")
            for name, style in (("round_trip_ns", "o-"), ("server_ns", "s--")):
                right.plot(clients, [mean(run, name) / 1e6 for run in size["runs"]], style, color=line.get_color())
        left.set_title("requests/s")
        left.set_ylim(bottom=0)
        left.yaxis.set_major_formatter(COUNTS)
        left.legend(loc="best")
        right.set_title("mean, ms: round trip; dashed: the server's part")
        right.set_yscale("log")
        right.yaxis.set_major_formatter("{x:g}")
        for axis in axes:
            axis.set_xlabel("clients")
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter(COUNTS)
    return draw


def parts_drawing(sizes):
    names = (("server_ns", "server"), ("queue_ns", "queued at the server"), ("network_ns", "network + client"))

    @panels(len(sizes))
    def draw(axes):
        for axis, size in zip(axes if len(sizes) > 1 else [axes], sizes):
            labels, base = [str(run["connections"]) for run in size["runs"]], [0.0] * len(size["runs"])
            for name, label in names:
                values = [100 * mean(run, name) / mean(run, "round_trip_ns") for run in size["runs"]]
                axis.bar(labels, values, bottom=base, label=label, width=0.7)
                base = [sum(pair) for pair in zip(base, values)]
            axis.set_title(f"{size['share']:g} CPU: % of the round trip")
            axis.set_xlabel("clients")
            axis.set_ylim(0, 119)
            axis.legend(loc="upper center", ncols=3, fontsize=6)
    return draw


def run(context):
    chosen = context.pick(SIZES, QUICK_SIZES)
    sizes = [made for made in (at_size(context, *size) for size in chosen) if made]
    if not all(run["steps"] for run in all_runs(sizes)):
        raise RuntimeError("requests failed: see nginx's error log; the steps cannot be told apart")
    whole = sizes[-1]
    most = whole["runs"][-1]["connections"]
    fields = {
        "server": lua_server.described(), "commands": code(context.command_lines(
            "observer", f"driver, {most} connections", "report", "driver at a rate", "sweep")),
        "loads": loads_table(sizes), "calm": calm_table(sizes), "shape": shape(sizes),
        "steps": steps_table(whole["runs"][-1]), "steps_clients": most,
        "counted": counted(sizes), "sums": sums(sizes), "tail": tail(whole["runs"][-1]),
        "sweep": sweep_text(whole["sweep"]), "limits": limits(sizes), "not_timed": not_timed(sizes),
        "apart": time_text(max(run["apart_ns"] for run in all_runs(sizes))),
        "missing": "" if len(sizes) == len(chosen) else
        "\n- Smaller servers are missing: this host has no cgroups that limit CPU time.",
        "errors": number(sum(run["errors"] for run in all_runs(sizes))),
    }
    return Page({"sizes": sizes}, fields, {"load": curves(sizes), "parts": parts_drawing(sizes)})
