// SPDX-License-Identifier: MIT
/* Responses, whole and split at every byte: the verdict, and when it is known. */
#include "driver/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/http/response.h"
#include "sojourn/cleanup.h"

struct example {
	const char *name;
	const char *text;
	enum connection_verdict verdict; /* after the last byte; until then CONNECTION_MORE */
	enum connection_verdict end; /* if the connection then ends; only after CONNECTION_MORE */
	uint16_t status;
	bool head;
	bool keep_alive;
};

#define OK "HTTP/1.1 200 OK\r\n"

/* clang-format off */
static const struct example examples[] = {
	{"length", OK "Content-Length: 5\r\n\r\nhello", CONNECTION_COMPLETE, 0, 200, false, true},
	{"no body", OK "Content-Length: 0\r\n\r\n", CONNECTION_COMPLETE, 0, 200, false, true},
	{"close", OK "Connection: close\r\nContent-Length: 1\r\n\r\nx", CONNECTION_COMPLETE, 0, 200, false, false},
	{"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", CONNECTION_COMPLETE, 0, 200, false, false},
	{"1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
	 CONNECTION_COMPLETE, 0, 200, false, true},
	{"no reason", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", CONNECTION_COMPLETE, 0, 404, false, true},
	{"chunked", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n",
	 CONNECTION_COMPLETE, 0, 200, false, true},
	{"trailer", OK "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
	 CONNECTION_COMPLETE, 0, 200, false, true},
	{"chunked cut", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", CONNECTION_MORE, CONNECTION_TRUNCATED,
	 0, false, false},
	{"until close", OK "\r\nhello", CONNECTION_MORE, CONNECTION_COMPLETE, 200, false, false},
	{"until close, empty", OK "\r\n", CONNECTION_MORE, CONNECTION_COMPLETE, 200, false, false},
	{"length cut", OK "Content-Length: 6\r\n\r\nhello", CONNECTION_MORE, CONNECTION_TRUNCATED, 0, false, false},
	{"header cut", OK "Content-Le", CONNECTION_MORE, CONNECTION_TRUNCATED, 0, false, false},
	{"nothing", "", CONNECTION_MORE, CONNECTION_TRUNCATED, 0, false, false},
	{"head", OK "Content-Length: 500\r\n\r\n", CONNECTION_COMPLETE, 0, 200, true, true},
	{"head, chunked", OK "Transfer-Encoding: chunked\r\n\r\n", CONNECTION_COMPLETE, 0, 200, true, true},
	{"head, no length", OK "\r\n", CONNECTION_COMPLETE, 0, 200, true, true},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", CONNECTION_COMPLETE, 0, 204, false, true},
	{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", CONNECTION_COMPLETE, 0, 304, false, true},
	{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK
	 "Content-Length: 2\r\n\r\nhi", CONNECTION_COMPLETE, 0, 200, false, true},
	{"interim only", "HTTP/1.1 100 Continue\r\n\r\n", CONNECTION_MORE, CONNECTION_TRUNCATED, 0, false, false},
	{"interim, head", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\n", CONNECTION_COMPLETE, 0,
	 200, true, true},
	{"switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	 CONNECTION_COMPLETE, 0, 101, false, false},
	{"500", "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx", CONNECTION_COMPLETE, 0, 500, false, true},
};

static const struct {
	const char *name, *text;
	bool head;
} malformed[] = {
	{"garbage", "\x16\x03\x01 not HTTP at all", false},
	{"a request", "GET / HTTP/1.1\r\n\r\n", false},
	{"HTTP/2", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/0.9", "HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"status", "HTTP/1.1 2x0 OK\r\n\r\n", false},
	{"status 0", "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", false},
	{"length", OK "Content-Length: many\r\n\r\n", false},
	{"negative length", OK "Content-Length: -1\r\n\r\n", false},
	{"huge length", OK "Content-Length: 99999999999999999999999\r\n\r\n", false},
	{"two lengths", OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", false},
	{"chunk size", OK "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", false},
	{"byte after the end", OK "Content-Length: 1\r\n\r\nxy", false},
	{"body after HEAD", OK "Content-Length: 1\r\n\r\nx", true},
	{"two responses", OK "Content-Length: 0\r\n\r\n" OK "Content-Length: 0\r\n\r\n", false},
};
/* clang-format on */

static struct http_memo memo;

static enum connection_verdict feed(struct http_response *response, const char *data, size_t length)
{
	autofree char *copy = malloc(length ? length : 1); /* so that sanitizers see over-reads */

	memcpy(copy, data, length);
	return length ? http_response_feed(response, &memo, copy, length) : CONNECTION_MORE;
}

static void check(const struct example *example, struct http_response *response,
		  enum connection_verdict verdict)
{
	if (verdict != example->verdict)
		fail_msg("%s: verdict %d instead of %d", example->name, verdict, example->verdict);
	if (verdict == CONNECTION_MORE) {
		verdict = http_response_end(response);
		if (verdict != example->end)
			fail_msg("%s: end %d instead of %d", example->name, verdict, example->end);
	}
	if (verdict != CONNECTION_COMPLETE)
		return;
	assert_int_equal(response->status, example->status);
	if (response->keep_alive != example->keep_alive)
		fail_msg("%s: keep-alive %d", example->name, response->keep_alive);
}

/* @step bytes at a time after the first @first. */
static void feed_split(const struct example *example, size_t first, size_t step)
{
	size_t length = strlen(example->text), done = 0, part = first;
	enum connection_verdict verdict = CONNECTION_MORE;
	struct http_response response;

	http_response_begin(&response, example->head);
	while (done < length) {
		if (verdict != CONNECTION_MORE)
			fail_msg("%s: verdict %d after %zu bytes", example->name, verdict, done);
		part = part < length - done ? part : length - done;
		verdict = feed(&response, example->text + done, part);
		done += part;
		part = step;
	}
	check(example, &response, verdict);
}

static void test_whole(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		memo.length = 0;
		feed_split(&examples[i], SIZE_MAX, 1);
	}
}

/* Twice: the second time the memo may have the response. */
static void test_remembered(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		memo.length = 0;
		feed_split(&examples[i], SIZE_MAX, 1);
		assert_int_equal(memo.length > 0, examples[i].verdict == CONNECTION_COMPLETE &&
							  examples[i].keep_alive);
		feed_split(&examples[i], SIZE_MAX, 1);
	}
}

static void test_split_anywhere(void **state)
{
	memo.length = 0;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		for (size_t first = 1; first < strlen(examples[i].text); first++)
			feed_split(&examples[i], first, SIZE_MAX);
}

static void test_byte_by_byte(void **state)
{
	memo.length = 0;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		feed_split(&examples[i], 1, 1);
}

static bool is_malformed(const char *text, bool head, size_t step)
{
	size_t length = strlen(text), part;
	struct http_response response;

	memo.length = 0;
	http_response_begin(&response, head);
	for (size_t done = 0; done < length; done += part) {
		part = step < length - done ? step : length - done;
		if (feed(&response, text + done, part) == CONNECTION_MALFORMED)
			return true;
	}
	return false;
}

static void test_malformed(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		for (size_t step = 1; step <= strlen(malformed[i].text); step++)
			if (!is_malformed(malformed[i].text, malformed[i].head, step))
				fail_msg("%s: taken, %zu bytes at a time", malformed[i].name, step);
}

static enum connection_verdict feed_long_header(size_t size)
{
	enum connection_verdict verdict = CONNECTION_MORE;
	struct http_response response;
	char line[1024];

	memset(line, 'x', sizeof(line));
	line[0] = 'A';
	line[1] = ':';
	line[sizeof(line) - 2] = '\r';
	line[sizeof(line) - 1] = '\n';
	http_response_begin(&response, false);
	feed(&response, OK, strlen(OK));
	for (size_t fed = 0; fed < size && verdict == CONNECTION_MORE; fed += sizeof(line))
		verdict = feed(&response, line, sizeof(line));
	return verdict;
}

static void test_header_size(void **state)
{
	memo.length = 0;
	assert_int_equal(feed_long_header(HTTP_HEADER_MAX / 2), CONNECTION_MORE);
	assert_int_equal(feed_long_header(HTTP_HEADER_MAX * 2), CONNECTION_MALFORMED);
}

static void test_endless_interim(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	enum connection_verdict verdict = CONNECTION_MORE;
	struct http_response response;
	size_t fed = 0;

	http_response_begin(&response, false);
	for (; verdict == CONNECTION_MORE && fed < 2 * HTTP_HEADER_MAX; fed += strlen(interim))
		verdict = feed(&response, interim, strlen(interim));
	assert_int_equal(verdict, CONNECTION_MALFORMED);
}

static void test_large_body(void **state)
{
	static const char header[] = OK "Content-Length: 1000000\r\n\r\n";
	autofree char *body = calloc(1, 1000000);
	struct http_response response;

	http_response_begin(&response, false);
	assert_int_equal(feed(&response, header, strlen(header)), CONNECTION_MORE);
	assert_int_equal(feed(&response, body, 999999), CONNECTION_MORE);
	assert_int_equal(feed(&response, body, 1), CONNECTION_COMPLETE);
	assert_int_equal(feed(&response, body, 1), CONNECTION_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),		cmocka_unit_test(test_remembered),
		cmocka_unit_test(test_split_anywhere),	cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_malformed),	cmocka_unit_test(test_header_size),
		cmocka_unit_test(test_endless_interim), cmocka_unit_test(test_large_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
