/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Follows all header blocks of one direction of HTTP/2 (RFC 7541). So the statuses in the dynamic
 * table are known, those of gRPC, and which responses are of gRPC. Entries are numbered from the
 * latest one on, so fields only have to be counted as they enter. Their sizes do not matter: no index
 * refers to a field that was evicted or was too large to enter, nor to one before it.
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
/* Of "content-type" in the static table. */
#define HPACK_TYPE_INDEX 31

/* The meaning of a block's next byte. */
enum hpack_stage {
	HPACK_AT_FIELD,	 /* the first one of a field */
	HPACK_AT_INDEX,	 /* more of its index, or of the table's size */
	HPACK_AT_LENGTH, /* the first one of a string's length */
	HPACK_AT_MORE,	 /* more of that length */
	HPACK_AT_TEXT,	 /* one of a string that matters */
};

/* The meaning of a field: a status of HTTP (STATUS_UNKNOWN: any other field), or one of these. */
enum hpack_meaning {
	HPACK_GRPC = 600, /* "grpc-status", plus its value up to GRPC_OTHER */
	HPACK_TYPE = 700, /* "content-type", of no gRPC */
	HPACK_TYPE_GRPC,
	HPACK_OBSCURE = 800, /* any of all these: its entry, or that of its name, is not known */
};

/* The kind of a field, as bits. */
enum hpack_kind {
	HPACK_LITERAL = 1 << 0,
	HPACK_ENTERS = 1 << 1, /* a literal that the dynamic table keeps */
	HPACK_WHOLE = 1 << 2,  /* an entry of the tables */
};

/* Facts about a block, as bits. */
enum hpack_said {
	HPACK_SAID_GRPC = 1 << 0,    /* its type is that of gRPC */
	HPACK_SAID_OBSCURE = 1 << 1, /* a field is not known */
	HPACK_SAID_PROMISE = 1 << 2, /* it is no part of a response */
};

/* All zeros: no block has come yet. */
struct hpack_table {
	__u64 high,
		low; /* bytes of the string that were gathered, the latest one in the lowest bits */
	__u32 entered;	/* fields, ever */
	__u32 skip;	/* bytes of a string before the next byte that matters */
	__u32 length;	/* of the string, as far as it was read */
	__u32 fragment; /* bytes of the block in this frame still to come */
	__u32 index;	/* of the field, as far as it was read */
	__u16 status;	/* of the block's first field, until that field is past */
	__u16 meaning;	/* of the field */
	__u16 name;	/* of the field: the least meaning with that name, or 0 */
	__u16 after;	/* the bytes gathered after those in high and low */
	__u8 stage;	/* enum hpack_stage */
	__u8 kind;	/* enum hpack_kind */
	__u8 strings;	/* of the field that are to come */
	__u8 shift;	/* of the next byte of the length or index */
	__u8 huffman;	/* the string is in Huffman's code */
	__u8 gathered;	/* bytes of the string */
	__u8 wanted;	/* bytes of the string to gather */
	__u8 lost;	/* something was not understood or not seen: the table is not known */
	__u8 said;	/* enum hpack_said, of the latest block */
	__u8 grpc;	/* 1 + the status of gRPC in the latest block; 0: none was seen */
	__u8 pad[2];
	__u16 meanings[HPACK_ENTRIES]; /* in the fields' order */
};

/* Return the meaning of entry @index, which counts through both tables. */
static inline __attribute__((always_inline)) __u32 hpack_entry(const struct hpack_table *t,
							       __u32 index)
{
	__u32 back = index - HPACK_DYNAMIC_FIRST;

	if (index == HPACK_TYPE_INDEX)
		return HPACK_TYPE;
	if (index < HPACK_DYNAMIC_FIRST)
		return STATUS_UNKNOWN;
	if (t->lost || back >= HPACK_ENTRIES || back >= t->entered)
		return HPACK_OBSCURE;
	return t->meanings[(t->entered - 1 - back) & (HPACK_ENTRIES - 1)];
}

/* Return the status of HTTP in entry @index. */
static inline __attribute__((always_inline)) __u32 hpack_status(const struct hpack_table *t,
								__u32 index)
{
	__u32 meaning = hpack_entry(t, index);

	return meaning < HPACK_GRPC ? meaning : STATUS_UNKNOWN;
}

