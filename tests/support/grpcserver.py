#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A gRPC server by Debian's python3-grpcio, as a program: grpcserver.py PORT [CERT KEY].

Paths are /test.Service/METHOD. Echo answers with its request, Missing with NOT_FOUND, Slow after 2 s, Nap after 5 ms. Collect reads all
messages and answers with one. Serve answers one with as many messages as it has bytes. Talk answers each message with
itself. Early ends after the first one with RESOURCE_EXHAUSTED. The first request of Any has three bytes: status, number
of messages, and length of details.
On SIGTERM it prints how many calls of each it served, and the bytes of all requests. Then comes "status N=COUNT" of each
status with which Any has ended, and then the messages that Collect, Serve, Talk and Early read and sent. The last line has how long each call of Nap took, in nanoseconds.
"""
import collections
import signal
import sys
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc

counts = collections.Counter()
streamed = collections.Counter()
naps = []  # ns
CODES = {code.value[0]: code for code in grpc.StatusCode}


def count(name, request):
    counts[name] += 1
    counts["bytes"] += len(request)


def echo(request, _):
    count("Echo", request)
    return request


def missing(request, context):
    count("Missing", request)
    context.abort(grpc.StatusCode.NOT_FOUND, "there is none")


def slow(request, _):
    count("Slow", request)
    time.sleep(2)
    return request


def nap(request, _):
    begun = time.monotonic_ns()
    time.sleep(0.005)
    naps.append(time.monotonic_ns() - begun)
    return request


def any_status(requests, context):
    code, messages, details = next(requests)
    for request in requests:
        count("Any", request)
    counts[code] += 1
    for _ in range(messages):
        yield b"message"
    context.set_code(CODES[code])
    context.set_details("d" * details)


def read_all(name, requests):
    for request in requests:
        streamed[f"{name} read"] += 1
        yield request


def replies(name, messages):
    for message in messages:
        streamed[f"{name} sent"] += 1
        yield message


def collect(requests, _):
    return next(replies("Collect", [b"%d" % len(list(read_all("Collect", requests)))]))


def serve(request, _):
    yield from replies("Serve", [b"reply"] * len(next(read_all("Serve", [request]))))


def talk(requests, _):
    yield from replies("Talk", read_all("Talk", requests))


def early(requests, context):
    next(read_all("Early", requests))
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "enough")


def main(port, *identity):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    handlers = {name: grpc.unary_unary_rpc_method_handler(treat) for name, treat in
                (("Echo", echo), ("Missing", missing), ("Slow", slow), ("Nap", nap))}
    handlers["Any"] = grpc.stream_stream_rpc_method_handler(any_status)
    handlers["Collect"] = grpc.stream_unary_rpc_method_handler(collect)
    handlers["Serve"] = grpc.unary_stream_rpc_method_handler(serve)
    handlers["Talk"] = grpc.stream_stream_rpc_method_handler(talk)
    handlers["Early"] = grpc.stream_unary_rpc_method_handler(early)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service",
                                                                          handlers),))
    if identity:
        cert, key = (Path(path).read_bytes() for path in identity)
        server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(key, cert)]))
    else:
        server.add_insecure_port(f"127.0.0.1:{port}")
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    server.start()
    print("ready", flush=True)
    over.wait()
    server.stop(0)
    print(*(f"{name}={counts[name]}" for name in ("Echo", "Missing", "Slow", "bytes")))
    print(*(f"status {code}={counts[code]}" for code in sorted(CODES) if counts[code]))
    print(*(f"{name}={number}" for name, number in sorted(streamed.items())), sep="\n")
    print("Nap", *naps, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
