# SPDX-License-Identifier: MIT
"""The two servers of the experiment, Debian's knot and nginx, and their own counts of identifiers."""
import re
import time

from experiments.common.place import SERVER
from support import http
from support.net import free_port
from support.process import run

ZONE, MARK = "id.test", "TXT"
TCP_WORKERS = 64  # of knot, each with its own accept queue


def configured(context, name, template, **values):
    """Write a configuration file of the experiment with {names} filled in, in a folder of this name."""
    folder = context.work / name
    folder.mkdir()
    text = (context.source / template).read_text(encoding="utf-8")
    for key, value in {**values, "folder": folder, "source": context.source}.items():
        text = text.replace("{" + key + "}", str(value))
    path = folder / template
    path.write_text(text, encoding="utf-8")
    return folder, path


class Knot:
    def __init__(self, context, name="knot", tcp_workers=TCP_WORKERS):
        self.port = free_port()
        folder, path = configured(context, name, "knot.conf", port=self.port, tcp_workers=tcp_workers)
        (folder / f"{ZONE}.zone").write_text((context.source / f"{ZONE}.zone").read_text())
        self.process = context.start(["knotd", "-c", path], SERVER, label="DNS server")
        self.process.wait_for("server started", seconds=20)
        self._wait_until_answers()

    def _dig(self, *words):
        return run(["dig", "@127.0.0.1", "-p", self.port, "+tries=1", "+time=20", *words]).stdout

    def _wait_until_answers(self):
        deadline = time.monotonic() + 20
        while "example.test" not in self._dig(f"demo.{ZONE}", MARK, "+short"):
            if time.monotonic() > deadline:
                raise self.process.error("does not answer for its zone")
            time.sleep(0.05)

    def created(self):
        """Return how many identifiers the zone has, without the one for reads."""
        return len(re.findall(rf"\s{MARK}\s", self._dig(ZONE, "AXFR"))) - 1


class Nginx:
    """An HTTP server that keeps identifiers as files."""

    def __init__(self, context, name="nginx"):
        self.port, status = free_port(), free_port()
        folder, path = configured(context, name, "nginx.conf", port=self.port, status_port=status)
        self.handles = folder / "handles"
        self.handles.mkdir()
        (self.handles / "demo").write_text("URL https://example.test/demo\n")
        self.process = context.start(["nginx", "-e", folder / "error.log", "-p", folder, "-c", path], SERVER,
                                     label="HTTP server")
        deadline = time.monotonic() + 20
        while True:
            try:
                http.request(f"http://127.0.0.1:{status}/")
                return
            except OSError:
                if not self.process.running() or time.monotonic() > deadline:
                    raise self.process.error("did not come up") from None
                time.sleep(0.02)

    def created(self):
        """Return how many identifiers it keeps, without the one for reads."""
        return sum(1 for _ in self.handles.iterdir()) - 1
