/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Walks through the header blocks of one direction of HTTP/2, byte by byte (RFC 7541). Entries of the
 * dynamic table are numbered from the latest one on, so fields only have to be counted as they enter.
 * Their sizes do not matter: no index refers to a field that was evicted or was too large to enter,
 * nor to one before it.
 *
 * The same source runs in the kernel and in its unit test. Neighbours, which interpret the fields:
 * hpack.h (responses), hpack_request.h.
 */
#ifndef BPF_PROTOCOL_HPACK_WALK_H
#define BPF_PROTOCOL_HPACK_WALK_H

#include <linux/types.h>

/* The latest fields that are kept: the most that a table of 4,096 bytes holds. A power of 2. */
#define HPACK_ENTRIES 128
#define HPACK_SHIFTS  21 /* lengths are below 2^28 */
/* Indices from here on are of the dynamic table. */
#define HPACK_DYNAMIC_FIRST 62
#define HPACK_INDEXED	    0x80
#define HPACK_ADDED	    0x40 /* a literal that the dynamic table keeps */
#define HPACK_RESIZE	    0x20
#define HPACK_HUFFMAN	    0x80

/* The meaning of a block's next byte. */
enum hpack_stage {
	HPACK_AT_FIELD,	 /* the first one of a field */
	HPACK_AT_INDEX,	 /* more of its index, or of the table's size */
	HPACK_AT_LENGTH, /* the first one of a string's length */
	HPACK_AT_MORE,	 /* more of that length */
	HPACK_AT_TEXT,	 /* one of a string that matters */
};

/* The kind of a field, as bits. */
enum hpack_kind {
	HPACK_LITERAL = 1 << 0,
	HPACK_ENTERS = 1 << 1, /* a literal that the dynamic table keeps */
	HPACK_WHOLE = 1 << 2,  /* an entry of the tables */
};

/* Results of a step. */
enum hpack_event {
	HPACK_NOTHING,
	HPACK_FIELD,  /* the index is complete: of an entry, of a name, or the table's new size */
	HPACK_STRING, /* a string's length is complete: the owner calls hpack_string_over() */
	HPACK_TEXT,   /* the byte is one of the string */
};

/* All zeros: no block has come yet. */
struct hpack_walk {
	__u32 entered;	/* fields, ever */
	__u32 skip;	/* bytes of a string before the next byte that matters */
	__u32 length;	/* of the string, as far as it was read */
	__u32 fragment; /* bytes of the block in this frame still to come */
	__u32 index;	/* of the field, as far as it was read */
	__u8 stage;	/* enum hpack_stage */
	__u8 kind;	/* enum hpack_kind; 0: a change of the table's size */
	__u8 strings; /* of the field that are to come: the value, and before it perhaps the name */
	__u8 shift;   /* of the next byte of the length or index */
	__u8 huffman; /* the string is in Huffman's code */
	__u8 lost;    /* something was not understood or not seen: the table is not known */
	__u8 pad[2];
};

/*
 * Return the place of entry @index, which counts through both tables, among those that are kept.
 * HPACK_ENTRIES: it is not known.
 */
static inline __attribute__((always_inline)) __u32 hpack_place(const struct hpack_walk *w,
							       __u32 index)
{
	__u32 back = index - HPACK_DYNAMIC_FIRST;

	if (w->lost || back >= HPACK_ENTRIES || back >= w->entered)
		return HPACK_ENTRIES;
	return (w->entered - 1 - back) & (HPACK_ENTRIES - 1);
}

/* A field enters the dynamic table. Return its place. */
static inline __attribute__((always_inline)) __u32 hpack_enters(struct hpack_walk *w)
{
	return w->entered++ & (HPACK_ENTRIES - 1);
}

/* A field's first byte, whose lower bits begin an index. */
static inline __attribute__((always_inline)) enum hpack_event hpack_first_byte(struct hpack_walk *w,
									       __u32 byte)
{
	__u32 most = 0x0f, kind = HPACK_LITERAL;

	if (byte & HPACK_INDEXED) {
		most = 0x7f;
		kind = HPACK_WHOLE;
	} else if (byte & HPACK_ADDED) {
		most = 0x3f;
		kind = HPACK_LITERAL | HPACK_ENTERS;
	} else if (byte & HPACK_RESIZE) {
		most = 0x1f;
		kind = 0;
	}
	w->kind = kind;
	w->shift = 0;
	w->index = byte & most;
	/* The value, and before it the name if it has no index. */
	w->strings = kind & HPACK_LITERAL ? 1 + !w->index : 0;
	w->stage = HPACK_AT_INDEX;
	if (w->index == most)
		return HPACK_NOTHING;
	w->stage = w->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
	return HPACK_FIELD;
}

/* One more byte of a number (RFC 7541, 5.1). Return whether it was the last one. */
static inline __attribute__((always_inline)) int hpack_more(struct hpack_walk *w, __u32 *number,
							    __u32 byte)
{
	*number += (byte & 0x7f) << (w->shift & 31);
	w->shift += 7;
	if (byte & 0x80 && w->shift > HPACK_SHIFTS)
		w->lost = 1;
	return !(byte & 0x80);
}

/* Take the next byte that is not to be skipped. */
static inline __attribute__((always_inline)) enum hpack_event hpack_step(struct hpack_walk *w,
									 __u32 byte)
{
	switch (w->stage) {
	case HPACK_AT_FIELD:
		return hpack_first_byte(w, byte);
	case HPACK_AT_INDEX:
		if (!hpack_more(w, &w->index, byte))
			return HPACK_NOTHING;
		w->stage = w->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
		return HPACK_FIELD;
	case HPACK_AT_LENGTH:
		w->huffman = !!(byte & HPACK_HUFFMAN);
		w->length = byte & 0x7f;
		w->shift = 0;
		w->stage = w->length == 0x7f ? HPACK_AT_MORE : HPACK_AT_TEXT;
		return w->stage == HPACK_AT_TEXT ? HPACK_STRING : HPACK_NOTHING;
	case HPACK_AT_MORE:
		if (!hpack_more(w, &w->length, byte))
			return HPACK_NOTHING;
		w->stage = HPACK_AT_TEXT;
		return HPACK_STRING;
	default:
		return HPACK_TEXT;
	}
}

/*
 * A string of which @taken bytes were taken is over, but for the rest, which is skipped. The field's
 * next one follows, or the next field. Return whether the field is over.
 */
static inline __attribute__((always_inline)) int hpack_string_over(struct hpack_walk *w,
								   __u32 taken)
{
	w->skip = w->length - taken;
	w->strings--;
	w->stage = w->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
	return !w->strings;
}

/* After a block: return whether all of it was understood. */
static inline __attribute__((always_inline)) int hpack_is_whole(const struct hpack_walk *w)
{
	return !w->lost && w->stage == HPACK_AT_FIELD && !w->skip;
}

#endif
