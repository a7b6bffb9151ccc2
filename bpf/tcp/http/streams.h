/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * HTTP/2's streams as exchanges, with --http. A stream's request begins with its HEADERS, and its response with the
 * server's first HEADERS that are not interim. The stream is over with the server's END_STREAM, or when either side
 * resets it. The state of a connection is in storage of the socket. One hash has the open streams of all connections.
 *
 * Bytes of either direction are followed from the connection's first one on. If some were not seen or not understood,
 * the connection is given up. Its streams are counted as lost, and the connection as `multiplexed`.
 *
 * A connection older than the observation is picked up on the way (older.h).
 *
 * A server may answer a stream on one thread while another thread reads that the client has reset it. The hash reuses
 * places at once, so the stream's place may get a new owner in between. Then the times of one stream are wrong.
 *
 * A file that defines STREAMS_OF_TEXT follows plain text of TLS instead, whose bytes have no sequence numbers.
 *
 * Neighbours: http2.h (state), older.h, protocol/http2.h (frames), speaks.h (which connections), streams.bpf.c,
 * clear_streams.bpf.c (in TLS).
 */
#ifndef BPF_TCP_HTTP_STREAMS_H
#define BPF_TCP_HTTP_STREAMS_H

#include "grpc.h"
#include "older.h"
#include "route.h"
#include "service.h"
#include "status.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/bytes.h"
#include "tcp/connection/sample.h"
#include "tcp/connection/slot.h"
#include "tcp/state/http2.h"
#include "window.h"

/* Limit of frames and buffers in one read or write: the smallest frames that fill 4.5 MiB. */
#define STREAMS_STEPS (1 << 19)
/* How many identifiers are tried, from the latest one on, before all streams are searched. */
#define STREAMS_TRIED 1024

static __always_inline struct http2_stored *http2_stored_of(const void *sk)
{
	return bpf_sk_storage_get(&http2_conns, (void *)sk, 0, 0);
}

static __always_inline struct http2_conn *http2_of(const void *sk)
{
	struct http2_stored *stored = http2_stored_of(sk);

	return stored ? &stored->conn : NULL;
}

/* Copy a stream that is over, with the numbers of its messages. */
static __always_inline void stream_copy(struct stream *ret_st, const struct stream_entry *entry)
{
	*ret_st = entry->stream;
	ret_st->flags |= grpc_shape(entry);
}

/* Take the stream away. True for exactly one caller, which then has to account for the stream. */
static __always_inline bool stream_take(struct http2_conn *h, __u32 id)
{
	__u64 key = stream_key(h, id);

	if (bpf_map_delete_elem(&streams, &key))
		return false;
	__sync_fetch_and_add(&h->open, -1U);
	return true;
}

/* ---- arrivals ---- */

static __always_inline void streams_arrival_at(struct http2_arrivals *a, __u64 range, __u64 ns)
{
	__u32 place = a->next & (HTTP2_ARRIVALS - 1);

	PLAIN(&a->range[place]) = 0;
	atomic_order(&a->pad);
	PLAIN(&a->ns[place]) = ns;
	atomic_order(&a->pad);
	PLAIN(&a->range[place]) = range;
	atomic_order(&a->pad);
	PLAIN(&a->next) = a->next + 1;
}

/*
 * Note that bytes of @range have become readable. As arrival_note(), with the socket's lock held.
 */
static __always_inline void streams_arrival(const struct sock *sk, __u64 range)
{
	struct http2_stored *stored = http2_stored_of(sk);

	if (stored)
		streams_arrival_at(&stored->arrivals, range, clock_arrived(sk));
}

/* The same if another program has noted the arrival with the connection: copy the latest one from there. */
static __always_inline void streams_arrived(const struct sock *sk, const struct conn *c)
{
	struct http2_stored *stored = http2_stored_of(sk);
	__u32 newest = c->newest & 1, queued = (c->queue.next - 1) & (ARRIVALS_QUEUED - 1), last;
	__u64 range = c->arrival_range[newest], ns = c->arrival_ns[newest];

	if (!stored)
		return;
	if (range >> 32 != c->announced) {
		range = c->queue.range[queued];
		ns = c->queue.ns[queued];
	}
	last = (stored->arrivals.next - 1) & (HTTP2_ARRIVALS - 1);
	if (range >> 32 == c->announced && stored->arrivals.range[last] != range)
		streams_arrival_at(&stored->arrivals, range, ns);
}

