# SPDX-License-Identifier: MIT
"""One HTTP request, also from within a namespace; never through a proxy."""
import urllib.request

from .process import run

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request(url, method="GET", netns=None, seconds=10):
    """The body as text; fails unless the status is 2xx."""
    if netns is not None:
        return run(["curl", "--silent", "--show-error", "--fail", "--noproxy", "*",
                    "--max-time", seconds, "--request", method, url],
                   netns=netns, seconds=seconds + 5).stdout
    query = urllib.request.Request(url, method=method)
    with _direct.open(query, timeout=seconds) as response:
        return response.read().decode()
