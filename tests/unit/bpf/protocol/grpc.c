// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/grpc.h, the kernel's own source: messages are the same however frames and bytes are cut. If bytes are
 * no message, or were not seen, that is noted.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "walker.h"

#include "../../bpf/protocol/grpc.h"

#define BYTES_MOST (4U << 20)
#define STEPS	   65536

/* One direction of a connection with one stream, as bpf/tcp/http/grpc.bpf.c follows it. */
struct direction {
	struct http2_side side;
	struct grpc_messages messages;
	uint32_t count;
};

static void said(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	struct direction *d = context;
	uint32_t part;

	(void)what;
	if (s->type != HTTP2_DATA || !s->taken)
		return;
	part = http2_data_part(&d->side);
	if (part)
		d->count += grpc_follow(&d->messages, (uintptr_t)(end - s->taken), part, STEPS);
}

static bool feed(struct direction *d, const uint8_t *bytes, size_t length)
{
	return walker_feed(&d->side, bytes, length, said, d);
}

static void begin(struct direction *d)
{
	*d = (struct direction){.side = {.by_client = 1, .settled = 1}};
}

/* ---- what a peer sends ---- */

struct sent {
	uint8_t *bytes;
	size_t length;
	unsigned int seed;
};

static unsigned int any(struct sent *s, unsigned int below)
{
	return (unsigned int)rand_r(&s->seed) % below;
}

/* Add a frame of DATA, with padding of bytes that look like messages. */
static void data(struct sent *s, const uint8_t *payload, size_t length)
{
	uint8_t padding = any(s, 3) ? 0 : (uint8_t)any(s, 256);
	bool padded = padding || !any(s, 4);
	size_t size = length + padded + padding;

	assert_true(s->length + HTTP2_HEADER + size <= BYTES_MOST);
	s->length += walker_put_header(s->bytes + s->length, size, HTTP2_DATA,
				       padded ? HTTP2_PADDED : 0, 1);
	if (padded)
		s->bytes[s->length++] = padding;
	memcpy(s->bytes + s->length, payload, length);
	s->length += length;
	memset(s->bytes + s->length, 0, padding);
	s->length += padding;
}

/* Write messages of any length, with flags of both kinds, in frames of any size. Return their number. */
static unsigned int messages_sent(struct sent *s)
{
	unsigned int count = any(s, 40);
	uint8_t *text = malloc(BYTES_MOST);
	size_t length = 0, at = 0;

	assert_non_null(text);
	for (unsigned int i = 0; i < count; i++) {
		size_t size = any(s, 3) ? any(s, 20) : any(s, 3000);

		text[length] = (uint8_t)any(s, 2);
		text[length + 1] = text[length + 2] = 0;
		text[length + 3] = (uint8_t)(size >> 8);
		text[length + 4] = (uint8_t)size;
		memset(text + length + 5, (int)any(s, 256), size);
		length += 5 + size;
	}
	s->length = 0;
	while (at < length) {
		size_t size = any(s, 4) ? any(s, 12) : any(s, 9000);

		size = size < length - at ? size : length - at;
		data(s, text + at, size);
		at += size;
	}
	free(text);
	return count;
}

static void messages_are_counted_however_they_are_cut(void **state)
{
	struct sent s = {.bytes = malloc(BYTES_MOST), .seed = 7};
	struct direction d;

	assert_non_null(s.bytes);
	for (unsigned int i = 0; i < 300; i++) {
		unsigned int count = messages_sent(&s);
		size_t most = 1 + any(&s, 2000), at = 0;

		begin(&d);
		while (at < s.length) {
			size_t piece = 1 + any(&s, (unsigned int)most);

			piece = piece < s.length - at ? piece : s.length - at;
			assert_true(feed(&d, s.bytes + at, piece));
			at += piece;
		}
		assert_int_equal(d.messages.count, count);
		assert_int_equal(d.count, count);
		assert_int_equal(d.messages.lost, 0);
		assert_int_equal(d.messages.have, 0);
	}
	free(s.bytes);
}

/* ---- what is no message ---- */

static void follow(struct grpc_messages *m, const void *bytes, size_t length)
{
	grpc_follow(m, (uintptr_t)bytes, (uint32_t)length, STEPS);
}

static void other_flags_are_no_messages(void **state)
{
	struct grpc_messages m = {0};

	follow(&m, "\1\0\0\0\1x\0\0", 8);
	assert_int_equal(m.count, 1);
	follow(&m, "\0\0\0\2\0", 5);
	assert_int_equal(m.lost, 1); /* the second message is empty; then comes a flag of 2 */
	follow(&m, "\0\0\0\0\0", 5);
	assert_int_equal(m.count, 2); /* what follows is not looked at */
	m = (struct grpc_messages){0};
	follow(&m, "{\"a\":1}", 7);
	assert_true(m.lost && !m.count);
	m = (struct grpc_messages){0};
	follow(&m, "\x80", 1); /* trailers of gRPC-Web */
	assert_true(m.lost && !m.count);
}

