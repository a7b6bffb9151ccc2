# SPDX-License-Identifier: MIT
"""Debian packages that are unpacked below the build folder, not installed. Nothing of theirs is started, and
nothing installed is replaced (libnginx-mod-http-lua would replace wrk's LuaJIT)."""
import os
import shutil
import subprocess
from pathlib import Path

from support import BUILD


class NotToBeHad(Exception):
    """Debian's archive is unreachable, or lacks the package."""


def unpacked(*packages):
    """Return the folder of these packages' files, which the first call fetches."""
    folder = BUILD / "experiments" / "-".join(packages)
    if not (folder / "versions").exists():
        begun = Path(f"{folder}.{os.getpid()}")
        try:
            _fetch(packages, begun)
            shutil.rmtree(folder, ignore_errors=True)
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
        field = subprocess.run(["dpkg-deb", "-W", "--showformat", "${Package} ${Version}\n", archive],
                               check=True, capture_output=True, text=True).stdout
        with open(folder / "versions", "a", encoding="utf-8") as file:
            file.write(field)
    shutil.rmtree(archives)


def version(package, *packages):
    lines = (unpacked(*packages) / "versions").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)[package]
