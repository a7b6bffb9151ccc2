// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Tells user space what TCP's clock is at a read of its own: observer/kernel/read_clock.h. */
#include "state.h"

/* The server's port of that connection, and the latest time that was found. */
extern __u32 read_clock_port;
extern __u64 read_clock_ns;

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(read_clock_look, struct sock *sk, int ret, int flags)
{
	const struct tcp_sock *tcp = (void *)sk;

	if (sk->sk_protocol == PROTO_TCP && sk->__sk_common.skc_num == read_clock_port &&
	    bpf_core_field_exists(tcp->tcp_clock_cache))
		read_clock_ns = BPF_CORE_READ(tcp, tcp_clock_cache);
	return 0;
}
