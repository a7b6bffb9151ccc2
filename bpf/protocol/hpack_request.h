/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Follows all header blocks of a client, and finds each request's route in ":method" and ":path". Of a field in
 * the dynamic table the routes are kept that it misses, and no text. With ROUTE_KEEPS the text of the latest path is
 * here, with the number of its field in the table. The owner keeps it.
 *
 * The same source runs in the kernel and in its unit test. Neighbours: hpack_walk.h, route.h, http2.h.
 */
#ifndef BPF_PROTOCOL_HPACK_REQUEST_H
#define BPF_PROTOCOL_HPACK_REQUEST_H

#include "http2.h"
#include "route.h"

/* Names of fields. */
enum hpack_request_name {
	HPACK_ANY_NAME,
	HPACK_METHOD,
	HPACK_PATH,
	HPACK_UNKNOWN_NAME, /* that of an entry which is not known */
};

/* Facts about a block, as bits. */
#define HPACK_HAS(name) (1U << (name))
#define HPACK_TWICE	(1U << 7) /* a method or path came twice */

/* Entries of the static table. */
#define HPACK_METHOD_FIRST 2
#define HPACK_PATH_FIRST   4
#define HPACK_PATH_LAST	   5

/* The longest name that matters. */
#define HPACK_NAME_LONGEST 7

/* All zeros: no block has come yet. */
struct hpack_request {
	struct hpack_walk walk;
	__u32 misses; /* routes that the block's fields miss */
	struct route_text text;
	__u64 word;   /* a name's bytes, the latest one in the lowest bits */
	__u32 wanted; /* bytes of the string to take */
	__u32 taken;  /* of those */
	__u8 name;    /* of the field: enum hpack_request_name */
	__u8 has;     /* HPACK_HAS and HPACK_TWICE, of the latest block */
	__u8 indexed; /* the block's path is the one of .field; otherwise .path has it */
	__u8 pad;
	__u32 field; /* the number of the field with that path in the dynamic table, from 1; 0: it is in none */
	struct route_path path;
	__u8 names[HPACK_ENTRIES];    /* in the fields' order */
	__u32 entries[HPACK_ENTRIES]; /* the routes that a method or path misses */
};

/* ---- texts of paths ---- */

static inline __attribute__((always_inline)) void hpack_request_keep(struct hpack_request *t,
								     __u8 byte)
{
	__u32 at = t->path.length;

	if (!ROUTE_KEEPS || t->name != HPACK_PATH || at >= ROUTE_PATH_BYTES)
		return;
	t->path.text[at] = byte;
	t->path.length = at + 1;
}

/* A path is spelled out. */
static inline __attribute__((always_inline)) void hpack_request_spelled(struct hpack_request *t)
{
	t->field = t->indexed = 0;
	t->path.length = 0;
	t->path.whole = t->walk.length <= ROUTE_PATH_BYTES;
	t->path.huffman = t->walk.huffman;
}

/* The block's path is entry @index, of which the static table has "/" and "/index.html". */
static inline __attribute__((always_inline)) void hpack_request_refers(struct hpack_request *t,
								       __u32 index)
{
	t->indexed = index >= HPACK_DYNAMIC_FIRST;
	t->field = t->indexed ? t->walk.entered - (index - HPACK_DYNAMIC_FIRST) : 0;
	if (t->indexed)
		return;
	t->path.length = index == HPACK_PATH_FIRST ? 1 : sizeof("/index.html") - 1;
	t->path.whole = 1;
	t->path.huffman = 0;
	__builtin_memcpy(t->path.text, "/index.html", sizeof("/index.html") - 1);
}

/* ---- fields ---- */

