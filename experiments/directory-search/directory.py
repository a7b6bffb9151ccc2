# SPDX-License-Identifier: MIT
"""The server of the experiment: a generated directory, imported, and OpenLDAP's slapd, whose own counters are
the truth."""
import os
import re
import shlex
import socket
import subprocess
import time
from pathlib import Path

from experiments.common.place import SERVER
from support.net import free_port
from support.process import run as finish

FIRST = 10_000_000  # as in generate
LAST_OF_FILES = 10_099_999  # as in the scenario files
PEOPLE = "ou=People,dc=example,dc=com"
COUNTERS = {"searches": "cn=Search,cn=Operations,cn=Monitor", "entries": "cn=Entries,cn=Statistics,cn=Monitor"}


def uid(number):
    return f"user.{FIRST + number}"


def imported(context, entries):
    """Return the seconds that slapadd took for so many people, including their generation."""
    generator = [context.source / "generate", "--entries", str(entries)]
    loader = ["slapadd", "-q", "-f", str(context.source / "slapd.conf")]
    context.note("import (in an empty folder, as all of slapd's)",
                 ["sh", "-c", f"{shlex.join(map(str, generator))} | {shlex.join(loader)}"])
    begin = time.monotonic()
    with subprocess.Popen(generator, stdout=subprocess.PIPE) as source:
        with subprocess.Popen(loader, stdin=source.stdout, cwd=context.work, stderr=subprocess.PIPE,
                              text=True) as sink:
            source.stdout.close()  # so that the generator notices if slapadd ends early
            complaint = sink.communicate()[1]
    if source.returncode or sink.returncode:
        raise RuntimeError(f"the import failed with {source.returncode} and {sink.returncode}: {complaint[-1000:]}")
    return time.monotonic() - begin


class Directory:
    """slapd with the directory imported into context.work, on its own port."""

    def __init__(self, context, files=None, label="server"):
        """@files: its limit of descriptors; None: this process's hard one."""
        self.port = free_port()
        self.url, self.target = f"ldap://127.0.0.1:{self.port}", f"tcp://127.0.0.1:{self.port}"
        self.asked = 0  # searches made by counts() and the like
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.process = context.start(
            [*limit, "slapd", "-d", "0", "-h", self.url, "-f", context.source / "slapd.conf"], SERVER,
            label=label, cwd=context.work)
        self._wait_until_up()

    def _wait_until_up(self, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if not self.process.running() or time.monotonic() > deadline:
                    raise self.process.error("does not come up") from None
                time.sleep(0.05)

    def search(self, base, scope="base", wanted="(objectClass=*)", attributes=()):
        return ["ldapsearch", "-x", "-LLL", "-H", self.url, "-b", base, "-s", scope, wanted, *attributes]

    def _number(self, base, attribute):
        text = finish(self.search(base, attributes=[attribute])).stdout
        return int(re.search(rf"^{attribute}: (\d+)$", text, re.MULTILINE)[1])

    def counts(self):
        """Return searches completed and entries sent since its start. Each number queried here is itself a
        search and an entry, which are subtracted."""
        searches = self._number(COUNTERS["searches"], "monitorOpCompleted")
        entries = self._number(COUNTERS["entries"], "monitorCounter")
        self.asked += 2
        return {"searches": searches - (self.asked - 2), "entries": entries - (self.asked - 1)}

    def descriptors(self):
        """Return slapd's own limit."""
        return self._uncounted("cn=Max File Descriptors,cn=Connections,cn=Monitor", "monitorCounter")

    def people(self):
        """Return the number of people by the database's own count."""
        return self._uncounted("cn=Database 1,cn=Databases,cn=Monitor", "olmMDBEntries") - 2

    def _uncounted(self, base, attribute):
        self.asked += 1
        return self._number(base, attribute)

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.close()
