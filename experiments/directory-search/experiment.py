# SPDX-License-Identifier: MIT
"""Directory search: exact and subtree searches at two loads, ten thousand clients, and whether the test program
is the bottleneck."""
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from experiments.common import figures
from experiments.common.figures import number, percent, time_text
from experiments.common.page import Page, code, table
from experiments.common.place import CLIENT, CLIENT_CPU
from experiments.common.plot import COUNTS, panels

sys.path.insert(0, str(Path(__file__).resolve().parent))
from directory import FIRST, LAST_OF_FILES, PEOPLE, Directory, imported, uid  # noqa: E402

TITLE = "directory search: exact and subtree, heavy and lighter load, 10,000 clients (OpenLDAP)"
PACKAGES = ("slapd", "ldap-utils")
ENTRIES = "SOJOURN_DIRECTORY_ENTRIES"  # environment: another number of people
MANY = 10_000
USUAL_LIMIT = 1024
SPARE_FILES = 100  # descriptors that a driver needs besides its connections
PARTS = ("network + client", "accept queue", "socket queue", "receive", "service", "respond")


class Search(NamedTuple):
    """A kind of search, and its published figures: (searches per second, ms) at either load."""

    file: str
    kind: str
    attributes: str
    heavy: tuple
    lighter: tuple

    @property
    def name(self):
        return f"{self.kind}, {self.attributes}"


SEARCHES = (Search("exact-one", "exact", "1", (93660, 2.665), (92274, 1.080)),
            Search("exact-all", "exact", "all", (84206, 2.371), (71793, 0.693)),
            Search("subtree-one", "subtree", "1", (93769, 1.596), (81649, 0.609)),
            Search("subtree-all", "subtree", "all", (84703, 1.767), (72627, None)))
LOADS = {"heavy": 64, "lighter": 4}


class Bench:
    def __init__(self, context, entries):
        self.context, self.entries = context, entries
        self.directory = self.observer = None

    def scenario(self, search):
        """Return the search's file, or a copy for the actual number of people."""
        path = self.context.source / f"{search.file}.yaml"
        if self.entries == LAST_OF_FILES - FIRST + 1:
            return path
        copy = self.context.work / path.name
        copy.write_text(path.read_text().replace(str(LAST_OF_FILES), str(FIRST + self.entries - 1)))
        return copy

    def drive(self, search, *words, label=None):
        """Run the scenario; add slapd's counts and CPU time of the run."""
        before, cpu = self.directory.counts(), self.directory.cpu_seconds()
        probes = loss_probes()
        document = self.context.drive("run", self.scenario(search), *words, self.directory.target,
                                      observer=self.observer, label=label)
        after = self.directory.counts()
        document["server"] = {"cpu_s": self.directory.cpu_seconds() - cpu, "loss_probes": loss_probes() - probes,
                              **{name: after[name] - before[name] for name in after}}
        return document


def loss_probes():
    """Return how many segments TCP of this network namespace sent again because an acknowledgement was late."""
    lines = [line.split() for line in Path("/proc/self/net/netstat").read_text().splitlines()
             if line.startswith("TcpExt:")]
    return int(dict(zip(*lines))["TCPLossProbes"])


def deviation(values):
    """Return the standard deviation of a sample, as in spreadsheets and SLAMD."""
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5 if len(values) > 1 else None


def whole_intervals(intervals):
    """Return the intervals without the short last one."""
    return [part for part in intervals if part["seconds"] > 0.9 * intervals[0]["seconds"]]


def parts_of(joined):
    """Return the mean ns of each part of the round trip, over the joined exchanges."""
    total = joined["sum"]
    stages = {name.replace("_", " "): total["stages"].get(name) or 0 for name in figures.STAGES}
    parts = {"network + client": total["network_ns"] - total["overhang_ns"], **stages}
    return {name: parts[name] / joined["joined"] for name in PARTS} if joined["joined"] else None


