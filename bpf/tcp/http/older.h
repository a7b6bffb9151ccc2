/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Connections with HTTP/2 that are older than the programs that follow streams: with --http older than the observation,
 * and see beside.h. They are picked up where frames begin.
 * That may be at the start of any read or write. Frames in a row prove it (http2_is_proof()), in each direction alone.
 * Frames after that are followed.
 *
 * Of streams that began before only the end is seen. The windows are not known, nor how many PINGs are without an ACK.
 * Earlier entries of the dynamic tables are not known either. Indices count from the latest one back. So hpack_walk.h
 * knows which entries it has seen, whatever the table's size.
 *
 * Neighbours: streams.h, older.bpf.c, speaks.h (which connections).
 */
#ifndef BPF_TCP_HTTP_OLDER_H
#define BPF_TCP_HTTP_OLDER_H

#include "state.h"
#include "tcp/state/http2.h"

/* In how many calls frames are sought. */
#define OLDER_TRIES 1024

static __always_inline bool http2_is_picked_up(const struct http2_conn *h)
{
	return PLAIN(&h->proved) == HTTP2_PICKED_UP;
}

/* Return whether frames are still sought. */
static __always_inline bool http2_is_sought(const struct http2_conn *h)
{
	return h->flags & HTTP2_OLDER && !http2_is_picked_up(h);
}

/*
 * The connection ends. If its frames are still sought, they are not found any more: count it. Return whether. Inline, as
 * conn_state has no stack for a call of older_ends().
 */
static __always_inline bool http2_sought_to_the_end(struct http2_conn *h)
{
	struct service_slot *slot;

	if (!http2_is_sought(h) || h->flags & HTTP2_GIVEN_UP)
		return false;
	h->flags |= HTTP2_GIVEN_UP;
	slot = slot_of(h->service);
	if (slot)
		count_atomic(slot, COUNTER_MULTIPLEXED, 1);
	return true;
}

/* The next byte may be a frame's first one. */
static __always_inline void side_seek(struct http2_side *s)
{
	*s = (struct http2_side){
		.by_client = s->by_client,
		.followed = s->followed,
		.settled = true,
		.sought = HTTP2_PROOF,
	};
}

/*
 * The client's HEADERS have an identifier above all that were seen. Return whether they open a stream that can be
 * followed. On an older connection the first ones may be trailers, which end their stream (RFC 9113, 8.1). Responses
 * are not seen before frames are found in both directions.
 */
static __always_inline bool stream_is_new(struct http2_conn *h, const struct http2_side *s)
{
	if (!(h->flags & HTTP2_OLDER))
		return true;
	if (http2_is_picked_up(h) && (h->highest || !(s->flags & HTTP2_END_STREAM))) {
		if (!h->first)
			h->first = s->stream;
		return true;
	}
	h->highest = s->stream;
	return false;
}

/* The server has ended a stream that is not followed. Count it if it began before the connection was picked up. */
static __always_inline void stream_ended_unseen(const struct http2_conn *h,
						struct service_slot *slot, __u32 id)
{
	if (h->flags & HTTP2_OLDER && http2_is_picked_up(h) && id & 1 &&
	    (id < h->first || !h->first))
		count_atomic(slot, COUNTER_STREAMS_EARLIER, 1);
}

/*
 * A step in one direction of an older connection has returned @said. Return whether its frame is not followed yet. Not
 * inline, as all that few connections need.
 */
int older_seek(struct http2_conn *h, __u32 said, __u32 direction);

/* Frames do not begin where they were sought. Return whether they are sought again, from the next call on. */
int older_seek_again(struct http2_conn *h, __u32 direction);

/* The connection ends. Return whether its frames were still sought; then it is counted. */
int older_ends(struct http2_conn *h);

#endif