/* ---- how a stream ends ---- */

/*
 * Send the event of a stream whose response is over or broken off. The index is that of the request
 * on its connection, if the client skips no identifiers.
 */
static __always_inline void stream_tell(const struct http2_conn *h, const struct stream *st,
					__u32 id)
{
	struct exchange_event *e;

	if (!config.ring_bytes || !(st->flags & STREAM_SAMPLED) || !st->start_ns)
		return;
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		sample_lost(st->service);
		return;
	}
	*e = (struct exchange_event){
		.flow = h->flow,
		.index = id >> 1,
		.service = st->service,
		.pid = st->pid,
		.bytes_in = st->bytes_in,
		.bytes_out = st->bytes_out,
		.arrival_ns = st->start_ns - st->accept_delay_ns,
		.accepted_ns = st->accept_delay_ns ? st->start_ns : 0,
		.first_read_ns = st->first_read_ns,
		.last_read_ns = st->last_read_ns,
		.first_write_ns = st->first_write_ns,
		.last_write_ns = st->last_write_ns,
	};
	bpf_ringbuf_submit(e, sample_wakeup());
}

/* A stream whose response had begun is over. */
static __always_inline void stream_over(const struct http2_conn *h, const struct stream *st,
					__u32 id)
{
	status_ended(st->service, st->grpc, st->flags, h->flags,
		     st->start_ns ? st->first_write_ns - st->last_read_ns : STATUS_UNTIMED);
	stream_tell(h, st, id);
}

/*
 * Add to SPAN_ABANDONED. This and the two below are separate functions (streams.bpf.c), so that the verifier follows
 * each once instead of after each way that leads to it. Return 0.
 */
int stream_waited(__u32 service, __u64 waited_ns);

/* Count a stream that will not be answered. */
static __always_inline void stream_abandoned(struct service_slot *slot, const struct stream *st)
{
	__u64 since_ns = st->start_ns ? st->start_ns - st->accept_delay_ns : st->first_read_ns;
	__u64 now = bpf_ktime_get_ns();

	count_atomic(slot, COUNTER_UNANSWERED, 1);
	if (since_ns <= now)
		stream_waited(st->service, now - since_ns);
}

/* End a stream whose connection ends or is given up. @slot: NULL if another service has it now. */
static __always_inline void stream_cut(struct http2_conn *h, struct service_slot *slot, __u32 id)
{
	struct stream_entry *found = stream_entry_of(h, id);
	struct stream st;

	if (!found)
		return;
	stream_copy(&st, found);
	if (!stream_take(h, id) || !slot)
		return;
	if (h->flags & HTTP2_GIVEN_UP)
		count_atomic(slot, COUNTER_STREAMS_LOST, 1);
	else if (!(st.flags & STREAM_RESPONDING))
		stream_abandoned(slot, &st);
	if (h->flags & HTTP2_LEAVING && id > h->last)
		count_atomic(slot, COUNTER_STREAMS_REFUSED, 1);
	if (st.flags & STREAM_RESPONDING)
		stream_over(h, &st, id);
}

struct bpf_map;

struct streams_end {
	struct http2_conn *h;
	struct service_slot *slot;
};

static long streams_end_step(__u32 i, struct streams_end *end)
{
	__u32 id = end->h->highest - 2 * i;

	stream_cut(end->h, end->slot, id);
	return !end->h->open || id < 3;
}

/*
 * Find streams of the connection that the first steps missed: long open ones, beside many short
 * ones.
 */
static long streams_end_any(struct bpf_map *map, __u64 *key, struct stream_entry *st,
			    struct streams_end *end)
{
	if (*key >> 32 == end->h->number)
		stream_cut(end->h, end->slot, (__u32)*key);
	return !end->h->open;
}