/* ---- names and values that matter ---- */

/* Return the length of the longest text that matters. More bytes are gathered to see its end. */
static inline __attribute__((always_inline)) __u32 hpack_text(const struct hpack_table *t)
{
	return t->huffman ? 11 : 16;
}

/* Return how many bytes of the string to gather: none if it cannot matter. */
static inline __attribute__((always_inline)) __u32 hpack_wanted(const struct hpack_table *t)
{
	__u32 most = t->huffman ? 13 : 17;

	if (t->strings == 2 && t->huffman)
		return t->length == 8 || t->length == 9 ? t->length : 0;
	if (t->strings == 2)
		return t->length == 11 || t->length == 12 ? t->length : 0;
	if (t->name == HPACK_GRPC)
		return t->length <= 3 ? t->length : 0;
	if (t->name == HPACK_TYPE)
		return t->length < most ? t->length : most;
	return 0;
}

/* Return the meaning of the name that was gathered. */
static inline __attribute__((always_inline)) __u16 hpack_name_of(const struct hpack_table *t)
{
	static const struct {
		__u64 high, low;
		__u16 name, gathered;
	} names[] = {
		{0x677270, 0x632d737461747573, HPACK_GRPC, 11},	  /* "grpc-status" */
		{0, 0x9acac8b21234da8f, HPACK_GRPC, 8},		  /* the same in Huffman's code */
		{0x636f6e74, 0x656e742d74797065, HPACK_TYPE, 12}, /* "content-type" */
		{0x21, 0xea496a4ac9f5597f, HPACK_TYPE, 9},
	};

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (t->gathered == names[i].gathered && t->high == names[i].high &&
		    t->low == names[i].low)
			return names[i].name;
	return 0;
}

/* Return the status of gRPC that was gathered. */
static inline __attribute__((always_inline)) __u32 hpack_grpc_status(const struct hpack_table *t)
{
	__u32 word, digits = 0, number = 0, byte;

	if (!t->gathered || t->gathered > 3)
		return GRPC_OTHER;
	word = (__u32)t->low << ((32 - 8 * t->gathered) & 31);
	if (t->huffman) {
		number = hpack_number(word, t->gathered, &digits);
		return digits && number <= GRPC_LAST ? number : GRPC_OTHER;
	}
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 i = 0; i < 3; i++) {
		byte = (word >> (24 - 8 * i) & 0xff) - '0';
		if (i < t->gathered && byte > 9)
			return GRPC_OTHER;
		if (i < t->gathered)
			number = 10 * number + byte;
	}
	return number <= GRPC_LAST ? number : GRPC_OTHER;
}

/* "application/grpc", which ends there or with "+" or ";". */
static inline __attribute__((always_inline)) __u16 hpack_type_of(const struct hpack_table *t)
{
	if (t->huffman) {
		if (t->high != 0x1d75d0 || t->low != 0x620d263d4c4d6564)
			return HPACK_TYPE;
		if (t->gathered == 11 || (t->gathered == 12 && t->after == 0xfb) ||
		    (t->gathered == 13 && (t->after >> 8 == 0xfb || t->after >> 5 == 0x7fb)))
			return HPACK_TYPE_GRPC;
		return HPACK_TYPE;
	}
	if (t->high != 0x6170706c69636174 || t->low != 0x696f6e2f67727063)
		return HPACK_TYPE;
	if (t->gathered == 16 || t->after == '+' || t->after == ';')
		return HPACK_TYPE_GRPC;
	return HPACK_TYPE;
}

/* ---- fields ---- */

static inline __attribute__((always_inline)) void hpack_says(struct hpack_table *t, __u32 meaning)
{
	if (meaning == HPACK_OBSCURE)
		t->said |= HPACK_SAID_OBSCURE;
	else if (meaning == HPACK_TYPE_GRPC)
		t->said |= HPACK_SAID_GRPC;
	else if (meaning >= HPACK_GRPC && meaning < HPACK_TYPE)
		t->grpc = 1 + meaning - HPACK_GRPC;
}

