// SPDX-License-Identifier: MIT
/* Which request a datagram answers: options parsed, identifiers written and read. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "payload/match.h"
#include "sojourn/cleanup.h"

static struct match parsed(const char *text)
{
	autofree char *error = NULL;
	struct match match;

	assert_int_equal(match_parse(text, &match, &error), 0);
	return match;
}

static void test_words(void **state)
{
	struct match match = parsed("id:4,le,offset=3,reply-offset=1");

	assert_int_equal(match.kind, MATCH_ID);
	assert_int_equal(match.width, 4);
	assert_true(match.little_endian);
	assert_int_equal(match.offset, 3);
	assert_int_equal(match.reply_offset, 1);
	assert_int_equal(match_ids(&match), UINT64_C(1) << 32);
	match = parsed("id:8,offset=12");
	assert_int_equal(match.reply_offset, 12);
	assert_false(match.little_endian);
	assert_int_equal(match_ids(&match), 0);
	assert_int_equal(parsed("order").kind, MATCH_ORDER);
	assert_int_equal(parsed("echo").kind, MATCH_ECHO);
}

static void test_refusals(void **state)
{
	static const char *const texts[] = {"",
					    "id",
					    "id:",
					    "id:3",
					    "id:2,me",
					    "id:2,",
					    "id:2,offset=x",
					    "order:1",
					    "id:16",
					    "echoes",
					    "id:2,offset=-1",
					    "ID:2",
					    "id:2,be,",
					    "id:0,be",
					    "id:2,offset=65536"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		autofree char *error = NULL;
		struct match match;

		assert_int_equal(match_parse(texts[i], &match, &error), -EINVAL);
		assert_non_null(strstr(error, "--match: '"));
	}
}

static void test_bytes(void **state)
{
	struct match big = parsed("id:2,offset=1"), little = parsed("id:2,le,offset=1");
	char request[] = "abcd";

	match_write(&big, 0x10203, request);
	assert_memory_equal(request,
			    "a\x02\x03"
			    "d",
			    4);
	match_write(&little, 0x10203, request);
	assert_memory_equal(request,
			    "a\x03\x02"
			    "d",
			    4);
}

static void test_what_is_written_is_read(void **state)
{
	static const char *const texts[] = {"id:1", "id:2,le", "id:4,offset=2", "id:8,le,offset=1"};
	char bytes[16] = {0};
	uint64_t key;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct match match = parsed(texts[i]);
		uint64_t ids = match_ids(&match);

		match_write(&match, 0xfedcba9876543210, bytes);
		assert_true(match_reply_key(&match, bytes, sizeof(bytes), &key));
		assert_int_equal(key, ids ? 0xfedcba9876543210 % ids : 0xfedcba9876543210);
		assert_false(match_reply_key(&match, bytes, match.offset + match.width - 1U, &key));
		assert_true(match_reply_key(&match, bytes, match.offset + match.width, &key));
	}
}

static void test_reply_offset(void **state)
{
	struct match match = parsed("id:1,offset=0,reply-offset=2");
	uint64_t key;

	assert_true(match_request_key(&match, "\7", 1, &key));
	assert_int_equal(key, 7);
	assert_false(match_reply_key(&match, "\7\0", 2, &key));
	assert_true(match_reply_key(&match, "\0\0\7", 3, &key));
	assert_int_equal(key, 7);
}

static void test_echo(void **state)
{
	struct match match = parsed("echo");
	uint64_t first, second;

	assert_true(match_request_key(&match, "request 0000001", 15, &first));
	assert_true(match_reply_key(&match, "request 0000001", 15, &second));
	assert_true(first == second);
	assert_true(match_reply_key(&match, "request 0000002", 15, &second));
	assert_true(first != second);
	assert_true(match_reply_key(&match, "request 000000", 14, &second));
	assert_true(first != second);
	assert_true(match_reply_key(&match, "request 0000001\0", 16, &second));
	assert_true(first != second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	     cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bytes),	     cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_reply_offset), cmocka_unit_test(test_echo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
