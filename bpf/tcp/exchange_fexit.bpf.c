// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The same hooks as exchange.bpf.c for kernels before 6.3, whose sockets have no tracepoints of their own:
 *
 *   tcp_probe      softirq: a segment came, about to be queued (a tracepoint)
 *   tcp_recvmsg    process: a read returned (fexit)
 *   tcp_sendmsg    process: a write returned (fexit)
 *   tcp_sendpage   process: the same for sendfile() and splice(), until 6.5 removed it
 *
 * docs/kernels.md says how their meaning differs. fexit programs can be preempted: SLOT_SHARED.
 */
#define WALK_CALLS
#include "exchange_fexit.h"

#define FLAG_FIN 1 /* TCPHDR_FIN */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	char cb[48];
};

struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
	__u8 tcp_flags;
};
#pragma clang attribute pop

/* Return the sequence number after the segment's data, without a FIN. */
static __always_inline __u32 segment_end(const struct sk_buff *skb)
{
	const struct tcp_skb_cb *cb = (const void *)&skb->cb;

	return BPF_CORE_READ(cb, end_seq) - (BPF_CORE_READ(cb, tcp_flags) & FLAG_FIN);
}

/*
 * Return whether the segment, up to @end, has data that can be read once it is queued: in order,
 * and new.
 */
static __always_inline bool segment_readable(const struct sock *sk, const struct sk_buff *skb,
					     __u32 end)
{
	const struct tcp_skb_cb *cb = (const void *)&skb->cb;
	__u32 next = TCP_FIELD(sk, rcv_nxt);

	return (__s32)(BPF_CORE_READ(cb, seq) - next) <= 0 && (__s32)(end - next) > 0;
}

SEC("?tp_btf/tcp_probe")
int BPF_PROG(exchange_segment, struct sock *sk, struct sk_buff *skb)
{
	struct conn *c;
	__u32 end;

	if (!port_observed(sk->__sk_common.skc_num))
		return 0;
	c = conn_of(sk);
	if (!c || c->flags & CONN_WRITES_OVER)
		return 0;
	end = segment_end(skb);
	if (segment_readable(sk, skb, end))
		arrival_note(sk, c, TCP_FIELD(sk, copied_seq), end);
	return 0;
}

SEC("?fexit/tcp_recvmsg")
int BPF_PROG(exchange_recvmsg, struct sock *sk, struct msghdr *message, __u64 size, int flags,
	     int *address_size, int ret)
{
	was_read(sk, flags, ret);
	return 0;
}

/*
 * The other signature, without the length of the address, since a version between 6.12 and 6.18.
 * The plan reads the kernel's from BTF.
 */
SEC("?fexit/tcp_recvmsg")
int BPF_PROG(exchange_recvmsg_plain, struct sock *sk, struct msghdr *message, __u64 size, int flags,
	     int ret)
{
	was_read(sk, flags, ret);
	return 0;
}

EXCHANGE_WRITES(exchange_sendmsg, exchange_sendpage)
