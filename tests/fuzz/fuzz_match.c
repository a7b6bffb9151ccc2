// SPDX-License-Identifier: MIT
/*
 * A line as --match, any bytes as a request and, after a record separator, as its reply. A written
 * identifier is found at its place, and nothing is read beyond the end.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "payload/match.h"

#define SEPARATOR '\x1e'
#define NUMBER	  UINT64_C(0x8899aabbccddeeff)

/* Return a copy of exactly this length, so that sanitizers see reads beyond its end. */
static char *copy_of(const char *bytes, size_t length)
{
	char *copy = malloc(length ? length : 1);

	require(copy != NULL);
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

static void check_identifier(const struct match *match, char *request, size_t length)
{
	uint64_t key, ids = match_ids(match);

	if (match->kind != MATCH_ID || !match_request_key(match, request, length, &key))
		return;
	require(!ids || key < ids);
	match_write(match, NUMBER, request);
	require(match_request_key(match, request, length, &key));
	require(key == (ids ? NUMBER % ids : NUMBER));
	/* The request is its own reply if the identifier is at the same place in both. */
	if (match->reply_offset == match->offset)
		require(match_reply_key(match, request, length, &key) &&
			key == (ids ? NUMBER % ids : NUMBER));
}

static void check_pair(const struct match *match, const char *request, size_t request_length,
		       const char *reply, size_t reply_length)
{
	bool same = request_length == reply_length && !memcmp(request, reply, reply_length);
	uint64_t sent = 0, got = 0;
	bool asked = match_request_key(match, request, request_length, &sent);
	bool answered = match_reply_key(match, reply, reply_length, &got);

	require(match->kind == MATCH_ID || (asked && answered));
	if (match->kind == MATCH_ORDER || (match->kind == MATCH_ECHO && same))
		require(sent == got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL,
		   *split;
	autofree char *error = NULL, *option = NULL, *request = NULL, *reply = NULL;
	size_t rest = line ? size - (size_t)(line + 1 - text) : 0, asked;
	struct match match;
	int err;

	if (!line)
		return 0;
	option = strndup(text, (size_t)(line - text));
	require(option != NULL);
	err = match_parse(option, &match, &error);
	require(!err == !error);
	if (err)
		return 0;
	split = memchr(line + 1, SEPARATOR, rest);
	asked = split ? (size_t)(split - line - 1) : rest;
	request = copy_of(line + 1, asked);
	reply = copy_of(split ? split + 1 : "", split ? rest - asked - 1 : 0);
	check_pair(&match, request, asked, reply, split ? rest - asked - 1 : 0);
	check_identifier(&match, request, asked);
	return 0;
}
