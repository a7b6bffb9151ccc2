# SPDX-License-Identifier: MIT
"""Where and when figures were taken: the machine's line, and versions of packages and of this tree."""
import datetime
import os
import platform
import re
import subprocess


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(re.search(r"^MemTotal:\s+(\d+)", file.read(), re.MULTILINE)[1]) / 1048576
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, " \
        f"{memory:.1f} GiB, Linux {platform.release()}"


def today():
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"


def versions(packages):
    """Return `name version` of Debian packages, joined by commas; a missing one is an error."""
    text = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages],
                          check=True, capture_output=True, text=True).stdout
    return ", ".join(text.splitlines())

