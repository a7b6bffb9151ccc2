/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Walks through HTTP/2's frames (RFC 9113, 4.1) in one direction of a connection, cut at any byte. Headers of frames
 * are gathered, payloads are skipped by count. tcp/http/streams.h interprets the frames.
 *
 * The same source runs in the kernel and in its unit test. The test first defines HTTP2_COPY(to, count, from), which
 * copies bytes of a read or write and returns 0 on success.
 */
#ifndef BPF_PROTOCOL_HTTP2_H
#define BPF_PROTOCOL_HTTP2_H

#include <linux/types.h>

#include "hpack.h"

#ifndef HTTP2_COPY
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#define HTTP2_COPY(to, count, from) bpf_probe_read_user(to, count, (void *)(from))
#endif

#define HTTP2_HEADER 9
/*
 * Bytes kept of a header block's start, with padding and priority: enough for the status
 * (status.h).
 */
#define HTTP2_BLOCK 15
/*
 * The longest field, a frame's header and a block's start, with room for the verifier's looser
 * bounds.
 */
#define HTTP2_FIELD 40
/* The longest frame without permission for more (SETTINGS_MAX_FRAME_SIZE). Frames of unknown types are not longer. */
#define HTTP2_LONGEST_UNKNOWN 16384
/* How many frames in a row prove where frames begin, if the first bytes were not seen. */
#define HTTP2_PROOF 3
/* The longest of these, but for DATA. */
#define HTTP2_LONGEST_PROOF 65535

enum http2_type {
	HTTP2_DATA = 0,
	HTTP2_HEADERS = 1,
	HTTP2_PRIORITY = 2,
	HTTP2_RST_STREAM = 3,
	HTTP2_SETTINGS = 4,
	HTTP2_PUSH_PROMISE = 5,
	HTTP2_PING = 6,
	HTTP2_GOAWAY = 7,
	HTTP2_WINDOW_UPDATE = 8,
	HTTP2_CONTINUATION = 9,
	HTTP2_PRIORITY_UPDATE = 16, /* RFC 9218 */
};

#define HTTP2_ACK	     0x1 /* of SETTINGS and PING */
#define HTTP2_END_STREAM     0x1
#define HTTP2_END_HEADERS    0x4
#define HTTP2_PADDED	     0x8
#define HTTP2_PRIORITISED    0x20
#define HTTP2_REFUSED_STREAM 0x7 /* an error code of RST_STREAM */

/* One direction. All zeros: at a frame's first byte, of which none has come yet. */
struct http2_side {
	__u32 left;   /* bytes of this frame's payload still to come */
	__u32 stream; /* of this frame; 0: of the connection */
	__u32 block; /* the stream whose header block continues: only CONTINUATION may follow; 0: none */
	__u32 payload; /* bytes of this frame's payload */
	__u32 taken;   /* bytes of it that the latest step has taken, after those in the field */
	__u32 data;    /* of DATA: bytes still to come that are no padding */
	__u8 type;     /* of this frame */
	__u8 flags;
	__u8 have;	/* bytes of the field that were gathered */
	__u8 want;	/* its length; 0: HTTP2_HEADER */
	__u8 last;	/* the continuing header block is the last of its stream */
	__u8 settled;	/* the first frame was SETTINGS, as it must be */
	__u8 by_client; /* whose direction */
	__u8 followed;	/* the client's header blocks are followed, as the server's always are */
	__u8 sought; /* frames to come until it is proved that frames begin here; 0: it is known */
	__u8 shown;  /* one of the frames before was no DATA */
	__u8 pad[6];
	__u8 field[HTTP2_FIELD]; /* the header, and of some frames the start of the payload */
};

/* Results of a step, as bits. */
enum http2_said {
	HTTP2_BEGINS =
		1
		<< 0, /* type, flags, stream and payload of a frame are known, and its field complete */
	HTTP2_ENDS = 1 << 1,  /* the last byte of a frame was passed */
	HTTP2_WRONG = 1 << 2, /* not HTTP/2, so nothing after it is known */
};

