/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Follows all header blocks of a server. So the statuses in the dynamic table are known, those of
 * gRPC, and which responses are of gRPC.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: hpack_walk.h, status.h, http2.h.
 */
#ifndef BPF_PROTOCOL_HPACK_H
#define BPF_PROTOCOL_HPACK_H

#include <linux/types.h>

#include "hpack_walk.h"
#include "status.h"

/* Of "content-type" in the static table. */
#define HPACK_TYPE_INDEX 31

/* A space in Huffman's code, of 6 bits. */
#define HPACK_HUFFMAN_SPACE 0x14

/* The meaning of a field: a status of HTTP (STATUS_UNKNOWN: any other field), or one of these. */
enum hpack_meaning {
	HPACK_GRPC = 600, /* "grpc-status", plus its value up to GRPC_OTHER */
	HPACK_TYPE = 700, /* "content-type", of neither of the next two */
	HPACK_TYPE_GRPC,
	HPACK_TYPE_EVENTS,
	HPACK_OBSCURE = 800, /* any of all these: its entry, or that of its name, is not known */
};

/* Facts about a block, as bits. */
enum hpack_said {
	HPACK_SAID_GRPC = 1 << 0,    /* its type is that of gRPC */
	HPACK_SAID_OBSCURE = 1 << 1, /* a field is not known */
	HPACK_SAID_PROMISE = 1 << 2, /* it is no part of a response */
	HPACK_SAID_EVENTS = 1 << 3,  /* its type is that of server-sent events */
	HPACK_SAID_OK = 1 << 4,	     /* its status is 200 */
};

/* All zeros: no block has come yet. */
struct hpack_table {
	__u64 high,
		low; /* bytes of the string that were gathered, the latest one in the lowest bits */
	struct hpack_walk walk;
	__u16 status;  /* of the block's first field, until that field is past */
	__u16 meaning; /* of the field */
	__u16 name;    /* of the field: the least meaning with that name, or 0 */
	__u16 after;   /* the bytes gathered after those in high and low */
	__u8 gathered; /* bytes of the string */
	__u8 wanted;   /* bytes of the string to gather */
	__u8 said;     /* enum hpack_said, of the latest block */
	__u8 grpc;     /* 1 + the status of gRPC in the latest block; 0: none was seen */
	__u16 meanings[HPACK_ENTRIES]; /* in the fields' order */
};

/* Return the meaning of entry @index, which counts through both tables. */
static inline __attribute__((always_inline)) __u32 hpack_entry(const struct hpack_table *t,
							       __u32 index)
{
	__u32 place;

	if (index == HPACK_TYPE_INDEX)
		return HPACK_TYPE;
	if (index < HPACK_DYNAMIC_FIRST)
		return STATUS_UNKNOWN;
	place = hpack_place(&t->walk, index);
	return place < HPACK_ENTRIES ? t->meanings[place] : HPACK_OBSCURE;
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
	return t->walk.huffman ? 11 : 16;
}

