// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/http2.h, the kernel's own source: frames are the same however their bytes are cut.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walker.h"

/* The events of a walk, in one line for each frame. */
struct told {
	char text[4096];
	size_t length;
};

static void tell(struct told *told, const struct http2_side *s, uint32_t said)
{
	int n = 0;

	if (said & HTTP2_BEGINS)
		n = snprintf(told->text + told->length, sizeof(told->text) - told->length,
			     "%u/%u:%u", s->type, s->stream, s->payload);
	if (said & HTTP2_BEGINS && (s->type == HTTP2_RST_STREAM || s->type == HTTP2_GOAWAY))
		n += snprintf(told->text + told->length + n, sizeof(told->text) - told->length,
			      "(%u)", http2_u32(s->field + HTTP2_HEADER));
	if (said & HTTP2_ENDS)
		n += snprintf(told->text + told->length + n, sizeof(told->text) - told->length,
			      http2_is_last(s) ? " last\n" : " over\n");
	if (said & HTTP2_WRONG)
		n += snprintf(told->text + told->length + n, sizeof(told->text) - told->length,
			      "wrong\n");
	told->length += (size_t)n;
	assert_true(told->length < sizeof(told->text) - 64);
}

static void said(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	(void)end;
	tell(context, s, what);
}

/* ---- frames ---- */

static uint8_t bytes[2048];
static size_t length;

static void frame(uint32_t payload, uint8_t type, uint8_t flags, uint32_t stream, const void *begin,
		  size_t begin_length)
{
	assert_true(length + HTTP2_HEADER + payload <= sizeof(bytes));
	length += walker_put_header(bytes + length, payload, type, flags, stream);
	memset(bytes + length, 0xff, payload);
	if (begin_length)
		memcpy(bytes + length, begin, begin_length);
	length += payload;
}

/*
 * Each kind of frame: with and without payload, padded, a header block in three parts, an unknown
 * type.
 */
static const char *client_says(void)
{
	length = 0;
	frame(12, HTTP2_SETTINGS, 0, 0, NULL, 0);
	frame(0, HTTP2_SETTINGS, 1, 0, NULL, 0);
	frame(4, HTTP2_WINDOW_UPDATE, 0, 0, NULL, 0);
	frame(5, HTTP2_HEADERS, HTTP2_END_STREAM | HTTP2_END_HEADERS, 1, NULL, 0);
	frame(30, HTTP2_HEADERS, HTTP2_END_STREAM | 0x28, 3, NULL, 0);
	frame(0, HTTP2_CONTINUATION, 0, 3, NULL, 0);
	frame(7, HTTP2_CONTINUATION, HTTP2_END_HEADERS, 3, NULL, 0);
	frame(1, HTTP2_HEADERS, HTTP2_END_HEADERS, 5, NULL, 0);
	frame(40, HTTP2_DATA, 8, 5, "\x20", 1);
	frame(5, HTTP2_PRIORITY, 0, 5, NULL, 0);
	frame(0, HTTP2_DATA, HTTP2_END_STREAM, 5, NULL, 0);
	frame(3, 0x42, 0xff, 9, NULL, 0);
	frame(4, HTTP2_RST_STREAM, 0, 0x80000000 | 5, "\0\0\0\x08", 4);
	frame(8, HTTP2_PING, 0, 0, NULL, 0);
	frame(11, HTTP2_GOAWAY, 0, 0, "\0\0\0\x05\0\0\0\x00", 8);
	return "4/0:12 over\n4/0:0 over\n8/0:4 over\n1/1:5 last\n1/3:30 over\n9/3:0 over\n9/3:7 "
	       "last\n"
	       "1/5:1 over\n0/5:40 over\n2/5:5 over\n0/5:0 last\n66/9:3 over\n3/5:4(8) over\n6/0:8 "
	       "over\n"
	       "7/0:11(5) over\n";
}

static void walk(const size_t *cuts, size_t cut_count, struct told *told)
{
	struct http2_side s = {.by_client = 1};
	size_t at = 0;

	*told = (struct told){0};
	for (size_t i = 0; i <= cut_count; i++) {
		size_t end = i < cut_count ? cuts[i] : length;

		walker_feed(&s, bytes + at, end - at, said, told);
		at = end;
	}
}

