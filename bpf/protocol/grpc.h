/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Counts the messages of gRPC in one direction of a stream: each has a prefix of five bytes, a flag and its length. DATA
 * frames may cut them anywhere, or hold any number of them. Only prefixes are read, so it does not matter whether messages
 * are compressed.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: http2.h (which bytes are data), tcp/http/grpc.h.
 */
#ifndef BPF_PROTOCOL_GRPC_H
#define BPF_PROTOCOL_GRPC_H

#include "http2.h"
#include "wire/status.h"
#include "wire/stream.h"

#define GRPC_PREFIX	5
#define GRPC_COMPRESSED 1 /* the highest flag of a message */

/* Some data in the process's memory. */
struct grpc_part {
	struct grpc_messages *messages;
	__u64 at;
	__u32 left;
	__u32 pad;
};

/* Take the prefix, or its next byte. Return whether it may be one. */
static inline __attribute__((always_inline)) int grpc_prefix(struct grpc_messages *m,
							     struct grpc_part *part)
{
	__u8 bytes[8] = {};
	__u32 count = 1;

	if (!m->have && part->left >= GRPC_PREFIX) {
		if (HTTP2_COPY(bytes, GRPC_PREFIX, part->at))
			return 0;
		count = GRPC_PREFIX;
		m->left = http2_u32(bytes + 1);
	} else {
		if (HTTP2_COPY(bytes, 1, part->at))
			return 0;
		m->left = m->have > 1 ? m->left << 8 | bytes[0] : m->have * bytes[0];
	}
	if (!m->have && bytes[0] > GRPC_COMPRESSED)
		return 0;
	m->have += count;
	part->at += count;
	part->left -= count;
	return 1;
}

/* After the prefix: skip @count bytes of the message at most. Return how many. */
static inline __attribute__((always_inline)) __u32 grpc_skip(struct grpc_messages *m, __u32 count)
{
	if (count > m->left)
		count = m->left;
	m->left -= count;
	if (m->left)
		return count;
	m->have = 0;
	m->count++;
	return count;
}

static inline long grpc_step(__u32 i, struct grpc_part *part)
{
	struct grpc_messages *m = part->messages;
	__u32 count;

	(void)i;
	if (!part->left)
		return 1;
	if (m->have < GRPC_PREFIX && !grpc_prefix(m, part)) {
		m->lost = 1;
		return 1;
	}
	if (m->have < GRPC_PREFIX)
		return 0;
	count = grpc_skip(m, part->left);
	part->at += count;
	part->left -= count;
	return 0;
}

/*
 * Follow the next @count bytes of data, at @at, in at most @steps. A message takes one, and a prefix that was cut up to
 * four more. Return how many messages were completed.
 */
static inline __attribute__((always_inline)) __u32 grpc_follow(struct grpc_messages *m, __u64 at,
							       __u32 count, __u32 steps)
{
	struct grpc_part part = {.messages = m, .at = at, .left = count};
	__u32 before = m->count;

	if (m->lost)
		return 0;
	HTTP2_LOOP(steps, grpc_step, &part);
	if (part.left)
		m->lost = 1;
	return m->count - before;
}

/* The same for data that cannot be read: it has to belong to one message whose prefix was read. */
static inline __attribute__((always_inline)) __u32 grpc_unseen(struct grpc_messages *m, __u32 count)
{
	__u32 before = m->count;

	if (m->lost || !count)
		return 0;
	if (m->have < GRPC_PREFIX || count > m->left)
		m->lost = 1;
	else
		grpc_skip(m, count);
	return m->count - before;
}

/* ---- kinds of calls ---- */

/* How many messages one direction of a call has. */
enum grpc_number {
	GRPC_OPEN,    /* none or one, and there might have been more */
	GRPC_ONE,     /* exactly */
	GRPC_NOT_ONE, /* several, or none: it streams */
	GRPC_LOST,    /* not known */
};

/* @final: there could be no more messages. */
static inline __attribute__((always_inline)) __u32 grpc_number(const struct grpc_messages *m,
							       int final)
{
	if (m->lost || (final && m->have))
		return GRPC_LOST;
	if (m->count > 1)
		return GRPC_NOT_ONE;
	if (!final)
		return GRPC_OPEN;
	return m->count ? GRPC_ONE : GRPC_NOT_ONE;
}

/*
 * Return the kind of a call that is over. @ok: its status is 0, so the server has sent all it wanted. The client has if
 * its END_STREAM was read.
 */
static inline __attribute__((always_inline)) __u32 grpc_kind(__u32 in, __u32 out)
{
	if (in == GRPC_LOST || out == GRPC_LOST)
		return GRPC_KIND_NOT_KNOWN;
	if (in == GRPC_OPEN || out == GRPC_OPEN)
		return GRPC_KIND_UNDECIDED;
	if (in == GRPC_ONE)
		return out == GRPC_ONE ? GRPC_KIND_UNARY : GRPC_KIND_SERVER_STREAMING;
	return out == GRPC_ONE ? GRPC_KIND_CLIENT_STREAMING : GRPC_KIND_BIDIRECTIONAL;
}

#endif
