// SPDX-License-Identifier: MIT
/* Which request a datagram answers. Neighbour: engine/udp/ledger.c (the known requests). */
#include "match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define OFFSET_MAX 65535U

static int parse_width(const char *word, struct match *match)
{
	uint64_t width;

	if (units_parse_u64(word, 1, 8, &width) || (width & (width - 1)))
		return -EINVAL;
	match->width = (uint8_t)width;
	return 0;
}

static int parse_offset(const char *text, uint32_t *ret_offset)
{
	uint64_t offset;

	if (units_parse_u64(text, 0, OFFSET_MAX, &offset))
		return -EINVAL;
	*ret_offset = (uint32_t)offset;
	return 0;
}

static int parse_word(const char *word, struct match *match, bool *reply_given)
{
	if (!strcmp(word, "be") || !strcmp(word, "le")) {
		match->little_endian = *word == 'l';
		return 0;
	}
	if (!strncmp(word, "offset=", 7))
		return parse_offset(word + 7, &match->offset);
	if (strncmp(word, "reply-offset=", 13) != 0)
		return -EINVAL;
	*reply_given = true;
	return parse_offset(word + 13, &match->reply_offset);
}

static int parse_id(const char *text, struct match *ret_match, char **ret_error)
{
	struct match match = {.kind = MATCH_ID};
	autofree char *copy = strdup(text);
	char *rest = copy, *word = strsep(&rest, ",");
	bool reply_given = false;
	int err = copy ? parse_width(word, &match) : -ENOMEM;

	while (!err && (word = strsep(&rest, ",")))
		err = parse_word(word, &match, &reply_given);
	if (err == -EINVAL)
		return refuse(ret_error,
			      "--match: '%s' in id:%s is not known; write id:WIDTH (1, 2, 4 or 8 "
			      "bytes), then be or le, offset=0…%u and reply-offset=0…%u, with "
			      "commas",
			      word, text, OFFSET_MAX, OFFSET_MAX);
	if (err)
		return err;
	if (!reply_given)
		match.reply_offset = match.offset;
	*ret_match = match;
	return 0;
}

int match_parse(const char *text, struct match *ret_match, char **ret_error)
{
	if (!strncmp(text, "id:", 3))
		return parse_id(text + 3, ret_match, ret_error);
	if (!strcmp(text, "order"))
		*ret_match = (struct match){.kind = MATCH_ORDER};
	else if (!strcmp(text, "echo"))
		*ret_match = (struct match){.kind = MATCH_ECHO};
	else
		return refuse(ret_error,
			      "--match: '%s' is not known; allowed: order, id:WIDTH[,be|le]"
			      "[,offset=N][,reply-offset=N], echo",
			      text);
	return 0;
}

uint64_t match_ids(const struct match *match)
{
	return match->width == 8 ? 0 : UINT64_C(1) << (8 * match->width);
}

/* Return where the byte of value 256^@i is. */
static size_t place_of(const struct match *match, unsigned int i)
{
	return match->little_endian ? i : match->width - 1U - i;
}

void match_write(const struct match *match, uint64_t number, char *request)
{
	for (unsigned int i = 0; i < match->width; i++)
		request[match->offset + place_of(match, i)] = (char)(number >> (8 * i));
}

static uint64_t read_id(const struct match *match, const char *at)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < match->width; i++)
		id |= (uint64_t)(uint8_t)at[place_of(match, i)] << (8 * i);
	return id;
}

/* FNV-1a over words, then the rest. Matches are then compared byte by byte. */
static uint64_t hash(const char *data, size_t length)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ length, word;

	for (; length >= sizeof(word); data += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		h = (h ^ word) * 0x100000001b3ULL;
		h ^= h >> 29;
	}
	for (; length; data++, length--)
		h = (h ^ (uint8_t)*data) * 0x100000001b3ULL;
	return h;
}

bool match_key_at(const struct match *match, uint32_t offset, const char *data, size_t length,
		  uint64_t *ret_key)
{
	if (match->kind == MATCH_ID && length < (size_t)offset + match->width)
		return false;
	*ret_key = 0;
	if (match->kind == MATCH_ID)
		*ret_key = read_id(match, data + offset);
	else if (match->kind == MATCH_ECHO)
		*ret_key = hash(data, length);
	return true;
}
