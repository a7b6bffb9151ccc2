# SPDX-License-Identifier: MIT
"""One HTTP request, also from within a namespace; never through a proxy."""
import urllib.request

from .process import run

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request(url, method="GET", netns=None, seconds=10, token=None):
    """Return the body as text; fail unless the status is 2xx."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if netns is not None:
        return run(["curl", "--silent", "--show-error", "--fail", "--noproxy", "*",
                    "--max-time", seconds, "--request", method, url,
                    *(word for name, value in headers.items() for word in ("--header", f"{name}: {value}"))],
                   netns=netns, seconds=seconds + 5).stdout
    query = urllib.request.Request(url, method=method, headers=headers)
    with _direct.open(query, timeout=seconds) as response:
        return response.read().decode()
