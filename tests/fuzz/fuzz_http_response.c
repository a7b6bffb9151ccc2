// SPDX-License-Identifier: MIT
/*
 * Any bytes as an HTTP response. Neither the verdict nor the captured values may depend on how it
 * is cut into pieces, or on whether the same bytes came before. The first byte selects HEAD, the
 * expectation of the body and the captures; the second is the length of the pieces.
 */
#include <stdlib.h>
#include <string.h>

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

static enum connection_verdict in_pieces(const struct input *input, size_t piece,
					 struct http_memo *memo, struct http_response *response)
{
	enum connection_verdict verdict = CONNECTION_MORE;

	begin(response, input);
	for (size_t i = 0; i < input->length && verdict == CONNECTION_MORE; i += piece) {
		size_t rest = input->length - i;

		verdict = http_response_feed(response, memo, input->bytes + i,
					     rest < piece ? rest : piece);
	}
	return verdict;
}

/* Return whether a prefix is decided: then the bytes after it do not matter. */
static bool ends_early(const struct input *input, struct http_memo *memo)
{
	struct http_response response;

	begin(&response, input);
	for (size_t i = 0; i < input->length; i++)
		if (http_response_feed(&response, memo, input->bytes + i, 1) != CONNECTION_MORE)
			return i + 1 < input->length;
	return false;
}

static void require_same(const struct input *input, size_t piece)
{
	struct http_memo memo = {0}, unused = {0};
	struct http_response once, again, pieces;
	enum connection_verdict whole = in_pieces(input, input->length, &memo, &once);

	if (whole != in_pieces(input, input->length, &memo, &again))
		abort();
	if (whole == CONNECTION_COMPLETE && (once.status != again.status))
		abort();
	if (ends_early(input, &unused)) {
		if (whole == CONNECTION_MORE)
			abort();
		return;
	}
	unused = (struct http_memo){0};
	if (whole != in_pieces(input, piece, &unused, &pieces))
		abort();
	if (whole == CONNECTION_COMPLETE && once.status != pieces.status)
		abort();
	if (whole == CONNECTION_MORE && http_response_end(&once) != http_response_end(&pieces))
		abort();
}

/* ---- captures ---- */

#define VALUE_MAX 16U

static const struct template_variable variables[] = {
	{.name = "a", .max = VALUE_MAX},
	{.name = "b", .max = VALUE_MAX},
	{.name = "c", .max = VALUE_MAX},
	{.name = "d", .max = VALUE_MAX},
};

static const char *const captured[][2] = {
	{"json", "/a/0/b"},
	{"header", "X-Request"},
	{"regex", "id=([0-9]+)"},
	{"bytes", "2+4"},
};

/* Return the verdict, and count how often all values were captured. */
static enum connection_verdict take(const struct input *input, const struct capture_list *list,
				    size_t piece, struct capture_store *store)
{
	enum connection_verdict verdict = CONNECTION_MORE;
	struct http_response response;
	struct http_memo memo = {0};

	begin(&response, input);
	http_response_capture(&response, list, store);
	for (size_t i = 0; i < input->length && verdict == CONNECTION_MORE; i += piece) {
		size_t rest = input->length - i;

		verdict = http_response_feed(&response, &memo, input->bytes + i,
					     rest < piece ? rest : piece);
	}
	if (verdict == CONNECTION_COMPLETE)
		(void)http_response_judge(&response);
	return verdict;
}

static void require_same_values(const struct input *input, size_t piece)
{
	struct capture_store whole = {0}, pieces = {0};
	struct capture_list list = {0};
	autofree char *error = NULL;
	enum connection_verdict verdict;

	for (size_t i = 0; i < ARRAY_SIZE(captured); i++)
		require(!capture_add(&list, captured[i][0], captured[i][1], (uint32_t)i, &error));
	require(!capture_open(&whole, variables, ARRAY_SIZE(variables)));
	require(!capture_open(&pieces, variables, ARRAY_SIZE(variables)));
	verdict = take(input, &list, input->length, &whole);
	if (verdict == CONNECTION_COMPLETE &&
	    take(input, &list, piece, &pieces) == CONNECTION_COMPLETE) {
		require(whole.found == pieces.found);
		for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
			const struct template_value *a = &whole.values[i], *b = &pieces.values[i];

			require(a->length <= VALUE_MAX && a->length == b->length &&
				!memcmp(a->bytes, b->bytes, a->length));
		}
	}
	capture_close(&whole);
	capture_close(&pieces);
	capture_clear(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *error = NULL;
	struct expectation expectation = {0};
	struct input input = {(const char *)data + 2, size - 2, false, &expectation};

	if (size < 3)
		return 0;
	input.head = data[0] & 1;
	if (data[0] & 2)
		require(!expectation_parse_body(&expectation, "aab", &error));
	require_same(&input, data[1] ? data[1] : 1);
	if (data[0] & 4)
		require_same_values(&input, data[1] ? data[1] : 1);
	expectation_clear(&expectation);
	return 0;
}
