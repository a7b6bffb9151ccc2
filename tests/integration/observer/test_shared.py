# SPDX-License-Identifier: MIT
"""CPUs that share copies of a service's counts, because memory is too little for a copy on each, lose none.

The truth is nginx's own log: two workers answer on all CPUs at once. With so many CPUs as `--cpus` pretends, all of
this host share one copy.

tools/mutate: "shared copies are counted plainly", "the first message of an earlier epoch stays in a
shared copy".
"""
import os
import time
from collections import Counter
from pathlib import Path

from support.conditions import needs_program
from support.documents import service
from support.process import run
from support.programs import Driver, Lab, Nginx, Observer

SHARED = ("--cpus", 8192, "--memory", "120M")
LOG = "log_format counted '$status $request_length $bytes_sent';"
COUNT = 40000


@needs_program("h2load")
def test_shared_copies_count_what_nginx_logs(start):
    nginx = start(Nginx(workers=2, http_block=LOG, server="access_log {folder}/counted.log counted;"
                                                          "location /none { return 404; }"))
    observer = start(Observer(*SHARED, "--http", "--cpu", "--transmit", "all", ports=[nginx.port]))
    done = run(["h2load", "--h1", "-n", COUNT, "-c", 32, "-t", 2, nginx.url, nginx.url + "none"]).stdout
    assert f"{COUNT} done" in done
    observer.stop()
    nginx.stop()
    logged = [[int(word) for word in line.split()]
              for line in Path(nginx.files.name, "counted.log").read_text(encoding="ascii").splitlines()]
    entry = service(observer.summary(), nginx.port)
    sharing = observer.summary()["cost"]["sharing_cpus"]
    assert sharing >= os.cpu_count() and f"{sharing:,} CPUs share counts" in observer.stdout
    assert len(logged) == entry["exchanges"] == COUNT
    assert (entry["bytes_in"], entry["bytes_out"]) == (sum(line[1] for line in logged), sum(line[2] for line in logged))
    assert dict(entry["responses"]["statuses"]) == Counter(line[0] for line in logged)
    assert entry["responses"]["service_4xx"]["count"] == COUNT / 2
    for name in ("socket_queue", "receive", "service", "respond"):
        assert entry["stages"][name]["count"] == COUNT
    assert entry["accepted"] == 32


def test_first_and_last_messages_are_those_of_the_phase(start):
    """A shared copy keeps the first arrival of epochs by turns at two places."""
    lab = start(Lab())
    observer = start(Observer(*SHARED, ports=[lab.port]))
    for _ in range(3):
        phase, begun_ns = observer.begin_phase(), time.monotonic_ns()
        Driver(lab.url, connections=4, count=200)
        over_ns = time.monotonic_ns()
        entry = service(observer.end_phase(phase), lab.port)
        assert entry["exchanges"] == 200
        assert begun_ns < entry["first_message_ns"] < entry["last_message_ns"] < over_ns
