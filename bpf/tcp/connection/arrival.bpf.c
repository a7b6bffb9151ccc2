// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Searches the queue of arrivals. See arrival.h. */
#define WALK_CALLS

#include "arrival.h"

__noinline __u32 arrival_place(const struct arrival_queue *q, __u32 seq)
{
	return q ? arrival_find(q, seq) : ARRIVALS_QUEUED;
}
