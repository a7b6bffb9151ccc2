/* SPDX-License-Identifier: MIT */
/*
 * bpf/protocol/request.h, the kernel's own source: the method and path of a request's first line,
 * however its bytes are cut.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/protocol/request.h"

static void feed(struct request_line *l, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length && l->stage < REQUEST_OVER; i++)
		request_byte(l, (uint8_t)bytes[i]);
}

static void assert_line(const char *text, const char *method, const char *path)
{
	struct request_line l = {};
	size_t length = strlen(path);

	feed(&l, text, strlen(text));
	assert_int_equal(l.stage, REQUEST_OVER);
	assert_int_equal(strncmp((char *)l.key.method, method, ROUTE_METHOD), 0);
	assert_int_equal(l.key.bits, ROUTE_BITS(length + 1));
	assert_memory_equal(l.key.path, path, length + 1);
}

static void lines_have_a_method_and_a_path(void **state)
{
	(void)state;
	assert_line("GET / HTTP/1.1\r\n", "GET", "/");
	assert_line("GET /api/users/5?id=/x HTTP/1.1\r\n", "GET", "/api/users/5");
	assert_line("\r\n\nget /a%2Fb/../c HTTP/1.1\r\n", "get", "/a%2Fb/../c");
	assert_line("POST http://[::1]:80/x?y HTTP/1.1\r\n", "POST", "/x");
	assert_line("GET HTTPS://a.example?x HTTP/1.1\r\n", "GET", "/");
	assert_line("GET http://a.example HTTP/1.1\r\n", "GET", "/");
	assert_line("GET http:///x HTTP/1.1\r\n", "GET", "/x");
	assert_line("OPTIONS * HTTP/1.1\r\n", "OPTIONS", "");
	assert_line("CONNECT a.example:443 HTTP/1.1\r\n", "CONNECT", "");
	assert_line("CONNECT localhost HTTP/1.1\r\n", "CONNECT", "");
	assert_line("GET /old\r\n", "GET", "/old");
	assert_line("VERSION-CONTROL /x HTTP/1.1\r\n", "VERSION-CONTROL", "/x");
	assert_line("GET /\xc3\xa9 HTTP/1.1\r\n", "GET", "/\xc3\xa9");
}

static void other_bytes_are_no_line(void **state)
{
	static const char *const texts[] = {
		"*1\r\n$4\r\nPING\r\n",
		"\x16\x03\x01",
		" GET / ",
		"GET  / ",
		"GET /a\x01",
		"GET /a\tb",
		"GET \x7f",
		"{\"a\": 1}",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG /",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct request_line l = {};

		feed(&l, texts[i], strlen(texts[i]));
		assert_int_equal(l.stage, REQUEST_STRANGE);
	}
}

/* No route has a path as long or a method as long, so only their start matters. */
static void long_ones_match_what_they_begin_with(void **state)
{
	struct request_line l = {};
	char text[512] = "ABCDEFGHIJKLMNOP /";

	(void)state;
	memset(text + strlen(text), 'x', 300);
	feed(&l, text, strlen(text));
	assert_int_equal(l.stage, REQUEST_OVER);
	assert_int_equal(l.key.bits, ROUTE_BITS(ROUTE_PATH));
	assert_int_not_equal(l.key.method[ROUTE_METHOD - 1], 0);
	assert_memory_equal(l.key.path, strchr(text, '/'), ROUTE_PATH);
}

/* Any bytes, of an alphabet in which lines are likely, keep to their arrays; cuts change nothing. */
static void any_bytes_cut_anywhere(void **state)
{
	static const char letters[] = "GET/:?* \r\naz-\x01\x80%";
	static const char *const starts[] = {"", "GET ", "PUT /", "G http://"};
	unsigned int over = 0;

	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		struct request_line whole = {}, parts = {};
		size_t length = (size_t)random() % 300,
		       cut = length ? (size_t)random() % length : 0;
		const char *start = starts[round % 4];
		char *text = malloc(length + 1);

		assert_non_null(text);
		feed(&whole, start, strlen(start));
		feed(&parts, start, strlen(start));
		for (size_t i = 0; i < length; i++)
			text[i] = letters[(size_t)random() % (sizeof(letters) - 1)];
		feed(&whole, text, length);
		feed(&parts, text, cut);
		feed(&parts, text + cut, length - cut);
		assert_memory_equal(&whole, &parts, sizeof(whole));
		over += whole.stage == REQUEST_OVER;
		free(text);
	}
	assert_true(over > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_a_method_and_a_path),
		cmocka_unit_test(other_bytes_are_no_line),
		cmocka_unit_test(long_ones_match_what_they_begin_with),
		cmocka_unit_test(any_bytes_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
