// SPDX-License-Identifier: MIT
/* Framings that count, compare or search bytes. Neighbours: ber.c, resp.c. */
#include "frame.h"

#include <string.h>

enum framing_verdict frame_skip(struct framing_state *state, struct frame_input *input)
{
	uint64_t there = input->length - input->used;
	uint64_t taken = there < state->left ? there : state->left;

	input->used += taken;
	state->left -= taken;
	return state->left ? FRAMING_MORE : FRAMING_COMPLETE;
}

enum framing_verdict frame_fixed(const struct framing *framing, struct framing_state *state,
				 struct framing_sent sent, struct frame_input *input)
{
	(void)sent;
	if (!state->phase) {
		state->phase = 1;
		state->left = framing->size;
	}
	return frame_skip(state, input);
}

static void match(const struct framing *framing, struct framing_state *state, uint8_t byte)
{
	while (state->matched && byte != framing->delimiter[state->matched])
		state->matched = framing->restart[state->matched - 1];
	state->matched += byte == framing->delimiter[state->matched];
}

enum framing_verdict frame_delimiter(const struct framing *framing, struct framing_state *state,
				     struct framing_sent sent, struct frame_input *input)
{
	(void)sent;
	while (input->used < input->length) {
		const uint8_t *at = input->data + input->used;

		if (!state->matched) {
			at = memchr(at, framing->delimiter[0], input->length - input->used);
			if (!at)
				break;
			input->used = (size_t)(at - input->data);
		}
		match(framing, state, *at);
		input->used++;
		if (state->matched == framing->delimiter_length)
			return FRAMING_COMPLETE;
	}
	input->used = input->length;
	return FRAMING_MORE;
}

/* The number has been read: set how much of the frame is left. */
static enum framing_verdict begin_rest(const struct framing *framing, struct framing_state *state)
{
	int64_t rest;

	if (state->value > FRAMING_LENGTH_MAX)
		return FRAMING_MALFORMED;
	rest = (int64_t)state->value + framing->adjust;
	if (rest < 0)
		return FRAMING_MALFORMED;
	state->left = (uint64_t)rest;
	state->phase = 1;
	return rest ? FRAMING_MORE : FRAMING_COMPLETE;
}

static void add_byte(const struct framing *framing, struct framing_state *state, uint8_t byte)
{
	if (framing->little_endian)
		state->value |= (uint64_t)byte << (8 * (state->received - framing->offset));
	else
		state->value = state->value << 8 | byte;
}

enum framing_verdict frame_length(const struct framing *framing, struct framing_state *state,
				  struct framing_sent sent, struct frame_input *input)
{
	(void)sent;
	while (!state->phase && input->used < input->length) {
		if (state->received >= framing->offset)
			add_byte(framing, state, input->data[input->used]);
		state->received++;
		input->used++;
		if (state->received == framing->offset + framing->width) {
			enum framing_verdict verdict = begin_rest(framing, state);

			if (verdict != FRAMING_MORE)
				return verdict;
		}
	}
	return state->phase ? frame_skip(state, input) : FRAMING_MORE;
}

enum framing_verdict frame_echo(const struct framing *framing, struct framing_state *state,
				struct framing_sent sent, struct frame_input *input)
{
	uint64_t left = sent.length - state->received;
	size_t there = input->length - input->used;
	size_t taken = there < left ? there : (size_t)left;

	(void)framing;
	if (memcmp(sent.bytes + state->received, input->data + input->used, taken) != 0) {
		/* Use input up to the first byte that differs. */
		for (const char *at = sent.bytes + state->received;
		     (uint8_t)*at == input->data[input->used]; at++)
			input->used++;
		input->used++;
		return FRAMING_MALFORMED;
	}
	state->received += taken;
	input->used += taken;
	return state->received == sent.length ? FRAMING_COMPLETE : FRAMING_MORE;
}

/* The end is not among the bytes. */
enum framing_verdict frame_close(const struct framing *framing, struct framing_state *state,
				 struct framing_sent sent, struct frame_input *input)
{
	(void)framing;
	(void)state;
	(void)sent;
	input->used = input->length;
	return FRAMING_MORE;
}

#define DNS_HEADER_SIZE	 12U
#define DNS_IS_REPLY	 0x80U /* of byte 2 */
#define DNS_CODE_MASK	 0x0fU /* of byte 3: 0 is NOERROR (RFC 1035, 4.1.1) */
#define DNS_NO_SUCH_NAME 3U    /* NXDOMAIN is an answer, not a failure to answer */

enum framing_verdict frame_dns(const struct framing *framing, struct framing_state *state,
			       struct framing_sent sent, struct frame_input *input)
{
	unsigned int code;

	(void)framing;
	(void)state;
	(void)sent;
	input->used = input->length;
	if (input->length < DNS_HEADER_SIZE || !(input->data[2] & DNS_IS_REPLY))
		return FRAMING_MALFORMED;
	code = input->data[3] & DNS_CODE_MASK;
	return code && code != DNS_NO_SUCH_NAME ? FRAMING_REJECTED : FRAMING_COMPLETE;
}