/* Return the name of entry @index, and what its value misses. */
static inline __attribute__((always_inline)) __u8 hpack_request_entry(const struct hpack_request *t,
								      __u32 index,
								      __u32 *ret_misses)
{
	__u32 at = ROUTE_AT_STATIC, place = hpack_place(&t->walk, index);
	const struct route_place *statics;

	*ret_misses = 0;
	if (index >= HPACK_DYNAMIC_FIRST) {
		if (place >= HPACK_ENTRIES)
			return HPACK_UNKNOWN_NAME;
		*ret_misses = t->entries[place];
		return t->names[place];
	}
	if (index < HPACK_METHOD_FIRST || index > HPACK_PATH_LAST)
		return HPACK_ANY_NAME;
	statics = ROUTE_PLACE(at);
	if (statics)
		*ret_misses = statics->by_byte[index & 7];
	return index < HPACK_PATH_FIRST ? HPACK_METHOD : HPACK_PATH;
}

static inline __attribute__((always_inline)) int hpack_request_matters(__u8 name)
{
	return name == HPACK_METHOD || name == HPACK_PATH;
}

static inline __attribute__((always_inline)) void hpack_request_says(struct hpack_request *t,
								     __u8 name, __u32 misses)
{
	__u8 has = HPACK_HAS(name & 3);

	if (hpack_request_matters(name)) {
		if (t->has & has)
			t->has |= HPACK_TWICE;
		t->misses |= misses;
	}
	t->has |= has;
}

static inline __attribute__((always_inline)) void hpack_request_indexed(struct hpack_request *t)
{
	__u32 misses = 0;

	t->name = HPACK_ANY_NAME;
	if (!t->walk.kind || !t->walk.index)
		return;
	t->name = hpack_request_entry(t, t->walk.index, &misses);
	if (!(t->walk.kind & HPACK_WHOLE))
		return;
	hpack_request_says(t, t->name, misses);
	if (ROUTE_KEEPS && t->name == HPACK_PATH)
		hpack_request_refers(t, t->walk.index);
}

/* ---- strings ---- */

static inline __attribute__((always_inline)) __u32
hpack_request_first(const struct hpack_request *t)
{
	if (t->name == HPACK_METHOD)
		return t->walk.huffman ? ROUTE_AT_METHOD_HUFFMAN : ROUTE_AT_METHOD;
	return t->walk.huffman ? ROUTE_AT_PATH_HUFFMAN : ROUTE_AT_PATH;
}

static inline __attribute__((always_inline)) __u32
hpack_request_places(const struct hpack_request *t)
{
	if (t->name == HPACK_METHOD)
		return ROUTE_METHOD_PLACES;
	return t->walk.huffman ? ROUTE_PATH_HUFFMAN_PLACES : ROUTE_PATH_PLACES;
}

/* A string begins. */
static inline __attribute__((always_inline)) void hpack_request_length(struct hpack_request *t)
{
	__u32 most = 0;

	if (t->walk.strings == 2)
		most = t->walk.length <= HPACK_NAME_LONGEST ? HPACK_NAME_LONGEST : 0;
	else if (hpack_request_matters(t->name))
		most = hpack_request_places(t);
	t->wanted = t->walk.length < most ? t->walk.length : most;
	t->taken = 0;
	t->word = 0;
	t->text = (struct route_text){0};
	if (ROUTE_KEEPS && t->walk.strings == 1 && t->name == HPACK_PATH)
		hpack_request_spelled(t);
}

static inline __attribute__((always_inline)) void hpack_request_text(struct hpack_request *t,
								     __u8 byte)
{
	t->taken++;
	if (t->walk.strings == 2) {
		t->word = t->word << 8 | byte;
		return;
	}
	hpack_request_keep(t, byte);
	route_byte(&t->text, hpack_request_first(t), hpack_request_places(t), byte);
}

/* Return the name that was gathered. It is seldom spelled out: the static table has both. */
static inline __attribute__((always_inline)) __u8
hpack_request_name_of(const struct hpack_request *t)
{
	static const struct {
		__u64 word;
		__u8 length, huffman, name;
	} names[] = {
		{0x3a70617468, 5, 0, HPACK_PATH},	/* ":path" */
		{0xb958d33f, 4, 1, HPACK_PATH},		/* the same in Huffman's code */
		{0x3a6d6574686f64, 7, 0, HPACK_METHOD}, /* ":method" */
		{0xb9495339e4, 5, 1, HPACK_METHOD},
	};

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (t->walk.length == names[i].length && t->walk.huffman == names[i].huffman &&
		    t->word == names[i].word)
			return names[i].name;
	return HPACK_ANY_NAME;
}

