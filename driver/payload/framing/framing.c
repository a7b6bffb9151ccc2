// SPDX-License-Identifier: MIT
/* The table of framings and their options. Neighbour: frame.c has the functions. */
#include "framing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "frame.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define OFFSET_MAX 4096U
#define ADJUST_MAX (1 << 30)

static const char forms[] =
	"fixed:SIZE, delimiter:TEXT, length:WIDTH, ber, ldap, resp, dns, echo, close";

static int parse_fixed(const char *text, struct framing *framing, char **ret_error)
{
	if (text && !units_parse_u64(text, 1, FRAMING_LENGTH_MAX, &framing->size))
		return 0;
	return refuse(
		ret_error,
		"--framing: '%s' is not the size of a response; write it in bytes, from 1 on, "
		"like fixed:64",
		text ? text : "");
}

/* The failure function of Knuth, Morris and Pratt. */
static void fill_restart(struct framing *framing)
{
	unsigned int matched = 0;

	for (unsigned int i = 1; i < framing->delimiter_length; i++) {
		while (matched && framing->delimiter[i] != framing->delimiter[matched])
			matched = framing->restart[matched - 1];
		matched += framing->delimiter[i] == framing->delimiter[matched];
		framing->restart[i] = (uint8_t)matched;
	}
}

static int parse_delimiter(const char *text, struct framing *framing, char **ret_error)
{
	autofree char *bytes = NULL;
	size_t length;

	if (!text || !*text)
		return refuse(ret_error, "--framing: a delimiter is missing; write it like "
					 "delimiter:\\r\\n");
	if (escape_decode(text, &bytes, &length))
		return refuse(ret_error, "--framing: '%s' has an unknown escape; allowed: %s", text,
			      ESCAPE_FORMS);
	if (length > FRAMING_DELIMITER_MAX)
		return refuse(ret_error,
			      "--framing: the delimiter has %zu bytes; at most %u are "
			      "allowed",
			      length, FRAMING_DELIMITER_MAX);
	memcpy(framing->delimiter, bytes, length);
	framing->delimiter_length = (uint8_t)length;
	fill_restart(framing);
	return 0;
}

static int parse_adjust(const char *text, int64_t *ret_adjust)
{
	bool negative = *text == '-';
	uint64_t value;

	if (units_parse_u64(text + negative, 0, ADJUST_MAX, &value))
		return -EINVAL;
	*ret_adjust = negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

static int parse_width(const char *word, struct framing *framing)
{
	uint64_t width;

	if (units_parse_u64(word, 1, 8, &width) || (width & (width - 1)))
		return -EINVAL;
	framing->width = (uint8_t)width;
	return 0;
}

static int parse_length_word(const char *word, struct framing *framing)
{
	uint64_t offset;

	if (!strcmp(word, "be") || !strcmp(word, "le")) {
		framing->little_endian = *word == 'l';
		return 0;
	}
	if (!strncmp(word, "offset=", 7) && !units_parse_u64(word + 7, 0, OFFSET_MAX, &offset)) {
		framing->offset = (uint32_t)offset;
		return 0;
	}
	if (!strncmp(word, "adjust=", 7))
		return parse_adjust(word + 7, &framing->adjust);
	return -EINVAL;
}

static int parse_length(const char *text, struct framing *framing, char **ret_error)
{
	autofree char *copy = strdup(text ? text : "");
	char *rest = copy, *word = strsep(&rest, ",");
	int err = copy ? parse_width(word, framing) : -ENOMEM;

	while (!err && (word = strsep(&rest, ",")))
		err = parse_length_word(word, framing);
	if (err == -EINVAL)
		return refuse(
			ret_error,
			"--framing: '%s' in length:%s is not known; write length:WIDTH (1, 2, "
			"4 or 8 bytes), then be or le, offset=0…%u and adjust=±N, with commas",
			word, text ? text : "", OFFSET_MAX);
	return err;
}

static int parse_nothing(const char *text, struct framing *framing, char **ret_error)
{
	if (!text)
		return 0;
	return refuse(ret_error, "--framing: '%s' takes no value, but ':%s' follows",
		      framing->kind->name, text);
}

static const struct framing_kind kinds[] = {
	{"fixed", parse_fixed, frame_fixed},	{"delimiter", parse_delimiter, frame_delimiter},
	{"length", parse_length, frame_length}, {"ber", parse_nothing, frame_ber},
	{"ldap", parse_nothing, frame_ldap},	{"resp", parse_nothing, frame_resp},
	{"echo", parse_nothing, frame_echo},	{"close", parse_nothing, frame_close},
	{"dns", parse_nothing, frame_dns},
};

static const struct framing_kind *find_kind(const char *text)
{
	size_t length = strcspn(text, ":");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == length && !strncmp(kinds[i].name, text, length))
			return &kinds[i];
	return NULL;
}

int framing_parse(const char *text, struct framing *ret_framing, char **ret_error)
{
	struct framing framing = {.kind = find_kind(text)};
	const char *colon = strchr(text, ':');
	int err;

	if (!framing.kind)
		return refuse(ret_error, "--framing: '%s' is not known; allowed: %s", text, forms);
	err = framing.kind->parse(colon ? colon + 1 : NULL, &framing, ret_error);
	if (!err)
		*ret_framing = framing;
	return err;
}

bool framing_lasts_until_close(const struct framing *framing)
{
	return framing->kind && framing->kind->feed == frame_close;
}

bool framing_is_whole_datagram(const struct framing *framing)
{
	return framing->kind && framing->kind->feed == frame_dns;
}

bool framing_is_echo(const struct framing *framing)
{
	return framing->kind && framing->kind->feed == frame_echo;
}

bool framing_is_ldap(const struct framing *framing)
{
	return framing->kind && framing->kind->feed == frame_ldap;
}

static void end_frame(struct framing_state *state, enum framing_verdict verdict)
{
	*state = (struct framing_state){
		.replies = state->replies + 1,
		.rejected = state->rejected || verdict == FRAMING_REJECTED,
	};
}

static enum framing_verdict conclude(struct framing_state *state, size_t rest)
{
	if (rest) {
		state->unread = rest;
		state->surplus = true;
		return FRAMING_MALFORMED;
	}
	return state->rejected ? FRAMING_REJECTED : FRAMING_COMPLETE;
}

void framing_tell(const struct framing *framing, const struct framing_state *state,
		  uint64_t received, char *text, size_t size)
{
	size_t used = strlen(text);

	if (state->surplus)
		snprintf(text + used, size - used, "%" PRIu64 " byte%s after its end",
			 state->unread, state->unread == 1 ? "" : "s");
	else
		snprintf(text + used, size - used,
			 "by byte %" PRIu64 " it is not what --framing=%s allows",
			 received - state->unread - 1, framing->kind->name);
}

enum framing_verdict framing_feed(const struct framing *framing, struct framing_state *state,
				  struct framing_sent sent, const char *data, size_t length)
{
	uint32_t replies = framing->replies ? framing->replies : 1;
	struct frame_input input = {(const uint8_t *)data, length, 0};

	while (state->replies < replies && input.used < length) {
		enum framing_verdict verdict = framing->kind->feed(framing, state, sent, &input);

		if (verdict == FRAMING_MALFORMED)
			state->unread = length - input.used;
		if (verdict == FRAMING_MORE || verdict == FRAMING_MALFORMED)
			return verdict;
		end_frame(state, verdict);
	}
	if (state->replies < replies)
		return FRAMING_MORE;
	return conclude(state, length - input.used);
}
