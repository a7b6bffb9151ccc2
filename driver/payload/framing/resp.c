// SPDX-License-Identifier: MIT
/* The framing `resp`: a reply of the Redis serialization protocol, versions 2 and 3. */
#include <string.h>

#include "frame.h"

enum {
	PHASE_BEGIN,
	PHASE_TYPE,
	PHASE_LINE,
	PHASE_BULK,
};

/* Maximum of elements in all aggregates of a reply. */
#define ELEMENTS_MAX (UINT64_C(1) << 32)

#define NONE UINT64_MAX /* of @value: no digit yet; also the length of a null */

enum resp_class {
	RESP_UNKNOWN,
	RESP_LINE,  /* ends with its line */
	RESP_BULK,  /* a length in bytes, the bytes, CR LF */
	RESP_LIST,  /* a number of elements */
	RESP_PAIRS, /* twice as many elements */
	RESP_ASIDE, /* a list, but not the reply itself */
	RESP_ATTRIBUTES,
};

static const uint8_t classes[256] = {
	['+'] = RESP_LINE,  ['-'] = RESP_LINE,	[':'] = RESP_LINE,	 ['_'] = RESP_LINE,
	['#'] = RESP_LINE,  [','] = RESP_LINE,	['('] = RESP_LINE,	 ['$'] = RESP_BULK,
	['!'] = RESP_BULK,  ['='] = RESP_BULK,	['*'] = RESP_LIST,	 ['~'] = RESP_LIST,
	['%'] = RESP_PAIRS, ['>'] = RESP_ASIDE, ['|'] = RESP_ATTRIBUTES,
};

static enum framing_verdict read_type(struct framing_state *state, uint8_t byte)
{
	if (classes[byte] == RESP_UNKNOWN)
		return FRAMING_MALFORMED;
	if (!state->nested && (byte == '-' || byte == '!'))
		state->rejected = true;
	state->type = byte;
	state->elements--;
	state->value = NONE;
	state->matched = 0;
	state->phase = PHASE_LINE;
	return FRAMING_MORE;
}

static enum framing_verdict end_element(struct framing_state *state)
{
	state->phase = PHASE_TYPE;
	return state->elements ? FRAMING_MORE : FRAMING_COMPLETE;
}

static enum framing_verdict add_elements(struct framing_state *state, uint64_t count, bool aside)
{
	if (count > ELEMENTS_MAX || state->elements + count > ELEMENTS_MAX)
		return FRAMING_MALFORMED;
	state->elements += count + aside;
	state->nested |= !aside;
	return end_element(state);
}

/* End the line of a type with a length. NONE is a null, without bytes or elements. */
static enum framing_verdict end_line(struct framing_state *state)
{
	uint64_t count = state->value;

	if (classes[state->type] == RESP_LINE || count == NONE)
		return end_element(state);
	if (classes[state->type] == RESP_BULK) {
		state->left = count + 2;
		state->phase = PHASE_BULK;
		return FRAMING_MORE;
	}
	if (classes[state->type] == RESP_PAIRS || classes[state->type] == RESP_ATTRIBUTES)
		count *= 2;
	return add_elements(state, count, classes[state->type] >= RESP_ASIDE);
}

/* Add a digit, or a character of "-1", a null; @matched is the last such character. */
static bool add_digit(struct framing_state *state, uint8_t byte)
{
	if (state->matched == '-' && byte == '1') {
		state->matched = '1';
		return true;
	}
	if (state->matched)
		return false;
	if (byte == '-' && state->value == NONE) {
		state->matched = '-';
		return true;
	}
	if (byte < '0' || byte > '9')
		return false;
	state->value = (state->value == NONE ? 0 : state->value * 10) + (uint64_t)(byte - '0');
	return state->value <= FRAMING_LENGTH_MAX;
}

static enum framing_verdict read_line(struct framing_state *state, uint8_t byte)
{
	bool number = classes[state->type] != RESP_LINE;

	if (state->matched == '\r')
		return byte == '\n' ? end_line(state) : FRAMING_MALFORMED;
	if (byte == '\r') {
		if (number && state->value == NONE && state->matched != '1')
			return FRAMING_MALFORMED; /* neither digits nor "-1" */
		state->matched = '\r';
		return FRAMING_MORE;
	}
	if (number)
		return add_digit(state, byte) ? FRAMING_MORE : FRAMING_MALFORMED;
	return byte == '\n' ? FRAMING_MALFORMED : FRAMING_MORE;
}

/* The two bytes after the data must be CR LF. */
static enum framing_verdict read_bulk(struct framing_state *state, struct frame_input *input)
{
	uint64_t data = state->left > 2 ? state->left - 2 : 0;
	size_t there = input->length - input->used;
	size_t taken = there < data ? there : (size_t)data;

	input->used += taken;
	state->left -= taken;
	while (state->left <= 2 && state->left && input->used < input->length)
		if (input->data[input->used++] != (state->left-- == 2 ? '\r' : '\n'))
			return FRAMING_MALFORMED;
	return state->left ? FRAMING_MORE : end_element(state);
}

static enum framing_verdict read_some(struct framing_state *state, struct frame_input *input)
{
	if (state->phase == PHASE_BULK)
		return read_bulk(state, input);
	if (state->phase == PHASE_TYPE)
		return read_type(state, input->data[input->used++]);
	return read_line(state, input->data[input->used++]);
}

enum framing_verdict frame_resp(const struct framing *framing, struct framing_state *state,
				struct framing_sent sent, struct frame_input *input)
{
	enum framing_verdict verdict = FRAMING_MORE;

	(void)framing;
	(void)sent;
	if (state->phase == PHASE_BEGIN) {
		state->phase = PHASE_TYPE;
		state->elements = 1;
	}
	while (verdict == FRAMING_MORE && input->used < input->length)
		verdict = read_some(state, input);
	return verdict;
}
