/* SPDX-License-Identifier: MIT */
/*
 * The kernel's HTTP/2 walker in user space, driven as in bpf/tcp/http/streams.h: for its unit test and
 * its fuzzer.
 */
#ifndef UNIT_WALKER_H
#define UNIT_WALKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HTTP2_COPY(to, count, from) (!memcpy(to, (const void *)(uintptr_t)(from), count))
#include "../../bpf/protocol/http2.h"

/* Write a number of @bytes bytes as a frame has it, the highest byte first. Return @bytes. */
static inline size_t walker_put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	return bytes;
}

/* Write the header of a frame with @length bytes of payload. Return its own length. */
static inline size_t walker_put_header(uint8_t *at, size_t length, uint8_t type, uint8_t flags,
				       uint32_t stream)
{
	walker_put(at, length, 3);
	at[3] = type;
	at[4] = flags;
	walker_put(at + 5, stream, 4);
	return HTTP2_HEADER;
}

/*
 * Walk one read or write of @length bytes. Call @said for each step, whose bytes end at @end. Return
 * false if the bytes are no HTTP/2.
 */
static inline bool walker_feed(struct http2_side *s, const uint8_t *data, size_t length,
			       void (*said)(void *context, const struct http2_side *s,
					    uint32_t what, const uint8_t *end),
			       void *context)
{
	while (length) {
		__u32 used;
		uint32_t what = http2_step(s, (uintptr_t)data, (__u32)length, &used);

		said(context, s, what, data + used);
		if (what & HTTP2_WRONG)
			return false;
		data += used;
		length -= used;
	}
	return true;
}

#endif
