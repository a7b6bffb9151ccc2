/* SPDX-License-Identifier: MIT */
/*
 * The kernel's HTTP/2 walker in user space, driven as in bpf/tcp/streams.h: for its unit test and
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
