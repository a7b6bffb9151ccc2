// SPDX-License-Identifier: MIT
/*
 * Any bytes as a response in any framing: the verdict must not depend on how it is cut into pieces.
 * The first byte chooses the framing, the second the length of the pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "payload/framing/framing.h"
#include "fuzz.h"
#include "sojourn/cleanup.h"

static const char *const framings[] = {
	"fixed:7",
	"delimiter:\\r\\n",
	"delimiter:aabaa",
	"length:1",
	"length:2,le,adjust=-1",
	"length:4",
	"length:8,offset=1",
	"ber",
	"ldap",
	"resp",
	"echo",
	"close",
	"dns",
};

static const struct framing_sent sent = {"ping", 4};

static enum framing_verdict in_pieces(const struct framing *framing, const char *data,
				      size_t length, size_t piece)
{
	enum framing_verdict verdict = FRAMING_MORE;
	struct framing_state state = {0};

	for (size_t i = 0; i < length && verdict == FRAMING_MORE; i += piece)
		verdict = framing_feed(framing, &state, sent, data + i,
				       length - i < piece ? length - i : piece);
	return verdict;
}

/* Return whether a prefix of the response is complete: then the bytes after it do not matter. */
static bool ends_early(const struct framing *framing, const char *data, size_t length)
{
	struct framing_state state = {0};

	for (size_t i = 0; i < length; i++)
		if (framing_feed(framing, &state, sent, data + i, 1) != FRAMING_MORE)
			return i + 1 < length;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *error = NULL;
	struct framing framing;
	enum framing_verdict whole;
	const char *bytes = (const char *)data + 2;

	if (size < 3)
		return 0;
	if (framing_parse(framings[data[0] % ARRAY_SIZE(framings)], &framing, &error))
		abort();
	framing.replies = data[0] / ARRAY_SIZE(framings) % 3;
	whole = in_pieces(&framing, bytes, size - 2, size);
	if (framing_is_whole_datagram(&framing)) /* it never comes in pieces */
		return 0;
	if (ends_early(&framing, bytes, size - 2)) {
		if (whole == FRAMING_MORE)
			abort();
		return 0;
	}
	if (whole != in_pieces(&framing, bytes, size - 2, data[1] ? data[1] : 1))
		abort();
	return 0;
}
