// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Counts the requests in one read. See batch.h. */

/* Kernels without bpf_loop() do not count requests (WALK_FOLLOWS of walk.h). */
#define WALK_CALLS

#include "batch.h"

/*
 * Limits of a look; the rest is taken to be similar, unless one request was seen. A command of RESP has one header more
 * than arguments.
 */
#define BATCH_CHUNKS  16
#define BATCH_HEADERS 128
#define BATCH_DIGITS  9

__noinline int batch_is_method(__u32 word)
{
	return word == 0x47455420 /* GET */ || word == 0x504f5354 /* POST */ ||
	       word == 0x50555420 /* PUT */ || word == 0x48454144 /* HEAD */ ||
	       word == 0x44454c45 /* DELETE */ || word == 0x50415443 /* PATCH */ ||
	       word == 0x4f505449 /* OPTIONS */;
}

/* Count the lines in the next chunk that follow an empty line and begin with a method. */
WALK_STEP long batch_http1_step(__u32 i, struct batch **batch)
{
	struct batch *b = *batch;
	__u32 room;

	if (!bytes_more(&b->bytes))
		return 1;
	room = b->bytes.left < BATCH_CHUNK ? b->bytes.left : BATCH_CHUNK;
	barrier_var(room);
	if (room > BATCH_CHUNK || bpf_probe_read_user(b->chunk, room, (void *)b->bytes.at))
		return 1;
	b->room = room;
	/* To the verifier each REREAD() is any number: after the loop it knows nothing of the last one. */
	for (__u32 j = 0; j < BATCH_CHUNK && j < REREAD(&b->room); j++) {
		b->window = b->window << 8 | b->chunk[j];
		if (b->window >> 32 == BATCH_BLANK_LINE)
			b->requests += batch_is_method(b->window);
	}
	bytes_pass(&b->bytes, REREAD(&b->room));
	b->seen += REREAD(&b->room);
	return 0;
}

/* A command is an array ("*3") of strings: "$5", the end of the line, and that many bytes. */
WALK_STEP long batch_resp_step(__u32 i, struct batch **batch)
{
	struct batch *b = *batch;
	__u32 value = 0, digits;

	if (b->seen >= b->bytes.left ||
	    bpf_probe_read_user(b->chunk, BATCH_DIGITS + 1, (void *)(b->bytes.at + b->seen)))
		return 1;
	for (digits = 0; digits < BATCH_DIGITS; digits++) {
		__u8 digit = b->chunk[1 + digits] - '0';

		if (digit > 9)
			break;
		value = value * 10 + digit;
	}
	if (!digits || (b->chunk[0] != '*' && b->chunk[0] != '$'))
		return 1;
	if (b->chunk[0] == '*')
		b->requests++;
	b->seen += digits + 3;
	if (b->chunk[0] == '$')
		b->seen += value + 2;
	return 0;
}

__noinline int batch_look(__u32 service, __u32 marks, __u32 count)
{
	struct service_slot *slot = slot_of(service);
	struct batch *b;
	__u32 zero = 0;

	b = bpf_map_lookup_elem(&batches, &zero);
	if (!b || !slot)
		return 0;
	b->seen = 0;
	b->window = 0;
	bytes_begin(&b->bytes, count);
	if (!bytes_more(&b->bytes) || bpf_probe_read_user(b->chunk, 1, (void *)b->bytes.at))
		return 0;
	if (marks & MARK_HTTP1) {
		b->requests = 1;
		WALK(b, BATCH_CHUNKS, 0, batch_http1_step);
	} else if (b->chunk[0] == '*') {
		b->requests = 0;
		WALK(b, BATCH_HEADERS, 0, batch_resp_step);
	}
	if (!b->seen)
		return 0;
	/*
	 * The unseen rest counts like the seen part. After a single request it is that one's body, as
	 * far as can be seen.
	 */
	if (b->seen < count && b->requests > 1)
		b->requests = b->requests * count / b->seen;
	count_atomic(slot, COUNTER_LOOKED, 1);
	count_atomic(slot, COUNTER_LOOKED_REQUESTS, b->requests);
	return 0;
}
