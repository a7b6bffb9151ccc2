/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Follows responses of some exchanges after the server's last write. The stage transmit_queue ends when the last byte
 * was handed to the driver. The stage ack ends when the peer had acknowledged it. The exchange's own programs start
 * and end this, and the hooks of transmit.bpf.c fill in the times. Neighbours: exchange.h, conn.bpf.c.
 *
 * A response's last byte is known only when the next request is read or the connection ends. A segment may leave
 * before the write that made it has returned. So the hooks keep how far the connection has come (wire_seq, acked_seq)
 * and when. transmit_finish() compares. Only progress beyond the furthest byte counts: retransmissions do not.
 */
#ifndef BPF_TCP_CONNECTION_TRANSMIT_H
#define BPF_TCP_CONNECTION_TRANSMIT_H

#include "arrival.h"

/*
 * Return how to follow the new exchange. Every sampled exchange is followed, so that each event
 * carries all stages. But only a random share is counted: the share of sampled exchanges depends on
 * the load, so over time they are a biased choice.
 */
static __always_inline __u8 transmit_marks(const struct conn *c)
{
	if (!config.transmit_below)
		return 0;
	if (config.transmit_below >> 32 || bpf_get_prandom_u32() < config.transmit_below)
		return MARK_TRANSMIT | MARK_SHARE;
	return c->marks & MARK_SAMPLED ? MARK_TRANSMIT : 0;
}

static __always_inline __u32 *followed_place(const struct sock *sk)
{
	return &transmit_followed[sk->__sk_common.skc_hash & (TRANSMIT_PLACES - 1)];
}

/* Nothing of the response is written yet: it will begin after @write_seq. */
static __always_inline void transmit_begin(const struct sock *sk, struct conn *c, __u8 marks,
					   __u32 write_seq)
{
	c->sample.write_seq = write_seq;
	c->sample.wire_seq = write_seq;
	c->sample.acked_seq = write_seq;
	c->sample.on_wire_ns = 0;
	c->sample.acked_ns = 0;
	c->marks |= marks;
	__sync_fetch_and_add(followed_place(sk), 1);
}

/* Note how far the response reaches: to its latest write. */
static __always_inline void transmit_written(struct conn *c, __u32 write_seq)
{
	c->sample.write_seq = write_seq;
}

/*
 * The bytes before @end have left. Write the time first: transmit_finish() may read from another
 * CPU.
 */
static __always_inline void transmit_left(struct conn *c, __u32 end)
{
	if (!seq_after(end, c->sample.wire_seq))
		return;
	c->sample.on_wire_ns = bpf_ktime_get_ns();
	atomic_publish(&c->sample.wire_seq, end);
}

static __always_inline void transmit_acked(struct conn *c, __u32 end)
{
	if (!seq_after(end, c->sample.acked_seq))
		return;
	c->sample.acked_ns = bpf_ktime_get_ns();
	atomic_publish(&c->sample.acked_seq, end);
}

/*
 * Return when the whole response had left, and when it was acknowledged; 0: not yet, or not seen. Time before the last
 * write belongs to the residence, and the write may be timed at its return. So earlier times are moved up to the last
 * write: nothing is counted twice and no stage is negative.
 */
static __always_inline void transmit_times(const struct conn *c, __u64 *ret_on_wire_ns,
					   __u64 *ret_acked_ns)
{
	const struct conn_sample *s = &c->sample;
	__u64 on_wire_ns = 0, acked_ns = 0;

	if (!seq_after(s->write_seq, s->wire_seq)) {
		on_wire_ns = s->on_wire_ns > c->last_write_ns ? s->on_wire_ns : c->last_write_ns;
		if (!seq_after(s->write_seq, s->acked_seq))
			acked_ns = s->acked_ns > on_wire_ns ? s->acked_ns : on_wire_ns;
	}
	*ret_on_wire_ns = on_wire_ns;
	*ret_acked_ns = acked_ns;
}

/* Add the time from @from to @to to @stage. A negative time is counted instead. */
static __always_inline void transmit_stage(struct service_slot *slot, __u32 service,
					   enum stage stage, __u64 from, __u64 to)
{
	__u32 index = copy_of(service);
	struct service_transmit *found = bpf_map_lookup_elem(&transmits, &index);

	if (to < from)
		count_atomic(slot, COUNTER_INCONSISTENT, 1);
	else if (found)
		stage_add_atomic(&found->stages[stage - STAGE_RESIDENCE_END], to - from);
}

/* The response is complete. */
static __always_inline void transmit_finish(const struct sock *sk, struct conn *c)
{
	struct service_slot *slot = slot_of(c->service);
	struct conn_sample *s = &c->sample;

	c->marks &= ~MARK_TRANSMIT;
	__sync_fetch_and_add(followed_place(sk), -1);
	transmit_times(c, &s->on_wire_ns, &s->acked_ns);
	if (!slot || !(c->marks & MARK_SHARE))
		return;
	if (s->on_wire_ns)
		transmit_stage(slot, c->service, STAGE_TRANSMIT_QUEUE, c->last_write_ns,
			       s->on_wire_ns);
	else
		count_atomic(slot, COUNTER_TRANSMIT_UNSEEN, 1);
	if (s->acked_ns)
		transmit_stage(slot, c->service, STAGE_ACK, s->on_wire_ns, s->acked_ns);
	else
		count_atomic(slot, COUNTER_ACK_UNSEEN, 1);
}

/* An exchange that will not be answered is no longer followed, and does not count as followed. */
static __always_inline void transmit_end(const struct sock *sk, struct conn *c)
{
	if (!config.transmit_below || !(c->marks & MARK_TRANSMIT))
		return;
	if (c->phase == CONN_RESPONDING || c->phase == CONN_PUSHING) {
		transmit_finish(sk, c);
	} else {
		c->marks &= ~(MARK_TRANSMIT | MARK_SHARE);
		__sync_fetch_and_add(followed_place(sk), -1);
	}
}

/*
 * Return the connection of a packet or segment, if its response is being followed. The cheapest
 * test comes first.
 */
static __always_inline struct conn *transmit_conn(const struct sock *sk)
{
	struct conn *c;

	if (!*followed_place(sk))
		return NULL;
	c = conn_of(sk);
	return c && c->marks & MARK_TRANSMIT ? c : NULL;
}

#endif
