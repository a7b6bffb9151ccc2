/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Since when the bytes that a server reads were there to be read. Softirq notes it, often on another CPU
 * than the process that asks: so only softirq writes here, and what the process has read by then the
 * socket itself says. Neighbour: exchange.h.
 *
 * An arrival is of a range of the connection's bytes: of those that were announced (sk_data_ready) from
 * when nothing was unread until the next such moment. There are two, as the next may come before the
 * program that follows a read has run. Bytes that nobody announced are in no range: a hook that was
 * missed leaves a request untimed, never with a time of another.
 */
#ifndef BPF_ARRIVAL_H
#define BPF_ARRIVAL_H

#include "state.h"

/* A field of the struct tcp_sock that @sk is. Who knows a cheaper way defines it before. */
#ifndef TCP_FIELD
#define TCP_FIELD(sk, field) BPF_CORE_READ((const struct tcp_sock *)(sk), field)
#endif

/* Ranges are compared modulo 2^32: one that never ends, as its reader is always behind, is cut. */
#define ARRIVAL_LONGEST (1U << 30)

static __always_inline bool arrival_has(__u64 range, __u32 seq)
{
	__u32 begin = range, end = range >> 32;

	return seq - begin < end - begin;
}

static __always_inline __u64 arrival_range(__u32 begin, __u32 end)
{
	return begin | (__u64)end << 32;
}

/* Bytes received in order and not yet read. A FIN is no byte, but has a number until it was read as EOF. */
static __always_inline __u32 unread_between(const struct sock *sk, __u32 copied_seq, __u32 rcv_nxt)
{
	__u32 unread = rcv_nxt - copied_seq;

	if (unread && sk->__sk_common.skc_state != TCP_ESTABLISHED)
		unread--;
	return unread;
}

static __always_inline __u32 unread_bytes(const struct sock *sk)
{
	return unread_between(sk, TCP_FIELD(sk, copied_seq), TCP_FIELD(sk, rcv_nxt));
}

/* In the other one: whoever reads from that meanwhile finds no range, or the same one twice. */
static __always_inline void arrival_begin(const struct sock *sk, struct conn *c, __u64 range)
{
	__u32 next = (c->newest & 1) ^ 1;

	if (!sk->sk_socket && !c->touched)
		c->flags |= CONN_QUEUED;
	PLAIN(&c->arrival_range[next]) = 0;
	atomic_order(&c->newest);
	c->arrival_write_seq[next] = TCP_FIELD(sk, write_seq);
	c->arrival_ns[next] = bpf_ktime_get_ns();
	atomic_order(&c->newest);
	PLAIN(&c->arrival_range[next]) = range;
	atomic_order(&c->newest);
	PLAIN(&c->newest) = next;
}

/* Bytes before @end can be read. With the socket's lock held, so one at a time. */
static __always_inline void arrival_note(const struct sock *sk, struct conn *c, __u32 end)
{
	__u64 *range = &c->arrival_range[c->newest & 1];
	__u32 oldest = TCP_FIELD(sk, copied_seq), begin = *range;

	if (!arrival_has(*range, oldest))
		arrival_begin(sk, c, arrival_range(oldest, end));
	else if (end - begin < ARRIVAL_LONGEST)
		PLAIN(range) = arrival_range(begin, end);
	else
		PLAIN(range) = arrival_range(oldest, end);
}

/* When, and what the server had written by then. */
struct arrival {
	__u64 ns; /* 0: not known */
	__u32 write_seq;
};

/* False: not the one of @seq, or it was being replaced. */
static __always_inline bool arrival_copy(struct conn *c, __u32 which, __u32 seq,
					 struct arrival *ret)
{
	__u64 range;

	which &= 1;
	range = PLAIN(&c->arrival_range[which]);
	atomic_order(&c->pending);
	ret->ns = PLAIN(&c->arrival_ns[which]);
	ret->write_seq = PLAIN(&c->arrival_write_seq[which]);
	atomic_order(&c->pending);
	return arrival_has(range, seq) && (__u32)range == (__u32)PLAIN(&c->arrival_range[which]);
}

/* Of the first of the @bytes that were just read; ns 0: not known. */
static __always_inline void arrival_of(const struct sock *sk, struct conn *c, __u32 bytes,
				       struct arrival *ret)
{
	__u32 newest = PLAIN(&c->newest), first = TCP_FIELD(sk, copied_seq) - bytes;

	if (!arrival_copy(c, newest, first, ret) && !arrival_copy(c, newest ^ 1, first, ret))
		ret->ns = 0;
}

#endif