/* End all streams of the connection. */
static __always_inline void streams_end(struct http2_conn *h)
{
	struct streams_end end = {.h = h, .slot = slot_of(h->service)};

	if (!h->open)
		return;
	bpf_loop(STREAMS_TRIED, streams_end_step, &end, 0);
	if (h->open)
		bpf_for_each_map_elem(&streams, streams_end_any, &end, 0);
}

/* ---- one read or write ---- */

struct streams_call {
	struct http2_conn *h;
	union {
		struct conn *c;
		__u64 arrival_ns; /* with STREAMS_OF_TEXT: of the text; 0: not known */
	};
	struct service_slot *slot;
	__u64 now;
	__u64 accepted_ns; /* of the connection; 0: not known, or long ago */
	__u64 wrong;
};

static __always_inline void streams_give_up(struct streams_call *call)
{
	if (call->h->flags & HTTP2_GIVEN_UP)
		return;
	call->h->flags |= HTTP2_GIVEN_UP;
	if (!(call->h->flags & HTTP2_FOLLOWED))
		return;
	if (!http2_is_sought(call->h))
		count_atomic(call->slot, COUNTER_HTTP2_GIVEN_UP, 1);
	count_atomic(call->slot, COUNTER_MULTIPLEXED, 1);
	streams_end(call->h);
}

static __always_inline bool stream_sampled(const struct streams_call *call, __u32 id,
					   __u64 start_ns)
{
	return config.ring_bytes && start_ns &&
	       exchange_hash(call->h->flow_hash, id >> 1) < sample_threshold;
}

/* As arrival_of(), among many more; 0: not known. */
__u64 arrival_among(struct http2_arrivals *a, __u32 seq);

#ifdef STREAMS_OF_TEXT
static __always_inline __u64 byte_arrival(struct streams_call *call, __u32 seq)
{
	return call->arrival_ns;
}
#else
/* Arrivals before the read of the preface are kept with the connection. */
static __always_inline __u64 byte_arrival(struct streams_call *call, __u32 seq)
{
	struct arrival arrival;

	arrival.ns = arrival_among(&((struct http2_stored *)call->h)->arrivals, seq);
	if (!arrival.ns)
		arrival_of(call->c, seq, &arrival);
	return arrival.ns;
}
#endif

/* Return the arrival of the frame's first byte. */
static __always_inline __u64 frame_arrival(struct streams_call *call, const struct http2_way *way)
{
	return way->resumed ? way->begun_arrival_ns : byte_arrival(call, way->begun_seq);
}

/*
 * Put the new stream into the map. Return 0 if it has room. Not inline: the map takes values from the stack alone where
 * h is a parameter (6.1), and the callers' stack has no room.
 */
int stream_insert(struct http2_conn *h, __u32 id);

/* A stream is open, perhaps beside others: count it. Return 0. */
int streams_opened(struct http2_conn *h);

/* The connection ends: count its streams, once. Return 0. */
int streams_ended(struct http2_conn *h);

/* The client's HEADERS with a new identifier open a stream. */
static __always_inline void stream_opens(struct streams_call *call, const struct http2_way *way)
{
	struct http2_conn *h = call->h;
	__u32 id = way->side.stream;
	__u64 arrival_ns = frame_arrival(call, way);
	struct stream *st = &h->opening.stream;

	h->opening = (struct stream_entry){};
	st->service = h->service;
	st->first_read_ns = way->begun_read_ns;
	st->last_read_ns = call->now;
	st->bytes_in = HTTP2_HEADER + way->side.payload;
	st->route = ROUTE_CUT; /* until its header block is complete */
	h->opening.in.ended = way->side.last;

	h->highest = id;
	h->opened++;
	count_atomic(call->slot, COUNTER_STREAMS, 1);
	if (h->flags & HTTP2_LEAVING && id > h->last) {
		count_atomic(call->slot, COUNTER_STREAMS_REFUSED, 1);
		count_atomic(call->slot, COUNTER_UNANSWERED, 1);
		return;
	}
	if (arrival_ns) {
		st->start_ns = arrival_ns > call->accepted_ns ? arrival_ns : call->accepted_ns;
		st->accept_delay_ns = st->start_ns - arrival_ns;
	}
	if (st->start_ns > st->first_read_ns) {
		SLOT_COUNT(call->slot, COUNTER_INCONSISTENT, 1);
		st->start_ns = 0;
		st->accept_delay_ns = 0;
	}
	if (stream_sampled(call, id, st->start_ns))
		st->flags |= STREAM_SAMPLED;
	if (stream_insert(h, id))
		count_atomic(call->slot, COUNTER_STREAMS_LOST, 1);
	else
		streams_opened(h);
}

