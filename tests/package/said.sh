# SPDX-License-Identifier: MIT
# Prints the result of commands for machine.py, which parses it; sourced by the scripts of the emulated machine.

# said NAME COMMAND…: its output, its messages and its exit status, after lines "=== NAME.…"
said() {
	local name=$1 status
	shift
	"$@" </dev/null >out 2>err
	status=$?
	printf '=== %s.status\n%s\n=== %s.stdout\n' "$name" $status "$name"
	cat out
	printf '\n=== %s.stderr\n' "$name"
	cat err
	echo
}