/* Return how many bytes of the string to gather: none if it cannot matter. */
static inline __attribute__((always_inline)) __u32 hpack_wanted(const struct hpack_table *t)
{
	__u32 most = t->walk.huffman ? 13 : 18;

	if (t->walk.strings == 2 && t->walk.huffman)
		return t->walk.length == 8 || t->walk.length == 9 ? t->walk.length : 0;
	if (t->walk.strings == 2)
		return t->walk.length == 11 || t->walk.length == 12 ? t->walk.length : 0;
	if (t->name == HPACK_GRPC)
		return t->walk.length <= 3 ? t->walk.length : 0;
	if (t->name == HPACK_TYPE)
		return t->walk.length < most ? t->walk.length : most;
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
	if (t->walk.huffman) {
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

/* "text/event-stream", which ends there or before parameters. 6 bits of Huffman's code are its "m", and 8 each "," and ";". */
static inline __attribute__((always_inline)) int hpack_is_events(const struct hpack_table *t)
{
	__u32 after = t->after, next;

	if (t->walk.huffman) {
		if (t->high != 0x497ca5 || t->low != 0x82f72d495909b0a3)
			return 0;
		if (t->gathered == 12)
			return after == (0x29 << 2 | 3);
		next = after >> 2 & 0xff;
		return t->gathered == 13 && after >> 10 == 0x29 &&
		       (next == 0xfa || next == 0xfb || next >> 2 == HPACK_HUFFMAN_SPACE);
	}
	if (t->high != 0x746578742f657665 || t->low != 0x6e742d7374726561)
		return 0;
	if (t->gathered == 17)
		return after == 'm';
	next = after & 0xff;
	return t->gathered == 18 && after >> 8 == 'm' &&
	       (next == ',' || next == ';' || next == ' ' || next == '\t');
}

/* "application/grpc", which ends there or with "+" or ";". */
static inline __attribute__((always_inline)) __u16 hpack_type_of(const struct hpack_table *t)
{
	__u32 next;

	if (hpack_is_events(t))
		return HPACK_TYPE_EVENTS;
	if (t->walk.huffman) {
		if (t->high != 0x1d75d0 || t->low != 0x620d263d4c4d6564)
			return HPACK_TYPE;
		if (t->gathered == 11 || (t->gathered == 12 && t->after == 0xfb) ||
		    (t->gathered == 13 && (t->after >> 8 == 0xfb || t->after >> 5 == 0x7fb)))
			return HPACK_TYPE_GRPC;
		return HPACK_TYPE;
	}
	if (t->high != 0x6170706c69636174 || t->low != 0x696f6e2f67727063)
		return HPACK_TYPE;
	next = t->gathered == 17 ? t->after : t->after >> 8;
	return t->gathered == 16 || next == '+' || next == ';' ? HPACK_TYPE_GRPC : HPACK_TYPE;
}

/* ---- fields ---- */

static inline __attribute__((always_inline)) void hpack_says(struct hpack_table *t, __u32 meaning)
{
	if (meaning == HPACK_OBSCURE)
		t->said |= HPACK_SAID_OBSCURE;
	else if (meaning == HPACK_TYPE_GRPC)
		t->said |= HPACK_SAID_GRPC;
	else if (meaning == HPACK_TYPE_EVENTS)
		t->said |= HPACK_SAID_EVENTS;
	else if (meaning >= HPACK_GRPC && meaning < HPACK_TYPE)
		t->grpc = 1 + meaning - HPACK_GRPC;
}

/* The field's index is complete. */
static inline __attribute__((always_inline)) void hpack_indexed(struct hpack_table *t)
{
	__u32 meaning = STATUS_UNKNOWN, kind = t->walk.kind;

	t->name = 0;
	if (kind) {
		t->meaning = t->status;
		t->status = STATUS_UNKNOWN;
	}
	if (kind && t->walk.index)
		meaning = hpack_entry(t, t->walk.index);
	if (kind & HPACK_WHOLE)
		hpack_says(t, meaning);
	else if (meaning == HPACK_OBSCURE)
		t->meaning = HPACK_OBSCURE;
	else if (meaning >= HPACK_GRPC)
		t->name = meaning < HPACK_TYPE ? HPACK_GRPC : HPACK_TYPE;
}

/* A string is over, but for bytes to skip. */
static inline __attribute__((always_inline)) void hpack_string(struct hpack_table *t)
{
	if (t->walk.strings == 2)
		t->name = hpack_name_of(t);
	else if (t->name == HPACK_GRPC)
		t->meaning = HPACK_GRPC + hpack_grpc_status(t);
	else if (t->name == HPACK_TYPE)
		t->meaning = hpack_type_of(t);
	if (!hpack_string_over(&t->walk, t->gathered))
		return;
	hpack_says(t, t->meaning);
	if (t->walk.kind & HPACK_ENTERS)
		t->meanings[hpack_enters(&t->walk)] = t->meaning;
}

/* The string's length is complete. */
static inline __attribute__((always_inline)) void hpack_length(struct hpack_table *t)
{
	t->high = 0;
	t->low = 0;
	t->after = 0;
	t->gathered = 0;
	t->wanted = hpack_wanted(t);
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

/* The next byte outside strings, or of a string that matters. */
static inline __attribute__((always_inline)) void hpack_byte(struct hpack_table *t, __u32 byte)
{
	switch (hpack_step(&t->walk, byte)) {
	case HPACK_FIELD:
		hpack_indexed(t);
		break;
	case HPACK_STRING:
		hpack_length(t);
		break;
	case HPACK_TEXT:
		hpack_gather(t, byte);
		break;
	default: /* more bytes are needed */
		break;
	}
	if (t->walk.stage == HPACK_AT_TEXT && t->gathered == t->wanted)
		hpack_string(t);
}

#endif
