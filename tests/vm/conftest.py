# SPDX-License-Identifier: MIT
"""Boots the machines of all selected tests from the start on, and says where their time went."""
import pytest

import machine


@pytest.fixture
def vm(request):
    """The machine that the parameter names: a kernel's version, or (version, kernel parameters, scenes)."""
    return machine.machine(*key_of(request.param))


def key_of(parameter):
    return (parameter,) if isinstance(parameter, str) else parameter


def pytest_collection_finish(session):
    if session.config.option.collectonly:
        return
    for item in session.items:
        wanted = getattr(item, "callspec", None) and item.callspec.params.get("vm")
        if wanted:
            machine.FLEET.boot(*key_of(wanted))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("machines")
    for line in machine.FLEET.report():
        terminalreporter.line(line)


def pytest_sessionfinish():
    machine.FLEET.close()
