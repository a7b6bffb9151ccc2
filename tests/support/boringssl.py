# SPDX-License-Identifier: MIT
"""The server's end of a TLS connection by BoringSSL, of which each call is under the test's control."""
import ctypes
from pathlib import Path

FOLDER = next((path.parent for path in Path("/usr/lib").glob("*/android/libssl.so.0")), None)
PEM, ACCEPTED = 1, 0


class BoringError(OSError):
    """A function of BoringSSL has failed."""


_SELECT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint8),
                           ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p)
_CHOICE = ctypes.create_string_buffer(b"h2")


@_SELECT
def _select(_, out, length, *_others):
    out[0], length[0] = ctypes.addressof(_CHOICE), 2
    return ACCEPTED


def _library():
    library = ctypes.CDLL(str(FOLDER / "libssl.so.0"))
    for name in ("TLS_method", "SSL_CTX_new", "SSL_new"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("SSL_CTX_new", "SSL_new", "SSL_free", "SSL_CTX_free", "SSL_accept"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.SSL_CTX_use_certificate_chain_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.SSL_CTX_use_PrivateKey_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.SSL_CTX_set_alpn_select_cb.argtypes = [ctypes.c_void_p, _SELECT, ctypes.c_void_p]
    library.SSL_CTX_set_alpn_select_cb.restype = None
    library.SSL_set_fd.argtypes = [ctypes.c_void_p, ctypes.c_int]
    for name in ("SSL_read", "SSL_write"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    return library


def available():
    """It is loaded from now on, so that an observer which starts then finds it."""
    return FOLDER is not None and _library() is not None


class BoringEnd:
    """Looks like a socket: BoringEnd(socket, (certificate, key)).recv(5). It speaks HTTP/2."""

    server_side = True

    def __init__(self, sock, identity):
        self.sock, self.library = sock, _library()
        self.context = self.library.SSL_CTX_new(self.library.TLS_method())
        self._check(self.library.SSL_CTX_use_certificate_chain_file(self.context, str(identity[0]).encode()))
        self._check(self.library.SSL_CTX_use_PrivateKey_file(self.context, str(identity[1]).encode(), PEM))
        self.library.SSL_CTX_set_alpn_select_cb(self.context, _select, None)
        self.ssl = self.library.SSL_new(self.context)
        self._check(self.library.SSL_set_fd(self.ssl, sock.fileno()))
        self._check(self.library.SSL_accept(self.ssl))

    def _check(self, result):
        if result <= 0:
            raise BoringError(f"BoringSSL: {result}")
        return result

    def recv(self, count):
        text = ctypes.create_string_buffer(count)
        taken = self.library.SSL_read(self.ssl, text, count)
        return text.raw[:max(taken, 0)]

    def sendall(self, data):
        self._check(self.library.SSL_write(self.ssl, data, len(data)))

    def setsockopt(self, *arguments):
        self.sock.setsockopt(*arguments)

    def close(self):
        if self.ssl:
            self.library.SSL_free(self.ssl)
            self.library.SSL_CTX_free(self.context)
            self.ssl = None
        self.sock.close()
