// SPDX-License-Identifier: MIT
/* Values captured from responses in any pieces. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "payload/capture.h"
#include "sojourn/cleanup.h"

static const struct template_variable variables[] = {{"a", 8}, {"b", 256}};

static struct capture_store open_store(void)
{
	struct capture_store store;

	assert_int_equal(capture_open(&store, variables, ARRAY_SIZE(variables)), 0);
	return store;
}

/* Expect variable b to be @expected after @body in pieces of @piece; NULL: it is not captured. */
static void expect_in_pieces(const char *kind, const char *text, const char *body, size_t length,
			     size_t piece, const char *expected)
{
	struct capture_store store = open_store();
	struct capture_list list = {0};
	autofree char *error = NULL;

	assert_int_equal(capture_add(&list, kind, text, 1, &error), 0);
	capture_set(&store, 1, "old", 3);
	capture_begin(&store);
	for (size_t i = 0; i < length; i += piece)
		capture_body(&list, &store, body + i, length - i < piece ? length - i : piece);
	assert_int_equal(capture_end(&list, &store), expected != NULL);
	assert_int_equal(store.values[1].length, expected ? strlen(expected) : 0);
	if (expected)
		assert_memory_equal(store.values[1].bytes, expected, strlen(expected));
	capture_close(&store);
	capture_clear(&list);
}

static void expect(const char *kind, const char *text, const char *body, const char *expected)
{
	expect_in_pieces(kind, text, body, strlen(body), strlen(body) + 1, expected);
	expect_in_pieces(kind, text, body, strlen(body), 1, expected);
}

/* RFC 6901's own example, and missing values. */
static void test_json(void **state)
{
	static const char body[] = "{\"foo\": [\"bar\", \"baz\"], \"\": 0, \"a/b\": 1, \"c%d\": 2,"
				   " \"m~n\": 8, \" \": 7, \"t\": true, \"r\": 0.5, \"n\": null,"
				   " \"big\": 9007199254740993}";

	expect("json", "/foo/0", body, "bar");
	expect("json", "/foo/1", body, "baz");
	expect("json", "/", body, "0");
	expect("json", "/a~1b", body, "1");
	expect("json", "/m~0n", body, "8");
	expect("json", "/ ", body, "7");
	expect("json", "/t", body, "true");
	expect("json", "/r", body, "0.5");
	expect("json", "/big", body, "9007199254740993");
	expect("json", "", "\"all\"", "all");
	expect("json", "/foo/2", body, NULL);
	expect("json", "/foo/00", body, NULL);
	expect("json", "/foo/x", body, NULL);
	expect("json", "/foo", body, NULL);
	expect("json", "/n", body, NULL);
	expect("json", "/none/at/all", body, NULL);
	expect("json", "/foo/0", "{\"foo\": [\"bar\"", NULL);
	expect("json", "/foo/0", "", NULL);
}

static void test_regex(void **state)
{
	expect("regex", "id=\"([0-9]+)\"", "<a id=\"17\" id=\"18\">", "17");
	expect("regex", "[0-9]+", "<a id=\"17\">", "17");
	expect("regex", "(x)?17", "<17>", NULL); /* the group matched nothing */
	expect("regex", "^$", "no", NULL);
	expect_in_pieces("regex", "b(.)d", "a\0bcd", 5, 2, "c");
}

static void test_bytes(void **state)
{
	expect("bytes", "0+1", "abc", "a");
	expect("bytes", "1+2", "abc", "bc");
	expect("bytes", "1+3", "abc", NULL);
}