static inline __attribute__((always_inline)) __u32 http2_u32(const __u8 *at)
{
	return (__u32)at[0] << 24 | (__u32)at[1] << 16 | (__u32)at[2] << 8 | at[3];
}

/* Bytes of the payload before the block. */
static inline __attribute__((always_inline)) __u32 http2_before_block(const struct http2_side *s)
{
	__u32 padded = !!(s->flags & HTTP2_PADDED);

	if (s->type == HTTP2_PUSH_PROMISE)
		return padded + 4;
	return padded + 5 * !!(s->flags & HTTP2_PRIORITISED);
}

/* Return the bytes of the payload that are gathered. */
static inline __attribute__((always_inline)) __u32 http2_seen(const struct http2_side *s)
{
	__u32 most = HTTP2_BLOCK;

	switch (s->type) {
	case HTTP2_HEADERS:
	case HTTP2_PUSH_PROMISE:
		if (s->by_client)
			most = s->followed ? http2_before_block(s) : 0;
		return s->payload < most ? s->payload : most;
	case HTTP2_RST_STREAM:
		return 4;
	case HTTP2_GOAWAY:
		return 8;
	case HTTP2_DATA:
		return s->flags & HTTP2_PADDED && s->payload;
	default:
		return 0;
	}
}

/*
 * Return whether this side may send the frame here. The strict rules of RFC 9113 distinguish frames
 * from other bytes.
 */
static inline __attribute__((always_inline)) int http2_is_frame(const struct http2_side *s)
{
	if (!s->settled && (s->type != HTTP2_SETTINGS || s->flags & 1))
		return 0;
	if (s->block)
		return s->type == HTTP2_CONTINUATION && s->stream == s->block;
	switch (s->type) {
	case HTTP2_DATA:
	case HTTP2_HEADERS:
		return s->stream && (s->stream & 1 || !s->by_client);
	case HTTP2_PRIORITY:
		return s->stream && s->payload == 5;
	case HTTP2_RST_STREAM:
		return s->stream && s->payload == 4;
	case HTTP2_SETTINGS:
		return !s->stream && s->payload % 6 == 0;
	case HTTP2_PUSH_PROMISE:
		return s->stream && !s->by_client && s->payload >= 4;
	case HTTP2_PING:
		return !s->stream && s->payload == 8;
	case HTTP2_GOAWAY:
		return !s->stream && s->payload >= 8;
	case HTTP2_WINDOW_UPDATE:
		return s->payload == 4;
	case HTTP2_CONTINUATION:
		return 0;
	default:
		return s->payload <= HTTP2_LONGEST_UNKNOWN;
	}
}

/*
 * This side may send the frame. Return whether the frame also counts for the proof. Its type and its flags are known
 * (RFC 9113, 6), and the reserved bit is unset. Its length fits the type; every length fits DATA.
 */
static inline __attribute__((always_inline)) int http2_is_proof(const struct http2_side *s)
{
	__u32 flags = 0, most = HTTP2_LONGEST_PROOF;

	switch (s->type) {
	case HTTP2_DATA:
		flags = HTTP2_END_STREAM | HTTP2_PADDED;
		most = 0xffffff;
		break;
	case HTTP2_HEADERS:
		flags = HTTP2_END_STREAM | HTTP2_END_HEADERS | HTTP2_PADDED | HTTP2_PRIORITISED;
		break;
	case HTTP2_PUSH_PROMISE:
		flags = HTTP2_END_HEADERS | HTTP2_PADDED;
		break;
	case HTTP2_CONTINUATION:
		flags = HTTP2_END_HEADERS;
		break;
	case HTTP2_SETTINGS:
	case HTTP2_PING:
		flags = HTTP2_ACK;
		break;
	case HTTP2_PRIORITY_UPDATE:
		if (s->stream || !s->by_client || s->payload < 4)
			return 0;
		break;
	case HTTP2_PRIORITY:
	case HTTP2_RST_STREAM:
	case HTTP2_GOAWAY:
	case HTTP2_WINDOW_UPDATE:
		break;
	default:
		return 0;
	}
	if (s->type == HTTP2_SETTINGS && s->flags & HTTP2_ACK && s->payload)
		return 0;
	/* Nobody writes a frame that says nothing, and zeros look like it. */
	if (!s->payload &&
	    (s->type == HTTP2_HEADERS || (s->type == HTTP2_DATA && !(s->flags & HTTP2_END_STREAM))))
		return 0;
	return !(s->flags & ~flags) && !(s->field[5] >> 7) && s->payload <= most;
}