def summary(document, port):
    driver, seen, server = document["driver"], figures.service(document, port), document["server"]
    took = driver["duration_ns"]
    intervals = [{"seconds": part["duration_ns"] / 1e9, "requests": part["requests"], "errors": part["errors"],
                  "mean_ns": part["latency"].get("mean_ns"), "stddev_ns": part["latency"].get("stddev_ns")}
                 for part in driver["intervals"]]
    whole = [part["requests"] for part in whole_intervals(intervals)]
    return {
        "clients": driver["connections"], "requests": driver["requests"], "rate": figures.rate(driver),
        "exceptions": figures.errors(driver), "entries": driver["requests"] - driver["errors"]["unexpected"] -
        driver["errors"]["status"], "intervals": intervals, "per_interval": sum(whole) / len(whole),
        "per_interval_stddev": deviation(whole), "correlation": driver.get("drift"),
        "mean_ns": driver["round_trip"]["mean_ns"], "stddev_ns": driver["round_trip"]["stddev_ns"],
        "p99_ns": driver["round_trip"]["p99_ns"], "residence_ns": figures.residence_ns(seen),
        "service_ns": figures.stage_ns(seen, "service"), "exchanges": seen["exchanges"],
        "driver_cpu": (driver["cpu_user_ns"] + driver["cpu_system_ns"]) / took,
        "driver_waited": driver["cpu_wait_ns"] / took if driver.get("cpu_wait_ns") is not None else None,
        "server_cpu": server["cpu_s"] / took * 1e9, "limited": driver.get("limited"),
        "server": server, "joined": document["joined"]["joined"], "parts": parts_of(document["joined"]),
        "tail": tail_of(document["joined"]), "retransmits": seen.get("retransmits"), "lost": figures.lost(seen),
        "connected": seen.get("connections"), "processes": seen["processes"],
    }


def tail_of(joined):
    """Return the parts of the searches slower than the 99th percentile, mean ns."""
    slow = next((entry for entry in joined.get("tail") or [] if entry["per_mille"] == 990 and entry["count"]), None)
    return slow and {"count": slow["count"], "above_ns": slow["above_ns"],
                     "parts": parts_of({"sum": slow["sum"], "joined": slow["count"]})}


# Steps

def counted(bench, search):
    """Count the same searches by driver, slapd and observer. Without warm-up all of them are measured."""
    wanted = bench.context.pick(20000, 2000)
    document = bench.drive(search, "-c16", f"-n{wanted}", "-d60s")
    made = summary(document, bench.directory.port)
    return {"search": search.name, "driver": made["requests"], "slapd": made["server"]["searches"],
            "sojourn": made["exchanges"], "entries": made["entries"], "slapd_entries": made["server"]["entries"]}


def loaded(bench, search, load):
    """Run one search at one load. An unmeasured first run is the warm-up, so that slapd counts the same as the
    driver."""
    pick = bench.context.pick
    bench.context.drive("run", bench.scenario(search), f"-c{LOADS[load]}", f"-d{pick('2s', '200ms')}",
                        bench.directory.target)
    document = bench.drive(search, f"-c{LOADS[load]}",
                           f"-d{pick('30s' if load == 'heavy' else '20s', '1s')}",
                           f"--interval={pick('5s', '250ms')}", label=f"driver, {load} load")
    return {"search": search.name, "load": load, **summary(document, bench.directory.port)}


def threads_for(clients):
    """Return how many driver threads have enough descriptors together."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 if hard == resource.RLIM_INFINITY else -(-clients // max(1, hard - SPARE_FILES))


def concerns(finding, directory):
    """Whether it concerns our server or driver: the doctor examines all of the host's processes."""
    owners = finding.get("owners") or []
    return finding["port"] == directory.port or any(
        owner["pid"] == directory.process.pid or owner["comm"] == "sojourn-drive" for owner in owners)


def attached(bench, clients, *words, label=None):
    """Run this many clients, each of which searches without pause."""
    threads = threads_for(clients)
    document = bench.drive(SEARCHES[0], f"-c{clients}", *words,
                           *([f"--threads={threads}"] if threads > 1 else []), label=label)
    made = summary(document, bench.directory.port)
    made["errors"] = {name: count for name, count in document["driver"]["errors"].items() if count}
    made["doctor"] = [{"id": finding["id"], "object": finding["object"], "what": finding["what"],
                       "used": finding.get("used"), "capacity": finding.get("capacity"),
                       "command": finding.get("command")} for finding in document.get("findings") or []
                      if concerns(finding, bench.directory)]
    return made


def limited_files(context, bench):
    """Restart slapd with the limit of descriptors that a service gets by default, and run many clients."""
    bench.directory.close()
    bench.directory = Directory(context, USUAL_LIMIT, label="server, with 1,024 descriptors")
    with context.observe(ports=[bench.directory.port]) as bench.observer:
        made = attached(bench, context.pick(2000, 1500), f"-d{context.pick('10s', '2s')}", label="driver, 1,024 descriptors")
        made["limit"] = bench.directory.descriptors()
        return made


