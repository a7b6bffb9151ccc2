#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drive sojourn-drive with a stand-in for the observer, and check the bracket. No request of the measured phase
is outside it, the documents are merged, and a run without it works.

Usage: bracket.py PATH/TO/sojourn-drive
"""
import http.server
import json
import signal
import subprocess
import sys
import threading
import time

DRIVE = sys.argv[1]
failures = []


def check(name, condition, what):
    if not condition:
        failures.append(f"{name}: {what}")


class Target(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answered = 0
    last = None  # when
    lock = threading.Lock()

    def do_GET(self):
        with Target.lock:
            Target.answered += 1
            Target.last = time.monotonic()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Observer(http.server.BaseHTTPRequestHandler):
    at_begin = at_end = ended = None
    document = {}
    begin_status = 201
    end_delay = 0
    vanish = False
    renewed = 0
    renewal_hangs = threading.Event()
    lease = {}

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/v1/phases?lease=60":
            Observer.at_begin = Target.answered
            return self.reply(self.begin_status, {"phase": 7, **self.lease})
        if self.path == "/v1/phases/7/renew":
            Observer.renewed += 1
            while self.renewal_hangs.is_set():
                time.sleep(0.01)
            return self.reply(200, {"phase": 7, **self.lease})
        check("bracket", self.path == "/v1/phases/7/end", self.path)
        Observer.at_end = Target.answered
        Observer.ended = time.monotonic()
        if self.vanish:
            return self.connection.close()
        time.sleep(self.end_delay)
        return self.reply(200, self.document)

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # with the default of 5, connecting takes seconds
    daemon_threads = True


def start(handler):
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def drive(*options, interrupted=False):
    """Return document, exit status and messages. `interrupted`: end the run at its first request."""
    before = Target.answered
    process = subprocess.Popen([DRIVE, "--json=-", *options], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    while interrupted and Target.answered == before and process.poll() is None:
        time.sleep(0.01)
    if interrupted:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return json.loads(out) if out else None, process.returncode, err


target, observer = start(Target), start(Observer)

alone, code, _ = drive("-n10", target)
check("alone", code == 0 and alone["driver"]["requests"] == 10, "no plain run")
Observer.document = dict(alone, driver=None, services=[],
                         cost={"cpu_ns": 1234, "resident_bytes": 1, "map_bytes": 2, "programs": []})

for options in (["-n300"], ["-d300ms"], ["-d300ms", "--warmup=200ms"], ["-n100", "--warmup=200ms"],
                ["-d300ms", "--warmup=200ms", "--new-connections"]):
    run, code, err = drive("-c8", "-t2", "--observer", observer, *options, target)
    name = f"bracket {options}"
    check(name, code == 0 and not err, f"exit status {code}: {err}")
    seen = Observer.at_end - Observer.at_begin
    check(name, run["driver"]["requests"] == seen, f"{run['driver']['requests']} != {seen}")
    check(name, (run["cost"] or {}).get("cpu_ns") == 1234, "the observer's part is not there")

check("lease", Observer.renewed == 0, "renewed what has no lease")
Observer.lease = {"lease_s": 1}
# Three renewals a second, of which a busy machine may delay some.
begun = time.monotonic()
run, code, err = drive("-d1700ms", "--rate=50", "--observer", observer, target)
most = 3 * (time.monotonic() - begun)
check("lease", code == 0 and not err and 2 <= Observer.renewed <= most, f"{code}, {Observer.renewed} times, {err}")
renewed = Observer.renewed
time.sleep(0.5)
check("lease", Observer.renewed == renewed, "renewed after its end")
Observer.renewal_hangs.set()
run, code, err = drive("-d2s", "--rate=50", "--observer", observer, target)
Observer.renewal_hangs.clear()
waited = Observer.ended - Target.last  # with a renewal that is not cancelled, 8 s
check("hanging renewal", code == 0 and Observer.renewed == renewed + 1 and waited < 6, f"{code}, {waited:.1f} s, {err}")
Observer.lease = {}

run, code, err = drive("-d60m", "--observer", observer + "/", target, interrupted=True)
check("interrupted", code == 0 and run["driver"]["requests"] == Observer.at_end - Observer.at_begin,
      f"exit status {code}: {err}")

Observer.vanish = True
run, code, err = drive("-n10", "--observer", observer, target)
check("vanishing", code == 1 and run["driver"]["requests"] == 10, f"exit status {code}")
check("vanishing", run["driver"]["observer_error"] and len(err.splitlines()) == 1, err)
Observer.vanish = False

Observer.document = alone  # a driver's document, not an observer's
run, code, err = drive("-n10", "--observer", observer, target)
check("wrong part", code == 1 and run["driver"]["requests"] == 10, f"exit status {code}: {err}")
Observer.document = {"schema": "other"}
run, code, err = drive("-n10", "--observer", observer, target)
check("wrong document", code == 1 and "sojourn.run/1" in err, err)

before = Target.answered
Observer.begin_status = 404
run, code, err = drive("-n10", "--observer", observer, target)
check("no observer", code == 1 and run is None and "404" in err, f"exit status {code}: {err}")
run, code, err = drive("-n10", "--warmup=100ms", "--observer", "http://127.0.0.1:1", target)
check("unreachable", code == 1 and run is None and len(err.splitlines()) == 1, f"{code}: {err}")
check("unreachable", Target.answered == before, "there was load")

for failure in failures:
    print("FAILED", failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
