# SPDX-License-Identifier: MIT
"""Our programs and their peers, each a class that a test starts in one line."""
import json
import os
import re
import threading
import time
import urllib.error
from pathlib import Path

from . import BUILD, documents, http
from .net import free_port
from .process import Process, ProcessError, own_folder, run

OBSERVER = BUILD / "observer" / "sojourn"
DRIVER = BUILD / "driver" / "sojourn-drive"
LAB = BUILD / "tests" / "lab" / "sojourn-lab"


class Lab(Process):
    """The ground-truth server: Lab("--service", "1ms").port"""

    def __init__(self, *options, protocol="http", model="event", address="127.0.0.1", netns=None):
        listen = f"[{address}]:0" if ":" in address else f"{address}:0"
        super().__init__([LAB, "--protocol", protocol, "--model", model, "--listen", listen,
                          *options], netns=netns)
        with self.coming_up():
            match = self.wait_for(r"^listening on (\S+):(\d+)$")
        self.address, self.port = match[1], int(match[2])
        self.url = f"http://{self.address}:{self.port}/"


def time_waits(netns=None):
    """Return the kernel's own count of TIME_WAIT sockets made in a network namespace (TcpExtTW)."""
    text = run(["cat", "/proc/self/net/netstat"], netns=netns).stdout
    names, values = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
    counters = dict(zip(names, values))
    return int(counters["TW"]) + int(counters["TWKilled"])


def own_token(url, netns=None):
    """Return the token that an observer on loopback has left for its user's drivers."""
    own = os.stat(netns.path if netns else "/proc/self/ns/net").st_ino
    folders = ["/run/sojourn", *Path("/run/sojourn").glob("[0-9]*"), f"/run/user/{os.geteuid()}/sojourn", f"/tmp/sojourn-{os.geteuid()}"]
    paths = [Path(folder, f"{url.rsplit(':', 1)[1]}-{own}.token") for folder in folders]
    return next(path.read_text(encoding="ascii").strip() for path in paths if path.exists())


class Observer(Process):
    """`sojourn observe`: Observer(ports=[8080]).stop(), then .summary()"""

    def __init__(self, *options, ports=(), netns=None, command=(), program=OBSERVER):
        self.results = own_folder("observer")
        self.json = Path(self.results.name, "run.json")
        self.netns = netns
        self.time_waits = time_waits(netns)
        chosen = ["--port", ",".join(str(port) for port in ports)] if ports else []
        super().__init__([program, "observe", *chosen, "--listen", "127.0.0.1:0",
                          "--json", self.json, "--verbose", *options, *(["--", *command] if command else [])],
                         netns=netns)
        with self.coming_up():
            self.url = self.wait_for(r"listening on (http://\S+)", "stderr", 30)[1].rstrip("/")

    def _ask(self, path, method="GET"):
        token = own_token(self.url, self.netns) if method == "POST" else None
        return http.request(self.url + path, method, self.netns, token=token)

    def get(self, path):
        return self._ask(path)

    def document(self):
        return self._checked(documents.parse(self._ask("/v1/run")))

    def begin_phase(self):
        return json.loads(self._ask("/v1/phases", "POST"))["phase"]

    def end_phase(self, number):
        return self._checked(documents.parse(self._ask(f"/v1/phases/{number}/end", "POST")))

    def summary(self):
        return self._checked(documents.load(self.json))

    def _checked(self, document):
        """No document counts more TIME_WAIT sockets than the kernel has made since the observation began."""
        made = time_waits(self.netns) - self.time_waits
        own = os.stat(self.netns.path if self.netns else "/proc/self/ns/net").st_ino
        told = sum(service["time_wait_created"] for service in document["services"]
                   if service["netns"] == own)
        assert told <= made, f"time_wait_created: {told} in all, but TcpExtTW grew by {made}"
        return document

    def close(self):
        super().close()
        self.results.cleanup()


class Driver:
    """`sojourn-drive`, run to its end: Driver(url, connections=8, count=1000).document"""

    def __init__(self, url, *options, connections=1, threads=None, duration=None, count=None,
                 observer=None, netns=None, seconds=120, check=True):
        chosen = {"-c": connections, "-t": threads, "-d": duration, "-n": count,
                  "--observer": getattr(observer, "url", observer)}
        words = [word for name, value in chosen.items() if value is not None
                 for word in (name, value)]
        with own_folder("driver") as folder:
            path = Path(folder, "run.json")
            self.process = run([DRIVER, url, *words, "--json", path, "--verbose", *options],
                               netns=netns, seconds=seconds, check=check)
            self.document = documents.load(path) if path.exists() else None
        self.status = self.process.status
        self.report = self.process.stdout

    @property
    def result(self):
        return self.document["driver"]