/*
 * A frame begins that counts for the proof. The last one may be followed itself, with its header block: so it does not
 * continue one. DATA alone proves nothing, as its form is the least strict.
 */
static inline __attribute__((always_inline)) void http2_proves(struct http2_side *s)
{
	if (s->type != HTTP2_DATA)
		s->shown = 1;
	if (s->sought > 1 || (s->sought && s->shown && s->type != HTTP2_CONTINUATION))
		s->sought--;
}

/* A header block continues until END_HEADERS. */
static inline __attribute__((always_inline)) void http2_block(struct http2_side *s)
{
	if (s->type != HTTP2_HEADERS && s->type != HTTP2_PUSH_PROMISE &&
	    s->type != HTTP2_CONTINUATION)
		return;
	if (s->type != HTTP2_CONTINUATION)
		s->last = s->type == HTTP2_HEADERS && s->flags & HTTP2_END_STREAM;
	s->block = s->flags & HTTP2_END_HEADERS ? 0 : s->stream;
}

static inline __attribute__((always_inline)) __u32 http2_padding(const struct http2_side *s)
{
	return s->flags & HTTP2_PADDED ? s->field[HTTP2_HEADER] : 0;
}

/* Return whether the padding of DATA fits into it (RFC 9113, 6.1). */
static inline __attribute__((always_inline)) int http2_data(struct http2_side *s)
{
	__u32 padding = http2_padding(s);

	if (s->type != HTTP2_DATA)
		return 1;
	if (s->left < padding || (s->flags & HTTP2_PADDED && !s->payload))
		return 0;
	s->data = s->left - padding;
	return 1;
}

/* After a step in DATA: return how many of the bytes that it has taken are no padding. These come first. */
static inline __attribute__((always_inline)) __u32 http2_data_part(struct http2_side *s)
{
	__u32 count = s->taken < s->data ? s->taken : s->data;

	s->data -= count;
	return count;
}

/* The field is complete: the header, or the bytes wanted after the header. */
static inline __attribute__((always_inline)) __u32 http2_header(struct http2_side *s)
{
	if (s->have == HTTP2_HEADER) {
		s->payload = http2_u32(s->field) >> 8;
		s->type = s->field[3];
		s->flags = s->field[4];
		s->stream = http2_u32(s->field + 5) & 0x7fffffff;
		if (!http2_is_frame(s) || (s->sought && !http2_is_proof(s)))
			return HTTP2_WRONG;
		s->settled = 1;
		s->left = s->payload;
		s->want = HTTP2_HEADER + http2_seen(s);
		if (s->want > HTTP2_HEADER)
			return 0;
	}
	s->left -= s->want - HTTP2_HEADER;
	http2_block(s);
	if (!http2_data(s))
		return HTTP2_WRONG;
	http2_proves(s);
	return HTTP2_BEGINS;
}

/* After HTTP2_ENDS: return whether that frame was the last of its stream in this direction. */
static inline __attribute__((always_inline)) int http2_is_last(const struct http2_side *s)
{
	if (s->type == HTTP2_DATA)
		return s->flags & HTTP2_END_STREAM;
	return (s->type == HTTP2_HEADERS || s->type == HTTP2_CONTINUATION) && !s->block && s->last;
}

/* Skip the payload, or the part of it that is there. */
static inline __attribute__((always_inline)) __u32 http2_skip(struct http2_side *s, __u32 room,
							      __u32 *used)
{
	__u32 count = s->left < room ? s->left : room;

	s->left -= count;
	s->taken = count;
	*used += count;
	if (s->left)
		return 0;
	s->have = 0;
	s->want = HTTP2_HEADER;
	return HTTP2_ENDS;
}

/*
 * Take one step through the @room bytes (at least one) at @at: the rest of a frame, or as much of it as is there. Set
 * *used to the number of bytes taken.
 */