/* More headers of a request: trailers, too. */
static __always_inline void stream_read(struct streams_call *call, const struct http2_side *s,
					__u32 bytes)
{
	struct stream_entry *entry = stream_entry_of(call->h, s->stream);
	struct stream *st;

	if (!entry)
		return;
	st = &entry->stream;
	bytes_add(&st->bytes_in, bytes);
	entry->in.ended |= s->last;
	if (!(st->flags & STREAM_RESPONDING))
		st->last_read_ns = call->now;
}

/*
 * A side (enum reset_by) has reset a stream, with @error. If its response had begun it is still an exchange. Like stream_done() not
 * inline: the callers' stack has no room for the copy. Both return 0.
 */
int stream_reset(struct http2_conn *h, __u32 id, __u32 by, __u32 error);
/* The server has ended a stream. */
int stream_done(struct http2_conn *h, __u32 id);

/* A response begins: everything but its own length is known. Return 0. */
int stream_answered(struct service_slot *slot, struct stream *st, __u64 now);

/* As exchange_responding(). */
static __always_inline void stream_responding(struct streams_call *call, struct stream *st)
{
	__u64 now = call->now, last_ns = st->last_write_ns;

	if (now <= last_ns)
		return;
	st->last_write_ns = now;
	if (st->first_write_ns < epoch_ns) {
		if (!(st->flags & STREAM_CARRIED))
			SLOT_COUNT(call->slot, COUNTER_CARRIED, 1);
		st->flags |= STREAM_CARRIED;
	} else if (st->start_ns) {
		st->respond_bucket = respond_move(&call->slot->stages[STAGE_RESPOND],
						  st->respond_bucket, last_ns - st->first_write_ns,
						  REREAD(&st->last_write_ns) - st->first_write_ns);
	}
	note_last_message(call->slot, now);
}

/* ---- frames ---- */

static __always_inline void client_frame_begins(struct streams_call *call, struct http2_way *way)
{
	const struct http2_side *s = &way->side;

	if (s->type == HTTP2_HEADERS && s->stream > call->h->highest && stream_is_new(call->h, s))
		stream_opens(call, way);
	else if (s->type == HTTP2_HEADERS)
		stream_read(call, s, HTTP2_HEADER + s->payload);
	else if (s->type == HTTP2_RST_STREAM)
		stream_reset(call->h, s->stream, RESET_BY_CLIENT,
			     http2_u32(s->field + HTTP2_HEADER));
}

/* Count the end of a frame that began in an earlier read: the others are counted already. */
static __always_inline void client_frame_ends(struct streams_call *call, struct http2_way *way)
{
	const struct http2_side *s = &way->side;

	if (way->resumed && (s->type == HTTP2_HEADERS || s->type == HTTP2_CONTINUATION))
		stream_read(call, s, 0);
}

static __always_inline void server_leaves(struct streams_call *call, const struct http2_side *s)
{
	struct http2_conn *h = call->h;
	__u32 last = http2_u32(s->field + HTTP2_HEADER) & 0x7fffffff;

	if (!(h->flags & HTTP2_LEAVING))
		count_atomic(call->slot, COUNTER_GOAWAYS, 1);
	h->last = last;
	h->flags |= HTTP2_LEAVING;
}