static void test_headers(void **state)
{
	struct capture_store store = open_store();
	struct capture_list list = {0};
	autofree char *error = NULL;

	assert_int_equal(capture_add(&list, "header", "ETag", 0, &error), 0);
	capture_begin(&store);
	capture_header(&list, &store, "etags", 5, "no", 2);
	assert_false(capture_end(&list, &store));
	capture_begin(&store);
	capture_header(&list, &store, "etag", 4, "first", 5);
	capture_header(&list, &store, "ETag", 4, "second", 6);
	assert_true(capture_end(&list, &store));
	assert_int_equal(store.values[0].length, 5);
	assert_memory_equal(store.values[0].bytes, "first", 5);
	capture_begin(&store);
	capture_header(&list, &store, "ETag", 4, "too long!", 9);
	assert_false(capture_end(&list, &store));
	assert_int_equal(store.values[0].length, 0);
	capture_close(&store);
	capture_clear(&list);
}

/* A body without an end costs limited memory; the next one is captured normally. */
static void test_endless_body(void **state)
{
	struct capture_store store = open_store();
	struct capture_list list = {0};
	autofree char *error = NULL, *piece = calloc(1, 65536);

	assert_int_equal(capture_add(&list, "bytes", "0+1", 0, &error), 0);
	capture_begin(&store);
	for (unsigned int i = 0; i < 64; i++)
		capture_body(&list, &store, piece, 65536);
	assert_false(capture_end(&list, &store));
	assert_true(store.body_size <= 2 * CAPTURE_BODY_MAX);
	capture_begin(&store);
	capture_body(&list, &store, "x", 1);
	assert_true(capture_end(&list, &store));
	capture_close(&store);
	capture_clear(&list);
}

/* Expect this explanation of a missing value. */
static void tell(const char *kind, const char *text, const char *body, const char *expected)
{
	struct capture_store store = open_store();
	struct capture_list list = {0};
	autofree char *error = NULL;
	char told[128] = "";

	assert_int_equal(capture_add(&list, kind, text, 0, &error), 0); /* of 8 bytes */
	capture_begin(&store);
	capture_body(&list, &store, body, strlen(body));
	assert_false(capture_end(&list, &store));
	capture_tell(&list, &store, told, sizeof(told));
	assert_string_equal(told, expected);
	capture_close(&store);
	capture_clear(&list);
}

static void test_told(void **state)
{
	tell("json", "/b/0", "{\"a\": 1, \"b\": [1, 2, x]}",
	     "capture a: not JSON, as its first 22 bytes show");
	tell("json", "/b/0", "", "capture a: no body");
	tell("json", "/b/0", "{\"b\": []}", "capture a: nothing at '/b/0'");
	tell("json", "/b", "{\"b\": []}", "capture a: no text, number or truth at '/b' that fits");
	tell("json", "/b", "{\"b\": \"123456789\"}",
	     "capture a: no text, number or truth at '/b' that fits");
	tell("regex", "x+", "abc", "capture a: nothing matches 'x+' and fits");
	tell("bytes", "2+4", "12345", "capture a: 5 bytes, too few for 2+4");
	tell("header", "Location", "", "capture a: no header 'Location' that fits");
}

static void refuse(const char *kind, const char *text, const char *expected)
{
	struct capture_list list = {0};
	autofree char *error = NULL;

	assert_int_equal(capture_add(&list, kind, text, 0, &error), -EINVAL);
	assert_non_null(strstr(error, expected));
	assert_int_equal(list.count, 0);
}

static void test_refusals(void **state)
{
	refuse("xml", "/", "'xml' is not known; allowed: header, json, regex or bytes");
	refuse("json", "id", "'id' is not a JSON pointer");
	refuse("json", "/a~2", "followed by 0 or 1");
	refuse("regex", "(", "'(' is not a POSIX extended regular expression: ");
	refuse("header", "", "is not the name of a header");
	refuse("header", "a: b", "is not the name of a header");
	refuse("bytes", "4", "write OFFSET+LENGTH");
	refuse("bytes", "4+0", "write OFFSET+LENGTH");
	refuse("bytes", "4+4097", "write OFFSET+LENGTH");
	refuse("bytes", "-1+4", "write OFFSET+LENGTH");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),	 cmocka_unit_test(test_told),
		cmocka_unit_test(test_regex),	 cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_headers),	 cmocka_unit_test(test_endless_body),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
