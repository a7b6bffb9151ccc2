/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as HTTP/2 frames, through the kernel's own walker: its events must not depend on how
 * they are cut into pieces. The first byte gives the sender and the length of the pieces.
 */
#include "fuzz.h"
#include "walker.h"

static void add(void *context, const struct http2_side *s, uint32_t what)
{
	uint64_t *sum = context;

	/* A frame may begin and end in two steps or in one. */
	if (what & HTTP2_BEGINS)
		*sum = *sum * 31 + (s->stream ^ (uint64_t)s->payload << 32 ^
				    (uint64_t)s->type << 56 ^ s->flags);
	if (what & HTTP2_ENDS)
		*sum = *sum * 31 + 1 + (uint64_t)!!http2_is_last(s);
	if (what & HTTP2_WRONG)
		*sum = ~*sum;
}

static uint64_t in_pieces(const uint8_t *data, size_t size, size_t piece, bool by_client)
{
	struct http2_side s = {.by_client = by_client, .settled = 1};
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i += piece)
		if (!walker_feed(&s, data + i, size - i < piece ? size - i : piece, add, &sum))
			break;
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool by_client = size && data[0] & 1;

	if (size < 2)
		return 0;
	require(in_pieces(data + 1, size - 1, size, by_client) ==
		in_pieces(data + 1, size - 1, (data[0] >> 1) + 1U, by_client));
	return 0;
}