static void frames_whole_and_in_pieces(void **state)
{
	const char *wanted = client_says();
	struct told told;
	size_t cuts[2048];

	walk(NULL, 0, &told);
	assert_string_equal(told.text, wanted);
	for (size_t piece = 1; piece < length; piece++) {
		size_t count = 0;

		for (size_t at = piece; at < length; at += piece)
			cuts[count++] = at;
		walk(cuts, count, &told);
		assert_string_equal(told.text, wanted);
	}
	for (cuts[0] = 0; cuts[0] <= length; cuts[0]++)
		for (cuts[1] = cuts[0]; cuts[1] <= length; cuts[1]++) {
			walk(cuts, 2, &told);
			assert_string_equal(told.text, wanted);
		}
}

/* ---- no frames ---- */

/* Return whether a frame after a good SETTINGS is accepted. */
static bool takes(bool by_client, uint32_t payload, uint8_t type, uint8_t flags, uint32_t stream)
{
	struct http2_side s = {.by_client = by_client};
	struct told told = {0};

	length = 0;
	frame(0, HTTP2_SETTINGS, 0, 0, NULL, 0);
	frame(payload, type, flags, stream, NULL, 0);
	return walker_feed(&s, bytes, length, said, &told);
}

static void what_is_strict_is_checked(void **state)
{
	assert_true(takes(true, 5, HTTP2_HEADERS, 4, 1));
	assert_false(takes(true, 5, HTTP2_HEADERS, 4, 0));
	assert_false(takes(true, 5, HTTP2_HEADERS, 4, 2)); /* a client's identifiers are odd */
	assert_true(takes(false, 5, HTTP2_HEADERS, 4, 2)); /* pushed */
	assert_false(takes(true, 5, HTTP2_DATA, 0, 0));
	assert_false(takes(true, 4, HTTP2_PRIORITY, 0, 1));
	assert_false(takes(true, 5, HTTP2_RST_STREAM, 0, 1));
	assert_false(takes(true, 4, HTTP2_RST_STREAM, 0, 0));
	assert_false(takes(true, 7, HTTP2_SETTINGS, 0, 0));
	assert_false(takes(true, 6, HTTP2_SETTINGS, 0, 1));
	assert_false(takes(true, 4, HTTP2_PUSH_PROMISE, 0, 1)); /* a client pushes nothing */
	assert_true(takes(false, 4, HTTP2_PUSH_PROMISE, 4, 1));
	assert_false(takes(true, 9, HTTP2_PING, 0, 0));
	assert_false(takes(true, 7, HTTP2_GOAWAY, 0, 0));
	assert_false(takes(true, 5, HTTP2_WINDOW_UPDATE, 0, 0));
	assert_false(takes(true, 5, HTTP2_CONTINUATION, 4, 1)); /* not within a header block */
}

static void the_first_frame_is_settings(void **state)
{
	struct http2_side s = {.by_client = 1};
	struct told told = {0};

	length = 0;
	frame(8, HTTP2_PING, 0, 0, NULL, 0);
	assert_false(walker_feed(&s, bytes, length, said, &told));
	s = (struct http2_side){0};
	length = 0;
	frame(0, HTTP2_SETTINGS, 1, 0, NULL, 0); /* an ACK cannot come first */
	assert_false(walker_feed(&s, bytes, length, said, &told));
}

/* No other frame may come between the parts of a header block (RFC 9113, 6.10). */
static void a_header_block_is_not_interrupted(void **state)
{
	struct http2_side s = {.by_client = 1};
	struct told told = {0};

	length = 0;
	frame(0, HTTP2_SETTINGS, 0, 0, NULL, 0);
	frame(5, HTTP2_HEADERS, 0, 1, NULL, 0);
	frame(5, HTTP2_CONTINUATION, 4, 3, NULL, 0);
	assert_false(walker_feed(&s, bytes, length, said, &told));
}

/* Random bytes: each cut gives the same events, and hardly any bytes pass for frames. */
static void garbage_is_noticed(void **state)
{
	unsigned int seed = 1, taken = 0;

	for (unsigned int i = 0; i < 2000; i++) {
		struct http2_side whole = {.by_client = 1, .settled = 1}, cut = whole;
		struct told told = {0}, again = {0};
		bool good;

		length = 512;
		for (size_t k = 0; k < length; k++)
			bytes[k] = (uint8_t)rand_r(&seed);
		good = walker_feed(&whole, bytes, length, said, &told);
		for (size_t k = 0; k < length && walker_feed(&cut, bytes + k, 1, said, &again); k++)
			;
		assert_string_equal(told.text, again.text);
		taken += good;
	}
	/* A length below 2^14 after a random header, or DATA of some stream. */
	assert_in_range(taken, 0, 2000 / 8);
}

