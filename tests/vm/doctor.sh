#!/bin/sh
# SPDX-License-Identifier: MIT
# The doctor's script inside the machine: limits of the host, which only a machine may change, and failures as
# fexit programs see them. Prints every result after a line "=== NAME".
# shellcheck disable=SC2016,SC2034 # until_true evaluates its argument; a loop's count is not used
echo 'nobody:x:65534:65534::/tmp:/bin/sh' >>/etc/passwd

emit() {
	echo "=== $1"
	cat "$2"
	echo
}

# The shell's own messages, such as of a killed process, belong to no other part.
exec 2>script.err
trap 'emit script.err script.err' EXIT

# look NAME: one reading of the doctor as JSON
look() {
	sojourn doctor --sample 0 --json >look
	emit "$1" look
}

# remedy ID: run the doctor's command for that finding
remedy() {
	sojourn doctor --sample 0 >text
	sed -n "/  $1  /,/^\$/s/^  do  *//p" text | head -n 1 >typed
	sh typed >/dev/null
	emit "$1.command" typed
}

# until_true COMMAND: wait until the command, one word, succeeds, a minute at most
until_true() {
	n=0
	until eval "$1" || [ $n = 600 ]; do sleep 0.1; n=$((n + 1)); done
}

lab() {
	sojourn-lab --listen 127.0.0.1:"$1" >lab.out 2>&1 &
	lab=$!
	until_true 'grep -q listening lab.out'
}

# ---- failures as they happen ----

sojourn doctor --watch --json --interval 500ms >watch 2>watch.err &
doctor=$!
until_true '[ -s watch ]'

# With a limit of three descriptors the shell runs, but each redirection of a builtin fails.
sh -c 'ulimit -n 3; n=0; while [ $n -lt 25 ]; do true </dev/null; n=$((n + 1)); done' 2>emfile
lab 9001
for _ in 1 2 3; do sojourn-lab --listen 127.0.0.1:9001 2>>inuse; done
kill $lab
wait $lab

mkfifo go
su nobody -c 'echo ready; read word; n=0; while [ $n -lt 15 ]; do true </dev/null; n=$((n + 1)); done' \
	<go >ready 2>enfile &
nobody=$!
# Open the fifo for reading, too, so that open() does not wait. A child that ends would interrupt it and end this shell.
exec 4<>go
until_true '[ -s ready ]'
most=$(cat /proc/sys/fs/file-max)
echo 10 >/proc/sys/fs/file-max
# Root is exempt: an observer and a doctor that start now see everything.
sojourn observe --port 9002 --quiet --json run.json --for 2s 2>observe.err &
observe=$!
look file_max_reached
echo go >&4
exec 4>&-
wait $nobody
wait $observe
echo $? >observe.status
echo "$most" >/proc/sys/fs/file-max
lines=$(wc -l <watch)
until_true '[ $(wc -l <watch) -gt $((lines + 1)) ]'
kill -TERM $doctor
wait $doctor
emit watch watch
emit watch.err watch.err
emit emfile emfile
emit enfile enfile
emit inuse inuse
emit observe.status observe.status
emit observe.run run.json

# ---- limits of the host ----

# The kernel's count may be off by 32 per CPU, which is little of 600. No request may time out meanwhile, as
# another connection would follow.
lab 9002
sojourn-drive --quiet -c 300 -d 60s --timeout 2m "http://127.0.0.1:9002/?service=60s" >drive.out 2>&1 &
drive=$!
until_true '[ $(ls /proc/$lab/fd | wc -l) -gt 300 ]'
awk '{ print int($1 * 1.1) }' /proc/sys/fs/file-nr >/proc/sys/fs/file-max
look file_max
cat /proc/sys/fs/file-nr >truth
emit file_max.truth truth
remedy file-max
look file_max_after
echo "$most" >/proc/sys/fs/file-max
kill -KILL $drive $lab

# Stop the server: the data of its clients fills buffers.
lab 9003
kill -STOP $lab
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
	nc 127.0.0.1 9003 </bin/busybox >/dev/null 2>&1 &
	clients="$clients $!"
done
# A CPU reserves and returns a MiB of the memory in use, which is little of what these clients send.
pages() { awk '/^TCP:/ { print $11 }' /proc/net/sockstat; }
until_true 'before=$(pages); sleep 1; [ "$(pages)" = "$before" ]'
memory=$(cat /proc/sys/net/ipv4/tcp_mem)
awk '/^TCP:/ { most = int($11 * 1.1); print most, most, most }' /proc/net/sockstat \
	>/proc/sys/net/ipv4/tcp_mem
look tcp_memory
grep ^TCP: /proc/net/sockstat >truth
emit tcp_memory.truth truth
remedy tcp-memory
look tcp_memory_after
echo "$memory" >/proc/sys/net/ipv4/tcp_mem
# shellcheck disable=SC2086 # pids are words
kill -KILL $clients $lab
until_true 'grep -q "orphan 0" /proc/net/sockstat'

# Clients write and are killed after their peer's address has gone. The kernel ends orphans without a route early if
# there are more than half of the limit. So there are exactly that many.
ip address add 10.9.0.1/32 dev lo
sojourn-lab --listen 10.9.0.1:9005 >lab.out 2>&1 &
lab=$!
until_true 'grep -q listening lab.out'
clients=
for _ in 1 2 3 4 5 6 7 8; do
	{ until [ -e gone ]; do sleep 0.1; done; head -c 1000 /bin/busybox; } |
		nc 10.9.0.1 9005 >/dev/null 2>&1 &
	clients="$clients $!"
done
until_true '[ $(grep -c ":232D 0100090A.* 01 " /proc/net/tcp) -ge 8 ]'
ip address delete 10.9.0.1/32 dev lo
echo 16 >/proc/sys/net/ipv4/tcp_max_orphans
touch gone
until_true '[ $(grep -c ":232D 0[14] 000003E[89]:" /proc/net/tcp) -ge 8 ]'
sleep 1
# shellcheck disable=SC2086
kill -KILL $clients
until_true 'grep -q "orphan 8" /proc/net/sockstat'
look orphans
grep ^TCP: /proc/net/sockstat >truth
emit orphans.truth truth
remedy orphans
until_true 'grep -q "orphan 0" /proc/net/sockstat'
look orphans_after
echo 4096 >/proc/sys/net/ipv4/tcp_max_orphans
kill -KILL $lab

# ---- connection tracking ----

for module in libcrc32c nf_defrag_ipv4 nf_defrag_ipv6; do
	[ ! -e /$module.ko.xz ] || unxz /$module.ko.xz
	[ ! -e /$module.ko ] || insmod /$module.ko
done
[ ! -e /nf_conntrack.ko.xz ] || unxz /nf_conntrack.ko.xz
if [ -e /nf_conntrack.ko ] && insmod /nf_conntrack.ko enable_hooks=1; then
	echo 40 >/proc/sys/net/netfilter/nf_conntrack_max
	lab 9004
	sojourn-drive --quiet -c 1 -n 36 --new-connections http://127.0.0.1:9004/
	look conntrack
	cat /proc/sys/net/netfilter/nf_conntrack_count >truth
	emit conntrack.truth truth
	remedy conntrack
	look conntrack_after
	kill $lab
fi