/* @status: of a frame with HEADERS, otherwise not used. */
static __always_inline void server_frame_begins(struct streams_call *call, struct http2_way *way,
						__u32 status)
{
	const struct http2_side *s = &way->side;
	struct stream_entry *entry;
	struct stream *st;

	if (s->type == HTTP2_RST_STREAM)
		stream_reset(call->h, s->stream, RESET_BY_SERVER,
			     http2_u32(s->field + HTTP2_HEADER));
	else if (s->type == HTTP2_GOAWAY)
		server_leaves(call, s);
	if (s->type != HTTP2_HEADERS)
		return;
	entry = stream_entry_of(call->h, s->stream);
	if (!entry)
		return;
	st = &entry->stream;
	bytes_add(&st->bytes_out, HTTP2_HEADER + s->payload);
	if (st->flags & STREAM_RESPONDING)
		return;
	if (status_is_interim(status) && !(s->flags & HTTP2_END_STREAM))
		return;
	/* An earlier frame may have brought the status. Perhaps it is an interim one. */
	if (call->h->flags & HTTP2_OLDER && !status && !(s->flags & HTTP2_END_STREAM)) {
		st->start_ns = 0;
		st->accept_delay_ns = 0;
	}
	stream_answered(call->slot, st, call->now);
	status_count(call->h->service, status,
		     st->start_ns ? st->first_write_ns - st->last_read_ns : STATUS_UNTIMED);
	if (config.route_rows)
		route_stream_answered(st, call->h->service, status);
	if (!(s->flags & HTTP2_END_STREAM))
		window_begins(call->h, entry, call->now);
}

static __always_inline void server_frame_ends(struct streams_call *call, struct http2_way *way)
{
	const struct http2_side *s = &way->side;
	bool last = http2_is_last(s);
	struct stream_entry *entry;
	struct stream *found;

	if (s->type == HTTP2_PING)
		window_asks(call->h, call->now);
	if (s->type != HTTP2_DATA && !(last || (way->resumed && s->type == HTTP2_HEADERS)))
		return;
	entry = stream_entry_of(call->h, s->stream);
	if (s->type == HTTP2_DATA)
		window_wrote(call->h, entry, call->now);
	if (!entry && last)
		stream_ended_unseen(call->h, call->slot, s->stream);
	if (!entry)
		return;
	found = &entry->stream;
	if (!(found->flags & STREAM_RESPONDING))
		return;
	/* A response of events has ended with its head. */
	if (!(found->flags & STREAM_EVENTS)) {
		if (s->type == HTTP2_DATA)
			bytes_add(&found->bytes_out, HTTP2_HEADER + s->payload);
		if (config.route_rows)
			route_stream_responding(found, call->h->service, call->now);
		stream_responding(call, found);
	}
	if (last)
		stream_done(call->h, s->stream);
}

/* ---- the walk ---- */

static __always_inline void way_pass(struct http2_way *way, __u32 count)
{
	bytes_pass(&way->bytes, count);
	way->rest -= count;
	way->next += count;
}

/* Skip bytes before the first frame: the preface, and bytes before it. */
static __always_inline void way_skip(struct http2_way *way, __u32 room)
{
	__u32 count = way->skip < room ? way->skip : room;

	way->skip -= count;
	way_pass(way, count);
}

/*
 * Take a step in the next @room bytes of frames, and return its result. Not inline: the verifier would follow each kind of
 * frame through all that comes after it.
 */
__u32 way_frame(struct http2_way *way, __u32 room);

/* Take a step. Return true if it was the last. @said is its result. */
static __always_inline bool way_step(struct streams_call *call, struct http2_way *way, __u32 *said)
{
	__u32 room = way->rest;

	*said = 0;
	if (!room)
		return true;
	if (!bytes_more(&way->bytes)) {
		call->wrong = true;
		return true;
	}
	if (room > way->bytes.left)
		room = way->bytes.left;
	if (way->skip)
		way_skip(way, room);
	else if (room)
		*said = way_frame(way, room);
	else
		way->side.taken = 0; /* the next buffer is empty */
	if (*said & HTTP2_WRONG)
		call->wrong = true;
	return call->wrong;
}

static long streams_in_step(__u32 i, struct streams_call *call)
{
	struct http2_way *way = &call->h->in;
	__u32 said;

	if (!way->side.have) {
		way->begun_seq = way->next + way->skip;
		way->begun_read_ns = call->now;
		way->resumed = false;
	}
	if (way_step(call, way, &said))
		return 1;
	if (call->h->flags & HTTP2_OLDER && older_seek(call->h, said, HTTP2_PROVED_IN))
		return 0;
	if (said & HTTP2_BEGINS)
		client_frame_begins(call, way);
	if (way->side.type == HTTP2_DATA && (said || way->side.taken))
		grpc_read(call->h, said, way->bytes.at, call->now);
	if (window_read(call->h, said, way->bytes.at, call->now) < 0)
		call->wrong = true;
	if (config.route_rows)
		route_in_block(call->h, said, way->bytes.at);
	if (said & HTTP2_ENDS)
		client_frame_ends(call, way);
	return 0;
}

