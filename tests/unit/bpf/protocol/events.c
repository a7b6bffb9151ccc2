// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/events.h, the kernel's own source: which lines dispatch an event, and where their type is. Streams are those of
 * the HTML Living Standard (9.2.6), and with each form of a line's end.
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "../../bpf/protocol/events.h"

/* Return the events in @bytes, taken one by one, or eight at a time where they say nothing. */
static int count(const char *bytes, size_t length, bool passes)
{
	struct events_side s = {0};
	int events = 0;

	for (size_t i = 0; i < length; i++) {
		uint64_t word;

		if (passes && length - i >= sizeof(word)) {
			memcpy(&word, bytes + i, sizeof(word));
			if (events_pass(&s, word)) {
				i += sizeof(word) - 1;
				continue;
			}
		}
		events += events_byte(&s, (uint8_t)bytes[i]);
	}
	return events;
}

static void assert_events(const char *bytes, size_t length, int expected)
{
	assert_int_equal(count(bytes, length, false), expected);
	assert_int_equal(count(bytes, length, true), expected);
}

#define EVENTS(bytes, expected) assert_events(bytes, sizeof(bytes) - 1, expected)

static void streams_of_the_standard(void **state)
{
	EVENTS("data: This is the first message.\n\ndata: This is the second message, it\n"
	       "data: has two lines.\n\ndata: This is the third message.\n\n",
	       3);
	EVENTS("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: "
	       "113411\n\n",
	       3);
	EVENTS("data: YHOO\ndata: +2\ndata: 10\n\n", 1);
	EVENTS(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  "
	       "third event\n\n",
	       3);
	/* The last one is not over. */
	EVENTS("data\n\ndata\ndata\n\ndata:", 2);
	EVENTS("data:test\n\ndata: test\n\n", 2);
}

static void ends_of_lines(void **state)
{
	EVENTS("data: a\r\rdata: b\r\n\r\ndata: c\n\n", 3);
	EVENTS("data: a\r\n\r\n\r\n\r\n", 1);
	EVENTS("data: a\r\n\ndata: b\n\r\n", 2);
	EVENTS("data: a rather long line, of several words\r\rdata: b\r\r", 2);
}

static void what_is_no_event(void **state)
{
	EVENTS(": keep-alive\n\n:\n\n", 0);
	EVENTS("event: ping\n\nid: 1\n\nretry: 10\n\n", 0);
	EVENTS("dat: a\n\ndatas: a\n\n data: a\n\nDATA: a\n\n", 0);
	EVENTS("\n\n\n", 0);
}

static void a_byte_order_mark(void **state)
{
	EVENTS("\xef\xbb\xbf"
	       "data: a\n\n",
	       1);
	EVENTS("\xef\xbb"
	       "data: a\n\ndata: b\n\n",
	       1);
	EVENTS("data: a\n\n\xef\xbb\xbf"
	       "data: b\n\n",
	       1);
}

/* Return whether a text of zeros with @type at @at is taken for one with events, as bpf/tcp/http/answer.bpf.c looks at it. */
static bool has_type(const char *type, size_t at)
{
	char text[128] = "";
	__u64 word;

	for (size_t i = 0; type[i]; i++)
		text[at + i] = type[i];
	for (size_t i = 0; i + sizeof(word) <= sizeof(text); i += EVENTS_TYPE_APART) {
		memcpy(&word, text + i, sizeof(word));
		if (events_type_part(word))
			return true;
	}
	return false;
}

static void the_type_is_found_anywhere(void **state)
{
	for (size_t at = 0; at < 100; at++) {
		assert_true(has_type("text/event-stream", at));
		assert_true(has_type("Text/EVENT-Stream", at));
		assert_false(has_type("text/html; charset=utf-8", at));
		assert_false(has_type("application/octet-stream", at));
		assert_false(has_type("content-event", at));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_of_the_standard),    cmocka_unit_test(ends_of_lines),
		cmocka_unit_test(what_is_no_event),	      cmocka_unit_test(a_byte_order_mark),
		cmocka_unit_test(the_type_is_found_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
