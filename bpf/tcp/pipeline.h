/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Requests of HTTP/1 that a client sends before it has the response to an earlier one, with --http. Each read of a
 * connection of HTTP/1 is looked at: does a second request begin before the first one is answered? If so, requests and
 * responses of the connection are followed from that read on, with the queue of commands.h.
 *
 * On other connections nothing but that look is done. It needs no state, as long as each read ends with a whole
 * request. Some bytes are not seen or not understood. Then the connection is counted, and neither looked at nor
 * followed any more: reads and writes are exchanges.
 *
 * The functions are not inline, as those of status.h: pipeline.bpf.c. Neighbours: protocol/http1.h, commands.h.
 */
#ifndef BPF_TCP_PIPELINE_H
#define BPF_TCP_PIPELINE_H

#include "commands.h"
#include "protocol/http1.h"
#include "tcp/http/route.h"

/* The result of a look. */
enum pipeline {
	PIPELINE_ONE,  /* one request, which is complete */
	PIPELINE_KEPT, /* one request, of which the next look must know */
	PIPELINE_MORE, /* another one begins */
	PIPELINE_WRONG,
	PIPELINE_UNSEEN,
	PIPELINE_UNCLEAR, /* of pipeline_head() */
};

/*
 * Look at a read of @count bytes. @first: a request begins after @skip of them; otherwise the one of earlier reads is
 * under way. @h: the connection's state, or one of zeros. After PIPELINE_MORE it is as before.
 */
int pipeline_look(struct command_conn *h, __u32 count, __u32 skip, int first);

/*
 * The same for a read with which a request begins, if its head can be found without a look at each byte. PIPELINE_UNCLEAR: it
 * cannot, or more bytes follow the request. @look: room for the bytes, and the state after PIPELINE_KEPT.
 */
int pipeline_head(struct command_conn *look, __u32 count);

/* The request of @c was read until @last_read_ns, and is under way or complete: it is the first one. Return 0. */
int pipeline_takes(struct command_conn *h, const struct conn *c, __u64 last_read_ns);

/* A connection is given up: count it. Return 0. */
int pipeline_lost(struct command_conn *h, __u32 over);

/* Return what the queue keeps of the request under way (command.h). */
static __always_inline __u32 pipeline_kind(const struct command_conn *h)
{
	__u32 kind = h->route;

	if (kind == ROUTE_WANTED)
		kind = h->line.stage == REQUEST_OVER
			       ? ROUTE_FIRST +
					 route_row_of(h->line.method.misses | h->line.path.misses,
						      config.route_rows - 1)
		       : h->line.stage == REQUEST_STRANGE ? ROUTE_STRANGE
							  : ROUTE_CUT;
	if (h->in.type & HTTP1_IS_HEAD)
		kind |= COMMAND_BODILESS;
	return h->in.type & HTTP1_IS_CONNECT ? kind | COMMAND_LEAVES : kind;
}

/* Return the first two bits of the response's enum http1_type. */
static __always_inline __u8 pipeline_type(__u32 kind)
{
	return (kind & COMMAND_BODILESS ? HTTP1_IS_HEAD : 0) |
	       (kind & COMMAND_LEAVES ? HTTP1_IS_CONNECT : 0);
}

/* Follow the connection from its current read of @bytes on. The exchange that has begun is the first one. */
static __always_inline void pipeline_begin(const struct sock *sk, struct command_conn *h,
					   struct conn *c, __u32 bytes, __u64 last_read_ns)
{
	struct service_slot *slot = slot_of(c->service);
	__u32 over;

	if (!slot)
		return;
	h->protocol = COMMAND_HTTP1;
	h->flow_hash = c->flow_hash;
	if (config.ring_bytes && c->established_ns)
		flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &h->flow);
	h->service = c->service;
	h->index = c->index;
	h->now = c->last_read_ns;
	h->end = read_end(sk);
	h->rest = bytes;
	if (last_read_ns) {
		pipeline_takes(h, c, last_read_ns);
	} else {
		h->accepted_ns = c->accept_delay_ns ? c->start_ns : 0;
		h->in.skip = bytes - c->bytes_in;
	}
	over = pipeline_in(h, c);
	if (over) {
		pipeline_lost(h, over);
		return;
	}
	count_atomic(slot, COUNTER_PIPELINED, 1);
	transmit_end(sk, c);
	c->phase = CONN_IDLE;
	c->marks = (c->marks & MARK_LASTING) | MARK_MULTIPLEXED | MARK_SETTLED;
	c->bytes_in = 0;
	c->start_ns = 0;
}

/* Instead of a time: the first bytes of the request under way were too few to show HTTP/1. */
#define PIPELINE_UNKNOWN (~0ULL)

/* Before a read: return when the request under way was read so far; 0: there is none. */
static __always_inline __u64 pipeline_last_read(const struct conn *c)
{
	if (c->phase != CONN_READING)
		return 0;
	return c->marks & MARK_HTTP1 ? c->last_read_ns : PIPELINE_UNKNOWN;
}

static __always_inline bool pipeline_is_possible(const struct sock *sk, const struct conn *c,
						 __u32 flags)
{
	return c->phase == CONN_READING && !(flags & FLAG_TRUNCATES) &&
	       (c->marks & (MARK_HTTP1 | MARK_TLS | MARK_UNSEEN | MARK_MULTIPLEXED)) ==
		       MARK_HTTP1 &&
	       !(config.command_count && command_protocol(sk));
}

/*
 * After all else of a read of @bytes, a separate step as route_follow(). @last_read_ns: what pipeline_last_read() has returned
 * before this read.
 */
static __always_inline void pipeline_follow(const struct sock *sk, struct conn *c, __u32 bytes,
					    __u32 flags, __u64 last_read_ns)
{
	struct command_conn *h, *look;
	int said = PIPELINE_UNCLEAR;
	__u32 zero = 0;

	if (!pipeline_is_possible(sk, c, flags))
		return;
	h = c->touched & TOUCHED_KEPT ? command_conn_of(sk) : NULL;
	if (h && h->over)
		return;
	look = bpf_map_lookup_elem(&pipeline_looks, &zero);
	if (!look)
		return;
	if (!last_read_ns && (!h || h->in.stage == HTTP1_START) && c->bytes_in == bytes)
		said = pipeline_head(look, bytes);
	if (said == PIPELINE_ONE && h)
		h->in.type = 0;
	if (said == PIPELINE_UNCLEAR) {
		if (h)
			look = h;
		else
			look->in = (struct command_side){};
		said = last_read_ns == PIPELINE_UNKNOWN
			       ? PIPELINE_UNSEEN
			       : pipeline_look(look, bytes, bytes - c->bytes_in, !last_read_ns);
	}
	if (said == PIPELINE_ONE)
		return;
	if (!h)
		h = bpf_sk_storage_get(&command_conns, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return;
	c->touched |= TOUCHED_KEPT;
	h->service = c->service;
	if (said == PIPELINE_MORE)
		pipeline_begin(sk, h, c, bytes, last_read_ns);
	else if (said != PIPELINE_KEPT)
		pipeline_lost(h, said == PIPELINE_UNSEEN ? ROUTE_UNSEEN + 1 : ROUTE_STRANGE + 1);
	else if (h != look)
		h->in = look->in;
}

#endif
