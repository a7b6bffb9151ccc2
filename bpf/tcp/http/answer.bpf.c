// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Looks at the start of a response. See answer.h. */
#include "answer.h"

#include "state.h"
#include "tcp/connection/bytes.h"

#include "protocol/events.h"
#include "protocol/http1.h"

#define ANSWER_BUFFERS 8
#define ANSWER_PLACES  4 /* that are looked at in one step */

/* Return whether the first @have bytes end with a head. */
static __always_inline bool head_ends(const struct answer_look *look, __u64 have)
{
	barrier_var(have); /* or the verifier does not see its bounds */
	if (have < sizeof(__u32) || have >= ANSWER_TEXT)
		return false;
	return *(const __u32 *)((const __u8 *)look->text + have - sizeof(__u32)) == HTTP1_HEAD_END;
}

/*
 * Copy the first of @bytes, which are @count, to look->text. Return their number. The buffer that ends with the head is the
 * last one: many servers have the body in another.
 */
static __always_inline __u32 copy_start(struct answer_look *look, struct bytes *bytes, __u32 count)
{
	__u8 *text = (__u8 *)look->text;
	__u32 have = 0;

	for (int i = 0; i < ANSWER_BUFFERS && have < ANSWER_TEXT - 1; i++) {
		__u32 room = ANSWER_TEXT - 1 - have;

		if (!bytes_more(bytes))
			break;
		if (room > bytes->left)
			room = bytes->left;
		if (room > count - have)
			room = count - have;
		barrier_var(room); /* or the verifier does not see the bounds */
		barrier_var(have);
		room &= ANSWER_TEXT - 1;
		have &= ANSWER_TEXT - 1;
		if (bpf_probe_read_user(text + have, room, (void *)bytes->at))
			break;
		bytes_pass(bytes, room);
		have += room;
		if (head_ends(look, have))
			break;
	}
	return have;
}

/*
 * Return whether the first @have bytes have the type of server-sent events, anywhere. A word of it is then at a place that is
 * looked at. Other fields and bodies may have it, too: pushes_begin() of pushes.h finds that out.
 */
static __always_inline bool has_events(const struct answer_look *look, __u32 have)
{
	const __u8 *text = (const __u8 *)look->text;

#pragma clang loop unroll(disable)
	for (__u32 at = 0; at < ANSWER_TEXT && at < have; at += ANSWER_PLACES * EVENTS_TYPE_APART) {
#pragma clang loop unroll(full)
		for (__u32 k = 0; k < ANSWER_PLACES * EVENTS_TYPE_APART; k += EVENTS_TYPE_APART)
			if (events_type_part(*(const __u64 *)(text + at + k)))
				return true;
	}
	return false;
}

static __always_inline enum push_suspicion suspicion_of(const struct answer_look *look, __u32 have)
{
	const __u32 *words = (const __u32 *)look->text;

	if (words[0] != word_of("HTTP"))
		return PUSH_CUT_SHORT;
	if (have < HTTP1_STATUS_LENGTH)
		return PUSH_UNSUSPECTED;
	if (words[2] == word_of(" 101"))
		return PUSH_SUSPECTED;
	return words[2] == word_of(" 200") && has_events(look, have) ? PUSH_SUSPECTED
								     : PUSH_UNSUSPECTED;
}

__noinline int answer_look(struct answer_look *look, __u64 text, __u32 count)
{
	struct bytes bytes = {.at = text, .left = count};
	enum push_suspicion suspicion;
	__u32 have;

	if (!look)
		return PUSH_UNSUSPECTED;
	if (!text)
		bytes_begin(&bytes, count);
	look->have = copy_start(look, &bytes, count);
	have = REREAD(&look->have);
	look->status = have < STATUS_LINE ? STATUS_UNKNOWN : status_of_line((__u8 *)look->text);
	suspicion = suspicion_of(look, have);
	text_forget(look->text, ANSWER_TEXT, have);
	return suspicion;
}
