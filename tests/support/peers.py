# SPDX-License-Identifier: MIT
"""Other projects' servers: whether they are installed, and whether they are up."""
import shutil
import socket
import time

import pytest


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/setup")


def ask(port, request, seconds=10):
    """Return a server's answer on a new connection, retrying until it answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(request)
                return connection.recv(65536).decode()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the server does not come up"
            time.sleep(0.02)
