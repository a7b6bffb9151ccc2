#!/bin/sh
# SPDX-License-Identifier: MIT
# The script inside the machine: scenes of lab server, observer and driver, and further results for the tests.
# With the words few, most and daily only the first scenes run. With the word more all run but the ones that hardly depend
# on the kernel. With the word unprivileged there is only the probe. Prints every result after a line "=== NAME", which
# machine.py parses.
port=8000
scheme=http
protocol=
slash=/
# The next observer's view: its ports, the drivers' command, and a line "NAME PORT PID" for each lab server.
ports=
drive=true
: >labs

emit() {
	echo "=== $1"
	cat "$2"
	echo
}

# took NAME: the seconds since the last call
took() {
	read -r now _ </proc/uptime
	echo "$before $now" | awk '{ printf "%.1f\n", $2 - $1 }' >seconds
	before=$now
	emit "$1.seconds" seconds
}

# The shell's own messages, such as of a terminated process, belong to no other part.
exec 2>script.err
trap 'emit script.err script.err' EXIT

# serve NAME LAB-OPTIONS: a scene's lab server, at the next port, as $lab
serve() {
	port=$((port + 1))
	ports="$ports --port $port$protocol"
	# Else the previous server's "listening" would be read.
	rm -f lab.out
	# shellcheck disable=SC2086 # options are words
	sojourn-lab --listen 127.0.0.1:$port --truth "$1.csv" $2 >lab.out 2>&1 &
	lab=$!
	echo "$1 $port $lab" >>labs
	until grep -qs listening lab.out; do sleep 0.05; done
}

# serve_file: the scene of busybox's server, which answers by sendfile() and records no times
serve_file() {
	mkdir www
	head -c 30000 /bin/busybox >www/file
	httpd -f -p 127.0.0.1:9000 -h www &
	echo "sendfile 9000 $!" >>labs
	: >sendfile.csv
	ports="$ports --port 9000"
	drive="$drive && sojourn-drive --quiet --json sendfile.json -c 1 -n 10 --new-connections \
		http://127.0.0.1:9000/file"
}

# served GROUP: end the servers; emit the documents of their scenes, which one observer has seen
served() {
	while read -r name at pid; do
		kill -TERM "$pid"
		wait "$pid"
		echo "$1 $at" >seen
		emit "$name.seen" seen
		emit "$name.drive" "$name.json"
		emit "$name.truth" "$name.csv"
		# The kernel's own list; busybox has no ss.
		awk -v port="$(printf ':%04X' "$at")" \
			'$2 ~ port "$" && $4 == "06" { n++ } END { print n + 0 }' /proc/net/tcp >time_wait
		emit "$name.time_wait" time_wait
		rm -f "$name.json" "$name.csv"
	done <labs
	: >labs
	ports=
	drive=true
	for part in run other; do
		[ ! -e $part.json ] || emit "$1.$part" $part.json
	done
	rm -f run.json other.json
	took "$1"
}

# said NAME COMMAND…: its output, its messages and its exit status
said() {
	name=$1
	shift
	"$@" >out 2>err
	echo $? >status
	emit "$name.status" status
	emit "$name.stdout" out
	emit "$name.stderr" err
}

# scene NAME LAB-OPTIONS PATH DRIVER-OPTIONS: a scene for the next observer, after the previous ones
scene() {
	serve "$1" "$2"
	drive="$drive && sojourn-drive --quiet --json $1.json $4 '$scheme://127.0.0.1:$port$slash$3'"
}

# observe GROUP OBSERVER-OPTIONS: all scenes since the last call, one after the other. An emulated machine takes
# seconds to load the programs: scenes without options of their own share an observer.
observe() {
	# The pause lets the server see its clients go before the observer's last count.
	# shellcheck disable=SC2086
	said "$1" sojourn observe --no-doctor --cost $ports --quiet --json run.json $2 -- sh -c "$drive && sleep 0.5"
	served "$1"
}

# twice NAME LAB-OPTIONS OPTIONS OTHER-OPTIONS DRIVER-OPTIONS: two observers of the same traffic
twice() {
	scene "$1" "$2" "" "$5"
	echo "$drive && sleep 0.5" >drive.sh
	said "$1" sh -c "sojourn observe --no-doctor --cost $ports --quiet --json run.json $3 -- \
		sojourn observe --no-doctor --cost $ports --quiet --json other.json $4 -- sh drive.sh"
	served "$1"
}

# unprivileged COMMAND…: as nobody, with the three capabilities that observing needs
unprivileged() {
	held=-all,+bpf,+perfmon,+net_admin
	/setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=$held --ambient-caps=$held \
		--bounding-set=$held --no-new-privs "$@"
}

# works PROGRAM: whether this kernel accepts it
works() {
	tr -d '\n' <probe.json | grep -Eq "\"$1\", +\"works\": true"
}

