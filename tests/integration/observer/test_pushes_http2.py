# SPDX-License-Identifier: MIT
"""Server-sent events and WebSocket over HTTP/2 (RFC 8441) by Node: events are no part of `respond`, and tunnels are named.
Counts are those of the server.

tools/mutate: "events of HTTP/2 are the rest of their response". "a tunnel in HTTP/2 is like any response".
"any status of HTTP/2 begins events".
"""
import json
import re

import pytest

from support.conditions import needs_program
from support.documents import service
from support.process import Process, run
from support.programs import Observer
from support.timing import MS

SERVER = """
const counted = {events: 0, tunnels: 0, other: 0};
const server = require("http2").createServer({settings: {enableConnectProtocol: true}});
server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    if (headers[":protocol"] === "websocket") {
        counted.tunnels++;
        stream.respond({":status": 200});
        stream.pipe(stream);
    } else if (headers[":path"] === "/events") {
        let left = 5;
        counted.events++;
        stream.respond({":status": +process.argv[3], "content-type": process.argv[2]});
        const timer = setInterval(() => {
            stream.write("data: hello\\n\\n");
            if (!--left) {
                clearInterval(timer);
                stream.end();
            }
        }, 20);
    } else {
        counted.other++;
        stream.resume();
        stream.on("end", () => { stream.respond({":status": 200, "content-type": "text/html"}); stream.end("hello"); });
    }
});
process.on("SIGTERM", () => { console.log(`counted ${JSON.stringify(counted)}`); process.exit(0); });
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
"""
CLIENT = """
const client = require("http2").connect(`http://127.0.0.1:${process.argv[2]}`);
const ask = (headers, talk) => new Promise((done) => {
    const stream = client.request(headers);
    stream.on("end", done);
    stream.on("close", done);
    talk(stream);
});
const read = (stream) => { stream.resume(); stream.end(); };
const tunnel = (stream) => {
    let left = 10;
    stream.on("response", () => stream.write("message"));
    stream.on("data", () => (--left ? stream.write("message") : stream.end()));
};
client.on("remoteSettings", async () => {
    for (let i = 0; i < +process.argv[3]; i++) {
        await ask({":path": "/events"}, read);
        await ask({":path": "/", ":method": "POST"}, (stream) => { stream.resume(); stream.write("a"); stream.end("b".repeat(40000)); });
    }
    for (let i = 0; i < +process.argv[4]; i++)
        await ask({":method": "CONNECT", ":protocol": "websocket", ":path": "/chat", ":scheme": "http", ":authority": "a"}, tunnel);
    client.close();
});
"""


def observed(start, tmp_path, events, tunnels, kind="text/event-stream", status=200):
    """Return what the observer and the server have counted, and the report."""
    (tmp_path / "server.js").write_text(SERVER)
    (tmp_path / "client.js").write_text(CLIENT)
    node = start(Process(["node", tmp_path / "server.js", kind, status]))
    port = int(node.wait_for(r"port (\d+)", "stdout", 30)[1])
    observer = start(Observer("--route", "/events", ports=[port]))
    run(["node", tmp_path / "client.js", port, events, tunnels])
    node.stop()
    observer.stop()
    counted = json.loads(re.search(r"counted (.*)", node.stdout)[1])
    assert counted == {"events": events, "tunnels": tunnels, "other": events}
    return service(observer.summary(), port), observer.stdout


@needs_program("node")
@pytest.mark.parametrize("kind", ["text/event-stream", "text/event-stream; charset=utf-8"])
def test_a_response_of_events_ends_with_its_head(start, tmp_path, kind):
    entry, report = observed(start, tmp_path, 6, 0, kind)
    assert entry["exchanges"] == 12 and entry["http2"]["two_way"] == 0
    assert entry["events"] == {"responses": 6, "given_up": 6, "count": 0, "bytes": 0}
    route = next(each for each in entry["routes"]["list"] if each["route"] == "/events")
    assert route["count"] == route["respond"]["count"] == 6 and route["respond"]["sum_ns"] == 0
    assert "events not counted · 6 responses begun · given up 6" in " ".join(report.split())
    assert "tunnels" not in report


@needs_program("node")
@pytest.mark.parametrize("kind, status", [("text/event-streams; charset=utf-8", 200), ("text/event-stream", 404)])
def test_a_response_that_is_none_of_events_goes_on(start, tmp_path, kind, status):
    """As in HTTP/1: another type that begins likewise, and an error that keeps the type."""
    entry, _ = observed(start, tmp_path, 6, 0, kind, status)
    assert entry["exchanges"] == 12 and "events" not in entry
    route = next(each for each in entry["routes"]["list"] if each["route"] == "/events")
    assert route["respond"]["count"] == 6 and route["respond"]["mean_ns"] >= 60 * MS  # four pauses of 20 ms
    assert route["status"].get("4xx", 0) == 6 * (status == 404)


@needs_program("node")
def test_tunnels_are_named(start, tmp_path):
    entry, report = observed(start, tmp_path, 1, 3)
    assert entry["exchanges"] == 5 and entry["http2"]["two_way"] == 3
    assert "3 responses of HTTP/2 were under way while data of their request still came" in " ".join(report.split())
