#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A client of the REST server that makes the mistake in question. It keeps every response and closes none, so
that no connection becomes free for the next call. With --close it closes them, and has one connection.

It calls --rate times per second for --seconds or until Ctrl-C. Then it prints one JSON object: calls, failures,
connections opened, and the first failure's text and time (seconds since 1970).
"""
import argparse
import http.client
import json
import resource
import signal
import time

SECONDS = 5  # a call's time-out


class Client:
    """Like a pool: a connection is reused when its response is closed."""

    def __init__(self, host, port, closes):
        self.host, self.port, self.closes = host, port, closes
        self.free, self.kept = [], []
        self.opened = 0

    def call(self):
        """Send one GET; the caller has the response, and should close it."""
        connection = self.free.pop() if self.free else self._open()
        connection.request("GET", "/items")
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"status {response.status}")
        if self.closes:
            response.read()
            self.free.append(connection)
        else:
            self.kept.append((connection, response))

    def _open(self):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        connection.connect()
        self.opened += 1
        return connection


def run(client, rate, seconds):
    told = {"calls": 0, "failures": 0, "first": None, "first_at": None, "last_at": None}
    stop = []
    signal.signal(signal.SIGINT, lambda *_: stop.append(True))
    begin = time.monotonic()
    due = begin
    while due < begin + seconds and not stop:
        time.sleep(max(0, due - time.monotonic()))
        due += 1 / rate
        told["calls"] += 1
        try:
            client.call()
        except OSError as error:
            told["failures"] += 1
            told["last_at"] = time.time()
            if told["first"] is None:
                told.update(first=str(error), first_at=told["last_at"])
    return {**told, "opened": client.opened}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--close", action="store_true")
    options = parser.parse_args()
    # Ports are to run out first, so as many files as possible.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps(run(Client(options.host, options.port, options.close), options.rate, options.seconds)))


main()
