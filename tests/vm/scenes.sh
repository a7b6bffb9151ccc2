#!/bin/sh
# SPDX-License-Identifier: MIT
# What runs inside the machine: scenes of lab server, observer and driver, and whatever else the
# tests ask of a kernel; with the word few, only the first ones. Prints every result after a line "=== NAME", for machine.py to take apart.
port=8000

emit() {
	echo "=== $1"
	cat "$2"
	echo
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
	port=$((port + 1))
	# shellcheck disable=SC2086 # options are words
	sojourn-lab --listen 127.0.0.1:$port --truth truth.csv $2 >lab.out 2>&1 &
	lab=$!
	until grep -q listening lab.out; do sleep 0.05; done
	# The pause lets the server see its clients go before the observer counts for the last time.
	# shellcheck disable=SC2086
	said "$1" sojourn observe --port $port --quiet --json run.json $4 -- \
		sh -c "sojourn-drive --quiet --json drive.json $5 'http://127.0.0.1:$port/$3' && sleep 0.5"
	kill -TERM $lab
	wait $lab
	emit "$1.run" run.json
	emit "$1.drive" drive.json
	emit "$1.truth" truth.csv
	rm -f run.json drive.json truth.csv
}

said probe sojourn probe --json
scene plain "" "" "" "-c 4 -n 200"
[ "$1" != few ] || exit 0
scene service "--service 20ms" "" "" "-c 2 -n 40"
scene late_read "--read-delay 20ms --service 1ms" "" "" "-c 2 -n 40"
scene late_accept "--accept-delay 20ms --service 1ms" "" "" "-c 1 -n 20 --new-connections"
scene late_accept_inferred "--accept-delay 20ms --service 1ms" "" "--accept-source inferred" \
	"-c 1 -n 20 --new-connections"
scene prompt_accept_late_read "--read-delay 20ms --service 1ms" "" "" "-c 1 -n 20 --new-connections"
scene pieces "" "?pieces=4&pause=5ms&size=4000" "" "-c 2 -n 20"
scene transmit "" "?size=4000" "--transmit all" "-c 2 -n 40"
scene server_closes "" "?close=1" "" "-c 2 -n 20 --new-connections"

# twice NAME LAB-OPTIONS OPTIONS OTHER-OPTIONS DRIVER-OPTIONS: two observers of the same traffic
twice() {
	port=$((port + 1))
	# shellcheck disable=SC2086
	sojourn-lab --listen 127.0.0.1:$port --truth truth.csv $2 >lab.out 2>&1 &
	lab=$!
	until grep -q listening lab.out; do sleep 0.05; done
	said "$1" sh -c "sojourn observe --port $port --quiet --json run.json $3 -- \
		sojourn observe --port $port --quiet --json other.json $4 -- \
		sh -c 'sojourn-drive --quiet --json drive.json $5 http://127.0.0.1:$port/ && sleep 0.5'"
	kill -TERM $lab
	wait $lab
	emit "$1.run" run.json
	emit "$1.other" other.json
	emit "$1.drive" drive.json
	emit "$1.truth" truth.csv
	rm -f run.json other.json drive.json truth.csv
}

# The older hooks, which 6.3 and newer have too, beside the best ones.
twice older "--service 20ms --read-delay 20ms" "" "--prefer tp_btf/tcp_probe \
	--prefer fexit/tcp_recvmsg --prefer exchange_sendmsg" "-c 2 -n 40"

# busybox's server answers by sendfile().
mkdir www
head -c 30000 /bin/busybox >www/file
httpd -f -p 127.0.0.1:9000 -h www &
server=$!
sleep 0.5
said sendfile sojourn observe --port 9000 --quiet --json run.json -- \
	sh -c "sojourn-drive --quiet --json drive.json -c 1 -n 10 --new-connections \
		http://127.0.0.1:9000/file && sleep 0.5"
kill $server
emit sendfile.run run.json
emit sendfile.drive drive.json
emit sendfile.truth /dev/null

said refused sojourn observe --port 80 --for 1s --prefer fexit/tcp_sendmsg+tcp_sendpage

# No BTF to be found: the last, since nothing can be observed after it.
mount -t tmpfs none /sys/kernel/btf
said btf_probe sojourn probe
said btf_observe sojourn observe --port 80 --for 1s
