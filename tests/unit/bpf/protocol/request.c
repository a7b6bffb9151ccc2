// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/request.h and route.h, the kernel's own sources: the route of a request by its first line,
 * however its bytes are cut.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "routes.h"

#include "../../bpf/protocol/request.h"

static void feed(struct request_line *l, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length && l->stage < REQUEST_OVER; i++)
		request_byte(l, (uint8_t)bytes[i]);
}

/* Return the route of a line by its bytes. */
static const char *route_of(const char *text)
{
	struct request_line l = {};

	feed(&l, text, strlen(text));
	assert_int_equal(l.stage, REQUEST_OVER);
	return routes_by_row[route_row_of(l.method.misses | l.path.misses, routes_count)];
}

/* Check that the line has this method and path: routes with both, with one other letter, and so on. */
static void assert_line(const char *text, const char *method, const char *path)
{
	char whole[256], start[256], longer[256], other[256];
	const char *const routes[] = {longer, other, "X /*", start, whole};

	snprintf(whole, sizeof(whole), "%s %s", method, path);
	snprintf(start, sizeof(start), "%s*", path);
	snprintf(longer, sizeof(longer), "%s %s/", method, path);
	snprintf(other, sizeof(other), "%.*sA %s", (int)strlen(method) - 1, method, path);
	routes_given(routes, 5);
	assert_string_equal(route_of(text), whole);
	routes_given(routes, 4);
	assert_string_equal(route_of(text), start);
	routes_given(routes, 3);
	assert_string_equal(route_of(text), "other");
}

/* A target that is no path. */
static void assert_pathless(const char *text)
{
	static const char *const routes[] = {"/*"};

	routes_given(routes, 1);
	assert_string_equal(route_of(text), "other");
}

static void lines_have_a_method_and_a_path(void **state)
{
	assert_line("GET / HTTP/1.1\r\n", "GET", "/");
	assert_line("GET /api/users/5?id=/x HTTP/1.1\r\n", "GET", "/api/users/5");
	assert_line("\r\n\nGET /a%2Fb/../c HTTP/1.1\r\n", "GET", "/a%2Fb/../c");
	assert_line("POST http://[::1]:80/x?y HTTP/1.1\r\n", "POST", "/x");
	assert_line("GET HTTPS://a.example?x HTTP/1.1\r\n", "GET", "/");
	assert_line("GET http://a.example HTTP/1.1\r\n", "GET", "/");
	assert_line("GET http:///x HTTP/1.1\r\n", "GET", "/x");
	assert_line("GET /old\r\n", "GET", "/old");
	assert_line("VERSION-CONTROL /x HTTP/1.1\r\n", "VERSION-CONTROL", "/x");
	assert_pathless("OPTIONS * HTTP/1.1\r\n");
	assert_pathless("CONNECT a.example:443 HTTP/1.1\r\n");
	assert_pathless("CONNECT localhost HTTP/1.1\r\n");
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

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct request_line l = {};

		feed(&l, texts[i], strlen(texts[i]));
		assert_int_equal(l.stage, REQUEST_STRANGE);
	}
}

/* No route has a path as long or a method as long, so only their start matters. */
static void long_ones_match_what_they_begin_with(void **state)
{
	char path[512] = "/", text[1024], longest[512];
	const char *const routes[] = {longest, "/x*", "ABCDEFGHIJKLMNO /*"};

	memset(path + 1, 'x', 300);
	snprintf(longest, sizeof(longest), "%.*s", ROUTE_PATH_LIMIT, path);
	routes_given(routes, 3);
	snprintf(text, sizeof(text), "ABCDEFGHIJKLMNO %s", path);
	assert_string_equal(route_of(text), "/x*");
	snprintf(text, sizeof(text), "GET %s ", longest);
	assert_string_equal(route_of(text), longest);
	assert_string_equal(route_of("ABCDEFGHIJKLMNO / "), "ABCDEFGHIJKLMNO /*");
	assert_string_equal(route_of("ABCDEFGHIJKLMNOP / "), "other");
}

/* Any bytes, of an alphabet in which lines are likely, keep to their arrays; cuts change nothing. */
static void any_bytes_cut_anywhere(void **state)
{
	static const char letters[] = "GET/:?* \r\naz-\x01\x80%";
	static const char *const starts[] = {"", "GET ", "PUT /", "G http://"};
	unsigned int over = 0;

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
