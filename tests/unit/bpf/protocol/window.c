// SPDX-License-Identifier: MIT
/* bpf/protocol/window.h, the kernel's own source: the numbers of SETTINGS and WINDOW_UPDATE, however they are cut. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "walker.h"

#include "../../bpf/protocol/window.h"

#define BYTES_MOST 65536
#define FOUND_MOST 256

struct found {
	struct http2_side side;
	struct window_number number;
	uint32_t stream[FOUND_MOST], value[FOUND_MOST];
	unsigned int count;
};

static void said(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	struct found *f = context;
	__u32 value, lost;

	if (!window_is_told(s, what))
		return;
	if (window_follow(s, &f->number, what, (uintptr_t)end, &value, &lost)) {
		assert_true(f->count < FOUND_MOST);
		f->stream[f->count] = s->type == HTTP2_SETTINGS ? ~0U : s->stream;
		f->value[f->count++] = value;
	}
	assert_int_equal(lost, 0);
}

static unsigned int any(unsigned int *seed, unsigned int below)
{
	return (unsigned int)rand_r(seed) % below;
}

/* Add a frame, and to @expected what it says. */
static size_t put_frame(uint8_t *at, unsigned int *seed, struct found *expected)
{
	uint32_t value = any(seed, 3) ? any(seed, 100000) : 0x7fffffff - any(seed, 3);
	uint32_t stream = any(seed, 4), settings = any(seed, 5), mine = any(seed, 6);
	size_t length;

	switch (any(seed, 3)) {
	case 0: /* the highest bit is reserved */
		length = walker_put_header(at, 4, HTTP2_WINDOW_UPDATE, 0, stream);
		length += walker_put(at + length, value | (any(seed, 2) ? 1U << 31 : 0), 4);
		break;
	case 1:
		length = walker_put_header(at, 6 * settings, HTTP2_SETTINGS, 0, 0);
		for (unsigned int i = 0; i < settings; i++) {
			length += walker_put(at + length, i == mine ? SETTINGS_WINDOW_SIZE : 5, 2);
			length += walker_put(at + length, value, 4);
		}
		if (mine >= settings)
			return length;
		stream = ~0U;
		break;
	default: /* the number 4, where it says nothing */
		length = walker_put_header(at, 8, HTTP2_PING, 0, 0);
		return length + walker_put(at + length, 4, 2) +
		       walker_put(at + length + 2, value, 6);
	}
	expected->stream[expected->count] = stream;
	expected->value[expected->count++] = value;
	return length;
}

static void numbers_are_found_however_they_are_cut(void **state)
{
	static uint8_t bytes[BYTES_MOST];
	unsigned int seed = 3;

	for (unsigned int i = 0; i < 300; i++) {
		struct found expected = {}, found = {.side = {.by_client = 1, .settled = 1}};
		size_t length = 0, at = 0, most = 1 + any(&seed, 60);

		for (unsigned int frames = any(&seed, 100); frames; frames--)
			length += put_frame(bytes + length, &seed, &expected);
		while (at < length) {
			size_t piece = 1 + any(&seed, (unsigned int)most);

			piece = piece < length - at ? piece : length - at;
			assert_true(walker_feed(&found.side, bytes + at, piece, said, &found));
			at += piece;
		}
		assert_int_equal(found.count, expected.count);
		assert_memory_equal(found.stream, expected.stream, sizeof(found.stream));
		assert_memory_equal(found.value, expected.value, sizeof(found.value));
	}
}

/* RFC 9113, 6.5.3: settings are taken in the order in which they come. */
static void the_last_setting_counts(void **state)
{
	struct found f = {.side = {.by_client = 1, .settled = 1}};
	uint8_t bytes[64];
	size_t length = walker_put_header(bytes, 18, HTTP2_SETTINGS, 0, 0);

	for (unsigned int i = 0; i < 3; i++) {
		length += walker_put(bytes + length, i < 2 ? SETTINGS_WINDOW_SIZE : 1, 2);
		length += walker_put(bytes + length, i + 1, 4);
	}
	assert_true(walker_feed(&f.side, bytes, length, said, &f));
	assert_int_equal(f.count, 1);
	assert_int_equal(f.value[0], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found_however_they_are_cut),
		cmocka_unit_test(the_last_setting_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
