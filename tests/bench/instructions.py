#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The instructions that observing adds to an exchange, in an emulated machine that counts them (tools/vm --count).

The load is pingpong.c: one thread with both ends of a loopback connection. Each mode is an observer with its choice of
hooks. "floor" is the same programs with the port taken out of their filter: mostly the kernel's own code that enters
and leaves them. Kernels and hooks can be compared without the noise of a machine. Instructions are no times:
caches, indirect branches and mitigations are not in them.

With --http2 the modes are the default, and the default after a client of another observed service has sent HTTP/2's
preface. The difference is that of the programs for streams, which are attached from then on.

With --empty only programs that do nothing are attached, to tcp_sendmsg and tcp_recvmsg: by fentry, fexit and fsession
(Linux 7.0). A kind that the kernel refuses is named.

With --beyla there is also Beyla, which follows HTTP/1.1. It takes the load's process for a server and a client, and follows
both ends. Once it runs, and its own instructions are counted: there is one CPU. Once it is stopped while the load runs,
so that only its programs are counted. They lose what their buffer cannot hold. The command fails if the running one
has not printed every request.

The figures are medians of batches of 100 exchanges. The modes of one kernel run in one machine. The kernel's run
statistics are on (--cost), so each run has two reads of the clock more.
"""
import argparse
import base64
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from common import bounded

from support import BUILD, ROOT

PORT = 9000  # of the first mode; each has its own, as the last one's is in TIME_WAIT
BATCH, BATCHES = 100, 4096  # as in pingpong.c
MODES = {
    "not observed": None,
    "default, floor": ["--floor"],
    "default": [],
    "fexit, floor": ["--floor", "--prefer", "{read}", "--prefer", "{sent}"],
    "fexit": ["--prefer", "{read}", "--prefer", "{sent}"],
}
AFTER_HTTP2 = "default, after HTTP/2"
SPOKEN = 9999  # the port of a service whose client sends a preface
HTTP2_MODES = {"not observed": None, "default": [], AFTER_HTTP2: ["--port", SPOKEN, "--debug"]}
EMPTY = ("fentry", "fexit", "fsession")
BEYLA, BEYLA_STOPPED = "Beyla", "Beyla, stopped"
# Seconds pass at once while nothing runs.
SCRIPT = """
mkdir -p /var/run
mount -t tracefs t /sys/kernel/tracing
load() {{
	mkfifo go; /pingpong $1 /tmp/batches <go >/dev/null & load=$!
	exec 3>go
}}
said() {{
	echo "mode $1"
	gzip -c /tmp/batches | base64
	echo end
	exec 3>&-
	rm go /tmp/batches
}}
one() {{
	name=$1; port=$2; shift 2
	load $port
	observer=
	if [ $# != 0 ]; then
		sojourn observe --port $port "$@" >/tmp/out 2>&1 & observer=$!
	fi
	sleep 20
	if [ "$name" = "{after}" ]; then
		sojourn-lab --listen 127.0.0.1:{spoken} >/dev/null & lab=$!
		sleep 5
		printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' | nc 127.0.0.1 {spoken} >/dev/null
		sleep 5
		kill $lab
		grep -q "streams are followed" /tmp/out || {{ cat /tmp/out; exit 1; }}
	fi
	echo >&3
	sleep {seconds}
	kill $load
	if [ -n "$observer" ] && ! kill -0 $observer; then cat /tmp/out; exit 1; fi
	[ -z "$observer" ] || {{ kill -INT $observer; wait $observer; }}
	said "$name"
}}
empty() {{
	load $2
	/empty_hooks $1 tcp_sendmsg tcp_recvmsg >/tmp/out 2>&1 & hooks=$!
	sleep 5
	grep -q attached /tmp/out || {{ echo "refused $1: $(cat /tmp/out)"; kill $load; exec 3>&-; rm go /tmp/batches; return; }}
	echo >&3
	sleep {seconds}
	kill $load $hooks
	said "$1, empty"
}}
beyla() {{
	load $2
	BEYLA_HOST_ID=vm BEYLA_OPEN_PORT=$2 BEYLA_TRACE_PRINTER=text /{beyla} >/tmp/out 2>&1 & beyla=$!
	sleep 40
	[ -z "$3" ] || kill -STOP $beyla
	echo >&3
	sleep {seconds}
	kill $load
	kill -CONT $beyla || {{ cat /tmp/out; exit 1; }}
	sleep 20
	kill $beyla; sleep 5
	echo "printed $(grep -c " HTTP 200 GET /health .*:$2. " /tmp/out) by $1"
	said "$1"
}}
"""


def script(arguments):
    lines = [SCRIPT.format(seconds=arguments.seconds, beyla=arguments.beyla.name if arguments.beyla else "",
                           after=AFTER_HTTP2, spoken=SPOKEN)]
    all_modes = HTTP2_MODES if arguments.http2 else MODES
    modes = {name: options for name, options in all_modes.items() if options is None or not arguments.empty}
    for port, (name, options) in enumerate(modes.items(), PORT):
        words = [] if options is None else ["--cost", *options]
        words = [str(word).format(read=arguments.read, sent=arguments.sent) for word in words]
        lines.append(f"one '{name}' {port} {' '.join(words)}")
    if arguments.empty:
        lines += [f"empty {kind} {port}" for port, kind in enumerate(EMPTY, PORT + 500)]
    if arguments.beyla:
        lines += [f"beyla '{BEYLA}' {PORT + 1000} ''", f"beyla '{BEYLA_STOPPED}' {PORT + 1001} stopped"]
    return "\n".join(lines) + "\n"


def batches(text):
    """Return the instructions per exchange of each batch."""
    found = subprocess.run(["gzip", "-dc"], input=base64.b64decode(text), check=True, capture_output=True).stdout
    count = min(struct.unpack_from("=Q", found)[0], BATCHES)
    return struct.unpack_from(f"={count}Q", found, 8)


def check_printed(text, found):
    """End if Beyla has not printed the requests of all batches but the last."""
    printed = re.search(rf"^printed (\d+) by {BEYLA}\s*$", text, re.MULTILINE)
    least = (len(found[BEYLA]) - 1) * BATCH
    if int(printed[1]) < least:
        sys.exit(f"Beyla printed {printed[1]} of {least} requests or more")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=bounded(float, 0.05, 60), default=0.3,
                        help="of the machine, of 1,000,000,000 instructions each, of load in each mode")
    parser.add_argument("--limit", type=bounded(int, 10, 3600), default=600, help="seconds that the machine may run")
    parser.add_argument("--read", default="exchange_recvmsg_plain", help="fexit's program for reads on this kernel")
    parser.add_argument("--sent", default="exchange_sendmsg", help="fexit's program for writes on this kernel")
    parser.add_argument("--http2", action="store_true", help="the default, before and after there is HTTP/2")
    parser.add_argument("--empty", action="store_true", help="programs that do nothing, in place of the observer's")
    parser.add_argument("--beyla", metavar="PROGRAM", type=Path, help="where Beyla is; without symbols it takes less memory")
    parser.add_argument("kernel", help="as tools/vm takes it")
    arguments = parser.parse_args()
    if arguments.beyla and not arguments.beyla.is_file():
        parser.error(f"--beyla '{arguments.beyla}': wants Beyla's program")
    return arguments


def main():
    arguments = parse()
    more = ["--file", arguments.beyla] if arguments.beyla else []
    if arguments.empty:
        more += ["--file", BUILD / "tests/bench/empty_hooks"]
    with tempfile.TemporaryDirectory() as folder:
        modes = Path(folder, "modes")
        modes.write_text(script(arguments), encoding="ascii")
        done = subprocess.run([ROOT / "tools/vm", "--count", "--limit", str(arguments.limit), "--file",
                               BUILD / "tests/bench/pingpong", "--file", modes, *more, arguments.kernel, "--", "sh", "/modes"],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}tools/vm ended with status {done.returncode}")
    found = {name: batches(text) for name, text in re.findall(r"^mode (.*?)\s*\n(.*?)^end", done.stdout,
                                                              re.MULTILINE | re.DOTALL)}
    base = statistics.median(found["not observed"])
    print(f"kernel {arguments.kernel}, instructions per exchange, both ends; medians of "
          f"{min(map(len, found.values()))} batches or more")
    print(f"  not observed         {base:8,.0f}")
    for refused in re.findall(r"^refused (.*?)\s*$", done.stdout, re.MULTILINE):
        print(f"  {refused}")
    if arguments.beyla:
        check_printed(done.stdout, found)
    for name in found:
        if name != "not observed":
            print(f"  {name:<20} adds {statistics.median(found[name]) - base:6,.0f}")


if __name__ == "__main__":
    main()
