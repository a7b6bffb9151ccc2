/* SPDX-License-Identifier: MIT */
/* The kernel's parser of HTTP/1 in user space, driven as in bpf/tcp/pipeline.bpf.c: for its unit test and its fuzzer. */
#ifndef UNIT_HTTP1_H
#define UNIT_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../bpf/protocol/http1_head.h"

struct http1_feeding {
	bool responses;
	void (*said)(void *context, struct command_side *s, int what);
	void *context;
	bool single; /* bytes that say nothing are taken one by one, too */
};

/*
 * Take @length bytes that one call has moved. Call said() for each byte, or end of a body, that says something. False: they
 * are wrong, or another protocol follows.
 */
static inline bool http1_feed(struct command_side *s, const struct http1_feeding *f,
			      const uint8_t *data, size_t length)
{
	size_t i = 0;

	for (;;) {
		int what;
		uint64_t bytes;

		if (s->stage >= HTTP1_BODY && !s->skip) {
			what = http1_settle(s);
		} else if (i == length) {
			return true;
		} else if (s->skip) {
			size_t count = s->skip < length - i ? s->skip : length - i;

			s->skip -= (__u32)count;
			i += count;
			continue;
		} else {
			if (!f->single && length - i >= sizeof(bytes)) {
				memcpy(&bytes, data + i, sizeof(bytes));
				if (http1_pass(s, bytes)) {
					i += sizeof(bytes);
					continue;
				}
			}
			what = f->responses ? http1_response(s, data[i])
					    : http1_request(s, data[i]);
			i++;
		}
		if (what)
			f->said(f->context, s, what);
		if (what & (COMMAND_WRONG | COMMAND_UPGRADES))
			return false;
	}
}

/*
 * Go through the head at the start of @length bytes that one call has moved, as head_walked() does. Return the size of the
 * request; 0: it is not known.
 */
static inline size_t http1_head_walk(const uint8_t *data, size_t length)
{
	uint8_t text[HTTP1_HEAD_MOST + HTTP1_HEAD_AFTER] = {0};
	struct http1_head h = {
		.size = (uint32_t)(length < HTTP1_HEAD_MOST ? length : HTTP1_HEAD_MOST)};

	memcpy(text, data, h.size);
	if (!http1_head_begins(text))
		return 0;
	for (unsigned int i = 0; i < HTTP1_HEAD_STEPS && !http1_head_step(&h, text);)
		i++;
	return h.over ? h.at + h.length : 0;
}

#endif
