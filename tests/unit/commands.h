/* SPDX-License-Identifier: MIT */
/* The kernel's parsers of commands in user space, driven as in bpf/tcp/commands.bpf.c: for unit tests and fuzzers. */
#ifndef UNIT_COMMANDS_H
#define UNIT_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../bpf/protocol/command.h"

typedef int (*commands_parser)(struct command_side *s, __u8 byte);

/* Take @length bytes that one call has moved. Call @said for each byte that says something. False: they are wrong. */
static inline bool
commands_feed(struct command_side *s, commands_parser parse, const uint8_t *data, size_t length,
	      void (*said)(void *context, const struct command_side *s, int what), void *context)
{
	for (size_t i = 0; i < length;) {
		int what;

		if (s->skip) {
			size_t count = s->skip < length - i ? s->skip : length - i;

			s->skip -= (__u32)count;
			i += count;
			continue;
		}
		what = parse(s, data[i++]);
		if (what)
			said(context, s, what);
		if (what & COMMAND_WRONG)
			return false;
	}
	return true;
}

#endif