def one_by_one(bench):
    """A test program that is the bottleneck: a process for every search."""
    context, directory = bench.context, bench.directory
    argv = ["taskset", "-c", str(CLIENT_CPU), *directory.search(PEOPLE, "sub", f"(uid={uid(0)})", ["cn"])]
    context.note("a process for every search", argv[3:], CLIENT)
    phase, cpu = bench.observer.begin_phase(), directory.cpu_seconds()
    begin, count = time.monotonic(), 0
    while time.monotonic() - begin < context.pick(5, 1):
        argv[-2] = f"(uid={uid(count * 7919 % bench.entries)})"
        found = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        assert uid(count * 7919 % bench.entries) in found, found
        count += 1
    took = time.monotonic() - begin
    seen = figures.service(bench.observer.end_phase(phase), directory.port)
    return {"searches": count, "seconds": took, "rate": count / took, "exchanges": seen["exchanges"],
            "connections": seen["accepted"], "residence_ns": figures.residence_ns(seen),
            "server_cpu": (directory.cpu_seconds() - cpu) / took}


# The page

def label_of(run):
    return f"{run['search']} · {run['load']}"


def published_table():
    rows = []
    for search in SEARCHES:
        for load in LOADS:
            rate, ms = getattr(search, load)
            rows.append([f"{search.name} · {load}", number(rate), number(ms, 3) if ms else "below 1",
                         number(rate * ms / 1e3, 1) if ms else "–"])
    return table(["search, attributes · load", "per second", "ms", "rate × time: searches at a time"], rows)


def statistics_table(runs):
    return table(
        ["search, attributes · load", "clients", "count", "per second", "per interval", "deviation", "correlation",
         "mean time", "its deviation", "exceptions", "entries returned"],
        [[label_of(run), run["clients"], number(run["requests"]), number(run["rate"]), number(run["per_interval"]),
          number(run["per_interval_stddev"]), number(run["correlation"], 2), time_text(run["mean_ns"]),
          time_text(run["stddev_ns"]), number(run["exceptions"]), number(run["entries"])] for run in runs])


def lighter_text(runs):
    lighter = [run for run in runs if run["load"] == "lighter"]
    below = sum(run["mean_ns"] < 1e6 for run in lighter)
    return (f"Of the {len(lighter)} runs at lighter load {below if below else 'none'} "
            f"{'have' if below > 1 else 'has'} a mean time below a millisecond.")


def intervals_table(run):
    rows, at = [], 0.0
    for part in run["intervals"]:
        rows.append([f"{at:.2f}–{at + part['seconds']:.2f} s", number(part["requests"]),
                     number(part["requests"] / part["seconds"]), time_text(part["mean_ns"]),
                     time_text(part["stddev_ns"]), number(part["errors"])])
        at += part["seconds"]
    return table(["interval", "count", "per second", "mean time", "its deviation", "exceptions"], rows)


def parts_table(runs):
    return table(["search, attributes · load", "round trip", *PARTS, "searches joined"],
                 [[label_of(run), time_text(run["mean_ns"]), *(time_text(run["parts"][name]) for name in PARTS),
                   number(run["joined"])] for run in runs if run["parts"]])


def tail_table(runs):
    return table(["search, attributes · load", "slower than (p99)", "searches", *PARTS],
                 [[label_of(run), time_text(run["tail"]["above_ns"]), number(run["tail"]["count"]),
                   *(percent(run["tail"]["parts"][name], sum(run["tail"]["parts"].values())) for name in PARTS)]
                  for run in runs if run["tail"]])


def bottleneck_table(runs):
    return table(
        ["search, attributes · load", "slapd's CPU", "driver's CPU", "driver waited for one", "at the server",
         "of the round trip", "the driver says of itself"],
        [[label_of(run), percent(run["server_cpu"], 1), percent(run["driver_cpu"], 1),
          percent(run["driver_waited"], 1) if run["driver_waited"] is not None else "–",
          time_text(run["residence_ns"]), percent(run["residence_ns"], run["mean_ns"]),
          run["limited"]["by"] if run["limited"] else "not the limit"] for run in runs])


def who_is_the_limit(runs):
    """Return the sentence that answers the reader's question for the heavy load, whatever the result."""
    heavy = [run for run in runs if run["load"] == "heavy"]
    limited = [run for run in heavy if run["limited"]]
    if limited:
        return (f"In {len(limited)} of the {len(heavy)} runs with heavy load: **yes**. The driver says so itself: "
                f"\"{limited[0]['limited']['why']}\". Its figures are no more than a lower bound of the server's "
                "throughput then, and the time at the server is what remains true of them.")
    low, high = (pick(run["server_cpu"] for run in heavy) for pick in (min, max))
    most = max(run["driver_cpu"] for run in heavy)
    share = min(run["residence_ns"] / run["mean_ns"] for run in heavy)
    text = (f"At heavy load: **{'no' if share > 0.5 else 'in part'}**. Of a round trip {percent(share, 1)} or more was at the "
            f"server. The CPU of slapd was used to {percent(low, 1)} to {percent(high, 1)}, that of the driver at most to "
            f"{percent(most, 1)}. The driver does not say that it was the limit.")
    if high < 0.85:
        text += (" Yet slapd did not use its CPU to the full either: it waited for its clients' next requests, for its own "
                 "locks, or for a CPU that another process had. These figures do not distinguish these causes.")
    return text