/* A string is over, but for bytes to skip. */
static inline __attribute__((always_inline)) void hpack_request_string(struct hpack_request *t)
{
	__u32 place;

	if (t->walk.strings == 2)
		t->name = hpack_request_name_of(t);
	else if (hpack_request_matters(t->name))
		route_end(&t->text, hpack_request_first(t));
	if (!hpack_string_over(&t->walk, t->taken))
		return;
	hpack_request_says(t, t->name, t->text.misses);
	if (!(t->walk.kind & HPACK_ENTERS))
		return;
	place = hpack_enters(&t->walk);
	if (t->name == HPACK_PATH)
		t->field = t->walk.entered;
	t->names[place] = t->name;
	t->entries[place] = t->text.misses;
}

/* The next byte that is not to be skipped. */
static inline __attribute__((always_inline)) void hpack_request_byte(struct hpack_request *t,
								     __u8 byte)
{
	switch (hpack_step(&t->walk, byte)) {
	case HPACK_FIELD:
		hpack_request_indexed(t);
		break;
	case HPACK_STRING:
		hpack_request_length(t);
		break;
	case HPACK_TEXT:
		hpack_request_text(t, byte);
		break;
	default: /* more bytes are needed */
		break;
	}
	if (t->walk.stage == HPACK_AT_TEXT && t->taken == t->wanted)
		hpack_request_string(t);
}

/* ---- blocks ---- */

/* Some bytes of a block in the process's memory. */
struct hpack_request_part {
	struct hpack_request *request;
	__u64 at;
	__u32 left;
	__u32 pad;
};

static inline long hpack_request_step(__u32 i, struct hpack_request_part *part)
{
	struct hpack_request *t = part->request;
	__u8 byte = 0;

	(void)i;
	if (!http2_take(&t->walk, &part->at, &part->left, &byte))
		return 1;
	hpack_request_byte(t, byte);
	return !!t->walk.lost;
}

/* As http2_blocks(), for a frame of a client's block. */
static inline __attribute__((always_inline)) void
hpack_request_frame(const struct http2_side *s, struct hpack_request *t, __u32 said, __u64 end)
{
	struct hpack_request_part part = {.request = t, .at = end - s->taken};
	__u32 count;

	if (said & HTTP2_BEGINS && s->type != HTTP2_CONTINUATION) {
		t->has = 0;
		t->misses = 0;
		t->field = t->indexed = 0;
	}
	if (said & HTTP2_BEGINS)
		http2_part_begins(s, &t->walk);
	if (t->walk.lost)
		return;
	part.left = count = http2_part_of(&t->walk, s->taken);
	HTTP2_LOOP(count, hpack_request_step, &part);
	if (part.left)
		t->walk.lost = 1;
}

/*
 * After a block: return the route of its request, of @routes: ROUTE_UNKNOWN_COUNT plus its row, or the reason why
 * it is not known. A request without a path, as CONNECT is, has none of the routes.
 */
static inline __attribute__((always_inline)) __u32
hpack_request_route(const struct hpack_request *t, __u32 routes)
{
	const __u8 both = HPACK_HAS(HPACK_METHOD) | HPACK_HAS(HPACK_PATH);

	if (!hpack_is_whole(&t->walk))
		return ROUTE_HTTP2;
	if ((t->has & both) != both && t->has & HPACK_HAS(HPACK_UNKNOWN_NAME))
		return ROUTE_HTTP2;
	if (t->has & HPACK_TWICE || !(t->has & HPACK_HAS(HPACK_METHOD)))
		return ROUTE_STRANGE;
	return ROUTE_UNKNOWN_COUNT +
	       (t->has & HPACK_HAS(HPACK_PATH) ? route_row_of(t->misses, routes) : routes);
}

#endif
