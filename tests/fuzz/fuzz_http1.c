// SPDX-License-Identifier: MIT
/*
 * Any bytes as requests or responses of HTTP/1, through the kernel's own parser. The result must not depend on how they
 * are cut, nor on bytes that are passed eight at a time. Words that show the end of a head must show what the parser finds.
 * Messages that another parser reads must end where it says. The first byte gives the sender, the method of the requests that
 * are answered, and the length of the pieces.
 */
#include "fuzz.h"
#include "http1.h"

struct heard {
	uint64_t sum;
	uint64_t begun, ended;
	uint64_t left; /* bytes of the body that have not come */
	bool open, head, responses;
};

static void said(void *context, struct command_side *s, int what)
{
	struct heard *heard = context;

	heard->sum = heard->sum * 31 + (uint64_t)what;
	if (what & COMMAND_BEGINS) {
		require(!heard->open && s->left);
		heard->open = true;
		heard->begun++;
		if (heard->responses)
			heard->sum = heard->sum * 31 + s->number;
		if (heard->responses && heard->head)
			s->type |= HTTP1_IS_HEAD;
	}
	if (what & COMMAND_ENDS) {
		require(heard->open && !s->left && !s->skip && s->stage == HTTP1_START);
		heard->open = false;
		heard->ended++;
	}
}

static struct heard in_pieces(const struct heard *kind, bool single, const uint8_t *data,
			      size_t size, size_t piece)
{
	struct heard heard = *kind;
	struct http1_feeding f = {
		.responses = kind->responses, .said = said, .context = &heard, .single = single};
	struct command_side s = {0};

	for (size_t i = 0; i < size; i += piece)
		if (!http1_feed(&s, &f, data + i, size - i < piece ? size - i : piece))
			break;
	heard.left = s.skip + s.body;
	return heard;
}

/* ---- a parser of another kind: requests without a body, each line a whole one ---- */

/* Return the length of the request at the start of @data; 0: there is none, or it may have a body. */
static size_t plain_request(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memmem(data, size, "\r\n\r\n", 4) : NULL, *at, *next;

	if (!end || memcmp(data, "GET /", size < 5 ? size : 5) != 0)
		return 0;
	for (at = data; at < end + 2; at = next + 2) {
		next = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
		if (memchr(at, '\n', (size_t)(next - at)) || memchr(at, '\r', (size_t)(next - at)))
			return 0;
		if (at == data && (next - at < 14 || memcmp(next - 9, " HTTP/1.1", 9) != 0))
			return 0;
		if (at != data && (*at == 'C' || *at == 'c' || *at == 'T' || *at == 't'))
			return 0;
	}
	return (size_t)(end + 4 - data);
}

static void compare(const uint8_t *data, size_t size)
{
	const struct heard requests = {0};
	uint64_t count = 0;
	struct heard heard;
	size_t at = 0, length;

	while ((length = plain_request(data + at, size - at))) {
		at += length;
		count++;
	}
	if (!count)
		return;
	heard = in_pieces(&requests, false, data, at, at);
	require(heard.begun == count && heard.ended == count && !heard.open);
}

/* A head that is gone through by words ends where the parser says. */
static void compare_words(const uint8_t *data, size_t size)
{
	const struct heard requests = {0};
	size_t length = http1_head_walk(data, size), seen = length < size ? length : size;
	struct heard heard;

	if (!length)
		return;
	heard = in_pieces(&requests, false, data, seen, seen);
	require(heard.begun == 1 && heard.ended == (length <= size) && heard.left == length - seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heard kind = {.responses = size && data[0] & 1, .head = size && data[0] & 2};
	struct heard whole, cut;

	if (size < 2)
		return 0;
	whole = in_pieces(&kind, false, data + 1, size - 1, size);
	cut = in_pieces(&kind, data[0] & 4, data + 1, size - 1, (data[0] >> 3) + 1U);
	require(whole.sum == cut.sum && whole.open == cut.open);
	if (kind.responses)
		return 0;
	compare(data + 1, size - 1);
	compare_words(data + 1, size - 1);
	return 0;
}