class Doctor:
    """`sojourn doctor --json`, one reading: Doctor("--sample", "0").finding("ports-cliff")"""

    def __init__(self, *options, netns=None, seconds=60):
        self.process = run([OBSERVER, "doctor", "--json", *options], netns=netns, seconds=seconds,
                           check=False)
        self.status = self.process.status
        assert self.status in (0, 1, 2), f"status {self.status}: {self.process.stderr}"
        self.document = documents.parse(self.process.stdout)
        self.ids = {finding["id"] for finding in self.document["findings"]}

    def findings(self, name):
        return [finding for finding in self.document["findings"] if finding["id"] == name]

    def finding(self, name):
        found = self.findings(name)
        assert len(found) == 1, f"{len(found)} findings {name} in {self.document['findings']}"
        return found[0]

    def resource(self, kind, text):
        found = [entry for entry in self.document["resources"]
                 if entry["resource"] == kind and text in entry["object"]]
        assert len(found) == 1, f"{kind} {text}: {found}"
        return found[0]


NGINX = """\
{modules}
daemon off;
{user}
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 16384; }}
http {{
	access_log off;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
	keepalive_requests 1000000000;
	keepalive_timeout 3600s;
	{http}
	server {{
		{listen}
		location / {{ return 200 "{body}"; }}
		{server}
	}}
	server {{
		listen 127.0.0.1:{status_port};
		location / {{ stub_status; }}
	}}
}}
"""


class Nginx(Process):
    """Debian's nginx in the foreground, with its own counters on a second port.

    `server` is more configuration for the server block, `http_block` for the one around it, `modules` for the
    top. In `server`, {folder} is the folder of its files.
    """

    def __init__(self, port=None, workers=1, addresses=("127.0.0.1",), body="ok", server="",
                 http_block="", modules="", listen_options="", netns=None, env=None):
        self.files = own_folder("nginx")
        self.port = port or free_port()
        self.status_port = free_port()
        self.netns = netns
        self.asked, self.asking = 0, threading.Lock()  # connections (of one request each) made by status() itself
        self.url = f"http://{_bracketed(addresses[0])}:{self.port}/"
        listen = "\n\t\t".join(f"listen {_bracketed(address)}:{self.port} {listen_options};"
                               for address in addresses)
        path = Path(self.files.name, "nginx.conf")
        path.write_text(NGINX.format(
            folder=self.files.name, user="user root;" if os.geteuid() == 0 else "",
            workers=workers, listen=listen, body=body, status_port=self.status_port,
            http=http_block, modules=modules, server=server.replace("{folder}", self.files.name)))
        super().__init__(["nginx", "-e", f"{self.files.name}/error.log", "-p", self.files.name,
                          "-c", path], netns=netns, env=env)
        with self.coming_up():
            self._wait_until_up()

    def _wait_until_up(self, seconds=10):
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.status()
                return
            except (OSError, urllib.error.URLError, ProcessError):
                if not self.running() or time.monotonic() > deadline:
                    raise self.error(f"did not come up\n{self.errors()}") from None
                time.sleep(0.02)

    def errors(self):
        path = Path(self.files.name, "error.log")
        return path.read_text() if path.exists() else ""

    def status(self):
        """Return nginx's own counters without those of these queries: accepts, handled, requests, and active
        (connections now)."""
        with self.asking:  # another thread's query is not among the requests
            text = http.request(f"http://127.0.0.1:{self.status_port}/", netns=self.netns)
            self.asked += 1
            asked = self.asked
        active = int(re.search(r"Active connections: (\d+)", text)[1]) - 1
        counts = re.search(r"^ (\d+) (\d+) (\d+) $", text, re.MULTILINE).groups()
        accepts, handled, requests = (int(count) - asked for count in counts)
        return {"active": active, "accepts": accepts, "handled": handled, "requests": requests}

    def workers(self):
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def close(self):
        super().close()
        self.files.cleanup()


def out_of_descriptors():
    """Return the command of a listener that takes all descriptors it may have, and says `full`."""
    return ["/usr/bin/python3", "-c", """
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
listener, files = socket.create_server(("127.0.0.1", 0)), []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    print("full", flush=True)
time.sleep(600)
"""]


def _bracketed(address):
    return f"[{address}]" if ":" in address else address


def wrk(url, connections=8, threads=1, seconds=2, headers=(), netns=None):
    """Run wrk and return its own counts: requests, and errors by kind (connect, read, write, timeout) and
    `status` (not 2xx or 3xx)."""
    words = [word for header in headers for word in ("-H", header)]
    text = run(["wrk", "-c", connections, "-t", threads, "-d", f"{seconds}s", *words, url],
               seconds=seconds + 30, netns=netns).stdout
    errors = dict.fromkeys(("connect", "read", "write", "timeout", "status"), 0)
    errors.update({kind: int(count) for kind, count in
                   re.findall(r"(connect|read|write|timeout) (\d+)", text)})
    status = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors["status"] = int(status[1]) if status else 0
    return {"requests": int(re.search(r"(\d+) requests in", text)[1]), "errors": errors,
            "text": text}
