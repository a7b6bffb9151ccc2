# SPDX-License-Identifier: MIT
"""Python text for scripts of servers that are their own clients."""

# ask() makes a listener's process send itself so many requests over one connection, which the client closes first.
ASK = """
import socket

def ask(listener, times):
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    for _ in range(times):
        client.sendall(b"question")
        server.recv(100)
        server.sendall(b"answer")
        client.recv(100)
    client.close()
    server.recv(1)
    server.close()
"""
