# SPDX-License-Identifier: MIT
"""Packages of Debian that are unpacked below the build folder and not installed: nothing of theirs is started,
and nothing that is installed is replaced (libnginx-mod-http-lua brings a LuaJIT in place of that of wrk)."""
import os
import shutil
import subprocess
from pathlib import Path

from support import BUILD


class NotToBeHad(Exception):
    """Debian's archive cannot be reached, or does not have it."""


def unpacked(*packages):
    """The folder in which these packages' files are, fetched at the first call."""
    folder = BUILD / "experiments" / "-".join(packages)
    if not folder.exists():
        begun = Path(f"{folder}.{os.getpid()}")
        try:
            _fetch(packages, begun)
            begun.rename(folder)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    return folder


def _fetch(packages, folder):
    archives = folder / "archives"
    archives.mkdir(parents=True)
    fetch = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages]
    if subprocess.run(fetch, cwd=archives, capture_output=True).returncode:
        subprocess.run(["apt-get", "-qq", "update"], check=False, capture_output=True)
        done = subprocess.run(fetch, cwd=archives, capture_output=True, text=True)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["apt-get download failed"])[0]
            raise NotToBeHad(f"{' '.join(packages)}: {why}")
    for archive in sorted(archives.iterdir()):
        subprocess.run(["dpkg", "-x", archive, folder], check=True)
    shutil.rmtree(archives)


def version(package):
    """Of what apt would give, which is what unpacked() fetched or what is installed."""
    text = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True,
                          check=True).stdout
    lines = dict(line.strip().split(": ", 1) for line in text.splitlines() if ": " in line)
    found = lines.get("Installed", "(none)")
    return lines.get("Candidate", "?") if found == "(none)" else found
