/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Requests by route, with --route. Reads bring a request's line (HTTP/1) or header block (HTTP/2), and with
 * it the route. The route is kept with the exchange or stream, and counted when the response begins. The
 * functions are not inline, as those of status.h, whose responses they count: route.bpf.c. Neighbours:
 * exchange.h, streams.h, protocol/request.h, protocol/hpack_request.h.
 */
#ifndef BPF_TCP_HTTP_ROUTE_H
#define BPF_TCP_HTTP_ROUTE_H

#include "tcp/connection/clear.h"
#include "tcp/connection/slot.h"
#include "tcp/state/command.h"

/* The route in struct conn and struct stream: enum route_unknown, or this plus the row of the route. */
#define ROUTE_FIRST ROUTE_UNKNOWN_COUNT
/* Its line is to be looked for in the current read. */
#define ROUTE_WANTED 0xff

/*
 * Take the bytes of a read, which has returned @count. @first: a request begins after c->route_skip of
 * them. Otherwise the line under way goes on. Set the exchange's route. @more: as below.
 */
int route_read(struct route_look *look, struct conn *c, __u32 count, int first, int more);

/*
 * The same for bytes that are not those of a read: @look has them, and their number in left. Return the
 * route. @more: another request may follow among them, so that the route is not known. Otherwise pipeline.h looks for it.
 */
int route_in(struct route_look *look, int first, int more);

/* If the request of @look has no @route of those given, put its path into the sample of @service (--propose-routes). Return 0. */
int route_sample_line(struct route_look *look, __u32 route, __u32 service);

/* Count the response that has begun, of which status_answered() of status.h counts the status. */
int route_answered(struct conn *c, int status);

/* Count a response of @service whose request has no route, for @reason: enum route_unknown. Return 0. */
int route_uncounted(__u32 service, __u32 reason);

/* The response goes on: move its time in RESPOND. Call this before exchange.h does the same. */
int route_responding(const struct conn *c, __u64 now);

/*
 * Follow the header blocks of the client's direction after each step, which has returned @said and
 * whose bytes end before @end. If a block ends that opened a stream, note its route in the stream.
 */
int route_in_block(struct http2_conn *h, __u32 said, __u64 end);

/* As route_answered() and route_responding(), for a stream of @service. */
int route_stream_answered(const struct stream *st, __u32 service, __u32 status);
int route_stream_responding(const struct stream *st, __u32 service, __u64 now);

/*
 * After all else of a read of @count bytes: look at those of a request's line. It is a separate step, as
 * each of the many paths through a read would come here otherwise.
 */
static __always_inline void route_follow(const struct sock *sk, struct conn *c, __u32 count,
					 __u32 flags)
{
	/* Bytes before those skipped were no request's: a part of a PROXY header was taken for one. */
	bool first = c->route == ROUTE_WANTED || c->route_skip;
	struct route_look *look = NULL;
	const struct command_conn *h;

	if (config.tls && clear_is_needed(c))
		return; /* records have no line */
	if (c->phase != CONN_READING || (c->route != ROUTE_WANTED && c->route != ROUTE_CUT))
		return;
	if (!(c->marks & MARK_UNSEEN) && !(flags & FLAG_TRUNCATES))
		look = bpf_sk_storage_get(&route_looks, (void *)sk, 0,
					  first ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	c->route = ROUTE_UNSEEN;
	if (!look)
		return;
	h = bpf_sk_storage_get(&command_conns, (void *)sk, 0, 0);
	route_read(look, c, count, first, h && h->over);
}

#endif
