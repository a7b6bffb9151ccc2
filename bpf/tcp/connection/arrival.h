/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Times at which bytes became readable for the server. Softirq notes them, often on another CPU than that of the
 * reading process. So only softirq writes here, and the socket's copied_seq shows what the process has read.
 * Neighbour: exchange.h.
 *
 * An arrival covers a range of the connection's bytes: those that one announcement (sk_data_ready) made readable.
 * Mostly nothing else is unread then. The two latest such arrivals stand in the cache line that a request needs
 * anyway. There are two because the next may come before the program that follows a read has run. Bytes that come
 * while others are unread stand in a short queue. A request that waits longer than the queue reaches back is not
 * timed, and never gets another's time. Bytes without an announcement are not timed either.
 */
#ifndef BPF_TCP_CONNECTION_ARRIVAL_H
#define BPF_TCP_CONNECTION_ARRIVAL_H

#include "clock.h"
#include "state.h"

/* Return whether a process has accepted @sk. Likewise: netns.h has the price of a pointer that is read through @sk. */
#ifndef ACCEPTED
#define ACCEPTED(sk) (!!(sk)->sk_socket)
#endif

/* Return whether @a is after @b. Sequence numbers are compared modulo 2^32 (RFC 9293, 3.4). */
static __always_inline bool seq_after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

static __always_inline bool arrival_has(__u64 range, __u32 seq)
{
	__u32 begin = range, end = range >> 32;

	return seq - begin < end - begin;
}

static __always_inline __u64 arrival_range(__u32 begin, __u32 end)
{
	return begin | (__u64)end << 32;
}

/*
 * Return the bytes that were received in order and not yet read. A FIN is no byte, but has a number
 * until it was read as EOF.
 */
static __always_inline __u32 unread_between(const struct sock *sk, __u32 copied_seq, __u32 rcv_nxt)
{
	__u32 unread = rcv_nxt - copied_seq;

	if (unread && sk->__sk_common.skc_state != TCP_ESTABLISHED)
		unread--;
	return unread;
}

/*
 * Return the sequence number after the last byte read. A FIN has one, too, which a read takes along
 * if the FIN came with its bytes.
 */
static __always_inline __u32 read_end(const struct sock *sk)
{
	__u32 copied_seq = TCP_FIELD(sk, copied_seq);
	int state = sk->__sk_common.skc_state;
	bool finished = state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;

	return finished && copied_seq == TCP_FIELD(sk, rcv_nxt) ? copied_seq - 1 : copied_seq;
}

/*
 * Replace the older entry. A program that reads it meanwhile finds no range, or the same one twice.
 */
static __always_inline void arrival_first(const struct sock *sk, struct conn *c, __u64 range)
{
	__u32 next = (c->newest & 1) ^ 1;

	if (!ACCEPTED(sk) && !c->touched)
		c->flags |= CONN_QUEUED;
	PLAIN(&c->arrival_range[next]) = 0;
	atomic_order(&c->announced);
	c->arrival_write_seq[next] = TCP_FIELD(sk, write_seq);
	c->arrival_ns[next] = clock_arrived(sk);
	atomic_order(&c->announced);
	PLAIN(&c->arrival_range[next]) = range;
	atomic_order(&c->announced);
	PLAIN(&c->newest) = next;
}

/* Queue bytes of @range, which follow other unread ones. */
static __always_inline void arrival_queued(const struct sock *sk, struct conn *c, __u64 range)
{
	struct arrival_queue *q = &c->queue;
	__u32 place = q->next & (ARRIVALS_QUEUED - 1);

	PLAIN(&q->range[place]) = 0;
	atomic_order(&c->announced);
	q->write_seq[place] = TCP_FIELD(sk, write_seq);
	q->ns[place] = clock_arrived(sk);
	atomic_order(&c->announced);
	PLAIN(&q->range[place]) = range;
	q->next++;
}

/* Note that bytes from @oldest to @end can be read. The socket's lock is held, so there is one writer. */
static __always_inline void arrival_note(const struct sock *sk, struct conn *c, __u32 oldest,
					 __u32 end)
{
	__u32 begin = c->announced;

	if (!seq_after(begin, oldest))
		arrival_first(sk, c, arrival_range(oldest, end));
	else if (seq_after(end, begin))
		arrival_queued(sk, c, arrival_range(begin, end));
	else
		return;
	c->announced = end;
}