/* ---- frames of an older connection ---- */

/* Feed all bytes, in @piece bytes at a time. Return how many frames are still sought, or -1: they are none. */
static int sought(bool by_client, size_t piece)
{
	struct http2_side s = {.by_client = by_client, .settled = 1, .sought = HTTP2_PROOF};
	struct told told = {0};

	for (size_t at = 0; at < length; at += piece)
		if (!walker_feed(&s, bytes + at, length - at < piece ? length - at : piece, said,
				 &told))
			return -1;
	return s.sought;
}

/* Return the same for two good frames and this one. */
static int sought_after(bool by_client, uint32_t payload, uint8_t type, uint8_t flags,
			uint32_t stream)
{
	length = 0;
	frame(4, HTTP2_WINDOW_UPDATE, 0, 7, NULL, 0);
	frame(8, HTTP2_PING, 1, 0, NULL, 0);
	frame(payload, type, flags, stream, "\1", payload != 0);
	return sought(by_client, length);
}

static void three_frames_prove_it(void **state)
{
	length = 0;
	for (int frames = 1; frames <= HTTP2_PROOF; frames++) {
		frame(5, HTTP2_HEADERS, HTTP2_END_HEADERS, 1, NULL, 0);
		for (size_t piece = 1; piece <= length; piece++)
			assert_int_equal(sought(true, piece), HTTP2_PROOF - frames);
	}
	/* Not DATA alone, and not by a part of a header block that is not known. */
	length = 0;
	for (int i = 0; i < 8; i++)
		frame(5, HTTP2_DATA, 0, 1, NULL, 0);
	assert_int_equal(sought(true, length), 1);
	frame(5, HTTP2_HEADERS, 0, 3, NULL, 0);
	assert_int_equal(sought(true, length), 0);
	length = 0;
	frame(5, HTTP2_HEADERS, 0, 1, NULL, 0);
	for (int i = 0; i < 8; i++)
		frame(5, HTTP2_CONTINUATION, 0, 1, NULL, 0);
	assert_int_equal(sought(true, length), 1);
	frame(5, HTTP2_CONTINUATION, HTTP2_END_HEADERS, 1, NULL, 0);
	frame(5, HTTP2_DATA, 0, 1, NULL, 0);
	assert_int_equal(sought(true, length), 0);
}

static void each_frame_of_the_proof_is_checked(void **state)
{
	static const uint8_t flags[] = {
		[HTTP2_DATA] = 0x9,	    [HTTP2_HEADERS] = 0x2d, [HTTP2_SETTINGS] = 1,
		[HTTP2_PUSH_PROMISE] = 0xc, [HTTP2_PING] = 1,	    [HTTP2_GOAWAY] = 0,
		[HTTP2_WINDOW_UPDATE] = 0,  [HTTP2_PRIORITY] = 0,   [HTTP2_RST_STREAM] = 0};
	static const uint8_t lengths[] = {
		[HTTP2_DATA] = 0xff,  [HTTP2_HEADERS] = 0xff, [HTTP2_PUSH_PROMISE] = 0xff,
		[HTTP2_PING] = 8,     [HTTP2_GOAWAY] = 9,     [HTTP2_WINDOW_UPDATE] = 4,
		[HTTP2_PRIORITY] = 5, [HTTP2_RST_STREAM] = 4};

	for (unsigned int type = 0; type < sizeof(flags); type++) {
		uint32_t stream =
			type == HTTP2_SETTINGS || type == HTTP2_PING || type == HTTP2_GOAWAY ? 0
											     : 1;

		for (unsigned int bit = 1; bit < 256; bit <<= 1)
			assert_int_equal(
				sought_after(false, lengths[type], type, (uint8_t)bit, stream),
				bit & flags[type] ? 0 : -1);
		assert_int_equal(sought_after(false, lengths[type], type, 0, stream), 0);
		/* The reserved bit, and a stream where there must be none, or none where there must be one. */
		assert_int_equal(sought_after(false, lengths[type], type, 0, stream | 1U << 31),
				 -1);
		if (type != HTTP2_WINDOW_UPDATE)
			assert_int_equal(sought_after(false, lengths[type], type, 0, !stream), -1);
	}
	for (unsigned int type = sizeof(flags) + 1; type < 256; type++)
		assert_int_equal(sought_after(true, 4, (uint8_t)type, 0, 0),
				 type == HTTP2_PRIORITY_UPDATE ? 0 : -1);
	assert_int_equal(sought_after(false, 4, HTTP2_PRIORITY_UPDATE, 0, 0), -1);
	assert_int_equal(sought_after(true, 3, HTTP2_PRIORITY_UPDATE, 0, 0), -1);
	assert_int_equal(sought_after(true, 4, HTTP2_PRIORITY_UPDATE, 0, 1), -1);
	assert_int_equal(sought_after(true, 6, HTTP2_SETTINGS, HTTP2_ACK, 0), -1);
	assert_int_equal(sought_after(true, 0, HTTP2_DATA, HTTP2_END_STREAM, 1), 0);
	assert_int_equal(sought_after(true, 0, HTTP2_DATA, 0, 1), -1);
	assert_int_equal(sought_after(true, 0, HTTP2_HEADERS, HTTP2_END_HEADERS, 1), -1);
	assert_int_equal(sought_after(true, 9, HTTP2_HEADERS, HTTP2_END_HEADERS, 2), -1);
	assert_int_equal(sought_after(true, 9, HTTP2_CONTINUATION, HTTP2_END_HEADERS, 1), -1);
}

