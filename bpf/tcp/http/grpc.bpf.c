// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Counts messages of gRPC in the data of streams. See grpc.h. */
#include "grpc.h"

#include "state.h"
#include "tcp/connection/slot.h"

/* Always atomic: probes run with preemption on (slot.h). */
static __always_inline void grpc_count(__u32 service, __u32 direction, __u32 messages)
{
	__u32 index = copy_of(service);
	struct service_statuses *all;

	if (!messages)
		return;
	all = bpf_map_lookup_elem(&statuses, &index);
	if (all && slot_of(service))
		__sync_fetch_and_add(&all->messages[direction], messages);
}

/*
 * The client's messages are read by one thread, and the response that shows what they are may be written by another. So
 * whoever comes second takes the messages that are in no sum, and both orders are full barriers.
 */
static __always_inline void grpc_tell(__u32 service, struct stream_entry *st)
{
	grpc_count(service, GRPC_IN, __sync_lock_test_and_set(&st->untold, 0));
}

__noinline int grpc_begins(__u32 service, struct stream_entry *st)
{
	if (st)
		grpc_tell(service, st);
	return 0;
}

static __always_inline __u32 grpc_data(struct grpc_messages *m, __u64 end, __u32 taken, __u32 count,
				       __u32 steps)
{
	return end ? grpc_follow(m, end - taken, count, steps) : grpc_unseen(m, count);
}

/*
 * Data of the request was read while its response was under way. So it is a tunnel, as of WebSocket (RFC 8441), or the
 * answer to a part of the request. Calls of gRPC have kinds instead.
 */
static __always_inline void grpc_is_late(const struct http2_conn *h, struct stream_entry *st)
{
	struct service_slot *slot;

	if (!config.http || st->in.late || !(st->stream.flags & STREAM_RESPONDING) ||
	    st->stream.flags & (STREAM_GRPC | STREAM_OBSCURE))
		return;
	st->in.late = 1;
	slot = slot_of(h->service);
	if (slot)
		count_atomic(slot, COUNTER_STREAMS_TWO_WAY, 1);
}

__noinline int grpc_read(struct http2_conn *h, __u32 said, __u64 end, __u64 now)
{
	__u32 count, messages = 0;
	struct http2_side *s;
	struct stream_entry *st;

	if (!h)
		return 0;
	s = &h->in.side;
	count = http2_data_part(s);
	st = stream_entry_of(h, s->stream);
	if (!st)
		return 0;
	if (said & HTTP2_BEGINS)
		bytes_add(&st->stream.bytes_in, HTTP2_HEADER + s->payload);
	/* The end of a frame that began in an earlier read. */
	if ((said & HTTP2_BEGINS || (said & HTTP2_ENDS && h->in.resumed)) &&
	    !(st->stream.flags & STREAM_RESPONDING))
		st->stream.last_read_ns = now;
	if (count) {
		grpc_is_late(h, st);
		messages = grpc_data(&st->in, end, s->taken, count,
				     h->flags & HTTP2_GRPC ? GRPC_STEPS : GRPC_STEPS_UNSURE);
	}
	if (said & HTTP2_ENDS && s->flags & HTTP2_END_STREAM)
		st->in.ended = 1;
	if (messages)
		__sync_fetch_and_add(&st->untold, messages);
	if (messages && st->stream.flags & STREAM_GRPC)
		grpc_tell(h->service, st);
	return 0;
}

__noinline int grpc_wrote(struct http2_conn *h, __u64 end)
{
	struct http2_side *s;
	struct stream_entry *st;
	__u32 count;

	if (!h)
		return 0;
	s = &h->out.side;
	count = http2_data_part(s);
	st = count ? stream_entry_of(h, s->stream) : NULL;
	if (st && st->stream.flags & STREAM_GRPC)
		grpc_count(h->service, GRPC_OUT,
			   grpc_data(&st->out, end, s->taken, count, GRPC_STEPS));
	return 0;
}
