/* SPDX-License-Identifier: MIT */
/* One end of a connection that writes header blocks by nghttp2, in frames that are cut at random. */
#ifndef UNIT_BPF_PROTOCOL_SENDER_H
#define UNIT_BPF_PROTOCOL_SENDER_H

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "walker.h"

#define BLOCK_MOST     8192
#define BYTES_MOST     (8U << 20)
#define PRIORITY_BYTES 5

struct sender {
	nghttp2_hd_deflater *deflater;
	unsigned int seed;
	uint8_t filler; /* of padding and priority: must not be taken for a field */
	size_t least;	/* bytes of a block in its first frame */
	uint8_t *bytes; /* sent so far; room for BYTES_MOST */
	size_t length;
};

static unsigned int any(struct sender *s, unsigned int below)
{
	return (unsigned int)rand_r(&s->seed) % below;
}

static void frame(struct sender *s, uint8_t type, uint8_t flags, const uint8_t *payload,
		  size_t length)
{
	const uint8_t header[HTTP2_HEADER] = {
		0, (uint8_t)(length >> 8), (uint8_t)length, type, flags, 0, 0, 0, 1};

	assert_true(length < 1 << 14 && s->length + sizeof(header) + length <= BYTES_MOST);
	memcpy(s->bytes + s->length, header, sizeof(header));
	memcpy(s->bytes + s->length + sizeof(header), payload, length);
	s->length += sizeof(header) + length;
}

/* Write a block in a first frame, perhaps with padding and priority, and any number of others. */
static void block_written(struct sender *s, uint8_t type, const uint8_t *block, size_t length)
{
	size_t first = length > s->least && !any(s, 3)
			       ? s->least + any(s, (unsigned int)(length - s->least))
			       : length;
	uint8_t payload[BLOCK_MOST + 512] = {0}, flags = 0, padding = 0, *at = payload;

	if (!any(s, 4)) {
		flags |= HTTP2_PADDED;
		padding = (uint8_t)any(s, 256);
		*at++ = padding;
	}
	if (type == HTTP2_PUSH_PROMISE) {
		at += 4;
	} else if (!any(s, 4)) {
		flags |= HTTP2_PRIORITISED;
		memset(at, s->filler, PRIORITY_BYTES);
		at += PRIORITY_BYTES;
	}
	memcpy(at, block, first);
	at += first;
	memset(at, s->filler, padding);
	at += padding;
	if (first == length)
		flags |= HTTP2_END_HEADERS;
	frame(s, type, flags, payload, (size_t)(at - payload));
	while (first < length) {
		size_t more = 1 + any(s, (unsigned int)(length - first));

		if (!any(s, 4))
			frame(s, HTTP2_CONTINUATION, HTTP2_PADDED, payload, 0);
		frame(s, HTTP2_CONTINUATION, first + more == length ? HTTP2_END_HEADERS : 0,
		      block + first, more);
		first += more;
	}
}

#endif
