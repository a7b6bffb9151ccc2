// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Which connect() found no source port: EADDRNOTAVAIL, counted per process and destination as it
 * happens, without a hook on any system call. An object of its own: `sojourn doctor` loads nothing
 * else.
 *
 * tcp_v4_connect() and tcp_v6_connect() set SYN_SENT, search a port, and go back to CLOSE when there
 * is none: the socket then has neither a source port nor an error. A connect() that was answered by a
 * reset has an error, one that was given up a source port.
 */
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/ports.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common___ports {
	__be32 skc_daddr;
	struct in6_addr___kernel skc_v6_daddr;
};

struct inet_sock {
	__be16 inet_sport;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORT_FAILURES_MAX);
	__type(key, struct port_failure);
	__type(value, __u64);
} port_failures SEC(".maps");

/* Failures that found no room in the map. */
__u64 port_failures_lost = 0;

static __always_inline void read_destination(const struct sock *sk, struct port_failure *failure)
{
	const struct sock_common___ports *skc = (const void *)&sk->__sk_common;

	if (failure->family == FAMILY_INET6)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)failure->address, skc, skc_v6_daddr);
	else
		BPF_CORE_READ_INTO((__be32 *)failure->address, skc, skc_daddr);
}

/* connect() runs in its caller: the current process is the one that fails. */
static __always_inline void count_failure(const struct sock *sk)
{
	struct port_failure failure = {};
	__u64 *count, one = 1;

	failure.netns = sk->__sk_common.skc_net.net->ns.inum;
	failure.pid = bpf_get_current_pid_tgid() >> 32;
	failure.family = sk->__sk_common.skc_family;
	failure.port = __builtin_bswap16(sk->__sk_common.skc_dport);
	read_destination(sk, &failure);
	count = bpf_map_lookup_elem(&port_failures, &failure);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&port_failures, &failure, &one, BPF_NOEXIST))
		__sync_fetch_and_add(&port_failures_lost, 1);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(ports_state, const struct sock *sk, int before, int after)
{
	if (before != TCP_SYN_SENT || after != TCP_CLOSE || sk->sk_err ||
	    sk->sk_protocol != PROTO_TCP || BPF_CORE_READ((const struct inet_sock *)sk, inet_sport))
		return 0;
	count_failure(sk);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
