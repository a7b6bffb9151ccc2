#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs a command on the node of tools/cluster, which has made its namespaces. This is their first process: it has to stay,
# and to reap what containers leave.
set -euo pipefail

# The fixed paths that the node writes are its own.
mount -t tmpfs -o mode=755 run /run
for folder in log lib; do
	mkdir "$CLUSTER_STATE/var-$folder"
	mount --bind "$CLUSTER_STATE/var-$folder" "/var/$folder"
done
# The kubelet changes these settings of the whole host, unless it reads its own values there.
while read -r setting value; do
	echo "$value" >"/run/${setting//\//-}"
	mount --bind "/run/${setting//\//-}" "/proc/sys/$setting"
done <<'SETTINGS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS

hostname "$CLUSTER_NODE_NAME"
ip link set lo up
ip link add node type veth peer name nowhere
ip address add "$CLUSTER_NODE/24" dev node
ip link set node up
ip link set nowhere up
ip route add default dev node # for the addresses of services
echo 1 >/proc/sys/net/ipv4/ip_forward

"$@"
