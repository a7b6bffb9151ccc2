#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A gRPC server by Debian's python3-grpcio, as a program: grpcserver.py PORT [CERT KEY].

/test.Service/Echo answers with its request, /test.Service/Missing with NOT_FOUND, /test.Service/Slow after 2 s.
The first request of /test.Service/Any has three bytes: status, number of messages, and length of details.
On SIGTERM it prints how many calls of each it served, and the bytes of all requests. Then comes "status N=COUNT" of each
status with which Any has ended.
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


def any_status(requests, context):
    code, messages, details = next(requests)
    for request in requests:
        count("Any", request)
    counts[code] += 1
    for _ in range(messages):
        yield b"message"
    context.set_code(CODES[code])
    context.set_details("d" * details)


def main(port, *identity):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    handlers = {name: grpc.unary_unary_rpc_method_handler(treat) for name, treat in
                (("Echo", echo), ("Missing", missing), ("Slow", slow))}
    handlers["Any"] = grpc.stream_stream_rpc_method_handler(any_status)
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
    print(*(f"status {code}={counts[code]}" for code in sorted(CODES) if counts[code]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