static void steps_are_limited(void **state)
{
	static const uint8_t zeros[500];
	struct grpc_messages m = {0};

	assert_int_equal(grpc_follow(&m, (uintptr_t)zeros, sizeof(zeros), 100), 100);
	assert_int_equal(m.lost, 0);
	assert_int_equal(grpc_follow(&m, (uintptr_t)zeros, sizeof(zeros), 99), 99);
	assert_int_equal(m.lost, 1);
}

static void only_the_text_of_a_message_may_pass_unseen(void **state)
{
	struct grpc_messages m = {0};

	follow(&m, "\0\0\0\0\12ab", 7);
	assert_int_equal(grpc_unseen(&m, 7), 0);
	assert_int_equal(grpc_unseen(&m, 1), 1);
	assert_int_equal(m.lost, 0);
	assert_int_equal(grpc_unseen(&m, 0), 0);
	assert_int_equal(m.lost, 0);
	assert_int_equal(grpc_unseen(&m, 1), 0);
	assert_int_equal(m.lost, 1);
	m = (struct grpc_messages){0};
	follow(&m, "\0\0\0\0\12ab", 7);
	assert_int_equal(grpc_unseen(&m, 9), 0);
	assert_int_equal(m.lost, 1);
}

static void the_longest_message_is_passed(void **state)
{
	struct grpc_messages m = {0};

	follow(&m, "\0\xff\xff\xff\xff", 5);
	assert_int_equal(grpc_unseen(&m, 0xfffffffe), 0);
	assert_int_equal(grpc_unseen(&m, 1), 1);
	assert_int_equal(m.lost, 0);
}

static void padding_has_to_fit(void **state)
{
	struct direction d;

	begin(&d);
	assert_true(feed(&d, (const uint8_t *)"\0\0\4\0\10\0\0\0\1\3", 10));
	begin(&d);
	assert_false(feed(&d, (const uint8_t *)"\0\0\4\0\10\0\0\0\1\4", 10));
	begin(&d);
	assert_false(feed(&d, (const uint8_t *)"\0\0\0\0\10\0\0\0\1", 9));
}

/* ---- kinds ---- */

static uint32_t kind(uint32_t in, bool ended, uint32_t out, bool ok)
{
	const struct grpc_messages client = {.count = in}, server = {.count = out};

	return grpc_kind(grpc_number(&client, ended), grpc_number(&server, ok));
}

static void kinds_are_by_messages(void **state)
{
	const struct grpc_messages lost = {.count = 5, .lost = 1}, cut = {.count = 1, .have = 3};

	assert_int_equal(kind(1, true, 1, true), GRPC_KIND_UNARY);
	assert_int_equal(kind(2, true, 1, true), GRPC_KIND_CLIENT_STREAMING);
	assert_int_equal(kind(0, true, 1, true), GRPC_KIND_CLIENT_STREAMING);
	assert_int_equal(kind(1, true, 2, true), GRPC_KIND_SERVER_STREAMING);
	assert_int_equal(kind(1, true, 0, true), GRPC_KIND_SERVER_STREAMING);
	assert_int_equal(kind(0, true, 0, true), GRPC_KIND_BIDIRECTIONAL);
	assert_int_equal(kind(3, false, 3, false), GRPC_KIND_BIDIRECTIONAL);
	/* Failed calls show only what they had. */
	assert_int_equal(kind(1, true, 0, false), GRPC_KIND_UNDECIDED);
	assert_int_equal(kind(1, true, 1, false), GRPC_KIND_UNDECIDED);
	assert_int_equal(kind(3, true, 0, false), GRPC_KIND_UNDECIDED);
	assert_int_equal(kind(1, true, 2, false), GRPC_KIND_SERVER_STREAMING);
	/* The client might have sent more. */
	assert_int_equal(kind(1, false, 1, true), GRPC_KIND_UNDECIDED);
	assert_int_equal(kind(2, false, 1, true), GRPC_KIND_CLIENT_STREAMING);
	assert_int_equal(grpc_number(&lost, 1), GRPC_LOST);
	assert_int_equal(grpc_number(&lost, 0), GRPC_LOST);
	assert_int_equal(grpc_number(&cut, 1), GRPC_LOST);
	assert_int_equal(grpc_number(&cut, 0), GRPC_OPEN);
	assert_int_equal(grpc_kind(GRPC_LOST, GRPC_OPEN), GRPC_KIND_NOT_KNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_counted_however_they_are_cut),
		cmocka_unit_test(other_flags_are_no_messages),
		cmocka_unit_test(steps_are_limited),
		cmocka_unit_test(only_the_text_of_a_message_may_pass_unseen),
		cmocka_unit_test(the_longest_message_is_passed),
		cmocka_unit_test(padding_has_to_fit),
		cmocka_unit_test(kinds_are_by_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