/* The field's index is complete: of an entry, of a name, or the table's new size. */
static inline __attribute__((always_inline)) void hpack_indexed(struct hpack_table *t)
{
	__u32 meaning = STATUS_UNKNOWN;

	t->stage = t->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
	if (t->kind && t->index)
		meaning = hpack_entry(t, t->index);
	if (t->kind & HPACK_WHOLE)
		hpack_says(t, meaning);
	else if (meaning == HPACK_OBSCURE)
		t->meaning = HPACK_OBSCURE;
	else if (meaning >= HPACK_GRPC)
		t->name = meaning < HPACK_TYPE ? HPACK_GRPC : HPACK_TYPE;
}

/* A string is over. The field's next one follows, or the next field. */
static inline __attribute__((always_inline)) void hpack_string(struct hpack_table *t)
{
	t->skip = t->length - t->gathered;
	if (t->strings == 2)
		t->name = hpack_name_of(t);
	else if (t->name == HPACK_GRPC)
		t->meaning = HPACK_GRPC + hpack_grpc_status(t);
	else if (t->name == HPACK_TYPE)
		t->meaning = hpack_type_of(t);
	t->strings--;
	t->stage = t->strings ? HPACK_AT_LENGTH : HPACK_AT_FIELD;
	if (t->strings)
		return;
	hpack_says(t, t->meaning);
	if (t->kind & HPACK_ENTERS) {
		t->meanings[t->entered & (HPACK_ENTRIES - 1)] = t->meaning;
		t->entered++;
	}
}

/* The string's length is complete. */
static inline __attribute__((always_inline)) void hpack_length(struct hpack_table *t)
{
	t->high = 0;
	t->low = 0;
	t->after = 0;
	t->gathered = 0;
	t->wanted = hpack_wanted(t);
	t->stage = HPACK_AT_TEXT;
}

static inline __attribute__((always_inline)) void hpack_gather(struct hpack_table *t, __u32 byte)
{
	if (t->gathered < hpack_text(t)) {
		t->high = t->high << 8 | t->low >> 56;
		t->low = t->low << 8 | byte;
	} else {
		t->after = t->after << 8 | byte;
	}
	t->gathered++;
}

/* A field's first byte, whose lower bits begin an index. */
static inline __attribute__((always_inline)) void hpack_field(struct hpack_table *t, __u32 byte)
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
	if (kind) {
		t->meaning = t->status;
		t->status = STATUS_UNKNOWN;
	}
	t->kind = kind;
	t->name = 0;
	t->shift = 0;
	t->index = byte & most;
	/* The value, and before it the name if it has no index. */
	t->strings = kind & HPACK_LITERAL ? 1 + !t->index : 0;
	t->stage = HPACK_AT_INDEX;
	if (t->index != most)
		hpack_indexed(t);
}

/* One more byte of a number (RFC 7541, 5.1). Return whether it was the last one. */
static inline __attribute__((always_inline)) int hpack_more(struct hpack_table *t, __u32 *number,
							    __u32 byte)
{
	*number += (byte & 0x7f) << (t->shift & 31);
	t->shift += 7;
	return !(byte & 0x80);
}

/* The next byte outside strings, or of a string that matters. */
static inline __attribute__((always_inline)) void hpack_byte(struct hpack_table *t, __u32 byte)
{
	switch (t->stage) {
	case HPACK_AT_FIELD:
		hpack_field(t, byte);
		break;
	case HPACK_AT_INDEX:
		if (hpack_more(t, &t->index, byte))
			hpack_indexed(t);
		else if (t->shift > HPACK_SHIFTS)
			t->lost = 1;
		break;
	case HPACK_AT_LENGTH:
		t->huffman = !!(byte & HPACK_HUFFMAN);
		t->length = byte & 0x7f;
		t->shift = 0;
		if (t->length == 0x7f)
			t->stage = HPACK_AT_MORE;
		else
			hpack_length(t);
		break;
	case HPACK_AT_MORE:
		if (hpack_more(t, &t->length, byte))
			hpack_length(t);
		else if (t->shift > HPACK_SHIFTS)
			t->lost = 1;
		break;
	default:
		hpack_gather(t, byte);
	}
	if (t->stage == HPACK_AT_TEXT && t->gathered == t->wanted)
		hpack_string(t);
}

#endif
