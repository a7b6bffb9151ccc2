/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Counts server-sent events in the body of a response (HTML Living Standard, 9.2.6). An empty line dispatches an event if
 * there was a field `data` since the one before. Lines end with CR, LF or both. Comments, which keep connections alive, are none.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: http1.h (which bytes are the body), tcp/pushes.h.
 */
#ifndef BPF_PROTOCOL_EVENTS_H
#define BPF_PROTOCOL_EVENTS_H

#include <linux/types.h>

/* The line under way; up to EVENTS_NAMED how many bytes of "data" it has. */
enum events_line {
	EVENTS_EMPTY,
	EVENTS_NAMED = 4,
	EVENTS_DATA,
	EVENTS_OTHER,
};

#define EVENTS_MARK 3 /* bytes of a byte order mark, which may precede the first line */

/* All zeros: no byte has come yet. */
struct events_side {
	__u8 line;   /* enum events_line */
	__u8 data;   /* there was a field of it */
	__u8 cr;     /* the latest byte was a carriage return */
	__u8 marked; /* bytes of the mark that have come; EVENTS_MARK: there are no more */
};

#define EVENTS_INLINE static inline __attribute__((always_inline))

/* Return the number of events that a line's end completes: 0 or 1. */
EVENTS_INLINE int events_line_over(struct events_side *s)
{
	int complete = s->line == EVENTS_EMPTY && s->data;

	if (s->line == EVENTS_EMPTY)
		s->data = 0;
	else if (s->line == EVENTS_NAMED || s->line == EVENTS_DATA)
		s->data = 1;
	s->line = EVENTS_EMPTY;
	return complete;
}

/* Return whether the byte belongs to a byte order mark. The start of one that is cut short begins a line. */
EVENTS_INLINE int events_is_mark(struct events_side *s, __u8 byte)
{
	__u8 at = s->marked;

	if (at >= EVENTS_MARK)
		return 0;
	if (byte == (at == 0 ? 0xef : at == 1 ? 0xbb : 0xbf)) {
		s->marked = at + 1;
		return 1;
	}
	s->marked = EVENTS_MARK;
	if (at)
		s->line = EVENTS_OTHER;
	return 0;
}

/* Take the next byte of the body. Return how many events it completes: 0 or 1. */
EVENTS_INLINE int events_byte(struct events_side *s, __u8 byte)
{
	__u8 line, after_cr = s->cr;

	if (events_is_mark(s, byte))
		return 0;
	line = s->line;
	s->cr = byte == '\r';
	if (byte == '\n' && after_cr)
		return 0;
	if (byte == '\r' || byte == '\n')
		return events_line_over(s);
	if (line < EVENTS_NAMED)
		s->line = byte == (line == 0   ? 'd'
				   : line == 2 ? 't'
					       : 'a')
				  ? line + 1
				  : EVENTS_OTHER;
	else if (line == EVENTS_NAMED)
		s->line = byte == ':' ? EVENTS_DATA : EVENTS_OTHER;
	return 0;
}

/* ---- their type, in the head of a response ---- */

/*
 * In a text that has the type anywhere, one of its first 9 words of 8 bytes is at a multiple of this. The tenth is one of
 * "application/octet-stream", too.
 */
#define EVENTS_TYPE_APART 9

/* Eight bytes, the first one lowest. */
#define EVENTS_WORD(a, b, c, d, e, f, g, h)                                                      \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Its words. The upper 4 bits of the product with the factor are the place of each. */
#define EVENTS_TYPE_FACTOR 0x6e3589d5ULL
static const __u64 events_type_parts[16] = {
	[0] = EVENTS_WORD('n', 't', '-', 's', 't', 'r', 'e', 'a'),
	[1] = EVENTS_WORD('t', 'e', 'x', 't', '/', 'e', 'v', 'e'),
	[2] = EVENTS_WORD('e', 'x', 't', '/', 'e', 'v', 'e', 'n'),
	[4] = EVENTS_WORD('e', 'n', 't', '-', 's', 't', 'r', 'e'),
	[9] = EVENTS_WORD('t', '/', 'e', 'v', 'e', 'n', 't', '-'),
	[11] = EVENTS_WORD('/', 'e', 'v', 'e', 'n', 't', '-', 's'),
	[13] = EVENTS_WORD('x', 't', '/', 'e', 'v', 'e', 'n', 't'),
	[14] = EVENTS_WORD('v', 'e', 'n', 't', '-', 's', 't', 'r'),
	[15] = EVENTS_WORD('e', 'v', 'e', 'n', 't', '-', 's', 't'),
};

/* Return whether 8 bytes, the first one lowest, are a part of the type "text/event-stream", in letters of any size. */
EVENTS_INLINE int events_type_part(__u64 bytes)
{
	bytes |= 0x2020202020202020ULL;
	return events_type_parts[bytes * EVENTS_TYPE_FACTOR >> 60] == bytes;
}

EVENTS_INLINE __u64 events_has(__u64 bytes, __u8 byte)
{
	__u64 differs = bytes ^ byte * 0x0101010101010101ULL;

	return (differs - 0x0101010101010101ULL) & ~differs & 0x8080808080808080ULL;
}

/* Return whether the next 8 bytes say nothing, and take them: most of a line are such. */
EVENTS_INLINE int events_pass(struct events_side *s, __u64 bytes)
{
	if (s->line < EVENTS_DATA || events_has(bytes, '\n') || events_has(bytes, '\r'))
		return 0;
	return 1;
}

#endif