static long streams_out_step(__u32 i, struct streams_call *call)
{
	struct http2_way *way = &call->h->out;
	__u32 said, status;

	if (!way->side.have)
		way->resumed = false;
	if (way_step(call, way, &said))
		return 1;
	if (call->h->flags & HTTP2_OLDER && older_seek(call->h, said, HTTP2_PROVED_OUT))
		return 0;
	/* This ignores other frames: a test here would make the verifier follow more paths. */
	status = status_in_block(call->h, said, way->bytes.at);
	if (said & HTTP2_BEGINS)
		server_frame_begins(call, way, status);
	if (call->h->flags & HTTP2_GRPC && way->side.type == HTTP2_DATA && way->side.taken)
		grpc_wrote(call->h, way->bytes.at);
	if (said & HTTP2_ENDS)
		server_frame_ends(call, way);
	return 0;
}

/*
 * A call has transferred @count bytes, the last of which is before @end. Bytes before these may
 * have passed unseen (splice, sendfile, io_uring). That is accepted if they belong to one frame's
 * DATA; @said is the result of skipping them.
 */
static __always_inline bool way_begin(struct http2_way *way, __u32 count, __u32 end, bool visible,
				      __u32 *said)
{
	__u32 first = end - count, unseen = way->begun ? first - way->next : 0;

	*said = 0;
	if (!way->begun)
		way->next = first;
	way->begun = true;
	way->resumed = true;
	way->rest = 0;
	way->side.taken = 0;
	bytes_begin(&way->bytes, count);
	if (!visible || (!way->bytes.left && !way->bytes.vectors))
		unseen += count;
	else
		way->rest = count;
	if (!unseen)
		return true;
	*said = way->skip ? HTTP2_WRONG : http2_unseen(&way->side, unseen);
	way->next += unseen;
	return !(*said & HTTP2_WRONG);
}

/* Follow the rest of a read. */
static __always_inline void streams_walk_read(struct streams_call *call)
{
	struct http2_way *way = &call->h->in;

	if (!call->wrong)
		bpf_loop(STREAMS_STEPS, streams_in_step, call, 0);
	/* Keep the arrival of a cut header now: it may be overwritten before the next read. */
	if (way->side.have && way->side.have < way->side.want && !way->resumed)
		way->begun_arrival_ns = frame_arrival(call, way);
	if ((call->wrong || way->rest) && !older_seek_again(call->h, HTTP2_PROVED_IN))
		streams_give_up(call);
}

static __always_inline void streams_walk_write(struct streams_call *call)
{
	if (!call->wrong)
		bpf_loop(STREAMS_STEPS, streams_out_step, call, 0);
	if ((call->wrong || call->h->out.rest) && !older_seek_again(call->h, HTTP2_PROVED_OUT))
		streams_give_up(call);
}

/* A read has returned @bytes, up to @end. */
static __always_inline void streams_read(struct streams_call *call, __u32 bytes, __u32 end,
					 bool visible)
{
	struct http2_way *way = &call->h->in;
	__u32 said;

	if ((call->h->flags & (HTTP2_FOLLOWED | HTTP2_GIVEN_UP)) != HTTP2_FOLLOWED)
		return;
	if (!way_begin(way, bytes, end, visible, &said))
		call->wrong = true;
	if (way->side.taken)
		grpc_read(call->h, said, 0, call->now);
	streams_walk_read(call);
}

static __always_inline void streams_write(struct streams_call *call, __u32 bytes, __u32 end)
{
	struct http2_way *way = &call->h->out;
	__u32 said;

	if (call->h->flags & HTTP2_GIVEN_UP)
		return;
	if (!way_begin(way, bytes, end, true, &said))
		call->wrong = true;
	if (call->h->flags & HTTP2_GRPC && way->side.taken)
		grpc_wrote(call->h, 0);
	if (said & HTTP2_ENDS)
		server_frame_ends(call, way);
	streams_walk_write(call);
	call->c->last_write_ns = call->now;
}

