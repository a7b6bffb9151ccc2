// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/websocket.h, the kernel's own source: where messages of WebSocket end, however their bytes are cut. The frames
 * are those of RFC 6455 (5.7) and what it forbids.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/protocol/websocket.h"

struct told {
	char text[256];
};

/* "5" for a message of 5 bytes, "c" for a control frame. Return false after what is wrong. */
static bool say(struct told *told, const struct websocket_side *s, int said)
{
	size_t length = strlen(told->text);

	if (said & WEBSOCKET_WRONG)
		snprintf(told->text + length, sizeof(told->text) - length, "wrong");
	else if (said & WEBSOCKET_MESSAGE)
		snprintf(told->text + length, sizeof(told->text) - length, "%llu ",
			 (unsigned long long)s->bytes);
	else if (said & WEBSOCKET_CONTROL)
		snprintf(told->text + length, sizeof(told->text) - length, "c ");
	return !(said & WEBSOCKET_WRONG);
}

/* As bpf/tcp/http/pushes.bpf.c takes the bytes of one call. */
static bool feed(struct websocket_side *s, const uint8_t *data, size_t length, struct told *told)
{
	size_t i = 0;

	while (i < length) {
		size_t count = length - i;
		int said;

		if (s->stage == WEBSOCKET_PAYLOAD) {
			if (count > s->left)
				count = (size_t)s->left;
			said = websocket_pass(s, count);
			i += count;
		} else {
			said = websocket_byte(s, data[i++]);
		}
		if (!say(told, s, said))
			return false;
	}
	return true;
}

static void assert_said(bool client, const char *bytes, size_t length, const char *expected)
{
	for (size_t cut = 0; cut <= 2 * length; cut++) {
		struct websocket_side s = {.masks = client};
		size_t piece = cut > length ? cut - length : length;
		struct told told = {""};
		bool on = feed(&s, (const uint8_t *)bytes, cut < length ? cut : 0, &told);

		for (size_t i = cut < length ? cut : 0; on && i < length; i += piece)
			on = feed(&s, (const uint8_t *)bytes + i,
				  length - i < piece ? length - i : piece, &told);
		assert_string_equal(told.text, expected);
	}
}

#define CLIENT(bytes, expected) assert_said(true, bytes, sizeof(bytes) - 1, expected)
#define SERVER(bytes, expected) assert_said(false, bytes, sizeof(bytes) - 1, expected)

