# SPDX-License-Identifier: MIT
"""The short report of several services names failed responses and messages of each. Counts are those of nginx' log and of a
WebSocket server.

tools/mutate: "failed responses need -v".
"""
import asyncio
import re
from collections import Counter

import pytest

from support.conditions import needs_program
from support.documents import service
from support.process import run
from support.programs import DRIVER, OBSERVER, Nginx, Observer
from .test_pushes import PAYLOADS, by_python, talk

pytestmark = needs_program("nginx")


def flat(text):
    return " ".join(text.split())


def failing(start, log):
    return start(Nginx(http_block="log_format by_status '$status';",
                       server=f"access_log {log} by_status; location /gone {{ return 404; }} location /broken {{ return 503; }}"))


def ask(nginx, path, count):
    run([DRIVER, f"{nginx.url}{path}", "-c2", f"-n{count}"], check=False)


@pytest.mark.parametrize("more", [True, False], ids=["rows", "two"])
def test_of_each_service(start, tmp_path, more):
    """Of three services rows, and of two the whole."""
    log = tmp_path / "log"
    failed, server = failing(start, log), start(by_python("websockets"))
    other = [start(Nginx())] if more else []
    observer = start(Observer("--http", ports=[failed.port, server.port, *(nginx.port for nginx in other)]))
    asyncio.run(talk(server.port, None))
    for nginx in other:
        ask(nginx, "", 50)
    for path, count in (("", 60), ("gone", 30), ("broken", 10)):
        ask(failed, path, count)
    expected = server.counted()
    observer.stop()
    logged = Counter(log.read_text().split())
    short = run([OBSERVER, "report", observer.json]).stdout
    text = flat(short)
    assert (logged["404"], logged["503"]) == (30, 10) and expected["messages_in"] == 2 * len(PAYLOADS)
    assert f"5xx {logged['503']} (10 %) · 4xx {logged['404']} (30 %)" in text, short
    assert f"messages in {expected['messages_in']}, out {expected['messages_out']}" in text, short
    # A service without failures, and whose messages are none, has nothing of it.
    for nginx in other:
        line = next(line for line in short.splitlines() if f":{nginx.port} " in line)
        assert "xx" not in line and "messages" not in line
    assert service(observer.summary(), server.port)["websocket"]["messages_in"] == expected["messages_in"]