/* The time of an arrival, and the server's write_seq then. */
struct arrival {
	__u64 ns; /* 0: not known */
	__u32 write_seq;
};

/* Return false if the entry is not that of @seq, or was being replaced. */
static __always_inline bool arrival_copy(struct conn *c, const __u64 *place, const __u64 *ns,
					 const __u32 *write_seq, __u32 seq, struct arrival *ret)
{
	__u64 range = PLAIN(place);

	atomic_order(&c->pending);
	ret->ns = PLAIN(ns);
	ret->write_seq = PLAIN(write_seq);
	atomic_order(&c->pending);
	return arrival_has(range, seq) && (__u32)range == (__u32)PLAIN(place);
}

static __always_inline bool arrival_copy_first(struct conn *c, __u32 which, __u32 seq,
					       struct arrival *ret)
{
	which &= 1;
	return arrival_copy(c, &c->arrival_range[which], &c->arrival_ns[which],
			    &c->arrival_write_seq[which], seq, ret);
}

/* Return the place of @seq in the queue; ARRIVALS_QUEUED: it is not there. */
static __always_inline __u32 arrival_find(const struct arrival_queue *q, __u32 seq)
{
	__u64 found = ARRIVALS_QUEUED;

	/* No branches: the verifier would follow each place through all that comes after. */
	for (__u64 i = 0; i < ARRIVALS_QUEUED; i++) {
		__u64 range = PLAIN(&q->range[i]);
		__u32 begin = range, end = range >> 32;
		__s64 beyond = (__s64)(__u32)(seq - begin) - (__u32)(end - begin);

		barrier_var(beyond); /* or clang makes a branch of it */
		found ^= (found ^ i) & (beyond >> 63);
	}
	return found;
}

/*
 * The same as a separate function (arrival.bpf.c), so that the verifier follows it once instead of after each way that
 * leads to it. Its argument is a pointer, which needs Linux 5.12: a kernel with bpf_loop() is newer.
 */
#ifdef WALK_CALLS
__u32 arrival_place(const struct arrival_queue *q, __u32 seq);
#else
#define arrival_place(q, seq) arrival_find(q, seq)
#endif

static __always_inline bool arrival_copy_queued(struct conn *c, __u32 seq, struct arrival *ret)
{
	struct arrival_queue *q = &c->queue;
	__u32 found = arrival_place(q, seq);

	if (found >= ARRIVALS_QUEUED)
		return false;
	barrier_var(found);
	found &= ARRIVALS_QUEUED - 1;
	return arrival_copy(c, &q->range[found], &q->ns[found], &q->write_seq[found], seq, ret);
}

/* Return the arrival of the byte @seq; ns 0: not known. */
static __always_inline void arrival_of(struct conn *c, __u32 seq, struct arrival *ret)
{
	__u32 newest = PLAIN(&c->newest);

	if (!arrival_copy_first(c, newest, seq, ret) &&
	    !arrival_copy_first(c, newest ^ 1, seq, ret) &&
	    !(c->queue.next && arrival_copy_queued(c, seq, ret)))
		ret->ns = 0;
}

/*
 * Return when the last bytes arrived that a read of @bytes with MSG_WAITALL returned, up to @end.
 * That is @first_ns, the arrival of the first ones, unless a later arrival is known. Such an arrival
 * found nothing unread, so the server had taken the earlier bytes at once.
 */
static __always_inline __u64 arrival_of_last(struct conn *c, __u32 end, __u32 bytes, __u64 first_ns)
{
	__u32 newest = PLAIN(&c->newest) & 1;
	struct arrival last;

	if (!arrival_copy_first(c, newest, end - 1, &last) || last.ns < first_ns)
		return first_ns;
	/* Only if this arrival begins within the read, and not before it. */
	return (__u32)PLAIN(&c->arrival_range[newest]) - (end - bytes) < bytes ? last.ns : first_ns;
}

#endif