static void the_proof_has_a_length(void **state)
{
	struct http2_side s = {.settled = 1, .sought = HTTP2_PROOF};
	struct told told = {0};
	uint8_t header[HTTP2_HEADER];

	walker_put_header(header, HTTP2_LONGEST_PROOF, HTTP2_HEADERS, HTTP2_END_HEADERS, 1);
	assert_true(walker_feed(&s, header, sizeof(header), said, &told));
	s = (struct http2_side){.settled = 1, .sought = HTTP2_PROOF};
	walker_put_header(header, HTTP2_LONGEST_PROOF + 1, HTTP2_HEADERS, HTTP2_END_HEADERS, 1);
	assert_false(walker_feed(&s, header, sizeof(header), said, &told));
	s = (struct http2_side){.settled = 1, .sought = HTTP2_PROOF};
	walker_put_header(header, 0xffffff, HTTP2_DATA, 0, 1);
	assert_true(walker_feed(&s, header, sizeof(header), said, &told));
}

/* Random bytes, most of them zeros and none large, as headers of frames are: hardly any are a proof. */
static void garbage_is_no_proof(void **state)
{
	unsigned int seed = 1;

	unsigned int found = 0;

	for (unsigned int i = 0; i < 200000; i++) {
		length = 512;
		for (size_t k = 0; k < length; k++)
			bytes[k] = (uint8_t)(rand_r(&seed) % 3 ? 0 : rand_r(&seed) >> 5 & 0x1f);
		found += sought(i & 1, length) == 0;
	}
	assert_in_range(found, 0, 2);
}

/* ---- unseen bytes ---- */

static void only_data_may_pass_unseen(void **state)
{
	struct http2_side s = {0};
	struct told told = {0};

	length = 0;
	frame(0, HTTP2_SETTINGS, 0, 0, NULL, 0);
	frame(5, HTTP2_HEADERS, HTTP2_END_HEADERS, 1, NULL, 0);
	frame(100, HTTP2_DATA, HTTP2_END_STREAM, 1, NULL, 0);
	assert_true(walker_feed(&s, bytes, length - 100, said, &told));
	assert_int_equal(http2_unseen(&s, 60), 0);
	assert_int_equal(http2_unseen(&s, 41), HTTP2_WRONG);
	assert_int_equal(http2_unseen(&s, 40), HTTP2_ENDS);
	assert_true(http2_is_last(&s));
	/* The next byte belongs to a header. */
	assert_int_equal(http2_unseen(&s, 1), HTTP2_WRONG);
	assert_true(walker_feed(&s, bytes + 9, 5, said, &told));
	assert_int_equal(http2_unseen(&s, 1), HTTP2_WRONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_whole_and_in_pieces),
		cmocka_unit_test(what_is_strict_is_checked),
		cmocka_unit_test(the_first_frame_is_settings),
		cmocka_unit_test(a_header_block_is_not_interrupted),
		cmocka_unit_test(garbage_is_noticed),
		cmocka_unit_test(three_frames_prove_it),
		cmocka_unit_test(each_frame_of_the_proof_is_checked),
		cmocka_unit_test(the_proof_has_a_length),
		cmocka_unit_test(garbage_is_no_proof),
		cmocka_unit_test(only_data_may_pass_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