def reader_text(alone, runs):
    heavy = max(runs, key=lambda run: run["rate"])
    text = (f"One `ldapsearch` after the other made {number(alone['rate'])} searches per second, "
            f"{number(heavy['rate'] / alone['rate'])} times fewer than the driver's {number(heavy['rate'])}. "
            f"Sojourn saw {number(alone['exchanges'])} requests on {number(alone['connections'])} connections "
            f"(a bind and a search each), {time_text(alone['residence_ns'])} at the server on average, and slapd used "
            f"{percent(alone['server_cpu'], 1)} of its CPU.")
    if 4 * alone["residence_ns"] < 1e9 / alone["rate"]:
        text += " Here the answer is yes: the test program is the bottleneck."
    return text


def many_text(many):
    process = many["processes"][0] if many["processes"] else {}
    text = (f"{number(many['connected'])} of {number(many['clients'])} clients were connected at the end. Then "
            f"{number(process.get('open_fds'))} of slapd's {number(process.get('fd_limit'))} descriptors were in use (slapd "
            f"says that it can have {number(many['limit'])}). There were {number(many['requests'])} searches, "
            f"{number(many['rate'])} per second, with {number(many['exceptions'])} exceptions, of "
            f"{time_text(many['mean_ns'])} each.")
    if many["exceptions"]:
        text += " The exceptions: " + ", ".join(f"{name} {number(count)}" for name, count in many["errors"].items()) + "."
    busy = many["rate"] * many["mean_ns"] / 1e9
    text += (f" By Little's law {number(busy)} of them had a search under way on average. It was "
             f"{time_text(many['service_ns'])} in service, and {time_text(many['residence_ns'])} at the server in all: it "
             "waited for the others before it.")
    return text


def doctor_text(found):
    if not found:
        return "Sojourn's doctor found nothing that was running out."
    return "Sojourn's doctor, over the same time: " + "; ".join(
        f"**{finding['id']}**, {finding['object']}: {finding['what']} ({number(finding['used'])} of "
        f"{number(finding['capacity'])})" + (f", `{finding['command']}`" if finding["command"] else "")
        for finding in found) + "."


def few_text(few):
    process = few["processes"][0] if few["processes"] else {}
    errors = ", ".join(f"{name} {number(count)}" for name, count in few["errors"].items()) or "none"
    return (f"With a service's default limit of {number(few['limit'])} descriptors, {number(few['connected'])} of "
            f"{number(few['clients'])} clients were connected at the end. Then {number(process.get('open_fds'))} of "
            f"{number(process.get('fd_limit'))} descriptors were in use. There were {number(few['requests'])} answered "
            f"searches, and these exceptions: {errors}.")


def growth_text(runs):
    """Return the growth between the lighter load and the heavy one, over all four searches."""
    def mean(load, part):
        return sum(run["parts"][part] for run in runs if run["load"] == load) / len(SEARCHES)

    if not all(run["parts"] for run in runs):
        return "Not all runs could be joined."
    grew = {part: mean("heavy", part) - mean("lighter", part) for part in PARTS}
    total = sum(grew.values())
    told = ", ".join(f"{part} {'+' if ns >= 0 else '−'}{time_text(abs(ns))}"
                     for part, ns in sorted(grew.items(), key=lambda item: -abs(item[1])) if abs(ns) >= total / 200)
    text = (f"From {LOADS['lighter']} clients to {LOADS['heavy']} a search takes {time_text(abs(total))} "
            f"{'longer' if total >= 0 else 'less'} on average: {told}.")
    if grew["service"] < 0.1 * total:
        text += (f" Service, the searching itself, is {percent(grew['service'], total)} of that: what grows is waiting. In the "
                 "socket queue slapd has not read the request yet.")
    return text


def probes_text(runs):
    again = sum(run["retransmits"] or 0 for run in runs)
    probes = sum(run["server"]["loss_probes"] for run in runs)
    if not again:
        return "No segment was sent again."
    text = (f"On a loopback, which loses nothing, {number(again)} segments were sent again; the kernel counts "
            f"{number(probes)} tail loss probes (TCPLossProbes) in the same time.")
    if probes > again / 2:
        text += (" An entry and the result that ends a search are two small segments. The client acknowledges them with its "
                 "next request. If that comes late, the server's TCP sends the last one again, to be sure.")
    return text


