/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What arrival, reads and writes mean for an exchange, whichever hooks tell of them: the rules of
 * docs/measurement.md. Included by each set of hooks: exchange.bpf.c, exchange_fexit.bpf.c.
 */
#ifndef BPF_EXCHANGE_H
#define BPF_EXCHANGE_H

#include "accept.h"
#include "arrival.h"
#include "preface.h"
#include "sample.h"
#include "service.h"
#include "thread.h"
#include "transmit.h"

/*
 * Before Linux 7.0 programs on tracepoints run with preemption off, so nothing but softirq comes between
 * a read and a write of theirs. Since then (a46023d5616e) another thread on this CPU can, in another
 * program of ours: of two additions to one counter in the same nanosecond or so one is lost. An atomic one
 * would cost every request more than that is worth, beside the recursion misses of docs/kernels.md. fexit
 * programs could always be preempted, and define SLOT_SHARED before: then every addition is atomic.
 */
#ifdef SLOT_SHARED
#define SLOT_ADD(place, n)    __sync_fetch_and_add(&(place), n)
#define SLOT_COUNT(slot, ...) count_atomic(slot, __VA_ARGS__)
#define SLOT_STAGE(h, value)  stage_add_atomic(h, value)
#else
#define SLOT_ADD(place, n)    ((place) += (n))
#define SLOT_COUNT(slot, ...) count(slot, __VA_ARGS__)
#define SLOT_STAGE(h, value)  stage_add(h, value)
#endif

/* First read or write of the server on a connection: it has been accepted. When; 0: unknown. */
static __always_inline __u64 conn_touched(const struct sock *sk, struct conn *c, __u64 now)
{
	struct service_slot *slot = slot_of(c->service);
	__u64 accepted_ns;

	c->touched = 1;
	owner_seen(c->service);
	if (!slot || !c->established_ns)
		return 0;
	accepted_ns = accept_time(sk, c, now);
	if (!accepted_ns)
		SLOT_COUNT(slot, COUNTER_ACCEPT_UNSEEN, 1);
	else if (accept_unrecorded(c))
		SLOT_STAGE(&slot->stages[STAGE_ACCEPT_QUEUE], accept_wait(c, accepted_ns));
	return accepted_ns;
}

/*
 * The server wrote between arrival and first read: the request came before the previous response
 * was complete. Not told by time: on loopback the client may have read the response, and sent its
 * next request, before the server's write has returned.
 */
static __always_inline bool pipelined(const struct sock *sk, const struct arrival *arrival)
{
	return arrival->write_seq != TCP_FIELD(sk, write_seq);
}

/* What began to be read is no exchange: from now on nothing is. */
static __always_inline void becomes_multiplexed(const struct sock *sk, struct conn *c)
{
	struct service_slot *slot = slot_of(c->service);

	transmit_end(sk, c);
	c->phase = CONN_IDLE;
	c->marks = MARK_MULTIPLEXED;
	if (slot)
		SLOT_COUNT(slot, COUNTER_MULTIPLEXED, 1);
}

/*
 * Only from its very first bytes, so not on connections older than the observation, and before any
 * response to them.
 */
static __always_inline void recognise_http2(const struct sock *sk, struct conn *c, __u32 bytes)
{
	enum preface preface = PREFACE_NONE;

	if (c->established_ns && (!c->last_read_ns || c->phase == CONN_READING))
		preface = read_http2_preface(c->bytes_in, bytes);
	c->marks &= ~MARK_PREFACE;
	if (preface == PREFACE_BEGUN)
		c->marks |= MARK_PREFACE;
	else if (preface == PREFACE_WHOLE)
		becomes_multiplexed(sk, c);
}

static __always_inline void exchange_read(const struct sock *sk, __u32 bytes)
{
	struct conn *c = conn_of(sk);
	__u64 now, accepted_ns = 0;
	struct arrival arrival;
	__u8 transmit;

	if (!c)
		return;
	/* What is known of the response, before it is told. */
	if (c->phase == CONN_RESPONDING && !(c->flags & CONN_WRITES_OVER))
		transmit_end(sk, c);
	sample_complete(sk, c);
	now = bpf_ktime_get_ns();
	if (!c->touched)
		accepted_ns = conn_touched(sk, c, now);
	else if (!c->last_read_ns)
		accepted_ns = c->start_ns; /* the server has spoken first */
	if (!c->last_read_ns || c->marks & MARK_PREFACE)
		recognise_http2(sk, c, bytes);
	c->bytes_in += bytes;
	c->last_read_ns = now;
	if (config.cpu)
		split_begin(c, now);
	if (c->marks & MARK_MULTIPLEXED || c->phase == CONN_READING || c->flags & CONN_WRITES_OVER)
		return;
	c->phase = CONN_READING;
	if (c->first_read_ns)
		c->index++;
	c->first_read_ns = now;
	c->marks &= MARK_PREFACE;
	/* Behind reading the clock, which would wait for memory that may still be the other CPU's. */
	arrival_of(sk, c, bytes, &arrival);
	if (arrival.ns && pipelined(sk, &arrival))
		c->marks |= MARK_OVERLAPPED;
	c->start_ns = arrival.ns > accepted_ns || !arrival.ns ? arrival.ns : accepted_ns;
	c->accept_delay_ns = c->start_ns - arrival.ns;
	sample_begin(sk, c, c->accept_delay_ns);
	transmit = transmit_marks(c);
	if (transmit)
		transmit_begin(sk, c, transmit, TCP_FIELD(sk, write_seq));
}

