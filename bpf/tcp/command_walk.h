/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Goes through the bytes of a read or write of a connection whose messages are followed. Neighbours: commands.h, pipeline.h. */
#ifndef BPF_TCP_COMMAND_WALK_H
#define BPF_TCP_COMMAND_WALK_H

#include "tcp/connection/bytes.h"
#include "tcp/state/command.h"

/* Limit of bytes that are looked at, and of strings that are skipped, in one read or write. */
#define COMMANDS_STEPS (1 << 22)

struct command_call {
	struct command_conn *h;
	struct conn *c;
	__u64 over; /* why the connection is given up */
};

/* Get more bytes into the chunk, which is used up. Return whether there may be some. */
static __always_inline bool command_fill(struct command_conn *h, struct command_side *s)
{
	__u64 room = h->rest;

	h->at = 0;
	h->have = 0;
	if (room && s->skip >= room) {
		/* They need not be visible. */
		s->skip -= room;
		h->rest = 0;
		return true;
	}
	if (!room || !bytes_more(&h->bytes))
		return false;
	if (room > h->bytes.left)
		room = h->bytes.left;
	if (s->skip) {
		if (room > s->skip)
			room = s->skip;
		s->skip -= room;
	} else {
		if (room > COMMANDS_CHUNK)
			room = COMMANDS_CHUNK;
		barrier_var(room);
		if (room > COMMANDS_CHUNK ||
		    bpf_probe_read_user(h->chunk, room, (void *)h->bytes.at))
			return false;
		h->have = room;
	}
	bytes_pass(&h->bytes, room);
	h->rest -= room;
	return true;
}

/* Skip bytes of the chunk that say nothing. Return whether there were any. */
static __always_inline bool command_skip(struct command_conn *h, struct command_side *s)
{
	__u32 count = h->have - h->at;

	if (count > s->skip)
		count = s->skip;
	s->skip -= count;
	h->at += count;
	return count;
}

static __always_inline bool command_all_seen(const struct command_conn *h)
{
	return !h->rest && h->at >= h->have;
}

/* Begin at the first of the current call's bytes, h->rest. */
static __always_inline void command_walk_begins(struct command_conn *h)
{
	h->have = h->at = 0;
	bytes_begin(&h->bytes, h->rest);
}

/* A walk is over, for the reason @over. Return why the connection is given up; 0: it is not. */
static __always_inline __u64 command_walk_ends(const struct command_conn *h, __u64 over)
{
	if (over)
		return over;
	return command_all_seen(h) ? 0 : ROUTE_UNSEEN + 1;
}

/* Return the sequence number of the next byte. */
static __always_inline __u32 command_seq(const struct command_conn *h)
{
	return h->end - h->rest - h->have + h->at;
}

/* commands.bpf.c handles messages of any protocol. Each function returns 0, unless it says otherwise. */

/* A request begins with the byte before h->at. */
int command_asks(struct command_conn *h, struct conn *c);

/* The request under way is complete. @kind: what the queue keeps of it. */
int command_queued(struct command_conn *h, __u32 kind);

/* A reply begins, of which the parser has @said this. */
int command_answers(struct command_conn *h, int said);

/* The reply goes on in a later write than that which began it: move its time in RESPOND. */
int command_responds(struct command_conn *h);

/* It has ended. Return 0, or COMMAND_LEFT. */
int command_over(struct command_conn *h);

/* The walk through a write is over. Return why the connection is given up; 0: it is not. */
static __always_inline int command_wrote(struct command_conn *h, __u64 over)
{
	over = command_walk_ends(h, over);
	if (over)
		h->over = over;
	h->reply.end_seq = command_seq(h);
	if (!h->over && h->out.left)
		command_responds(h);
	return h->over;
}

#endif
