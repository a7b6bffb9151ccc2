// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Finds where the frames of an older connection begin. See older.h. */
#include "older.h"

/* Frames are found in one direction. Count the connection when they are in both. */
static __always_inline void older_found(struct http2_conn *h, __u32 direction)
{
	struct service_slot *slot = slot_of(h->service);
	__u32 before = __sync_fetch_and_or(&h->proved, direction);

	if (before == HTTP2_PICKED_UP || (before | direction) != HTTP2_PICKED_UP || !slot)
		return;
	count_atomic(slot, COUNTER_HTTP2, 1);
	count_atomic(slot, COUNTER_HTTP2_PICKED_UP, 1);
}

__noinline int older_seek(struct http2_conn *h, __u32 said, __u32 direction)
{
	const struct http2_side *s;

	if (!h)
		return 0;
	s = direction == HTTP2_PROVED_IN ? &h->in.side : &h->out.side;
	if (!s->sought) {
		if (!(PLAIN(&h->proved) & direction))
			older_found(h, direction);
		return 0;
	}
	if (direction == HTTP2_PROVED_IN && said & HTTP2_BEGINS && s->type == HTTP2_HEADERS &&
	    s->stream > h->highest)
		h->highest = s->stream;
	return 1;
}

__noinline int older_seek_again(struct http2_conn *h, __u32 direction)
{
	struct http2_way *way;

	if (!h)
		return 0;
	way = direction == HTTP2_PROVED_IN ? &h->in : &h->out;
	if (!way->side.sought || __sync_fetch_and_add(&h->tries, 1) >= OLDER_TRIES)
		return 0;
	side_seek(&way->side);
	way->begun = 0;
	way->skip = 0;
	if (direction == HTTP2_PROVED_IN)
		h->highest = 0;
	return 1;
}

__noinline int older_ends(struct http2_conn *h)
{
	return h && http2_sought_to_the_end(h);
}
