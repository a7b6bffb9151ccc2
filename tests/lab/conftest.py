# SPDX-License-Identifier: MIT
"""What every test of the lab server gets: servers that end with the test."""

import pytest

from labserver import Lab


@pytest.fixture
def lab(tmp_path):
    """A factory of servers that are gone when the test is."""
    started = []

    def start(*args, **kwargs):
        directory = tmp_path / str(len(started))
        directory.mkdir()
        started.append(Lab(directory, *args, **kwargs))
        return started[-1]

    yield start
    for server in started:
        server.kill()
