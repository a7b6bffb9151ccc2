// SPDX-License-Identifier: MIT
/*
 * Any text as a URL and as values of the driver's options that have their own grammar: accepted, or
 * refused with a sentence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "payload/framing/escape.h"
#include "payload/framing/framing.h"
#include "fuzz.h"
#include "payload/match.h"
#include "sojourn/cleanup.h"
#include "transport/source.h"
#include "engine/target.h"
#include "engines.h"
#include "payload/template.h"

static void check(int err, const char *error)
{
	require(!err ? !error : err == -EINVAL && error && *error);
}

static void parse_url(char *text)
{
	autofree char *error = NULL;
	struct target target = {0};
	int err = target_parse(engines, text, &target, &error);

	check(err, error);
	if (!err)
		require(target.engine != NULL);
	target_clear(&target);
}

static void parse_framing(char *text)
{
	autofree char *error = NULL;
	struct framing framing;

	check(framing_parse(text, &framing, &error), error);
}

/* Check that an identifier is read back as written, at any place. */
static void parse_match(char *text)
{
	autofree char *error = NULL;
	struct match match;
	uint64_t key;
	int err = match_parse(text, &match, &error);

	check(err, error);
	if (err || match.kind != MATCH_ID)
		return;
	autofree char *request = calloc(1, match.offset + match.width);

	match_write(&match, 0x8899aabbccddeeff, request);
	require(match_request_key(&match, request, match.offset + match.width, &key));
	require(key ==
		(match.width == 8 ? 0x8899aabbccddeeff : 0x8899aabbccddeeff % match_ids(&match)));
}

static void parse_template(char *text)
{
	autofree char *error = NULL, *buffer = NULL;
	uint64_t random = 1;
	struct template template = {0};
	const struct template_turn turn = {.number = 1, .random = &random};
	int err = template_add(&template, "--payload", TEMPLATE_BYTES, text, strlen(text), NULL,
			       &error);

	check(err, error);
	if (!err && template.max < (1 << 20)) {
		buffer = malloc(template.max + 1);
		require(template_render(&template, &turn, buffer) <= template.max);
	}
	template_clear(&template);
}

static void parse_sources(char *text)
{
	autofree char *error = NULL;
	struct source_set set = {0};

	check(source_parse(text, &set, &error), error);
	source_clear(&set);
}

static void parse_escapes(char *text)
{
	autofree char *bytes = NULL;
	size_t length = 0;

	if (!escape_decode(text, &bytes, &length))
		require(length <= strlen(text));
}

static void (*const parsers[])(char *text) = {
	parse_url, parse_framing, parse_match, parse_template, parse_sources, parse_escapes,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_text(data, size, parsers, ARRAY_SIZE(parsers));
}
