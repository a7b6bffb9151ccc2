# SPDX-License-Identifier: MIT
"""slapd, OpenLDAP's server, which counts its operations."""
import re

from .net import accepts, free_port
from .peers import need
from .process import Process, run, wait_until

CONFIGURATION = """\
pidfile {folder}/pid
modulepath /usr/lib/ldap
database monitor
rootdn cn=admin,cn=monitor
rootpw secret
access to * by * read
"""


class Slapd(Process):
    """@trace: 1 prints what it does."""

    def __init__(self, folder, trace=0):
        need("slapd")
        self.port = free_port()
        self.url = f"tcp://127.0.0.1:{self.port}"
        (folder / "slapd.conf").write_text(CONFIGURATION.format(folder=folder))
        super().__init__(["slapd", "-d", trace, "-h", f"ldap://127.0.0.1:{self.port}", "-f", folder / "slapd.conf"])
        wait_until(lambda: accepts(self.port))

    def completed(self, kind):
        """Return how many operations of this kind are over. Asking is a Bind and a Search, which is not over yet."""
        need("ldapsearch")
        text = run(["ldapsearch", "-x", "-LLL", "-H", f"ldap://127.0.0.1:{self.port}", "-b",
                    f"cn={kind},cn=Operations,cn=Monitor", "-s", "base", "monitorOpCompleted"]).stdout
        return int(re.search(r"monitorOpCompleted: (\d+)", text)[1])
