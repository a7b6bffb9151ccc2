#!/bin/sh
# SPDX-License-Identifier: MIT
# What runs inside the machine: scenes of lab server, observer and driver, and whatever else the
# tests ask of a kernel; with the word few or most, only the first ones. Prints every result after a line "=== NAME", for machine.py to take apart.
port=8000
scheme=http
protocol=
slash=/

emit() {
	echo "=== $1"
	cat "$2"
	echo
}

# took NAME: the seconds since the last one
took() {
	read -r now _ </proc/uptime
	echo "$before $now" | awk '{ printf "%.1f\n", $2 - $1 }' >seconds
	before=$now
	emit "$1.seconds" seconds
}

# serve LAB-OPTIONS: the lab server, at the next port, as $lab
serve() {
	port=$((port + 1))
	# Or the former one's word that it listens would be read.
	rm -f lab.out
	# shellcheck disable=SC2086 # options are words
	sojourn-lab --listen 127.0.0.1:$port --truth truth.csv $1 >lab.out 2>&1 &
	lab=$!
	until grep -qs listening lab.out; do sleep 0.05; done
}

# served NAME: ends it; the scene's documents
served() {
	kill -TERM $lab
	wait $lab
	for part in run other drive; do
		[ ! -e $part.json ] || emit "$1.$part" $part.json
	done
	emit "$1.truth" truth.csv
	rm -f run.json other.json drive.json truth.csv
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

# scene NAME LAB-OPTIONS PATH OBSERVER-OPTIONS DRIVER-OPTIONS
scene() {
	serve "$2"
	# The pause lets the server see its clients go before the observer counts for the last time.
	# shellcheck disable=SC2086
	said "$1" sojourn observe --no-doctor --cost --port $port$protocol --quiet --json run.json $4 -- \
		sh -c "sojourn-drive --quiet --json drive.json $5 '$scheme://127.0.0.1:$port$slash$3' && sleep 0.5"
	served "$1"
}

# twice NAME LAB-OPTIONS OPTIONS OTHER-OPTIONS DRIVER-OPTIONS: two observers of the same traffic
twice() {
	serve "$2"
	said "$1" sh -c "sojourn observe --no-doctor --cost --port $port --quiet --json run.json $3 -- \
		sojourn observe --no-doctor --cost --port $port --quiet --json other.json $4 -- \
		sh -c 'sojourn-drive --quiet --json drive.json $5 http://127.0.0.1:$port/ && sleep 0.5'"
	served "$1"
}

# unprivileged COMMAND…: as nobody, with the three capabilities that observing needs; kernels before 5.11
# count the memory of maps against a limit.
unprivileged() {
	ulimit -l unlimited
	held=-all,+bpf,+perfmon,+net_admin
	/setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=$held --ambient-caps=$held \
		--bounding-set=$held --no-new-privs "$@"
}

# works PROGRAM: whether this kernel takes it
works() {
	tr -d '\n' <probe.json | grep -Eq "\"$1\", +\"works\": true"
}

before=0
took boot
said probe sojourn probe --json
cp out probe.json
took probe
scene plain "" "" "" "-c 4 -n 200"
[ "$1" != few ] || exit 0
if [ -e /setpriv ] && [ "$1" != most ]; then
	serve ""
	said unprivileged unprivileged sojourn observe --port $port --quiet --json run.json -- \
		sojourn-drive --quiet --json drive.json -c 4 -n 200 http://127.0.0.1:$port/
	served unprivileged
	said unprivileged_probe unprivileged sojourn probe --json
	took unprivileged_probe
fi
scene service "--service 20ms" "" "--cpu" "-c 2 -n 40"
scene late_read "--read-delay 20ms --service 1ms" "" "" "-c 2 -n 40"
scene late_accept "--accept-delay 20ms --service 1ms" "" "" "-c 1 -n 20 --new-connections"
# No cgroup hierarchy is mounted yet.
scene transmit "" "?size=4000" "--transmit all" "-c 2 -n 40"

scheme=udp protocol=/udp slash=
scene udp "--protocol udp --service 20ms" "" "" "-c 2 -n 40 --payload=question"
scheme=http protocol='' slash=/

# Two senders, on a CPU each, race into one socket, which two threads read.
if works udp_ready; then
	serve "--protocol udp --model threads --workers 2"
	racer="sojourn-drive --quiet -c 4 -n 500 --payload=hello --framing=echo udp://127.0.0.1:$port"
	said race sojourn observe --no-doctor --port $port/udp --quiet --json run.json -- \
		sh -c "$racer & other=\$!; $racer --json drive.json && wait \$other && sojourn-arrived $lab"
	served race
fi

[ "$1" != most ] || exit 0
scene prompt_accept_late_read "--read-delay 20ms --service 1ms" "" "" "-c 1 -n 20 --new-connections"
scene pieces "" "?pieces=4&pause=5ms&size=4000" "" "-c 2 -n 20"
scene server_closes "" "?close=1" "" "-c 2 -n 20 --new-connections"
scene late_accept_inferred "--accept-delay 20ms --service 1ms" "" "--accept-source inferred" \
	"-c 1 -n 20 --new-connections"
scene accept_syscall "--accept-delay 20ms --service 1ms" "" "--accept-source syscall" \
	"-c 1 -n 20 --new-connections"

# The older hooks, which 6.3 and newer have too, beside the best ones.
twice older "--service 20ms --read-delay 20ms" "" "--prefer tp_btf/tcp_probe \
	--prefer fexit/tcp_recvmsg --prefer exchange_sendmsg" "-c 2 -n 40"

# TX timestamps, where the kernel has them: for a server in a cgroup of its own.
if works transmit_stamps; then
	mount -t cgroup2 none /sys/fs/cgroup
	mkdir /sys/fs/cgroup/lab
	echo $$ >/sys/fs/cgroup/lab/cgroup.procs
	scene stamps "" "?size=4000" "--transmit all" "-c 2 -n 40"
	echo $$ >/sys/fs/cgroup/cgroup.procs
fi

# busybox's server answers by sendfile().
mkdir www
head -c 30000 /bin/busybox >www/file
httpd -f -p 127.0.0.1:9000 -h www &
server=$!
sleep 0.5
said sendfile sojourn observe --no-doctor --cost --port 9000 --quiet --json run.json -- \
	sh -c "sojourn-drive --quiet --json drive.json -c 1 -n 10 --new-connections \
		http://127.0.0.1:9000/file && sleep 0.5"
emit sendfile.run run.json
emit sendfile.drive drive.json
emit sendfile.truth /dev/null
took sendfile

said refused sojourn observe --port 80 --for 1s --prefer fexit/tcp_sendmsg+tcp_sendpage
took refused

# No BTF to be found: the last, since nothing can be observed after it.
mount -t tmpfs none /sys/kernel/btf
said btf_probe sojourn probe
said btf_observe sojourn observe --port 80 --for 1s
said btf_doctor sojourn doctor --sample 0 --json
said btf_drive sojourn-drive --quiet --json - -c 1 -n 10 http://127.0.0.1:9000/file
took btf
kill $server
