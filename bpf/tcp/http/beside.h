/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Streams of HTTP/2 without --http. The plain programs recognise HTTP/2 (speaks.h) and report it to user space, which then
 * attaches others beside them, which only follow frames. All else of a connection, its bytes included, goes on to be
 * counted by the plain programs. So nothing is counted twice or missed when the others come. An exchange of another
 * protocol is timed by the same programs as before.
 *
 * A hook runs its programs in the order in which they were attached: the plain one has seen each event already.
 *
 * A connection that was recognised before they came is older than they are, and is picked up (older.h).
 *
 * A file with the plain programs defines STREAMS_BESIDE. Neighbours: streams.h, exchange.bpf.c,
 * observer/kernel/loader.c (loader_follow_streams()).
 */
#ifndef BPF_TCP_HTTP_BESIDE_H
#define BPF_TCP_HTTP_BESIDE_H

#include "streams.h"
#include "tcp/connection/arrival.h"

#ifdef STREAMS_BESIDE
#define BESIDE config.beside
#else
#define BESIDE 0
#endif

/* ---- the plain programs ---- */

/* Report that a connection speaks HTTP/2. */
static __always_inline void beside_want(void)
{
	__u32 wanted = 1;

	if (streams_wanted)
		return;
	streams_wanted = 1;
	if (config.ring_bytes)
		bpf_ringbuf_output(&ring, &wanted, sizeof(wanted), BPF_RB_FORCE_WAKEUP);
}

/*
 * The connection speaks HTTP/2. Its frames begin @before bytes after the start of the current read; 0: somewhere. Return
 * the counter that counts the connection.
 */
static __always_inline enum counter beside_begin(const struct sock *sk, struct conn *c,
						 __u32 before)
{
	bool attached = streams_attached;

	if (attached && before && streams_begin(sk, c, before))
		return COUNTER_HTTP2;
	if (!attached) {
		before = 0; /* nobody follows this read */
		beside_want();
	}
	return streams_begin_older(sk, c, before) ? COUNTER_HTTP2_OLDER : COUNTER_MULTIPLEXED;
}

/* Return whether a write of @bytes is of frames that the server sends before it has read the client's preface. */
static __always_inline bool beside_early(const struct sock *sk, struct conn *c, __u32 bytes)
{
	return BESIDE && streams_attached && !(c->marks & MARK_SETTLED) &&
	       http2_early(sk, c, bytes);
}

/* ---- those for streams ---- */

static __always_inline void beside_arrival(const struct sock *sk)
{
	struct conn *c = conn_of(sk);

	if (c && c->marks & MARK_MULTIPLEXED && !(c->flags & CONN_WRITES_OVER))
		streams_arrived(sk, c);
}

static __always_inline void beside_read(const struct sock *sk, struct conn *c, __u32 bytes,
					__u32 flags)
{
	struct streams_call call = {.c = c};

	if (c->marks & MARK_MULTIPLEXED && !(c->flags & CONN_WRITES_OVER))
		call.h = http2_of(sk);
	call.slot = call.h ? slot_of(c->service) : NULL;
	if (!call.slot)
		return;
	call.h->service = c->service;
	call.now = bpf_ktime_get_ns();
	call.accepted_ns = c->first_read_ns ? 0 : c->start_ns;
	c->last_read_ns = call.now;
	streams_read(&call, bytes, read_end(sk), !(flags & FLAG_TRUNCATES));
}

static __always_inline void beside_write(const struct sock *sk, struct conn *c, __u32 bytes)
{
	struct streams_call call;

	if (streams_are_written(sk, c, bytes, streams_attached, &call))
		streams_write(&call, bytes, TCP_FIELD(sk, write_seq));
}

#endif