/* ---- which connections ---- */

static __always_inline void http2_init(struct http2_conn *h, __u32 service, __u32 flow_hash)
{
	h->number = __sync_fetch_and_add(&http2_next, 1);
	h->service = service;
	h->flow_hash = flow_hash;
	h->window.first = WINDOW_START;
	h->in.side.by_client = true;
	h->in.side.followed = config.route_rows != 0;
}

/* NULL: the kernel has no memory. */
static __always_inline struct http2_conn *http2_new(const struct sock *sk, struct conn *c)
{
	struct http2_stored *stored =
		bpf_sk_storage_get(&http2_conns, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct http2_conn *h = stored ? &stored->conn : NULL;

	if (!h)
		return NULL;
	http2_init(h, c->service, c->flow_hash);
	if (config.ring_bytes)
		flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &h->flow);
	return h;
}

/*
 * The client's preface was read, which ends @before bytes after the start of a read. Return whether the streams are
 * followed: all earlier writes of the server must have been followed, too.
 */
static __always_inline bool streams_begin(const struct sock *sk, struct conn *c, __u32 before)
{
	struct http2_conn *h = http2_of(sk);

	if (!h && !c->last_write_ns)
		h = http2_new(sk, c);
	if (!h || h->flags & HTTP2_GIVEN_UP)
		return false;
	h->in.skip = before;
	h->flags |= HTTP2_FOLLOWED;
	return true;
}

/*
 * Seek the frames of an older connection. The first one may be @before bytes after the start of the current read, or at
 * the start of any later read or write. Return whether there is memory for it.
 */
static __always_inline bool streams_begin_older(const struct sock *sk, struct conn *c, __u32 before)
{
	struct http2_conn *h = http2_of(sk) ? NULL : http2_new(sk, c);

	if (!h)
		return false;
	h->flags |= HTTP2_FOLLOWED | HTTP2_OLDER;
	h->in.skip = before;
	side_seek(&h->in.side);
	side_seek(&h->out.side);
	return true;
}

/* Return whether the server's first write begins with SETTINGS. */
static __always_inline bool streams_settings(__u32 bytes)
{
	__u8 header[HTTP2_HEADER + 7] = {};
	struct bytes b;

	bytes_begin(&b, bytes);
	return bytes >= HTTP2_HEADER && bytes_more(&b) && b.left >= HTTP2_HEADER &&
	       !bpf_probe_read_user(header, HTTP2_HEADER, (void *)b.at) && !header[0] &&
	       header[3] == HTTP2_SETTINGS && !header[4] && !http2_u32(header + 5);
}

/*
 * The server writes before the client's preface was read, as many do. If the bytes are HTTP/2 they
 * are followed.
 */
static __always_inline struct http2_conn *http2_early(const struct sock *sk, struct conn *c,
						      __u32 bytes)
{
	struct http2_conn *h;

	if (c->last_read_ns || !c->established_ns)
		return NULL;
	h = http2_of(sk);
	if (!h && !c->last_write_ns && streams_settings(bytes))
		return http2_new(sk, c);
	return h && !(h->flags & HTTP2_GIVEN_UP) ? h : NULL;
}

/*
 * Return whether a write of @bytes is of a connection whose streams are followed. Then *ret_call is ready for streams_write().
 * @early: it may precede the read of the client's preface.
 */
static __always_inline bool streams_are_written(const struct sock *sk, struct conn *c, __u32 bytes,
						bool early, struct streams_call *ret_call)
{
	struct streams_call call = {.c = c};

	if (c->marks & MARK_MULTIPLEXED)
		call.h = http2_of(sk);
	else if (!(c->marks & MARK_SETTLED) && early)
		call.h = http2_early(sk, c, bytes);
	call.slot = call.h ? slot_of(c->service) : NULL;
	if (!call.slot)
		return false;
	call.h->service = c->service;
	call.now = clock_written(sk, c);
	*ret_call = call;
	return true;
}

#endif
