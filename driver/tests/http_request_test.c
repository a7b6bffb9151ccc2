// SPDX-License-Identifier: MIT
/* The bytes that go out. */
#include "test.h"

#include <string.h>

#include "http_request.h"
#include "options.h"
#include "sojourn/cleanup.h"
#include "target.h"

static void expect(const struct options *options, const char *expected, size_t length)
{
	struct target target = {.authority = (char *)"h:1", .path = (char *)"/p?q"};
	autofree char *bytes = NULL;
	size_t got = 0;

	assert_int_equal(http_request_build(options, &target, &bytes, &got), 0);
	assert_int_equal(got, length);
	assert_memory_equal(bytes, expected, length);
}

#define EXPECT(options, text) expect((options), (text), sizeof(text) - 1)

#define AGENT "User-Agent: sojourn-drive/" SOJOURN_VERSION "\r\n"

static void test_plain(void **state)
{
	struct options options = {.method = "GET"};

	(void)state;
	EXPECT(&options, "GET /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "\r\n");
}

static void test_headers_replace_ours(void **state)
{
	const char *headers[] = {"host: other", "USER-AGENT: me", "Hosts: x"};
	struct options options = {.method = "GET", .headers = headers, .header_count = 3};

	(void)state;
	EXPECT(&options, "GET /p?q HTTP/1.1\r\nhost: other\r\nUSER-AGENT: me\r\nHosts: x\r\n\r\n");
}

static void test_body(void **state)
{
	struct options options = {.method = "PUT", .body = (char *)"a\0b", .body_length = 3};

	(void)state;
	EXPECT(&options,
	       "PUT /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "Content-Length: 3\r\n\r\na\0b");
}

static void test_empty_body(void **state)
{
	struct options options = {.method = "POST", .body = (char *)""};

	(void)state;
	EXPECT(&options, "POST /p?q HTTP/1.1\r\nHost: h:1\r\n" AGENT "Content-Length: 0\r\n\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_headers_replace_ours),
		cmocka_unit_test(test_body),
		cmocka_unit_test(test_empty_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
