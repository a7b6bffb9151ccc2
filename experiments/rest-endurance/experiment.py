# SPDX-License-Identifier: MIT
"""GET, POST, PUT and DELETE for long: how many clients, what runs out and who reports it first, and a run that
lasts."""
import importlib

from experiments.common import figures as fig
from experiments.common import lua_server
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from experiments.common.place import CLIENT, SERVER_CPU, Place
from experiments.common.plot import COUNTS, panels

scenes = importlib.import_module("experiments.rest-endurance.scenes")

TITLE = "a REST service for long: ports, descriptors, responses that nobody closes (nginx with Lua)"
PACKAGES = ("nginx",)
UNPACKED = lua_server.PACKAGES

CLIENTS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
QUICK_CLIENTS = (1, 16, 256)
PUBLISHED = {1: 1338.6, 8: 2386.96, 16: 1728, 32: 1415, 64: 853, 128: 510, 256: 238, 512: 117,
             1024: 59, 2048: 31}  # calls per second and thread
NEARLY = 0.9
LONG_SECONDS, QUICK_LONG_SECONDS = 90, 3


def serve(context):
    nginx = context.start(lua_server.LuaServer(
        context.source / "server.lua", "/items", {"items": "64m"}, netns=Place(SERVER_CPU)))
    nginx.netns = None  # queried from here
    return nginx


# How many clients

def tested(context, nginx, observer, clients):
    before = nginx.status()["requests"]
    document = context.drive("run", context.source / "scenario.yaml", f"-c{clients}",
                             f"-d{context.pick('3s', '700ms')}", nginx.url, observer=observer,
                             label=f"quick test, {clients} clients")
    driver, seen = document["driver"], fig.service(document, nginx.port)
    return {"clients": clients, "requests": driver["requests"], "rate": fig.rate(driver),
            "each": fig.rate(driver) / clients, "mean_ns": driver["round_trip"]["mean_ns"],
            "p99_ns": driver["round_trip"]["p99_ns"], "errors": fig.errors(driver),
            "socket_queue_ns": fig.stage_ns(seen, "socket_queue"), "service_ns": fig.stage_ns(seen, "service"),
            "exchanges": seen["exchanges"], "answered": nginx.status()["requests"] - before,
            "limited": (driver.get("limited") or {}).get("by"), "lost": fig.lost(seen)}


def ladder(context, nginx):
    with context.observe(ports=[nginx.port]) as observer:
        tests = []
        for clients in context.pick(CLIENTS, QUICK_CLIENTS):
            tests.append(tested(context, nginx, observer, clients))
            context.say(f"{clients} clients: {tests[-1]['rate']:,.0f}/s")
        return tests


# The long run

def endured(context, nginx, clients, seconds):
    """Run for the whole time, watched by observer and doctor."""
    before = nginx.status()["requests"]
    with context.observe(ports=[nginx.port]) as observer:
        document = context.drive(
            "run", context.source / "scenario.yaml", f"-c{clients}", f"-d{seconds:.0f}s", nginx.url,
            observer=observer, label="long run", seconds=seconds + 120)
    driver, seen = document["driver"], fig.service(document, nginx.port)
    return {"clients": clients, "seconds": driver["duration_ns"] / fig.NS, "requests": driver["requests"],
            "rate": fig.rate(driver), "mean_ns": driver["round_trip"]["mean_ns"],
            "p99_ns": driver["round_trip"]["p99_ns"], "max_ns": driver["round_trip"]["max_ns"],
            "errors": fig.errors(driver), "drift": driver.get("drift"), "connects": driver["connects"],
            "exchanges": seen["exchanges"], "answered": nginx.status()["requests"] - before,
            "methods": {step["name"]: {"requests": step["requests"], "mean_ns": step["round_trip"]["mean_ns"]}
                        for step in driver["steps"]},
            "socket_queue_ns": fig.stage_ns(seen, "socket_queue"), "service_ns": fig.stage_ns(seen, "service"),
            "time_wait_created": seen["time_wait_created"],
            "findings": [found["id"] for found in document.get("findings") or []],
            "intervals": [(each["begin_ns"] / fig.NS, each["requests"] / each["duration_ns"] * fig.NS,
                           each["latency"]["mean_ns"]) for each in driver["intervals"]
                          if each["duration_ns"] > driver["interval_ns"] / 2],
            "series": series(seen), "lost": fig.lost(seen)}


def series(seen):
    kept = seen.get("series") or {}
    names = ("begin_ns", "connections", "time_wait", "fds")
    return [dict(zip(names, point)) for point in zip(*(kept.get(name) or [] for name in names))]


