/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Additions to a service's slot by programs of reads and writes. Programs of softirq use count_atomic(),
 * stage_add_atomic() and span_add() instead (state.h). Neighbours: exchange.h, streams.h.
 */
#ifndef BPF_TCP_CONNECTION_SLOT_H
#define BPF_TCP_CONNECTION_SLOT_H

#include "state.h"

/*
 * Before Linux 7.0 programs on tracepoints run with preemption off: only softirq comes between a read and a write of
 * theirs. Since then (a46023d5616e) another thread on this CPU can, in another program of ours. Two additions to one
 * counter in the same nanosecond or so then lose one. This loss is small beside the recursion misses of
 * docs/kernels.md, and not worth an atomic addition in every request. fexit programs could always be preempted. They
 * define SLOT_SHARED before, and every addition is atomic.
 */
#ifdef SLOT_SHARED
#define SLOT_ADD(place, n)    __sync_fetch_and_add(&(place), n)
#define SLOT_COUNT(slot, ...) count_atomic(slot, __VA_ARGS__)
#define SLOT_STAGE(h, value)  stage_add_atomic(h, value)
#else
#define SLOT_ADD(place, n)    COPY_ADD(place, n)
#define SLOT_COUNT(slot, ...) count(slot, __VA_ARGS__)
#define SLOT_STAGE(h, value)  stage_add(h, value)
#endif

/* Add to the bytes of one exchange, a sum of 32 bits that saturates. */
static __always_inline void bytes_add(__u32 *sum, __u32 bytes)
{
	*sum = *sum + bytes < bytes ? ~0U : *sum + bytes;
}

/* Count the time between two times of this exchange. A negative one is counted as inconsistent. */
static __always_inline void exchange_stage(struct service_slot *slot, enum stage stage, __u64 from,
					   __u64 to)
{
	if (to >= from)
		SLOT_STAGE(&slot->stages[stage], to - from);
	else
		SLOT_COUNT(slot, COUNTER_INCONSISTENT, 1);
}

/*
 * The response goes on: move its time in RESPOND's histogram from bucket @old (0: none yet), with @old_ns, to that of
 * @new_ns. So every reading shows each exchange once, with the latest known time. The decrement may happen on another
 * CPU than the increment: only the sum over the copies means something. Return the new bucket.
 */
static __always_inline __u32 respond_move(struct stage_histogram *h, __u32 old, __u64 old_ns,
					  __u64 new_ns)
{
	bool counted = old;

	/*
	 * Otherwise clang merges both tests to old - 1 < BUCKET_COUNT - 1, from which 6.12 derives
	 * no bound.
	 */
	barrier_var(old);
	if (counted && old < BUCKET_COUNT) {
		SLOT_ADD(h->buckets[old], -1ULL);
		SLOT_ADD(h->sum_ns, -old_ns);
	}
	SLOT_STAGE(h, new_ns);
	return bucket_of(new_ns);
}

#endif