def drawing(runs):
    @panels(2)
    def draw(axes):
        left, right = axes
        for run in runs:
            if run["load"] == "heavy":
                ends, at = [], 0.0
                for part in whole_intervals(run["intervals"]):
                    at += part["seconds"]
                    ends.append(at)
                left.plot(ends, [part["requests"] / part["seconds"] for part in whole_intervals(run["intervals"])],
                          "o-", label=run["search"])
        left.set_title("searches/s by interval, heavy load")
        left.set_xlabel("s")
        left.set_ylim(bottom=0)
        left.yaxis.set_major_formatter(COUNTS)
        left.legend(loc="best")
        shown = [run for run in runs if run["parts"]]
        base = [0.0] * len(shown)
        for part in reversed(PARTS):
            values = [max(0.0, run["parts"][part] / sum(run["parts"].values()) * 100) for run in shown]
            if max(values) >= 1:
                right.barh([label_of(run) for run in shown], values, left=base, label=part)
            base = [a + b for a, b in zip(base, values)]
        right.set_title("round trip, % by part")
        right.invert_yaxis()
        right.tick_params(axis="y", labelsize=7)
        right.legend(loc="lower center", bbox_to_anchor=(0.4, -0.42), ncols=3, fontsize=7)
    return draw


def number_of_people(context):
    text = os.environ.get(ENTRIES)
    if text is None:
        return context.pick(100_000, 20_000)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 80_000_000:
        raise ValueError(f"{ENTRIES}: '{text}' is not a whole number from 1 to 80000000")
    return int(text)


def run(context):
    bench = Bench(context, number_of_people(context))
    context.say(f"imports {bench.entries} people")
    seconds = imported(context, bench.entries)
    context.say(f"{bench.entries} people in {seconds:.1f} s: {bench.entries / seconds:.0f}/s")
    bench.directory = Directory(context)
    people = bench.directory.people()
    if people != bench.entries:
        raise RuntimeError(f"slapd has {people} people, not {bench.entries}")
    with context.observe(ports=[bench.directory.port]) as bench.observer:
        counts = [counted(bench, search) for search in SEARCHES]
        runs = []
        for load in LOADS:
            for search in SEARCHES:
                context.say(f"{search.name}, {load} load")
                runs.append(loaded(bench, search, load))
        context.say("a process for every search")
        alone = one_by_one(bench)
        context.say(f"{MANY} clients")
        many = attached(bench, MANY, f"-d{context.pick('20s', '2s')}", f"--warmup={context.pick('12s', '3s')}",
                        f"--connect-rate={context.pick(1000, 5000)}", "--timeout=30s", label="driver, 10,000 clients")
        limit = bench.directory.descriptors()
    context.say(f"the same with {USUAL_LIMIT} descriptors")
    few = limited_files(context, bench)
    made = {"entries": people, "import_seconds": seconds, "counts": counts, "runs": runs, "one_by_one": alone,
            "many": {**many, "limit": limit}, "few": few}
    return Page(made, fields_of(made, context.command_lines()), {"searches": drawing(runs)})


def fields_of(made, commands):
    runs, many, few = made["runs"], made["many"], made["few"]
    lost = {name for each in runs for name in each["lost"]}
    return {
        "entries": number(made["entries"]), "import_seconds": number(made["import_seconds"], 1),
        "import_rate": number(made["entries"] / made["import_seconds"]),
        "commands": code(commands), "published": published_table(),
        "statistics": statistics_table(runs), "lighter": lighter_text(runs),
        "intervals": intervals_table(runs[0]), "first": label_of(runs[0]),
        "parts": parts_table(runs), "growth": growth_text(runs), "tail": tail_table(runs), "bottleneck": bottleneck_table(runs),
        "limit": who_is_the_limit(runs), "reader": reader_text(made["one_by_one"], runs), "many": many_text(many),
        "many_doctor": doctor_text(many["doctor"]), "few": few_text(few), "few_doctor": doctor_text(few["doctor"]),
        "probes": probes_text(runs),
        "counts": table(["search, attributes", "the driver", "slapd", "Sojourn", "entries: driver", "entries: slapd"],
                        [[each["search"], *(number(each[who]) for who in (
                            "driver", "slapd", "sojourn", "entries", "slapd_entries"))] for each in made["counts"]]),
        "lost": ", ".join(f"{name} {number(sum(each['lost'].get(name, 0) for each in runs))}"
                          for name in sorted(lost)) or "nothing",
    }