/* Zeros of RUNNABLE and BLOCKED, which are most, user space fills in. */
static __always_inline void exchange_split(struct conn *c, __u64 now)
{
	__u32 index = bpf_get_smp_processor_id() * config.max_services + c->service;
	__u64 service_ns = now - c->last_read_ns, blocked_ns;
	struct service_split *split = bpf_map_lookup_elem(&splits, &index);

	if (!split_end(c, now, service_ns) || !c->start_ns || !split)
		return;
	blocked_ns = service_ns - c->split.running_ns - c->split.runnable_ns;
	SLOT_STAGE(&split->parts[SPLIT_RUNNING], c->split.running_ns);
	if (c->split.runnable_ns)
		SLOT_STAGE(&split->parts[SPLIT_RUNNABLE], c->split.runnable_ns);
	if (blocked_ns)
		SLOT_STAGE(&split->parts[SPLIT_BLOCKED], blocked_ns);
}

/* The response begins: everything but its own length is known. */
static __always_inline void exchange_answered(struct conn *c, struct service_slot *slot, __u64 now)
{
	SLOT_COUNT(slot, COUNTER_EXCHANGES, 1);
	SLOT_COUNT(slot, COUNTER_BYTES_IN, c->bytes_in);
	c->phase = CONN_RESPONDING;
	c->respond_bucket = 0;
	if (c->marks & MARK_OVERLAPPED)
		SLOT_COUNT(slot, COUNTER_OVERLAPPED, 1);
	if (config.transmit_below && c->marks & MARK_SHARE)
		SLOT_COUNT(slot, COUNTER_TRANSMIT_FOLLOWED, 1);
	if (!c->start_ns) {
		SLOT_COUNT(slot, COUNTER_UNTIMED, 1);
	} else {
		note_messages(slot, c->start_ns, now);
		SLOT_STAGE(&slot->stages[STAGE_SOCKET_QUEUE], c->first_read_ns - c->start_ns);
		if (c->last_read_ns != c->first_read_ns)
			SLOT_STAGE(&slot->stages[STAGE_RECEIVE],
				   c->last_read_ns - c->first_read_ns);
		SLOT_STAGE(&slot->stages[STAGE_SERVICE], now - c->last_read_ns);
	}
	if (c->accept_delay_ns) {
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAYED, 1);
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAY_NS, c->accept_delay_ns);
	}
	if (config.cpu)
		exchange_split(c, now);
	c->first_write_ns = now;
	c->last_write_ns = now;
	if (c->marks & MARK_SAMPLED)
		sample_answered(c, current_pid());
	c->bytes_in = 0;
}

/*
 * The response goes on: its RESPOND time moves from bucket to bucket, so that every reading shows
 * each exchange once, with what is known of it. The decrement may happen on another CPU than the
 * increment: only the sum over the CPUs means something.
 */
static __always_inline void exchange_responding(struct conn *c, struct service_slot *slot,
						__u64 now)
{
	struct stage_histogram *h = &slot->stages[STAGE_RESPOND];
	__u64 respond_ns = now - c->first_write_ns;
	__u32 old = c->respond_bucket;
	bool counted = old;

	/* Or clang makes old - 1 < BUCKET_COUNT - 1 of both tests, which bounds nothing for 6.12. */
	barrier_var(old);
	if (c->start_ns && respond_ns) {
		if (counted && old < BUCKET_COUNT) {
			SLOT_ADD(h->buckets[old], -1ULL);
			SLOT_ADD(h->sum_ns, c->first_write_ns - c->last_write_ns);
		}
		SLOT_STAGE(h, respond_ns);
		c->respond_bucket = bucket_of(respond_ns);
		slot->last_message_ns = now;
	}
	c->last_write_ns = now;
}

static __always_inline void unsolicited(struct conn *c, struct service_slot *slot)
{
	bool first = c->flags & CONN_PREEXISTING && !c->last_write_ns && !c->last_read_ns;

	SLOT_COUNT(slot, first ? COUNTER_CUT_OFF : COUNTER_UNSOLICITED, 1);
}

static __always_inline void exchange_write(const struct sock *sk, __u32 bytes)
{
	struct conn *c = conn_of(sk);
	struct service_slot *slot;
	__u64 now;

	if (!c)
		return;
	slot = slot_of(c->service);
	if (!slot)
		return;
	now = bpf_ktime_get_ns();
	if (!c->touched)
		c->start_ns = conn_touched(sk, c, now);
	SLOT_COUNT(slot, COUNTER_BYTES_OUT, bytes);
	if (c->marks & MARK_SAMPLED)
		sample_wrote(c, bytes);
	if (config.transmit_below && c->marks & MARK_TRANSMIT)
		transmit_written(c, TCP_FIELD(sk, write_seq));
	if (c->marks & MARK_MULTIPLEXED) {
		SLOT_COUNT(slot, COUNTER_BYTES_IN, c->bytes_in);
		c->bytes_in = 0;
	} else if (c->phase == CONN_READING) {
		exchange_answered(c, slot, now);
	} else if (c->phase == CONN_RESPONDING) {
		exchange_responding(c, slot, now);
	} else {
		unsolicited(c, slot);
		c->last_write_ns = now;
	}
}

#endif
