# SPDX-License-Identifier: MIT
"""The server's end of a TLS connection by GnuTLS, of which each call is under the test's control."""
import ctypes
import ctypes.util

SERVER = 1
PEM = 1
CREDENTIALS = 1
AGAIN, INTERRUPTED = -28, -52


class GnutlsError(OSError):
    """A function of GnuTLS has failed."""


class _Datum(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint)]


def _library():
    library = ctypes.CDLL("libgnutls.so.30")
    for name in ("gnutls_record_recv", "gnutls_record_send"):
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t], ctypes.c_ssize_t
    library.gnutls_transport_set_int2.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    for name in ("gnutls_handshake", "gnutls_deinit", "gnutls_certificate_free_credentials"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


def available():
    """It is loaded from now on, so that an observer which starts then finds it."""
    return ctypes.util.find_library("gnutls") is not None and _library() is not None


class GnutlsEnd:
    """Looks like a socket: GnutlsEnd(socket, (certificate, key)).recv(5)"""

    server_side = True

    def __init__(self, sock, identity, protocol="h2"):
        self.sock, self.library = sock, _library()
        self.credentials, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self.library.gnutls_certificate_allocate_credentials(ctypes.byref(self.credentials)))
        self._check(self.library.gnutls_certificate_set_x509_key_file(
            self.credentials, *(str(path).encode() for path in identity), PEM))
        self._check(self.library.gnutls_init(ctypes.byref(self.session), SERVER))
        self._check(self.library.gnutls_set_default_priority(self.session))
        self._check(self.library.gnutls_credentials_set(self.session, CREDENTIALS, self.credentials))
        name = _Datum(protocol.encode(), len(protocol))
        self._check(self.library.gnutls_alpn_set_protocols(self.session, ctypes.byref(name), 1, 0))
        self.library.gnutls_transport_set_int2(self.session, sock.fileno(), sock.fileno())
        self._again(self.library.gnutls_handshake, self.session)

    def _check(self, result):
        if result < 0:
            raise GnutlsError(f"GnuTLS: {result}")
        return result

    def _again(self, call, *arguments):
        while True:
            result = call(*arguments)
            if result not in (AGAIN, INTERRUPTED):
                return self._check(result)

    def recv(self, count):
        text = ctypes.create_string_buffer(count)
        taken = self._again(self.library.gnutls_record_recv, self.session, text, count)
        return text.raw[:taken]

    def sendall(self, data):
        while data:
            data = data[self._again(self.library.gnutls_record_send, self.session, data, len(data)):]

    def setsockopt(self, *arguments):
        self.sock.setsockopt(*arguments)

    def close(self):
        if self.session:
            self.library.gnutls_deinit(self.session)
            self.library.gnutls_certificate_free_credentials(self.credentials)
            self.session = None
        self.sock.close()