static void messages_of_the_rfc(void **state)
{
	SERVER("\x81\x05Hello", "5 ");
	CLIENT("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "5 ");
	SERVER("\x01\x03Hel\x80\x02lo", "5 ");
	SERVER("\x89\x05Hello\x8a\x05Hello", "c c ");
	CLIENT("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "c ");
	/* Nothing, in one frame and in three, with a ping within; a compressed one; an unfinished one. */
	SERVER("\x82\x00\x01\x00\x89\x00\x00\x00\x80\x00", "0 c 0 ");
	CLIENT("\xc1\x82mask\x01\x02\x41\x81maska\x80\x81maskb\x81\x81mas", "2 2 ");
}

static void lengths_of_all_forms(void **state)
{
	static const struct {
		const char *header;
		size_t header_length, payload;
	} frames[] = {
		{"\x82\x7d", 2, 125},
		{"\x82\x7e\x00\x7e", 4, 126},
		{"\x82\x7e\xff\xff", 4, 65535},
		{"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10, 65536},
		{"\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01", 10, 1},
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		uint8_t *bytes = calloc(1, frames[i].payload + 16);
		struct websocket_side s = {0};
		struct told told = {""};
		char expected[32];

		assert_non_null(bytes);
		memcpy(bytes, frames[i].header, frames[i].header_length);
		snprintf(expected, sizeof(expected), "%zu c ", frames[i].payload);
		assert_true(feed(&s, bytes, frames[i].header_length + frames[i].payload, &told));
		assert_true(feed(&s, (const uint8_t *)"\x89\x00", 2, &told));
		assert_string_equal(told.text, expected);
		free(bytes);
	}
}

static void what_is_forbidden(void **state)
{
	SERVER("\x81\x85maskHello", "wrong"); /* a server masks nothing */
	CLIENT("\x81\x05Hello", "wrong");     /* a client everything */
	SERVER("\x91\x00", "wrong");	      /* reserved bits */
	SERVER("\xa1\x00", "wrong");
	SERVER("\xc9\x00", "wrong"); /* a compressed ping */
	SERVER("\x83\x00", "wrong"); /* reserved opcodes */
	SERVER("\x8b\x00", "wrong");
	SERVER("\x09\x00", "wrong");	     /* a ping in pieces */
	SERVER("\x89\x7e\x00\x7e", "wrong"); /* a long one */
	SERVER("\x80\x00", "wrong");	     /* nothing goes on */
	SERVER("\x01\x00\x81\x00", "wrong"); /* another begins */
	SERVER("\x01\x00\xc0\x00", "wrong"); /* compressed from the middle on */
	SERVER("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "wrong");
	SERVER("HTTP/1.1 200 OK\r\n", "wrong");
}

/* Where frames are sought, a length has its shortest form. */
static void lengths_that_prove_nothing(void **state)
{
	static const struct {
		const char *header;
		size_t length;
		bool wrong;
	} frames[] = {
		{"\x82\x7e\x00\x7d", 4, true},
		{"\x82\x7e\x00\x7e", 4, false},
		{"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", 10, true},
		{"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10, false},
		{"\x82\x7f\x00\x00\x00\x00\xff\xff\xff\xff", 10, false},
		{"\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00", 10, true},
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct websocket_side s = {.sought = 1}, certain = {0};
		struct told told = {""};
		const uint8_t *bytes = (const uint8_t *)frames[i].header;

		/* After a short one, whose length has one byte. */
		assert_true(feed(&s, (const uint8_t *)"\x89\x00", 2, &told));
		assert_int_equal(feed(&s, bytes, frames[i].length, &told), !frames[i].wrong);
		assert_true(feed(&certain, bytes, frames[i].length, &told));
	}
}

/* ---- frames of which only the start is seen ---- */

/* Return how many reads of each length up to @most are filled by one frame that begins with @head. */
static unsigned int filled(const char head[static WEBSOCKET_LOOK], uint32_t most,
			   uint32_t *ret_last)
{
	unsigned int count = 0;
	__u16 mask;

	for (uint32_t length = WEBSOCKET_LOOK; length <= most; length++)
		if (websocket_fills((const uint8_t *)head, length, &mask)) {
			*ret_last = length;
			count++;
		}
	return count;
}

static void one_length_fills_a_read(void **state)
{
	static const struct {
		const char *head;
		uint32_t length; /* 0: none */
	} heads[] = {
		{"\x81\x80mas", 6},	    {"\x82\xfdmas", 131},	  {"\xc1\x85mas", 11},
		{"\xc2\x85mas", 11},	    {"\x89\x80mas", 6},		  {"\x8a\x84mas", 10},
		{"\x82\xfe\x00\x7em", 134}, {"\x81\xfe\xff\xffm", 65543}, {"\x81\x05mas", 0},
		{"\x01\x85mas", 0},	    {"\x80\x85mas", 0},		  {"\x83\x85mas", 0},
		{"\x88\x82mas", 0},	    {"\xc9\x80mas", 0},		  {"\xa1\x85mas", 0},
		{"\x81\xfe\x00\x7dm", 0},   {"\x81\xff\x00\x00\x00", 0},  {"GET /", 0},
	};
	uint32_t length = 0;

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		assert_int_equal(filled(heads[i].head, 70000, &length), !!heads[i].length);
		if (heads[i].length)
			assert_int_equal(length, heads[i].length);
	}
}

/* Of all starts of a short read, 6 in 65,536 are a frame's. */
static void few_bytes_fill_a_read(void **state)
{
	for (uint32_t length = WEBSOCKET_LOOK; length <= 131; length++) {
		unsigned int count = 0;

		for (unsigned int bytes = 0; bytes < 1 << 16; bytes++) {
			uint8_t head[WEBSOCKET_LOOK] = {(uint8_t)(bytes >> 8), (uint8_t)bytes};
			__u16 mask;

			count += websocket_fills(head, length, &mask) != 0;
		}
		assert_int_equal(count, length < 6 ? 0 : 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_the_rfc),
		cmocka_unit_test(lengths_of_all_forms),
		cmocka_unit_test(what_is_forbidden),
		cmocka_unit_test(lengths_that_prove_nothing),
		cmocka_unit_test(one_length_fills_a_read),
		cmocka_unit_test(few_bytes_fill_a_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
