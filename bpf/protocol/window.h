/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Gathers the numbers in the client's SETTINGS and WINDOW_UPDATE frames (RFC 9113, 6.5 and 6.9), cut at any byte. They
 * say how much DATA the server may send.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: http2.h (which bytes are payload), tcp/http/window.h.
 */
#ifndef BPF_PROTOCOL_WINDOW_H
#define BPF_PROTOCOL_WINDOW_H

#include "http2.h"

/* Of a connection, and of each stream until SETTINGS say otherwise. */
#define WINDOW_START 65535
#define WINDOW_MOST  0x7fffffffU

#define WINDOW_SETTING	     6 /* bytes of one setting: its identifier and its value */
#define WINDOW_INCREMENT     4
#define SETTINGS_WINDOW_SIZE 4 /* the identifier of SETTINGS_INITIAL_WINDOW_SIZE */

/* The number under way. All zeros: none has begun. */
struct window_number {
	__u64 value; /* of the bytes so far, the first one highest */
	__u32 have;  /* number of these bytes */
	__u32 pad;
};

/* The bytes that one step has of such a frame's payload. */
struct window_part {
	struct window_number *number;
	__u64 at;
	__u32 left;
	__u32 unit;  /* bytes of each number */
	__u32 found; /* a number that matters is complete: */
	__u32 value; /* the last such number */
	__u32 lost;  /* bytes could not be read */
	__u32 pad;
};

/* A number is complete. */
static inline __attribute__((always_inline)) void window_complete(struct window_part *part)
{
	__u64 value = part->number->value;

	part->number->have = 0;
	part->number->value = 0;
	if (part->unit == WINDOW_SETTING && value >> 32 != SETTINGS_WINDOW_SIZE)
		return;
	part->found = 1;
	part->value = (__u32)value;
}

static inline long window_step(__u32 i, struct window_part *part)
{
	struct window_number *n = part->number;
	__u8 byte = 0;

	(void)i;
	if (!part->left)
		return 1;
	if (HTTP2_COPY(&byte, 1, part->at)) {
		part->lost = 1;
		return 1;
	}
	part->at++;
	part->left--;
	n->value = n->value << 8 | byte;
	n->have++;
	if (n->have == part->unit)
		window_complete(part);
	return 0;
}

/* Return whether a step that has returned @said was in such a frame, and window_follow() is for it. */
static inline __attribute__((always_inline)) int window_is_told(const struct http2_side *s,
								__u32 said)
{
	return (s->type == HTTP2_SETTINGS || s->type == HTTP2_WINDOW_UPDATE) &&
	       (said & HTTP2_BEGINS || s->taken);
}

/*
 * After a step for which window_is_told(). It has returned @said, and taken bytes up to @end. Return whether
 * *ret_value is new: the increment, or the size of new streams' windows. Bytes that cannot be read set *ret_lost.
 */
static inline __attribute__((always_inline)) int window_follow(const struct http2_side *s,
							       struct window_number *n, __u32 said,
							       __u64 end, __u32 *ret_value,
							       __u32 *ret_lost)
{
	struct window_part part = {
		.number = n,
		.at = end - s->taken,
		.left = s->taken,
		.unit = s->type == HTTP2_SETTINGS ? WINDOW_SETTING : WINDOW_INCREMENT,
	};

	if (said & HTTP2_BEGINS)
		*n = (struct window_number){};
	HTTP2_LOOP(s->taken, window_step, &part);
	*ret_lost = part.lost;
	*ret_value = part.value & WINDOW_MOST;
	return (int)part.found;
}

#endif
