// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Looks at the first bytes of a connection. See speaks.h. */
#define WALK_CALLS

#include "speaks.h"

#include "protocol/websocket.h"

__noinline int start_walk(struct talk *t)
{
	return t ? start_steps(t) : START_OTHER;
}

__noinline __u32 start_look(__u32 count, __u32 old, __u32 first)
{
	__u32 start = START_NOT_YET;
	__u8 field[8] = {};
	__u16 mask = 0;
	struct bytes b;

	bytes_begin(&b, count);
	bytes_more(&b);
	if (count >= START_BYTES && b.left >= START_BYTES) {
		if (!bpf_probe_read_user(field, START_BYTES, (void *)b.at))
			start = start_of(field, old, first);
		if (old && start == START_OTHER && websocket_fills(field, count, &mask))
			start |= START_FRAME | (__u32)mask << START_MASK;
	} else if (!first || (!b.left && !b.vectors)) {
		start = START_OTHER;
	}
	return b.at ? start : start | START_UNSEEN;
}