# The page

def published_of_all(clients):
    return PUBLISHED[clients] * clients if clients in PUBLISHED else None


def ladder_table(tests):
    return table(
        ["clients", "published: calls/s each", "published: calls/s", "calls/s each", "calls/s", "mean",
         "p99", "socket queue", "service"],
        [[number(test["clients"]), number(PUBLISHED.get(test["clients"]), 1),
          number(published_of_all(test["clients"])), number(test["each"], 1), number(test["rate"]),
          time_text(test["mean_ns"]), time_text(test["p99_ns"]), time_text(test["socket_queue_ns"]),
          time_text(test["service_ns"])] for test in tests])


def best(tests):
    """Return the fewest clients with nearly the most calls per second: more of them only wait."""
    most = max(test["rate"] for test in tests)
    return next(test for test in tests if test["rate"] >= NEARLY * most)


def chosen(tests):
    most, pick = max(tests, key=lambda test: test["rate"]), best(tests)
    text = f"{number(pick['clients'])} clients: {number(pick['rate'])} calls/s, at least {NEARLY:.0%} of the most " \
        f"that any number of clients reached ({number(most['rate'])}/s with {number(most['clients'])})"
    last = tests[-1]
    if last is not pick and last["socket_queue_ns"] > last["mean_ns"] / 2:
        text += f". More clients do not get more, they wait: with {number(last['clients'])}, " \
            f"{percent(last['socket_queue_ns'], last['mean_ns'])} of the round trip is the socket queue at the " \
            f"server, whose service takes {time_text(last['service_ns'])}"
    return text


def after(seconds):
    return "–" if seconds is None else f"{seconds:.1f} s"


def ahead(wrong):
    if wrong["named_after"] is None:
        return "not named"
    if wrong["fails_after"] is None:
        return "nothing failed"
    return f"{wrong['fails_after'] - wrong['named_after']:.1f} s"


def causes_table(played):
    rows = []
    for scene in played:
        wrong, right = scene["wrong"], scene["right"]
        rows.append([scene["title"], scene["scarce"], f"`{wrong['named']}`" if wrong["named"] else "–",
                     wrong["owner"] or "–", after(wrong["named_after"]), after(wrong["fails_after"]), ahead(wrong),
                     number(wrong["failures"]), scene["remedy"], number(right["calls"]), number(right["failures"])])
    return table(["what runs out", "there are", "the doctor's finding", "process", "found after",
                  "first failure after", "ahead by", "calls that failed", "the remedy", "calls with it",
                  "failed"], rows)


def order(found, fails_after):
    """Return all findings of a scene and the first failure, by their times."""
    moments = [(each["after"], f"`{each['id']}` ({each['severity']})") for each in found]
    if fails_after is not None:
        moments.append((fails_after, "**the first failure**"))
    return "; ".join(f"{seconds:.1f} s {what}" for seconds, what in sorted(moments))


def scene_text(scene):
    wrong = scene["wrong"]
    lines = [f"### {scene['title'][0].upper()}{scene['title'][1:]}", "",
             f"{scene['mistake'][0].upper()}{scene['mistake'][1:]}. There are {scene['scarce']}.", "",
             f"In order: {order(wrong['found'], wrong['fails_after'])}."]
    if wrong["first"]:
        lines[-1] += f" The failure reads `{wrong['first']}`."
    if wrong["failed_calls"]:
        lines[-1] += f" Calls that found no port: {number(wrong['counted'])} by the client's own count, " \
            f"{number(wrong['failed_calls'])} by the doctor's."
    lines += ["", "`sojourn doctor` prints at that time:", "",
              code(wrong["text"].rstrip().splitlines())]
    if scene["command"]:
        lines += ["", "Done:", "", code([scene["command"]])]
    return "\n".join(lines)


def verdict(played):
    first = [scene for scene in played if scene["wrong"]["named_after"] is not None
             and scene["wrong"]["fails_after"] is not None
             and scene["wrong"]["named_after"] < scene["wrong"]["fails_after"]]
    ended = [scene for scene in played if scene["right"]["calls"] and not scene["right"]["failures"]]
    return f"In {len(first)} of {len(played)} cases the doctor named the cause before the first call failed; in " \
        f"{len(ended)} of {len(played)} nothing failed any more with the remedy."


def long_table(run):
    return table(["clients", "seconds", "invocations", "calls/s", "calls/s each", "mean", "p99", "max", "errors"],
                 [[run["clients"], number(run["seconds"]), number(run["requests"]), number(run["rate"]),
                   number(run["rate"] / run["clients"]), time_text(run["mean_ns"]), time_text(run["p99_ns"]),
                   time_text(run["max_ns"]), number(run["errors"])]])


