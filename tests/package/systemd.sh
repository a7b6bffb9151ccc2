# SPDX-License-Identifier: MIT
# The package's life in a Debian 12 that systemd has booted; runs there as root. test_systemd.py parses what it prints.
cd /run/try || exit 1
# shellcheck source=/dev/null
. ./said.sh
url=http://127.0.0.1:9180

# bpf NAME: the loaded and the pinned programs
bpf() {
	said "$1.programs" bpftool --json prog list
	said "$1.pinned" ls -A /sys/fs/bpf
}

# ask COUNT: so many requests to nginx, four on each connection
ask() {
	local i
	for ((i = 0; i < $1; i += 4)); do
		curl -s http://127.0.0.1/{1,2,3,4} >/dev/null
	done
}

pid() {
	systemctl show -P MainPID sojourn
}

# options TEXT: set the service's options as an administrator does
options() {
	echo "SOJOURN_OPTIONS=\"$1\"" >/etc/default/sojourn
}

systemctl is-system-running --wait >/dev/null
: >/var/log/nginx/access.log
nginx
said boot systemd-analyze time
bpf before
said install dpkg -i sojourn.deb
said dormant systemctl is-active sojourn
said dormant_enabled systemctl is-enabled sojourn
said verify systemd-analyze verify --man=no sojourn.service
said security systemd-analyze security sojourn.service

options "--port 80"
said start systemctl start sojourn
said ready curl -sS $url/healthz
said process cat "/proc/$(pid)/status"
said limits cat "/proc/$(pid)/limits"
bpf running
ask 40
said metrics curl -sS $url/metrics
said document curl -sS $url/v1/run
said truth cat /var/log/nginx/access.log

kill -KILL "$(pid)"
for _ in {1..120}; do
	[ "$(systemctl show -P NRestarts sojourn)" = 1 ] && systemctl is-active sojourn >/dev/null && break
	sleep 0.5
done
said restarted curl -sS $url/healthz

before=$(pid)
said upgrade dpkg -i sojourn.deb
said upgraded_options cat /etc/default/sojourn
said upgraded_command pgrep -a sojourn
said upgraded_same [ "$before" = "$(pid)" ]
said upgraded curl -sS $url/healthz

options "--port nonsense"
said wrong systemctl restart sojourn
sleep 8 # longer than RestartSec
said wrong_state systemctl show -P ActiveState sojourn
said wrong_restarts systemctl show -P NRestarts sojourn
said wrong_journal journalctl -u sojourn -n 20 -o cat --no-pager
options "--port 80"

said enable systemctl enable --now sojourn
said stop systemctl stop sojourn
said stop_result systemctl show -P Result -P ExecMainStatus -P ActiveState sojourn
bpf stopped
systemctl start sojourn
said remove dpkg -r sojourn
said removed_processes pgrep -a sojourn
said removed_options cat /etc/default/sojourn
bpf removed
said purge dpkg -P sojourn
said purged find / -xdev -iname '*sojourn*' -not -path '/proc/*' -not -path '/run/*'
said failed systemctl --failed --plain --no-legend
said journal journalctl -u sojourn -o cat --no-pager
echo "=== end"
