#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A gRPC client by Debian's python3-grpcio, as a program: grpcclient.py PORT CALLS.

It calls /test.Service/Any of grpcserver.py on one connection, with each status, number of messages and length of
details in turn, many calls at a time. In the end it prints "status N=COUNT" of each status that it was given.
"""
import collections
import sys
from concurrent import futures

import grpc


def main(port, calls):
    counts = collections.Counter()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, futures.ThreadPoolExecutor(16) as threads:
        method = channel.stream_stream("/test.Service/Any")

        def call(at):
            code = at % 17 if at % 3 else 0
            stream = method(iter([bytes([code, at % 4, at % 251]), *[b"more"] * (at % 2)]))
            try:
                list(stream)
            except grpc.RpcError:
                pass
            return stream.code().value[0]

        counts.update(threads.map(call, range(int(calls))))
    print(*(f"status {code}={counts[code]}" for code in sorted(counts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
