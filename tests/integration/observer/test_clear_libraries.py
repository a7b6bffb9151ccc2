# SPDX-License-Identifier: MIT
"""Streams of HTTP/2 in TLS (--tls) are what those in clear text are, whichever library the server uses. Each
of its calls is under the test's control.
"""
import pytest

from support import boringssl, gnutls
from support.timing import in_quiet

pytest.importorskip("h2")
from .test_clear import _certificate  # noqa: E402, F401
from .test_clear_streams import TlsScene  # noqa: E402
from .test_http2 import garbage_is_given_up, resets_are_by_who_did_it, times_are_the_servers  # noqa: E402
from .test_windows import every_way_to_close_a_window  # noqa: E402


class BoringScene(TlsScene):
    """The server uses BoringSSL. This process has OpenSSL, too, and both are called libssl.so."""

    def serve(self, connection):
        return boringssl.BoringEnd(connection, self.identity)


class GnutlsScene(TlsScene):
    """The server uses GnuTLS."""

    def serve(self, connection):
        return gnutls.GnutlsEnd(connection, self.identity)


SCENES = {"openssl": (TlsScene, None), "gnutls": (GnutlsScene, gnutls), "boringssl": (BoringScene, boringssl)}


@pytest.fixture(name="scene", params=SCENES)
def _scene(request, start, certificate):
    """A test that is tried again makes another one."""
    scene, library = SCENES[request.param]
    if library and not library.available():
        pytest.skip(f"{request.param} is not installed: tools/setup")
    return lambda: scene(start, certificate)


@in_quiet
def test_times_are_those_of_the_server(scene):
    times_are_the_servers(scene())


# Windows and garbage are found in the text of a connection, whichever library it was read from.
mostly_openssl = pytest.mark.parametrize("scene", ["openssl", *(pytest.param(name, marks=pytest.mark.long) for name in SCENES
                                                               if name != "openssl")], indirect=True)


@mostly_openssl
@in_quiet
def test_every_way_to_close_a_window(scene):
    every_way_to_close_a_window(scene())


def test_resets_are_by_who_did_it(scene):
    resets_are_by_who_did_it(scene())


@mostly_openssl
def test_garbage_is_given_up(scene):
    garbage_is_given_up(scene())
