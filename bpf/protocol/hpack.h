/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Follows all header blocks of one direction of HTTP/2 (RFC 7541), to know the statuses in the
 * dynamic table. Its entries are numbered from the latest one on, so fields only have to be counted
 * as they enter. Their sizes do not matter: no index refers to a field that was evicted or was too
 * large to enter, nor to one before it.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: status.h, http2.h.
 */
#ifndef BPF_PROTOCOL_HPACK_H
#define BPF_PROTOCOL_HPACK_H

#include <linux/types.h>

#include "status.h"

/* The latest fields that are kept: the most that a table of 4,096 bytes holds. A power of 2. */
#define HPACK_ENTRIES 128
#define HPACK_SHIFTS  21 /* lengths are below 2^28 */

/* The meaning of a block's next byte. */
enum hpack_stage {
	HPACK_AT_FIELD,	 /* the first one of a field */
	HPACK_AT_INDEX,	 /* more of its index, or of the table's size */
	HPACK_AT_LENGTH, /* the first one of a string's length */
	HPACK_AT_MORE,	 /* more of that length */
};

/* All zeros: no block has come yet. */
struct hpack_table {
	__u32 entered;	/* fields, ever */
	__u32 skip;	/* bytes of a string before the next byte that matters */
	__u32 length;	/* of the string, as far as it was read */
	__u32 fragment; /* bytes of the block in this frame still to come */
	__u16 status;	/* of the block's first field, until that field is past */
	__u8 stage;	/* enum hpack_stage */
	__u8 strings;	/* of the field that are to come */
	__u8 shift;	/* of the next byte of the length */
	__u8 lost;	/* something was not understood or not seen: the table is not known */
	__u8 pad[2];
	__u16 statuses[HPACK_ENTRIES]; /* in the fields' order; STATUS_UNKNOWN: another field */
};

/* Return the status in entry @index, which counts through the static and the dynamic table. */
static inline __attribute__((always_inline)) __u32 hpack_status(const struct hpack_table *t,
								__u32 index)
{
	__u32 back = index - HPACK_DYNAMIC_FIRST;

	if (index < HPACK_DYNAMIC_FIRST || t->lost || back >= HPACK_ENTRIES || back >= t->entered)
		return STATUS_UNKNOWN;
	return t->statuses[(t->entered - 1 - back) & (HPACK_ENTRIES - 1)];
}

static inline __attribute__((always_inline)) void hpack_enters(struct hpack_table *t)
{
	t->statuses[t->entered & (HPACK_ENTRIES - 1)] = t->status;
	t->entered++;
}

/* The field's next string follows, or the next field. */
static inline __attribute__((always_inline)) void hpack_goes_on(struct hpack_table *t)
{
	t->stage = t->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
}

static inline __attribute__((always_inline)) void hpack_string(struct hpack_table *t)
{
	t->skip = t->length;
	t->strings--;
	hpack_goes_on(t);
}

/* A field's first byte, whose lower bits begin an index. */
static inline __attribute__((always_inline)) void hpack_field(struct hpack_table *t, __u32 byte)
{
	__u32 most = 0x0f, literal = 1;

	if (byte & HPACK_INDEXED) {
		most = 0x7f;
		literal = 0;
	} else if (byte & HPACK_ADDED) {
		most = 0x3f;
		hpack_enters(t);
	} else if (byte & HPACK_RESIZE) {
		most = 0x1f;
		literal = 0;
	}
	if (literal || byte & HPACK_INDEXED)
		t->status = STATUS_UNKNOWN;
	/* The value, and before it the name if it has no index. */
	t->strings = literal ? 1 + !(byte & most) : 0;
	if ((byte & most) == most)
		t->stage = HPACK_AT_INDEX;
	else
		hpack_goes_on(t);
}

/* The next byte outside strings. */
static inline __attribute__((always_inline)) void hpack_byte(struct hpack_table *t, __u32 byte)
{
	switch (t->stage) {
	case HPACK_AT_FIELD:
		hpack_field(t, byte);
		break;
	case HPACK_AT_INDEX:
		if (!(byte & 0x80))
			hpack_goes_on(t);
		break;
	case HPACK_AT_LENGTH:
		t->length = byte & 0x7f;
		t->shift = 0;
		if (t->length == 0x7f)
			t->stage = HPACK_AT_MORE;
		else
			hpack_string(t);
		break;
	default:
		t->length += (byte & 0x7f) << (t->shift & 31);
		t->shift += 7;
		if (!(byte & 0x80))
			hpack_string(t);
		else if (t->shift > HPACK_SHIFTS)
			t->lost = 1;
	}
}

#endif
