# SPDX-License-Identifier: MIT
# Services in containers of Podman and Docker, observed from their host: a Debian 12 that systemd has booted. Runs
# there as root; test_runtimes.py parses what it prints.
cd /run/try || exit 1
# shellcheck source=/dev/null
. ./said.sh

REQUESTS=40

# A root folder that holds a web server alone.
mkdir -p web/bin web/www
cp /bin/busybox web/bin/
echo content >web/www/page
SERVE=(/bin/busybox httpd -f -vv -p 80 -h /www)

# address RUNTIME
address() {
	"$1" inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "web-$1"
}

# ask ADDRESS: REQUESTS, each on a connection of its own
ask() {
	local i
	for ((i = 0; i < REQUESTS; i++)); do
		curl -s "http://$1/page" >/dev/null
	done
}

# observed NAME OPTION…: observe while requests go to ADDRESSES, and print the document
observed() {
	local name=$1 pid at
	shift
	sojourn observe "$@" --listen 127.0.0.1:0 --json "$name.json" >"$name.out" 2>"$name.err" &
	pid=$!
	for ((at = 0; at < 240; at++)); do
		grep -q 'listening on' "$name.out" "$name.err" && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.5
	done
	for at in $ADDRESSES; do
		ask "$at"
	done
	kill -INT $pid
	wait $pid
	said "$name.messages" cat "$name.err"
	said "$name.report" cat "$name.out"
	said "$name" cat "$name.json"
}

systemctl is-system-running --wait >/dev/null
said install dpkg -i sojourn.deb
systemctl unmask docker.service docker.socket containerd.service 2>/dev/null
said docker.start systemctl start docker
tar -C web -c . | docker import - web >/dev/null
said docker.run docker run -d --name web-docker web "${SERVE[@]}"
said podman.run podman run --log-driver k8s-file -d --name web-podman --rootfs "$PWD/web" "${SERVE[@]}"
for runtime in docker podman; do
	said $runtime.id $runtime inspect -f '{{.Id}}' web-$runtime
	said $runtime.version $runtime --version
	said $runtime.pid $runtime inspect -f '{{.State.Pid}}' web-$runtime
	said $runtime.cgroup cat "/proc/$($runtime inspect -f '{{.State.Pid}}' web-$runtime)/cgroup"
	ADDRESSES=$(address $runtime) observed $runtime.named --container web-$runtime
done
ADDRESSES="$(address docker) $(address podman)" observed both --all-netns --port 80
said wrong timeout 20 sojourn observe --container nothing-of-this-name
for runtime in docker podman; do
	said $runtime.truth $runtime logs web-$runtime
	$runtime rm -f web-$runtime >/dev/null 2>&1
done
echo "=== end"
