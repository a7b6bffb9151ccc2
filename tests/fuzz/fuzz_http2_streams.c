// SPDX-License-Identifier: MIT
/*
 * Any bytes as HTTP/2 frames, through the kernel's own walker: its events must not depend on how
 * they are cut into pieces. The first byte gives the sender and the length of the pieces. A status
 * that needs no dynamic table equals that of nghttp2. Statuses from the dynamic table, and messages of gRPC, do not
 * depend on the pieces either. The same holds where the first frames have to prove that they are frames.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "fuzz.h"
#include "walker.h"

#include "../../bpf/protocol/grpc.h"
#include "../../bpf/protocol/window.h"

/* nghttp2 may refuse the bytes before or after the field; if it accepts them, both agree. */
static void compare_status(const struct http2_side *s, uint32_t status)
{
	size_t begin = (s->flags & HTTP2_PADDED ? 1 : 0) + (s->flags & HTTP2_PRIORITISED ? 5 : 0);
	size_t seen = http2_seen(s);
	nghttp2_hd_inflater *inflater = NULL;
	nghttp2_nv field = {0};
	int flags = 0;
	char text[16];

	if (!status)
		return;
	snprintf(text, sizeof(text), "%u", status);
	require(begin < seen && !nghttp2_hd_inflate_new(&inflater));
	if (nghttp2_hd_inflate_hd2(inflater, &field, &flags, s->field + HTTP2_HEADER + begin,
				   seen - begin, 0) >= 0) {
		require(flags & NGHTTP2_HD_INFLATE_EMIT);
		require(field.namelen == 7 && !memcmp(field.name, ":status", 7));
		require(field.valuelen == 3 && !memcmp(field.value, text, 3));
	}
	nghttp2_hd_inflate_del(inflater);
}

struct walked {
	uint64_t sum;
	struct hpack_table fields;
	struct grpc_messages messages; /* all data as if of one stream */
	struct window_number number;
	uint64_t settled; /* all numbers of windows */
	struct http2_side *side;
	uint32_t frames, proof; /* frames so far; the first that is followed */
};

/* More steps than bytes: then the pieces make no difference. */
static void add_data(struct walked *walked, const uint8_t *end)
{
	uint32_t taken = walked->side->taken, count = http2_data_part(walked->side);
	uint32_t before = walked->messages.count;

	require(count <= taken);
	require(grpc_follow(&walked->messages, (uintptr_t)(end - taken), count, 1U << 20) ==
		walked->messages.count - before);
}

/* Of several settings in one frame the pieces decide which ones are in which result: but the last one is the same. */
static void add_number(struct walked *walked, uint32_t what, const uint8_t *end)
{
	__u32 value = 0, lost = 0;

	if (window_follow(walked->side, &walked->number, what, (uintptr_t)end, &value, &lost))
		walked->settled = value;
	require(!lost && walked->number.have < WINDOW_SETTING);
}

static void add(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	static const struct hpack_table none;
	struct walked *walked = context;
	uint64_t *sum = &walked->sum;
	uint32_t status = 0;

	if (what & HTTP2_BEGINS)
		walked->frames++;
	/* These frames are not followed. The next one may begin in the same step. */
	if (s->sought)
		return;
	require(walked->frames >= walked->proof);
	if (what & HTTP2_BEGINS && s->type == HTTP2_HEADERS && !s->by_client)
		compare_status(s, http2_status(s, &none));
	if (http2_is_block(s) && !s->by_client) {
		status = http2_block_begins(s, &walked->fields, what);
		http2_blocks(s, &walked->fields, what, (uintptr_t)end);
	}
	if (s->type == HTTP2_DATA && s->taken)
		add_data(walked, end);
	if (window_is_told(s, what))
		add_number(walked, what, end);
	/* A frame may begin and end in two steps or in one. */
	if (what & HTTP2_BEGINS)
		*sum = *sum * 31 + (s->stream ^ (uint64_t)s->payload << 32 ^
				    (uint64_t)s->type << 56 ^ s->flags ^ (uint64_t)status << 8);
	if (what & HTTP2_ENDS)
		*sum = *sum * 31 + 1 + (uint64_t)!!http2_is_last(s) + 2 * walked->settled;
	if (what & HTTP2_WRONG)
		*sum = ~*sum;
}

static uint64_t in_pieces(const uint8_t *data, size_t size, size_t piece, bool by_client,
			  uint8_t proof)
{
	struct http2_side s = {.by_client = by_client, .settled = 1, .sought = proof};
	struct walked walked = {.side = &s, .proof = proof};

	for (size_t i = 0; i < size; i += piece)
		if (!walker_feed(&s, data + i, size - i < piece ? size - i : piece, add, &walked))
			break;
	walked.sum = walked.sum * 31 + walked.messages.count;
	walked.sum = walked.sum * 31 + walked.messages.lost;
	if (!walked.messages.lost)
		walked.sum = walked.sum * 31 +
			     (walked.messages.left ^ (uint64_t)walked.messages.have << 32);
	return (walked.sum * 31 + walked.fields.walk.entered) * 31 + walked.fields.grpc +
	       (uint64_t)walked.fields.said * 32;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool by_client = size && data[0] & 1;

	if (size < 2)
		return 0;
	for (uint8_t proof = 0; proof <= HTTP2_PROOF; proof += HTTP2_PROOF)
		require(in_pieces(data + 1, size - 1, size, by_client, proof) ==
			in_pieces(data + 1, size - 1, (data[0] >> 1) + 1U, by_client, proof));
	return 0;
}
