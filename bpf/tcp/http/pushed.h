/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Finds pushes in reads and writes, and adds them to a service's counts. The functions are not inline, as those of
 * status.h: pushes.bpf.c. Neighbours: push.h (the state), protocol/websocket.h, protocol/events.h.
 */
#ifndef BPF_TCP_HTTP_PUSHED_H
#define BPF_TCP_HTTP_PUSHED_H

#include "state.h"
#include "tcp/state/push.h"

/*
 * Take the head in the current write of @count bytes, and what follows it. @skip: bytes of the write before the head.
 * Return enum push_kind.
 */
int pushes_begin(struct push_conn *p, __u32 count, __u32 skip, __u32 end);

/* Follow a read or write of @count bytes up to the sequence number @end. Return enum push_kind. */
int pushes_in(struct push_conn *p, __u32 count, __u32 end);
int pushes_out(struct push_conn *p, __u32 count, __u32 end);

/* Further pushes are not known. Return 0. */
int pushes_lose(struct push_conn *p);

/* Always atomic: reads and writes of one connection may be in two threads. */
static __always_inline void pushed(struct service_statuses *all, enum pushed what, __u64 n)
{
	if (n)
		__sync_fetch_and_add(&all->pushed[what], n);
}

static __always_inline struct service_statuses *pushed_of(const struct push_conn *p)
{
	__u32 index = copy_of(p->service);

	return slot_of(p->service) ? bpf_map_lookup_elem(&statuses, &index) : NULL;
}

/* Add what one direction of WebSocket has moved. */
static __always_inline void pushed_frames(const struct push_conn *p, const struct push_sums *sums,
					  __u32 direction)
{
	struct service_statuses *all = pushed_of(p);

	if (!all)
		return;
	pushed(all, PUSHED_MESSAGES_IN + direction, sums->messages);
	pushed(all, PUSHED_BYTES_IN + direction, sums->payload);
	pushed(all, PUSHED_CONTROL_IN + direction, sums->control);
}

#endif