def steady(run):
    names = (("connections", "connections to the server"), ("time_wait", "TIME_WAIT at its port"),
             ("fds", "the server's descriptors"))
    rows = []
    for name, label in names:
        values = [point[name] for point in run["series"] if point.get(name) is not None]
        rows.append([label, *((number(min(values)), number(max(values))) if values else ("–", "–"))])
    found = ", ".join(f"`{name}`" for name in sorted(set(run["findings"]))) or "nothing"
    return f"{number(run['connects'])} connections carried all {number(run['requests'])} invocations, and the server's " \
        f"closes left {number(run['time_wait_created'])} sockets in TIME_WAIT. By the observer, second by second:\n\n" \
        + table(["", "least", "most"], rows) + \
        f"\n\nMeanwhile its doctor found to be running out: {found}."


def drawing(tests, run):
    @panels(2)
    def draw(axes):
        left, right = axes
        clients = [test["clients"] for test in tests]
        left.plot(clients, [test["each"] for test in tests], "o-", label="calls/s each")
        known = [count for count in clients if count in PUBLISHED]
        left.plot(known, [PUBLISHED[count] for count in known], "s--", label="published, other machines")
        left.plot(clients, [test["rate"] for test in tests], "^-", label="calls/s of all")
        left.set_xscale("log", base=2)
        left.set_yscale("log")
        left.set_xlabel("clients")
        left.xaxis.set_major_formatter(COUNTS)
        left.yaxis.set_major_formatter(COUNTS)
        left.legend(loc="best")
        left.set_title("quick tests")
        right.plot([begin for begin, _, _ in run["intervals"]], [rate for _, rate, _ in run["intervals"]])
        right.set_ylim(bottom=0)
        right.set_xlabel("seconds")
        right.yaxis.set_major_formatter(COUNTS)
        right.set_title(f"the long run: calls/s with {run['clients']} clients")
    return draw


def timeline(played):
    def draw(axes):
        for row, scene in enumerate(reversed(played)):
            wrong = scene["wrong"]
            moments = [(each["after"], "o", "#c77d0a") for each in wrong["found"]]
            moments += [(wrong["fails_after"], "x", "#d1495b")] if wrong["fails_after"] is not None else []
            for seconds, mark, colour in moments:
                axes.plot([seconds], [row], mark, color=colour, markersize=7)
        axes.set_yticks(range(len(played)), [scene["title"] for scene in reversed(played)], fontsize=7)
        axes.set_ylim(-0.6, len(played) - 0.4)
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds; o a finding, x the first failure")
    return draw


def run(context):
    nginx = serve(context)
    tests = ladder(context, nginx)
    pick = best(tests)
    context.say("what runs out")
    played = scenes.all_played(context)
    seconds = context.long_seconds or context.pick(LONG_SECONDS, QUICK_LONG_SECONDS)
    context.say(f"{pick['clients']} clients for {seconds:g} s")
    lasting = endured(context, nginx, pick["clients"], seconds)
    fields = {
        "server": lua_server.described(), "ladder": ladder_table(tests), "chosen": chosen(tests),
        "causes": causes_table(played), "verdict": verdict(played),
        "scenes": "\n\n".join(scene_text(scene) for scene in played),
        "long": long_table(lasting), "steady": steady(lasting),
        "methods": table(["method", "invocations", "mean"], [
            [name, number(each["requests"]), time_text(each["mean_ns"])] for name, each in lasting["methods"].items()]),
        "counts": table(["the driver", "nginx (`stub_status`)", "Sojourn"],
                        [[number(lasting[who]) for who in ("requests", "answered", "exchanges")]]),
        "service": time_text(lasting["service_ns"]), "socket_queue": time_text(lasting["socket_queue_ns"]),
        "mean": time_text(lasting["mean_ns"]),
        "commands": code(context.command_lines(
            f"quick test, {pick['clients']} clients", "doctor", *(scene["title"] for scene in played),
            "observer", "long run")),
        "interval": scenes.interval(context), "errors": number(sum(test["errors"] for test in tests)),
        "limited": ", ".join(f"{number(test['clients'])} ({test['limited']})" for test in tests
                             if test["limited"]) or "none",
    }
    return Page({"tests": tests, "chosen": pick["clients"], "scenes": played, "long": lasting}, fields,
                {"clients": drawing(tests, lasting), "causes": timeline(played)})