static inline __attribute__((always_inline)) __u32 http2_step(struct http2_side *s, __u64 at,
							      __u32 room, __u32 *used)
{
	__u32 have = s->have, count;
	__u32 said = 0;

	*used = 0;
	s->taken = 0;
	if (!s->want)
		s->want = HTTP2_HEADER;
	if (have < s->want) {
		count = s->want - have;
		if (count > room)
			count = room;
		__asm__ volatile(""
				 : "+r"(count),
				   "+r"(have)); /* or the verifier does not see the bounds */
		count &= 15;
		if (have > HTTP2_FIELD - 16 || HTTP2_COPY(&s->field[have], count, at))
			return HTTP2_WRONG;
		*used = count;
		s->have = have + count;
		if (s->have < s->want)
			return 0;
		said = http2_header(s);
		if (said != HTTP2_BEGINS)
			return said;
	}
	return said | http2_skip(s, room - *used, used);
}

/* ---- header blocks ---- */

static inline __attribute__((always_inline)) int http2_is_block(const struct http2_side *s)
{
	return s->type == HTTP2_HEADERS || s->type == HTTP2_PUSH_PROMISE ||
	       s->type == HTTP2_CONTINUATION;
}

/* After HTTP2_BEGINS of the server's HEADERS: return their status. */
static inline __attribute__((always_inline)) __u32 http2_status(const struct http2_side *s,
								const struct hpack_table *t)
{
	const __u8 *at = s->field + HTTP2_HEADER;
	struct hpack h = {.left = http2_seen(s)};
	__u32 padding = http2_padding(s), before = http2_before_block(s), status;

	h.high = (__u64)http2_u32(at) << 32 | http2_u32(at + 4);
	h.low = (__u64)http2_u32(at + 8) << 32 | http2_u32(at + 12);
	if (padding > s->payload)
		return STATUS_UNKNOWN;
	if (h.left > s->payload - padding)
		h.left = s->payload - padding;
	hpack_pass(&h, before);
	status = status_of_block(&h);
	return h.index ? hpack_status(t, h.index) : status;
}

/* Some bytes of a block, either in the process's memory or in the field. */
struct http2_fragment {
	struct hpack_table *table;
	const struct http2_side *side;
	__u64 at;
	__u32 place; /* in the field */
	__u32 left;
};

#ifdef __bpf__
#define HTTP2_LOOP(count, step, fragment) bpf_loop(count, step, fragment, 0)
#else
#define HTTP2_LOOP(count, step, fragment) \
	for (__u32 i_ = 0; i_ < (count) && !step(i_, fragment); i_++)
#endif

/* Get the next of *left bytes at *at that is not to be skipped. Return whether there is one. */
static inline __attribute__((always_inline)) int http2_take(struct hpack_walk *w, __u64 *at,
							    __u32 *left, __u8 *ret_byte)
{
	__u32 skip = w->skip < *left ? w->skip : *left;

	w->skip -= skip;
	*at += skip;
	*left -= skip;
	if (!*left)
		return 0;
	if (HTTP2_COPY(ret_byte, 1, *at)) {
		w->lost = 1;
		return 0;
	}
	*at += 1;
	*left -= 1;
	return 1;
}

static inline long http2_fragment_step(__u32 i, struct http2_fragment *f)
{
	struct hpack_table *t = f->table;
	__u8 byte = 0;

	(void)i;
	if (!http2_take(&t->walk, &f->at, &f->left, &byte))
		return 1;
	hpack_byte(t, byte);
	return !!t->walk.lost;
}

static inline long http2_field_step(__u32 i, struct http2_fragment *f)
{
	struct hpack_table *t = f->table;
	__u32 place = f->place & 31;

	(void)i;
	if (t->walk.skip)
		t->walk.skip--;
	else
		hpack_byte(t, f->side->field[place]);
	f->place++;
	return !!t->walk.lost;
}

/*
 * After HTTP2_BEGINS: a frame's part of a block begins. Return the bytes of the payload before that
 * part.
 */
static inline __attribute__((always_inline)) __u32 http2_part_begins(const struct http2_side *s,
								     struct hpack_walk *w)
{
	__u32 before = 0, padding = 0;

