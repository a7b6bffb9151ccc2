# SPDX-License-Identifier: MIT
"""Certificates of a test's own authority, made by openssl; removed with their folder."""
from pathlib import Path

from .process import own_folder, run

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]


class Pki:
    """An authority; `with` or close() removes its files."""

    def __init__(self):
        self.folder = own_folder("pki")
        self.path = Path(self.folder.name)
        self.ca = self.path / "ca.pem"
        run(["openssl", "req", "-x509", *KEY, "-days", 2, "-subj", "/CN=authority of a test",
             "-keyout", self.path / "ca.key", "-out", self.ca])

    def issue(self, name, alternatives, days=1):
        """Return the paths of a certificate for e.g. "DNS:localhost,IP:127.0.0.1", and of its key."""
        cert, key, request, more = (self.path / f"{name}.{end}"
                                    for end in ("pem", "key", "csr", "cnf"))
        run(["openssl", "req", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request])
        more.write_text(f"subjectAltName={alternatives}\n")
        run(["openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey",
             self.path / "ca.key", "-CAcreateserial", "-days", days, "-extfile", more,
             "-out", cert])
        return cert, key

    def close(self):
        self.folder.cleanup()
