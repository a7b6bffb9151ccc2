#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measure the time of /healthz while many readers wait for documents of many services.

A network namespace has listeners that are all used, and an observer of all of them. Readers at four addresses request
a document again as soon as they have it, of one kind after the other. Prints the median and the worst time of /healthz,
and how many took less than 100 ms, with a connection for each request. Prints the number of answers, too.
"""
import argparse
import signal
import statistics

from common import Priority, bounded, machine
from memory import LISTENERS

from support.net import Netns
from support.process import Process
from support.programs import Observer

LIMIT_MS = 100  # the longest that a health check may take
DOCUMENTS = ("/v1/run", "/v1/findings", "/v1/past", "/metrics")

# Readers with one connection each, which they keep: Content-Length gives the end of an answer.
READERS = """
import selectors, socket, sys
port, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
request = f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n".encode()
ready, answered, refused = selectors.DefaultSelector(), 0, 0

def begin(number):
    reader = socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{2 + number % 4}", 0))
    reader.sendall(request)
    ready.register(reader, selectors.EVENT_READ, [number, b"", None])

for number in range(count):
    begin(number)
print("waiting", flush=True)
while True:
    for key, _ in ready.select():
        state, data = key.data, b""
        try:
            data = key.fileobj.recv(1 << 20)
        except ConnectionResetError:
            pass
        if not data:
            refused += 1
            ready.unregister(key.fileobj)
            key.fileobj.close()
            begin(state[0])
        elif state[2] is None:
            state[1] += data
            head, end, body = state[1].partition(b"\\r\\n\\r\\n")
            if end:
                length = next(line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:"))
                state[2] = int(length.split(b":")[1]) - len(body)
        else:
            state[2] -= len(data)
        if state[2] == 0:
            state[1:] = b"", None
            answered += 1
            print(answered, refused, flush=True)
            key.fileobj.sendall(request)
"""

# Asks on a new connection each time; prints status and nanoseconds.
ASKER = """
import http.client, sys, time
port, times = map(int, sys.argv[1:])
for _ in range(times):
    begin = time.monotonic_ns()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    print(answer.status, time.monotonic_ns() - begin, flush=True)
    connection.close()
    time.sleep(0.02)
"""


def python(net, script, *words):
    process = Process([*net.prefix(), "/usr/bin/python3", "-c", script, *words])
    Priority.give(process.pid)
    return process


def ask(net, port, times):
    """Request /healthz that many times; return [(status, ms)]."""
    with python(net, ASKER, port, times) as asker:
        asker.wait(seconds=600)
        lines = [line.split() for line in asker.stdout.splitlines()]
    if len(lines) != times:
        raise asker.error(f"{len(lines)} answers of {times}")
    return [(status, int(ns) / 1e6) for status, ns in lines]


def told(title, answers):
    times = [ms for _, ms in answers]
    within = sum(ms < LIMIT_MS for ms in times)
    print(f"{title}: median {statistics.median(times):.1f} ms, {within} of {len(times)} within {LIMIT_MS} ms, worst {max(times):.1f} ms, "
          f"statuses {', '.join(sorted({status for status, _ in answers}))}", flush=True)


def beside_readers(args, net, port, path):
    with python(net, READERS, port, args.readers, path) as readers:
        readers.wait_for("^waiting$", seconds=60)
        told(f"/healthz beside {args.readers} readers of {path}", ask(net, port, args.times))
        if not readers.running():
            raise readers.error("the readers ended")
        answered, refused = readers.stdout.splitlines()[-1].split()
    print(f"  the readers received {answered} answers, refusals too; {refused} connections were closed to them", flush=True)


def measure(args, net):
    with python(net, LISTENERS, args.services, args.services, args.requests) as server:
        server.wait_for("^ready$", seconds=60)
        with Observer("--all-listeners", *args.option, netns=net) as observer:
            Priority.give(observer.pid)
            server.popen.send_signal(signal.SIGUSR1)
            server.wait_for("^asked$", seconds=600)
            document = observer.document()
            print(f"{len(document['services'])} services, {document['services_dropped']} not observed, "
                  f"a document of {len(observer.get('/v1/run')) / 1e6:.1f} MB", flush=True)
            port = int(observer.url.rsplit(":", 1)[1])
            told("/healthz alone", ask(net, port, args.times))
            for path in args.document or DOCUMENTS:
                beside_readers(args, net, port, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=bounded(int, 1, 10_000), default=300)
    parser.add_argument("--readers", type=bounded(int, 1, 250), default=250)
    parser.add_argument("--requests", type=bounded(int, 1, 10_000), default=100, help="to each service")
    parser.add_argument("--document", action="append", metavar="PATH",
                        help=f"that the readers request (default: {', '.join(DOCUMENTS)}, one after the other)")
    parser.add_argument("--times", type=bounded(int, 10, 100_000), default=500, help="that /healthz is asked")
    parser.add_argument("option", nargs="*", help="of the observer, after --")
    Priority.option(parser)
    args = parser.parse_args()
    Priority.choose(args)
    print(machine())
    with Netns("endpoint") as net:
        measure(args, net)


if __name__ == "__main__":
    main()
