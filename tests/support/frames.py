# SPDX-License-Identifier: MIT
"""Bytes of HTTP/2 that a test puts together itself. Whole conversations: h2server.py and python3-h2."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, stream, payload=b"", flags=0):
    """Return a frame of this type (RFC 9113, 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