# Few observers: loading their programs takes most of the time.
short=
case $1 in most | daily) short=yes ;; esac

before=0
took boot
said probe sojourn probe --json
cp out probe.json
took probe
if [ "$1" = unprivileged ]; then
	if [ -e /setpriv ]; then
		said unprivileged_probe unprivileged sojourn probe --json
		took unprivileged_probe
	fi
	exit 0
fi
scene plain "" "" "-c 4 -n 200"
if [ "$1" = few ]; then
	observe plain
	exit 0
fi
scene service "--service 20ms" "" "-c 2 -n 40"
scene late_read "--read-delay 20ms --service 1ms" "" "-c 2 -n 40"
scene late_accept "--accept-delay 20ms --service 1ms" "" "-c 1 -n 20 --new-connections"
if [ "$1" != most ]; then
	scene prompt_accept_late_read "--read-delay 20ms --service 1ms" "" "-c 1 -n 20 --new-connections"
	scene pieces "" "?pieces=4&pause=5ms&size=4000" "-c 2 -n 20"
	# Its TIME_WAIT sockets are counted at the observer's end, which must not be a minute later.
	[ -n "$short" ] || scene server_closes "" "?close=1" "-c 2 -n 20 --new-connections"
	serve_file
fi
# A pause of the machine must not end a response.
delays='--cpu --quiet-time 30s'
[ -n "$short" ] || observe delays "$delays"

# No cgroup hierarchy is mounted yet. Most kernels load the programs once for all scenes.
scene transmit "" "?size=4000" "-c 2 -n 40"
scheme=udp protocol=/udp slash=
scene udp "--protocol udp --service 20ms" "" "-c 2 -n 40 --payload=question"
if [ -n "$short" ]; then
	observe delays "$delays --transmit all"
else
	observe packets "--transmit all"
fi

# Two senders, on a CPU each, race into one socket, which two threads read.
if works udp_ready; then
	serve race "--protocol udp --model threads --workers 2"
	racer="sojourn-drive --quiet -c 4 -n 500 --payload=hello --framing=echo udp://127.0.0.1:$port"
	said race sojourn observe --no-doctor --port $port/udp --quiet --json run.json -- \
		sh -c "$racer & other=\$!; $racer --json race.json && wait \$other && sojourn-arrived $lab"
	served race
fi
scheme=http protocol='' slash=/

[ -z "$short" ] || exit 0
if [ -e /setpriv ]; then
	serve unprivileged ""
	said unprivileged unprivileged sojourn observe --port $port --quiet --json run.json -- \
		sojourn-drive --quiet --json unprivileged.json -c 4 -n 200 http://127.0.0.1:$port/
	served unprivileged
fi
scene late_accept_inferred "--accept-delay 20ms --service 1ms" "" "-c 1 -n 20 --new-connections"
observe late_accept_inferred "--accept-source inferred"
scene accept_syscall "--accept-delay 20ms --service 1ms" "" "-c 1 -n 20 --new-connections"
observe accept_syscall "--accept-source syscall"

# With --http and --calls other programs follow the sockets, if the kernel accepts them.
if works exchange_recv_http; then
	scene http "--service 1ms" "" "-c 2 -n 40"
	observe http "--route / --route /none --calls"
fi

# The older hooks, which 6.3 and newer have too, beside the best ones.
if works exchange_ready; then
	twice older "--service 20ms --read-delay 20ms" "" "--prefer tp_btf/tcp_probe \
		--prefer fexit/tcp_recvmsg --prefer exchange_sendmsg" "-c 2 -n 40"
fi

# TX timestamps, if the kernel has them: for a server in its own cgroup.
if works transmit_stamps; then
	mount -t cgroup2 none /sys/fs/cgroup
	mkdir /sys/fs/cgroup/lab
	echo $$ >/sys/fs/cgroup/lab/cgroup.procs
	scene stamps "" "?size=4000" "-c 2 -n 40"
	observe stamps "--transmit all"
	echo $$ >/sys/fs/cgroup/cgroup.procs
fi

# Where it works, all scenes have used it.
if ! works exchange_sendpage && ! works exchange_sendpage_steps; then
	said refused sojourn observe --port 80 --for 1s --prefer fexit/tcp_sendmsg+tcp_sendpage
	took refused
fi
[ "$1" = all ] || exit 0

# Without BTF: the last scene, as nothing can be observed after it.
mount -t tmpfs none /sys/kernel/btf
said btf_probe sojourn probe
said btf_observe sojourn observe --port 80 --for 1s
said btf_doctor sojourn doctor --sample 0 --json
serve btf ""
said btf_drive sojourn-drive --quiet --json - -c 1 -n 10 "http://127.0.0.1:$port/"
kill $lab
took btf
