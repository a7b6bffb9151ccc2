# SPDX-License-Identifier: MIT
"""The lab server's command line."""

import subprocess

import pytest

from labserver import LAB, TIME_WAITS, lab


def run(*args):
    return subprocess.run([str(LAB), *args], capture_output=True, text=True, check=False,
                          timeout=TIME_WAITS)


@pytest.mark.parametrize("args", [
    ["--protocol", "smtp"], ["--model", "magic"], ["--listen", "localhost:80"],
    ["--listen", "127.0.0.1"], ["--listen", "127.0.0.1:65536"], ["--listen", "::1:80"],
    ["--listen", "[::1:80"], ["--listen", ""], ["--backlog", "-1"], ["--backlog", "65536"],
    ["--workers", "0"], ["--workers", "257"], ["--service", "61s"], ["--service", "fast"],
    ["--pieces", "0"], ["--size", "67108865"], ["--mode", "x"], ["--close=yes"],
    ["--accept-delay", "61s"], ["--read-delay", "1d"], ["--truth", ""], ["--truth-limit", "0"],
    ["--nonsense"], ["--service"], ["-x"], ["argument"],
    ["--protocol", "udp", "--accept-delay", "1ms"], ["--protocol", "udp", "--reset"],
    ["--protocol", "line", "--chunked"], ["--worker", "blocking"],
    ["--accept", "later"], ["--accept", "io_uring"], ["--one-in", "0"],
    ["--accept", "accept", "--model", "threads", "--protocol", "udp"],
    ["--pieces", "1000", "--pause", "1s"],
])
def test_bad_options_are_refused(args):
    result = run(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("sojourn-lab: ")
    if args[0].startswith("--") and len(args) <= 2:
        assert args[0].split("=")[0] in result.stderr


def test_cannot_listen_or_write(lab, tmp_path):
    server = lab()
    taken = run("--listen", f"127.0.0.1:{server.port}")
    assert taken.returncode == 1 and "Address already in use" in taken.stderr
    nowhere = run("--listen", "127.0.0.1:0", "--truth", str(tmp_path / "no" / "file"))
    assert nowhere.returncode == 1 and "No such file" in nowhere.stderr
    assert taken.stdout == nowhere.stdout == ""


def test_help():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    for option in ("listen", "protocol", "model", "workers", "worker", "backlog", "accept", "accept-delay",
                   "read-delay", "one-in", "truth", "truth-limit", "summary", "service", "mode", "block",
                   "pieces", "pause", "size", "chunked", "early-close", "leak", "ignore-fin",
                   "reset", "close", "help", "version"):
        assert f"  --{option} " in result.stdout, option
    assert run("--version").stdout.startswith("sojourn-lab ")
