// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Times when a response leaves and when it is acknowledged. There are two sets of hooks, of which
 * one is loaded. transmit.h has their meaning, docs/kernels.md the differences.
 *
 *   net_dev_start_xmit  a packet is handed to a driver (any, of the whole host)
 *   tcp_probe           a segment came, whose acknowledgement is about to be processed
 *   sockops             TX timestamps (since 6.15) of followed sends, on the sockets of the cgroup to which it is attached
 */
#include "transmit.h"
#include "service.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	struct sock *sk;
	unsigned int len;
	char cb[48];
	__u8 encapsulation : 1;
	__u16 inner_transport_header;
	__u16 transport_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct skb_shared_info {
	__u32 tskey;
};

struct tcp_skb_cb {
	__u32 ack_seq;
};

struct tcp_sock___sent {
	__u32 snd_nxt;
	__u32 write_seq;
};

struct bpf_sock_ops_kern {
	struct sock *sk;
	struct sk_buff *skb;
};
#pragma clang attribute pop

/* The begin of a TCP header, RFC 9293, 3.1. */
struct tcp_header {
	__be16 source;
	__be16 destination;
	__be32 seq;
	__be32 ack_seq;
	__u8 offset; /* in its upper half: the header's length in words of 4 bytes */
};

/* ---- net_dev_start_xmit and tcp_probe ---- */

/* Find the sequence number after the packet's last byte of data. False: the packet has no data. */
static __always_inline bool packet_end(const struct sk_buff *skb, __u32 *ret_end)
{
	__u32 offset = BPF_CORE_READ_BITFIELD(skb, encapsulation) ? skb->inner_transport_header
								  : skb->transport_header;
	const unsigned char *at = skb->head + offset;
	struct tcp_header header;
	__u32 payload;

	if (bpf_probe_read_kernel(&header, sizeof(header), at))
		return false;
	payload = skb->len - (__u32)(at - skb->data) - (header.offset >> 4) * 4;
	*ret_end = __builtin_bswap32(header.seq) + payload;
	return (__s32)payload > 0;
}

SEC("?tp_btf/net_dev_start_xmit")
int BPF_PROG(transmit_start, const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	struct conn *c;
	__u32 end;

	if (!sk || !port_observed(sk->__sk_common.skc_num))
		return 0;
	c = transmit_conn(sk);
	if (c && packet_end(skb, &end))
		transmit_left(c, end);
	return 0;
}

/* Return whether bytes up to @end were sent: TCP ignores an acknowledgement of others. */
static __always_inline bool sent(const struct sock *sk, __u32 end)
{
	const struct tcp_sock___sent *tp = (const void *)bpf_skc_to_tcp_sock((void *)sk);

	return tp && !seq_after(end, tp->snd_nxt);
}

SEC("?tp_btf/tcp_probe")
int BPF_PROG(transmit_segment, struct sock *sk, struct sk_buff *skb)
{
	struct conn *c;
	__u32 end;

	if (!port_observed(sk->__sk_common.skc_num))
		return 0;
	c = transmit_conn(sk);
	if (!c)
		return 0;
	end = BPF_CORE_READ((const struct tcp_skb_cb *)&skb->cb, ack_seq);
	if (sent(sk, end))
		transmit_acked(c, end);
	return 0;
}

/* ---- TX timestamps ---- */

/* include/uapi/linux/bpf.h since 6.15; the same numbers on every kernel that has them. */
enum {
	STAMP_SENT = 17,  /* BPF_SOCK_OPS_TSTAMP_SND_SW_CB: the driver has it */
	STAMP_ACKED = 19, /* BPF_SOCK_OPS_TSTAMP_ACK_CB */
	STAMP_SEND = 20,  /* BPF_SOCK_OPS_TSTAMP_SENDMSG_CB: its data is queued */
};

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;
extern int bpf_sock_ops_enable_tx_tstamp(struct bpf_sock_ops_kern *skops,
					 __u64 flags) __ksym __weak;

/* Return the sequence number after the send's last byte. */
static __always_inline __u32 stamped_end(struct bpf_sock_ops_kern *skops)
{
	const struct sk_buff *skb = skops->skb;
	const struct skb_shared_info *info =
		(const void *)(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, end));

	return BPF_CORE_READ(info, tskey) + 1;
}

static __always_inline void stamp(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct bpf_sock_ops_kern *skops = bpf_cast_to_kern_ctx(ctx);
	struct conn *c = conn_at(place_of(skops->sk), sk);

	if (!c || !(c->marks & MARK_TRANSMIT))
		return;
	if (ctx->op == STAMP_SEND)
		bpf_sock_ops_enable_tx_tstamp(skops, 0);
	else if (ctx->op == STAMP_SENT)
		transmit_left(c, stamped_end(skops));
	else if (ctx->op == STAMP_ACKED)
		transmit_acked(c, stamped_end(skops));
}

/* Always return 1: other values answer the kernel's own questions, which are not asked here. */
SEC("?sockops")
int transmit_stamps(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u32 flags = SOCKET_TIMESTAMPS;

	if (!sk || !port_observed(ctx->local_port))
		return 1;
	if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_setsockopt(ctx, SOCKET_LEVEL, SOCKET_BPF_FLAGS, &flags, sizeof(flags));
	else if (ctx->op >= STAMP_SENT)
		stamp(ctx, sk);
	return 1;
}
