# SPDX-License-Identifier: MIT
"""Debian's sshd on a test's own hosts (support.net.Host), with keys of the test's own."""
import getpass
from pathlib import Path

from .process import Process, own_folder, run

SSHD = Path("/usr/sbin/sshd")

SERVER = """\
ListenAddress {address}:22
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
"""

CLIENT = """\
Host {host}
  HostName {address}
Host *
  User {user}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  IdentityAgent none
  BatchMode yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR
"""


class Sshd(Process):
    """sshd of one host, which lets one key in. `options` are those of its line in authorized_keys, `ssh` the words of a
    client that reaches it."""

    def __init__(self, host, options=""):
        self.files = own_folder("sshd")
        folder = Path(self.files.name)
        for name in ("host", "user"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
        names = {"folder": folder, "host": host.host, "address": host.address, "user": getpass.getuser()}
        (folder / "sshd").write_text(SERVER.format(**names))
        (folder / "client").write_text(CLIENT.format(**names))
        self.client = folder / "client"
        self.known = folder / "known"
        self.trust(folder / "host.pub", host.address)
        self.authorized = folder / "authorized"
        self.authorized.write_text(f"{options} {(folder / 'user.pub').read_text()}")
        # It wants an empty /run/sshd, which Debian makes when the service starts.
        super().__init__(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs sshd /run && mkdir /run/sshd && exec "$@"', "sh",
                          SSHD, "-D", "-e", "-f", folder / "sshd"], netns=host)
        with self.coming_up():
            self.wait_for("Server listening on", stream="stderr")

    def trust(self, path, address):
        self.known.write_text(f"{address} {path.read_text()}")

    def sessions(self):
        """Return the pids of its processes for connections."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()]

    def close(self):
        super().close()
        self.files.cleanup()


def reach(folder, daemons):
    """Return the words of --via that reach each host by its own key: a script that knows their clients' files."""
    path = Path(folder, "reach")
    cases = "".join(f"{host}) file={daemon.client};;\n" for host, daemon in daemons.items())
    path.write_text(f"#!/bin/sh\ncase $1 in\n{cases}esac\nexec ssh -F $file \"$@\"\n")
    path.chmod(0o755)
    return f"{path} {{host}}"
