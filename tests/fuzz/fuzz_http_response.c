/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a response over HTTP: the verdict must not depend on the pieces it comes in, nor on
 * whether the same bytes came before. The first byte says whether it answers HEAD and what is expected
 * of the body, the second the length of the pieces.
 */
#include <stdlib.h>

#include "payload/expectation.h"
#include "fuzz.h"
#include "engine/http/response.h"
#include "sojourn/cleanup.h"

struct input {
	const char *bytes;
	size_t length;
	bool head;
	const struct expectation *expectation;
};

static void begin(struct http_response *response, const struct input *input)
{
	http_response_begin(response, input->head);
	response->expectation = input->expectation;
}

static enum http_verdict in_pieces(const struct input *input, size_t piece, struct http_memo *memo,
				   struct http_response *response)
{
	enum http_verdict verdict = HTTP_MORE;

	begin(response, input);
	for (size_t i = 0; i < input->length && verdict == HTTP_MORE; i += piece) {
		size_t rest = input->length - i;

		verdict = http_response_feed(response, memo, input->bytes + i,
					     rest < piece ? rest : piece);
	}
	return verdict;
}

/* Whether some begin of it is decided: then what follows comes too late to matter. */
static bool ends_early(const struct input *input, struct http_memo *memo)
{
	struct http_response response;

	begin(&response, input);
	for (size_t i = 0; i < input->length; i++)
		if (http_response_feed(&response, memo, input->bytes + i, 1) != HTTP_MORE)
			return i + 1 < input->length;
	return false;
}

static void require_same(const struct input *input, size_t piece)
{
	struct http_memo memo = {0}, unused = {0};
	struct http_response once, again, pieces;
	enum http_verdict whole = in_pieces(input, input->length, &memo, &once);

	if (whole != in_pieces(input, input->length, &memo, &again))
		abort();
	if (whole == HTTP_COMPLETE && (once.status != again.status))
		abort();
	if (ends_early(input, &unused)) {
		if (whole == HTTP_MORE)
			abort();
		return;
	}
	unused = (struct http_memo){0};
	if (whole != in_pieces(input, piece, &unused, &pieces))
		abort();
	if (whole == HTTP_COMPLETE && once.status != pieces.status)
		abort();
	if (whole == HTTP_MORE && http_response_end(&once) != http_response_end(&pieces))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *error = NULL;
	struct expectation expectation = {0};
	struct input input = {(const char *)data + 2, size - 2, false, NULL};

	if (size < 3)
		return 0;
	input.head = data[0] & 1;
	if (data[0] & 2) {
		if (expectation_parse_body(&expectation, "aab", &error))
			abort();
		input.expectation = &expectation;
	}
	require_same(&input, data[1] ? data[1] : 1);
	expectation_clear(&expectation);
	return 0;
}