	if (s->type != HTTP2_CONTINUATION) {
		before = http2_before_block(s);
		padding = http2_padding(s);
		/* The block before it has not ended. */
		if (w->stage != HPACK_AT_FIELD || w->skip)
			w->lost = 1;
	}
	if (before + padding > s->payload)
		w->lost = 1;
	else
		w->fragment = s->payload - before - padding;
	return before;
}

/* Return how many of the next @count bytes of the payload are of the block. The last ones may be padding. */
static inline __attribute__((always_inline)) __u32 http2_part_of(struct hpack_walk *w, __u32 count)
{
	if (count > w->fragment)
		count = w->fragment;
	w->fragment -= count;
	return count;
}

/*
 * After a step that has returned @said: a frame of a block may begin. Return the status if it is HEADERS. Then call
 * http2_blocks().
 */
static inline __attribute__((always_inline)) __u32 http2_block_begins(const struct http2_side *s,
								      struct hpack_table *t,
								      __u32 said)
{
	__u32 status = STATUS_UNKNOWN;

	if (!(said & HTTP2_BEGINS))
		return STATUS_UNKNOWN;
	http2_part_begins(s, &t->walk);
	if (s->type == HTTP2_CONTINUATION)
		return STATUS_UNKNOWN;
	if (s->type == HTTP2_HEADERS)
		status = http2_status(s, t);
	t->status = status;
	t->said = s->type == HTTP2_PUSH_PROMISE ? HPACK_SAID_PROMISE : 0;
	if (status == STATUS_OK)
		t->said |= HPACK_SAID_OK;
	t->grpc = 0;
	return status;
}

/* Follow the bytes of the block that were gathered when its frame began. */
static inline __attribute__((always_inline)) void http2_block_gathered(const struct http2_side *s,
								       struct hpack_table *t)
{
	__u32 before = s->type == HTTP2_CONTINUATION ? 0 : http2_before_block(s);
	__u32 count = http2_seen(s);
	struct http2_fragment f = {.table = t, .side = s, .place = HTTP2_HEADER + before};

	if (t->walk.lost)
		return;
	count = http2_part_of(&t->walk, count < before ? 0 : count - before);
	HTTP2_LOOP(count, http2_field_step, &f);
}

/* Follow the next @count bytes of the payload, at @at. */
static inline __attribute__((always_inline)) void http2_block_goes_on(struct hpack_table *t,
								      __u64 at, __u32 count)
{
	struct http2_fragment f = {.table = t, .at = at};

	if (t->walk.lost)
		return;
	f.left = count = http2_part_of(&t->walk, count);
	HTTP2_LOOP(count, http2_fragment_step, &f);
	if (f.left)
		t->walk.lost = 1;
}

/* Follow a frame of a block after each step, which has returned @said and taken bytes up to @end. */
static inline __attribute__((always_inline)) void
http2_blocks(const struct http2_side *s, struct hpack_table *t, __u32 said, __u64 end)
{
	if (said & HTTP2_BEGINS)
		http2_block_gathered(s, t);
	http2_block_goes_on(t, end - s->taken, s->taken);
}

/* After HTTP2_ENDS and http2_blocks(): return whether a block of a response is complete. */
static inline __attribute__((always_inline)) int http2_block_is_over(const struct http2_side *s,
								     const struct hpack_table *t)
{
	return !s->block && !(t->said & HPACK_SAID_PROMISE);
}

/* Then: return whether a field of the block is not known. */
static inline __attribute__((always_inline)) int http2_is_obscure(const struct hpack_table *t)
{
	return !hpack_is_whole(&t->walk) || t->said & HPACK_SAID_OBSCURE;
}

/*
 * Skip @count bytes that cannot be read (sendfile, splice). They must belong to the payload of one
 * DATA frame.
 */
static inline __attribute__((always_inline)) __u32 http2_unseen(struct http2_side *s, __u32 count)
{
	__u32 used = 0;

	if (!s->have || s->have < s->want || s->type != HTTP2_DATA || count > s->left)
		return HTTP2_WRONG;
	return http2_skip(s, count, &used);
}

#endif
