// SPDX-License-Identifier: MIT
/*
 * The framings `ber` (X.690, definite lengths) and `ldap` (RFC 4511). A search is answered by any
 * number of messages, the last of which has the result.
 */
#include <string.h>

#include "frame.h"

enum {
	PHASE_IDENTIFIER,
	PHASE_IDENTIFIER_MORE,
	PHASE_LENGTH,
	PHASE_LENGTH_MORE,
	PHASE_CONTENT,
};

#define SEQUENCE   0x30
#define INTEGER	   0x02
#define ENUMERATED 0x0a

static enum framing_verdict begin_content(struct framing_state *state)
{
	if (state->value > FRAMING_LENGTH_MAX)
		return FRAMING_MALFORMED;
	state->left = state->value;
	state->phase = PHASE_CONTENT;
	return state->left ? FRAMING_MORE : FRAMING_COMPLETE;
}

static enum framing_verdict read_identifier(struct framing_state *state, uint8_t byte)
{
	bool more = state->phase == PHASE_IDENTIFIER ? (byte & 0x1f) == 0x1f : byte & 0x80;

	state->phase = more ? PHASE_IDENTIFIER_MORE : PHASE_LENGTH;
	return FRAMING_MORE;
}

/* 0x80 alone is an indefinite length, which LDAP does not allow. */
static enum framing_verdict read_length(struct framing_state *state, uint8_t byte)
{
	if (byte < 0x80) {
		state->value = byte;
		return begin_content(state);
	}
	state->left = byte & 0x7f;
	state->phase = PHASE_LENGTH_MORE;
	return state->left >= 1 && state->left <= 8 ? FRAMING_MORE : FRAMING_MALFORMED;
}

static enum framing_verdict read_length_more(struct framing_state *state, uint8_t byte)
{
	state->value = state->value << 8 | byte;
	return --state->left ? FRAMING_MORE : begin_content(state);
}

static enum framing_verdict (*const readers[])(struct framing_state *, uint8_t) = {
	[PHASE_IDENTIFIER] = read_identifier,
	[PHASE_IDENTIFIER_MORE] = read_identifier,
	[PHASE_LENGTH] = read_length,
	[PHASE_LENGTH_MORE] = read_length_more,
};

static enum framing_verdict read_header(struct framing_state *state, struct frame_input *input)
{
	enum framing_verdict verdict = FRAMING_MORE;

	while (verdict == FRAMING_MORE && state->phase != PHASE_CONTENT &&
	       input->used < input->length)
		verdict = readers[state->phase](state, input->data[input->used++]);
	return verdict;
}

enum framing_verdict frame_ber(const struct framing *framing, struct framing_state *state,
			       struct framing_sent sent, struct frame_input *input)
{
	enum framing_verdict verdict = read_header(state, input);

	(void)framing;
	(void)sent;
	if (verdict != FRAMING_MORE || state->phase != PHASE_CONTENT)
		return verdict;
	return frame_skip(state, input);
}

static void keep_head(struct framing_state *state, const struct frame_input *input)
{
	size_t room = sizeof(state->head) - state->head_length;
	size_t there = input->length - input->used;
	size_t taken = there < room ? there : room;

	if (taken > state->left)
		taken = (size_t)state->left;
	memcpy(state->head + state->head_length, input->data + input->used, taken);
	state->head_length += (uint8_t)taken;
}

/* Operations before the last answer, and those that answer with an LDAPResult. */
static const uint8_t partial[] = {0x64 /* entry */, 0x73 /* reference */, 0x79 /* intermediate */};
static const uint8_t results[] = {0x61, 0x65, 0x67, 0x69, 0x6b, 0x6d, 0x6f, 0x78};

/* success; compareFalse, compareTrue, saslBindInProgress */
static const uint8_t good_codes[] = {0, 5, 6, 14};

static bool is_among(uint8_t byte, const uint8_t *bytes, size_t count)
{
	return memchr(bytes, byte, count) != NULL;
}

/* Judge a message by its first bytes, @head: messageID, then the operation. */
static enum framing_verdict judge_message(const uint8_t *head, size_t length)
{
	size_t at = length > 1 ? 2U + head[1] : 0;
	uint8_t operation;

	if (length < 3 || head[0] != INTEGER || !head[1] || head[1] > 4 || at + 1 >= length)
		return FRAMING_MALFORMED;
	operation = head[at];
	if (is_among(operation, partial, sizeof(partial)))
		return FRAMING_MORE;
	if (!is_among(operation, results, sizeof(results)))
		return FRAMING_COMPLETE;
	at += 2 + (head[at + 1] & 0x80 ? head[at + 1] & 0x7f : 0);
	if (at + 2 >= length || head[at] != ENUMERATED || head[at + 1] != 1)
		return FRAMING_MALFORMED;
	return is_among(head[at + 2], good_codes, sizeof(good_codes)) ? FRAMING_COMPLETE
								      : FRAMING_REJECTED;
}

static enum framing_verdict read_message(struct framing_state *state, struct frame_input *input)
{
	size_t begin = input->used;
	enum framing_verdict verdict;

	if (state->phase == PHASE_IDENTIFIER && input->data[begin] != SEQUENCE) {
		input->used++;
		return FRAMING_MALFORMED;
	}
	verdict = read_header(state, input);
	if (verdict == FRAMING_COMPLETE)
		return FRAMING_MALFORMED; /* an empty message */
	if (verdict == FRAMING_MALFORMED || state->phase != PHASE_CONTENT)
		return verdict;
	keep_head(state, input);
	return frame_skip(state, input);
}

enum framing_verdict frame_ldap(const struct framing *framing, struct framing_state *state,
				struct framing_sent sent, struct frame_input *input)
{
	const struct framing_state before = *state;
	enum framing_verdict verdict = FRAMING_MORE;

	(void)framing;
	(void)sent;
	while (verdict == FRAMING_MORE && input->used < input->length) {
		verdict = read_message(state, input);
		if (verdict != FRAMING_COMPLETE)
			return verdict;
		verdict = judge_message(state->head, state->head_length);
		if (verdict == FRAMING_MORE)
			*state = (struct framing_state){.replies = before.replies,
							.rejected = before.rejected};
	}
	return verdict;
}
