/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Adds pushes to a service's counts. Neighbours: pushes.bpf.c, older_pushes.bpf.c. */
#ifndef BPF_TCP_PUSHED_H
#define BPF_TCP_PUSHED_H

#include "push.h"
#include "state.h"

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
