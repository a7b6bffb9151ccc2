// SPDX-License-Identifier: MIT
/* The bytes of requests. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "engine/http/request.h"
#include "payload/message.h"
#include "payload/request.h"
#include "sojourn/cleanup.h"
#include "engine/target.h"

/* Expect these requests, rendered one after another. */
static void expect_requests(const struct request *request, const struct target *target,
			    const char *const *expected, const size_t *lengths, size_t count)
{
	autofree char *error = NULL;
	struct message message = {0};
	struct message_room room;
	size_t got = 0;

	assert_int_equal(http_request_build(request, target, &message, &error), 0);
	assert_int_equal(message_room_open(&room, message_room_max(&message, 0), 0, 2), 0);
	for (size_t i = 0; i < count; i++) {
		const char *bytes = message_next(&message, &room, i % 2, NULL, &got);

		assert_int_equal(got, lengths[i]);
		assert_memory_equal(bytes, expected[i], got);
	}
	message_room_close(&room);
	message_clear(&message);
}

static void expect(const struct request *request, const char *expected, size_t length)
{
	struct target target = {.authority = (char *)"h:1", .path = (char *)"/p?q"};
	expect_requests(request, &target, &expected, &length, 1);
}

#define EXPECT(request, text) expect((request), (text), sizeof(text) - 1)

static void expect_at(const struct request *request, const struct target *target,
		      const char *expected)
{
	size_t length = strlen(expected);

	expect_requests(request, target, &expected, &length, 1);
}

#define AGENT "User-Agent: sojourn-drive/" SOJOURN_VERSION "\r\n"

static void test_plain(void **state)
{
	struct request request = {.method = "GET"};

	EXPECT(&request, "GET /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "\r\n");
}

static void test_headers_replace_ours(void **state)
{
	const char *headers[] = {"host: other", "USER-AGENT: me", "Hosts: x"};
	struct request request = {.method = "GET", .headers = headers, .header_count = 3};

	EXPECT(&request, "GET /p?q HTTP/1.1\r\nhost: other\r\nUSER-AGENT: me\r\nHosts: x\r\n\r\n");
}

static void test_body(void **state)
{
	struct request request = {.method = "PUT", .body = (char *)"a\0b", .body_length = 3};

	EXPECT(&request,
	       "PUT /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "Content-Length: 3\r\n\r\na\0b");
}

static void test_empty_body(void **state)
{
	struct request request = {.method = "POST", .body = (char *)""};

	EXPECT(&request, "POST /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "Content-Length: 0\r\n\r\n");
}

/* The length follows the body from 9 to 10; a field in the path is replaced in place. */
static void test_fields(void **state)
{
	const char *headers[] = {"X-Id: {{counter:3}}"};
	struct target target = {.authority = (char *)"h", .path = (char *)"/{{row}}?n={{counter}}"};
	struct request request = {
		.method = "PUT",
		.headers = headers,
		.header_count = 1,
		.body = (char *)"<{{row}}>",
		.body_length = 9,
	};
	const char *const expected[] = {
		"PUT /a%20b?n=1 HTTP/1.1\r\nHost: h\r\n" AGENT
		"X-Id: 001\r\nContent-Length: 5\r\n\r\n<a b>",
		"PUT /0123456%2F8?n=2 HTTP/1.1\r\nHost: h\r\n" AGENT
		"X-Id: 002\r\nContent-Length: 11\r\n\r\n<0123456/8>",
	};
	const size_t lengths[] = {strlen(expected[0]), strlen(expected[1])};

	assert_int_equal(template_rows_take(strdup("a b\n0123456/8\n"), 14, &request.rows), 0);
	expect_requests(&request, &target, expected, lengths, 2);
	request.no_template = true;
	target.path = (char *)"/";
	expect_at(&request, &target,
		  "PUT / HTTP/1.1\r\nHost: h\r\n" AGENT
		  "X-Id: {{counter:3}}\r\nContent-Length: 9\r\n\r\n<{{row}}>");
	template_rows_clear(&request.rows);
}

/* A value from a server ends neither the header nor the request. */
static void test_headers_stay_lines(void **state)
{
	const char *headers[] = {"X: {{row}}"};
	struct target target = {.authority = (char *)"h", .path = (char *)"/"};
	struct request request = {.method = "GET", .headers = headers, .header_count = 1};

	assert_int_equal(template_rows_take(strdup("a\rY: b\tc\x7f"), 9, &request.rows), 0);
	expect_at(&request, &target, "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "X: a?Y: b\tc?\r\n\r\n");
	template_rows_clear(&request.rows);
}

static void refuse(const char *path, const char *header, const char *expected)
{
	struct target target = {.authority = (char *)"h", .path = (char *)path};
	struct request request = {.method = "GET", .headers = &header, .header_count = 1};
	autofree char *error = NULL;
	struct message message = {0};

	assert_int_equal(http_request_build(&request, &target, &message, &error), -EINVAL);
	assert_non_null(strstr(error, expected));
}

static void test_closes(void **state)
{
	const struct {
		const char *header;
		bool closes;
	} rows[] = {
		{"Connection: close", true},	   {"connection:\tTE , CLOSE", true},
		{"Connection: keep-alive", false}, {"Connection: closed,not-close", false},
		{"X-Connection: close", false},	   {"Connection:", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *headers[] = {rows[i].header};
		struct request request = {.headers = headers, .header_count = 1};

		assert_int_equal(http_request_closes(&request), rows[i].closes);
	}
}

static void test_wrong_fields(void **state)
{
	refuse("/{{no}}", "A: b", "the URL: '{{no}}' is not a field");
	refuse("/", "A: {{random-bytes:4}}", "--header: '{{random-bytes:4}}' gives any bytes");
	refuse("/", "A: {{counter", "is not closed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),  cmocka_unit_test(test_headers_replace_ours),
		cmocka_unit_test(test_body),   cmocka_unit_test(test_empty_body),
		cmocka_unit_test(test_fields), cmocka_unit_test(test_wrong_fields),
		cmocka_unit_test(test_closes), cmocka_unit_test(test_headers_stay_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
