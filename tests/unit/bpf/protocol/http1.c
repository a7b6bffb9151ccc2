// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/http1.h, the kernel's own source: where requests and responses of HTTP/1 begin and end, however their
 * bytes are cut. A response depends on the request that it answers.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "http1.h"

struct told {
	char text[512];
	const char *
		methods; /* of the requests that are answered: G(ET), H(EAD) or C(ONNECT); then all are GET */
	bool responses;
};

/* "(" where a message begins, with a response's status, and ")" where it ends. */
static void said(void *context, struct command_side *s, int what)
{
	struct told *told = context;
	size_t length = strlen(told->text);
	char status[16] = "";

	if (told->responses)
		snprintf(status, sizeof(status), "%u", s->number);
	if (told->responses && what & COMMAND_BEGINS && *told->methods)
		switch (*told->methods++) {
		case 'H':
			s->type |= HTTP1_IS_HEAD;
			break;
		case 'C':
			s->type |= HTTP1_IS_CONNECT;
			break;
		default:
			break;
		}
	snprintf(told->text + length, sizeof(told->text) - length, "%s%s%s%s%s",
		 what & COMMAND_BEGINS ? "(" : "", what & COMMAND_BEGINS ? status : "",
		 what & COMMAND_WRONG ? "wrong" : "", what & COMMAND_ENDS ? ")" : "",
		 what & COMMAND_UPGRADES ? "upgrade" : "");
}

/* The bytes say @expected, in two pieces that are cut anywhere, and in pieces of any length. */
static void assert_said(const char *methods, const char *bytes, size_t length, const char *expected)
{
	for (size_t cut = 0; cut <= 2 * length; cut++) {
		struct told told = {.methods = methods ? methods : "", .responses = methods};
		struct http1_feeding f = {
			.responses = methods, .said = said, .context = &told, .single = cut & 1};
		struct command_side s = {0};
		size_t piece = cut > length ? cut - length : length;
		bool on = http1_feed(&s, &f, (const uint8_t *)bytes, cut < length ? cut : 0);

		for (size_t i = cut < length ? cut : 0; on && i < length; i += piece)
			on = http1_feed(&s, &f, (const uint8_t *)bytes + i,
					length - i < piece ? length - i : piece);
		assert_string_equal(told.text, expected);
	}
}

#define ASKS(bytes, expected)		  assert_said(NULL, bytes, sizeof(bytes) - 1, expected)
#define ANSWERS(methods, bytes, expected) assert_said(methods, bytes, sizeof(bytes) - 1, expected)

static void heads_end_with_an_empty_line(void **state)
{
	ASKS("GET / HTTP/1.1\r\n\r\n", "()");
	ASKS("GET /a/rather/long/path/with?a=query HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
	     "()");
	ASKS("GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.0\r\n\r\nDELETE /c HTTP/1.1\r\nHost: "
	     "a\r\n\r\n",
	     "()()()");
	/* Lines without carriage return, empty lines before a request, an unfinished one. */
	ASKS("\r\n\nGET / HTTP/1.1\nHost: a\n\n\r\nGET / HTTP/1.1\r\nHost: a\r\n", "()(");
	/* Names like those that matter, values like heads, lines that go on. */
	ASKS("GET / HTTP/1.1\r\nContent-Lengt: 5\r\nContent-Lengths: 5\r\nTransfer-Encodin: "
	     "x\r\nA: GET / HTTP/1.1\r\n  b\r\n\r\n",
	     "()");
	ASKS("M-SEARCH * HTTP/1.1\r\n\r\nOPTIONS http://a/ HTTP/1.1\r\nC:\r\nT: \r\nCookie: "
	     "a=b\r\n\r\n",
	     "()()");
	/* Lines without a name. */
	ASKS("GET / HTTP/1.1\r\nCookie\r\nTransfer\nC d: \r\nContent-Lengt h: 5\r\n\r\n", "()");
}

static void bodies_have_a_length(void **state)
{
	ASKS("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n", "()()");
	ASKS("POST / HTTP/1.1\r\ncontent-LENGTH:18 \r\n\r\nGET / HTTP/1.1\r\n\r\nPUT / "
	     "HTTP/1.1\r\nContent-Length:\t0\r\n\r\n",
	     "()()");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nhello", "(");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 00000000005\r\n\r\nhelloGET ", "()(");
}

static void bodies_have_chunks(void **state)
{
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET / "
	     "HTTP/1.1\r\n\r\n",
	     "()()");
	ASKS("POST / HTTP/1.1\r\ntransfer-encoding:gzip, Chunked\r\nContent-Length: 3\r\n\r\n"
	     "1a;name=\"v\"\r\nabcdefghijklmnopqr\r\n\r\n0\r\n\r\n000\r\nTrailer: "
	     "GET\r\nContent-Length: 9\r\n\r\n"
	     "GET / HTTP/1.1\r\n\r\n",
	     "()()");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA \n0123456789\n0\n\nPUT ",
	     "()(");
}

static void other_bytes_are_no_requests(void **state)
{
	ASKS("\x16\x03\x01", "wrong");
	ASKS(" GET / HTTP/1.1\r\n", "wrong");
	ASKS("GET /\r\n", "(wrong");
	ASKS("GET / HTTP/2.0\r\n", "(wrong");
	ASKS("G\x01T / HTTP/1.1\r\n", "(wrong");
	ASKS("ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 5x\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 5 5\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length : 5\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding\t: chunked\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length:\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nContent-Length: 1234567890123456789\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "(wrong");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhellos", "(wrong");
	ASKS("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "(wrong");
	ASKS("GET / HTTP/1.1\r\n\rA", "(wrong");
}

#define OK(fields, body) "HTTP/1.1 200 OK\r\n" fields "\r\n" body

static void responses_have_an_end(void **state)
{
	ANSWERS("",
		OK("Content-Length: 2\r\n",
		   "ok") "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n",
		"(200)(404)");
	ANSWERS("",
		OK("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\nA: b\r\n\r\n")
			OK("Content-Length: 1\r\n", "H"),
		"(200)(200)");
	ANSWERS("",
		"HTTP/1.1 503\r\nContent-Length: 20\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\nHTTP/1.1 200 "
		"OK\r\n",
		"(503)(200");
	/* Without a length the connection ends them. */
	ANSWERS("", OK("", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "(200");
	ANSWERS("", OK("Transfer-Encoding: gzip\r\nContent-Length: 2\r\n", "okHTTP/1.1 200"),
		"(200");
}

static void some_responses_have_no_body(void **state)
{
	ANSWERS("GG",
		"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: "
		"9\r\n\r\n",
		"(204)(304)");
	ANSWERS("GHG",
		OK("Content-Length: 1\r\n", "H") OK("Content-Length: 7\r\n", "")
			OK("Content-Length: 0\r\n", ""),
		"(200)(200)(200)");
	ANSWERS("H", OK("Transfer-Encoding: chunked\r\n", "") "HTTP/1.1 ", "(200)");
	/* Interim responses belong to the final one. */
	ANSWERS("",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" OK(
			"Content-Length: 1\r\n", "a"),
		"(200)");
}

static void other_protocols_follow(void **state)
{
	ANSWERS("",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x01"
		"a",
		"(101)upgrade");
	ANSWERS("C", OK("Content-Length: 5\r\n", "whatever"), "(200)upgrade");
	ANSWERS("CG",
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno" OK("Content-Length: 0\r\n",
									   ""),
		"(403)(200)");
}

static void other_bytes_are_no_responses(void **state)
{
	ANSWERS("", "GET / HTTP/1.1\r\n", "wrong");
	ANSWERS("", "\r\n", "wrong");
	ANSWERS("", "HTTP/2.0 200 OK\r\n", "wrong");
	ANSWERS("", "HTTP/1.1  200 OK\r\n", "wrong");
	ANSWERS("", "HTTP/1.1 099 OK\r\n", "wrong");
	ANSWERS("", "HTTP/1.1 600 OK\r\n", "wrong");
	ANSWERS("", "HTTP/1.1 2000 OK\r\n", "(200wrong");
	ANSWERS("", OK("Content-Length: 1\r\n", "ok"), "(200)wrong");
}

/* More bytes than the 32 bits of those to skip hold. */
static void bodies_may_be_long(void **state)
{
	struct told told = {.methods = "", .responses = true};
	struct http1_feeding f = {.responses = true, .said = said, .context = &told};
	struct command_side s = {0};
	const char head[] = OK("Content-Length: 10000000000\r\n", "");
	const uint64_t length = 10000000000;

	assert_true(http1_feed(&s, &f, (const uint8_t *)head, sizeof(head) - 1));
	for (uint64_t taken = 0; taken < length;) {
		uint64_t count = s.skip < length - taken ? s.skip : length - taken;

		assert_true(count > 0);
		s.skip -= (uint32_t)count;
		taken += count;
		assert_string_equal(told.text, "(200");
		assert_true(http1_feed(&s, &f, NULL, 0));
	}
	assert_string_equal(told.text, "(200)");
}

static __u64 word_at(const uint8_t *text)
{
	__u64 word;

	memcpy(&word, text, sizeof(word));
	return word;
}

/* As bpf/tcp/pipeline.bpf.c does. @text has room for a word and two bytes after its last one, which end no line. */
static bool lines_apart(const uint8_t *text, size_t length)
{
	__u64 apart = HTTP1_APART;

	for (size_t i = 0; i < length; i += sizeof(__u64))
		apart = http1_lines_apart(apart, word_at(text + i), word_at(text + i + 1),
					  word_at(text + i + 2));
	return apart == HTTP1_APART;
}

/* At any place of a word, and beside bytes that are almost newlines. */
static void empty_lines_are_found_anywhere(void **state)
{
	static const char bytes[] = "\n\r\r\x0b\x09\xff\x0b\x0e ~G\n\r";
	uint8_t text[212];
	uint32_t random = 1;
	unsigned int found = 0;

	for (unsigned int run = 0; run < 20000; run++) {
		size_t length = 1 + run % 200;
		bool expected = true;

		memset(text, 0xff, sizeof(text));
		for (size_t i = 0; i < length; i++) {
			random = random * 1103515245 + 12345;
			text[i] =
				(uint8_t)bytes[(random >> 16) % (run % 2 ? 3 : sizeof(bytes) - 1)];
			/* Newlines are rare. */
			if (text[i] == '\n' && random >> 28 != 0)
				text[i] = 'X';
			expected &= text[i] != '\n' ||
				    ((!i || text[i - 1] != '\n') && (i < 2 || text[i - 2] != '\n'));
		}
		assert_int_equal(lines_apart(text, length), expected);
		found += !expected;
	}
	assert_in_range(found, 500, 19500);
}

/* Every byte but those that no text has. */
static void other_bytes_end_no_line(void **state)
{
	for (unsigned int byte = 0; byte < 256; byte++) {
		uint8_t text[26];

		memset(text, 0xff, sizeof(text));
		text[8] = text[9] = (uint8_t)byte;
		if (byte == '\n')
			assert_false(lines_apart(text, 16));
		else if (byte >= ' ' && byte < 0x80)
			assert_true(lines_apart(text, 16));
	}
}

/* ---- heads by words ---- */

static void count_said(void *context, struct command_side *s, int what)
{
	unsigned int *counts = context;

	(void)s;
	counts[0] += !!(what & COMMAND_BEGINS);
	counts[1] += !!(what & COMMAND_ENDS);
	counts[2] += !!(what & COMMAND_WRONG);
}

/* Return the size of the request that @length bytes begin, or 0. The parser that takes each byte must agree. */
static size_t head_size(const void *bytes, size_t length)
{
	size_t size = http1_head_walk(bytes, length), seen = size < length ? size : length;
	unsigned int counts[3] = {0};
	struct http1_feeding f = {.said = count_said, .context = counts};
	struct command_side s = {0};

	if (!size)
		return 0;
	http1_feed(&s, &f, bytes, seen);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], size <= length);
	assert_int_equal(counts[2], 0);
	assert_int_equal(s.skip, size - seen);
	assert_int_equal(s.left, size > length);
	assert_int_equal(s.stage, size > length ? HTTP1_BODY : HTTP1_START);
	return size;
}

#define HEAD(bytes)	     head_size(bytes, sizeof(bytes) - 1)
#define POST(fields)	     "POST / HTTP/1.1\r\n" fields "\r\n"
#define WHOLE(bytes)	     assert_int_equal(HEAD(bytes), sizeof(bytes) - 1)
#define UNCLEAR(bytes)	     assert_int_equal(HEAD(bytes), 0)
#define SIZE(bytes, expects) assert_int_equal(HEAD(bytes), sizeof(bytes) - 1 + (expects))

static void heads_are_found_by_words(void **state)
{
	WHOLE("GET / HTTP/1.1\r\n\r\n");
	WHOLE("DELETE /a?b HTTP/1.0\r\nHost: a\r\n\r\n");
	WHOLE("OPTIONS * HTTP/1.1\r\nA: b\r\n  Content-Length: 7\r\n\r\n");
	WHOLE("PATCH /a HTTP/1.1\r\nCookie: c\r\ncONTENT-lENGTH: 5\r\nContent-Type: "
	      "a\r\n\r\n\r\n\r\n\n");
	WHOLE("PUT / HTTP/1.1\r\nA: Content-Length: 9\r\nContent-Lengt: 8\r\nContent-Length: "
	      "0\r\n\r\n");
	WHOLE(POST("Host: a\r\nContent-Length: 17\r\nTE: x\r\n") "GET / HTTP/1.1\r\n\r");
	SIZE(POST("Content-Length: 123456\r\n"), 123456);
	SIZE(POST("Content-Length: 5\r\n") "hell", 1);
	SIZE(POST("Content-Length: 5\r\n") "helloGET / HTTP/1.1\r\n\r\n", -18);
	/* Another one follows a request without a body. */
	SIZE(POST("") "GET / HTTP/1.1\r\n\r\n", -18);
}

/* The parser that takes each byte has to look at them. */
static void other_heads_are_unclear(void **state)
{
	UNCLEAR("");
	UNCLEAR("G");
	UNCLEAR("HEAD / HTTP/1.1\r\n\r\n");
	UNCLEAR("CONNECT a:1 HTTP/1.1\r\n\r\n");
	UNCLEAR("DELETES / HTTP/1.1\r\n\r\n");
	UNCLEAR("\r\nGET / HTTP/1.1\r\n\r\n");
	UNCLEAR("GET /\r\n\r\n");
	UNCLEAR("GET / HTTP/2.0\r\n\r\n");
	UNCLEAR("GET / HTTP/1.1\n\r\n");
	UNCLEAR("GET / HTTP/1.1\r\n\n");
	UNCLEAR("GET / HTTP/1.1\r\n\rA");
	UNCLEAR("GET / HTTP/1.1\r\nHost: a\r\n");
	UNCLEAR(POST("Content-Length:5\r\n") "hello");
	UNCLEAR(POST("Content-Length:  5\r\n") "hello");
	UNCLEAR(POST("Content-Length: 5 \r\n") "hello");
	UNCLEAR(POST("Content-Length: 5\n") "hello");
	UNCLEAR(POST("Content-Length: \r\n"));
	UNCLEAR(POST("Content-Length: 5x\r\n"));
	UNCLEAR(POST("Content-Length : 5\r\n") "hello");
	UNCLEAR(POST("Content-Length: 1234567\r\n"));
	UNCLEAR(POST("Content-Length: 5\r\nContent-Length: 5\r\n") "hello");
	UNCLEAR(POST("Content-Length: 5\r\ntransfer-encoding: chunked\r\n") "hello");
	UNCLEAR(POST("Content-Length: 5\r\nTransfer-Encoding : chunked\r\n") "hello");
}

/* Bytes that are almost others take no field's place. */
static void names_of_other_bytes_are_other_names(void **state)
{
	static const char head[] = POST("Content-Length: 5\r\n") "hello";
	const size_t name = sizeof("POST / HTTP/1.1\r\n") - 1;

	for (size_t at = name; at < name + sizeof("Content-Length:") - 1; at++)
		for (unsigned int byte = 0; byte < 256; byte++) {
			uint8_t bytes[sizeof(head) - 1];

			memcpy(bytes, head, sizeof(bytes));
			bytes[at] = (uint8_t)byte;
			if (head_size(bytes, sizeof(bytes)) == sizeof(bytes))
				assert_int_equal(byte | 0x20, (uint8_t)head[at] | 0x20);
		}
}

/* Each line of any length, so that what matters is at each place of a word, up to the longest text. */
static void heads_have_any_length(void **state)
{
	char letters[HTTP1_HEAD_MOST];

	memset(letters, 'c', sizeof(letters));
	for (size_t first = 0; first < 40; first++)
		for (size_t second = 0; second < HTTP1_HEAD_MOST; second += second < 40 ? 1 : 13) {
			char bytes[2 * HTTP1_HEAD_MOST];
			int head = snprintf(bytes, sizeof(bytes),
					    "POST /%.*s HTTP/1.1\r\nX: %.*s\r\nContent-Length: "
					    "20\r\n\r\n",
					    (int)first, letters, (int)second, letters);

			memset(bytes + head, '\n', 20);
			assert_int_equal(head_size(bytes, (size_t)head + 20),
					 head <= HTTP1_HEAD_MOST ? head + 20 : 0);
			for (int cut = 1; cut < head; cut += 7)
				assert_int_equal(head_size(bytes, (size_t)(head - cut)), 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_end_with_an_empty_line),
		cmocka_unit_test(bodies_have_a_length),
		cmocka_unit_test(bodies_have_chunks),
		cmocka_unit_test(other_bytes_are_no_requests),
		cmocka_unit_test(responses_have_an_end),
		cmocka_unit_test(some_responses_have_no_body),
		cmocka_unit_test(other_protocols_follow),
		cmocka_unit_test(other_bytes_are_no_responses),
		cmocka_unit_test(bodies_may_be_long),
		cmocka_unit_test(empty_lines_are_found_anywhere),
		cmocka_unit_test(other_bytes_end_no_line),
		cmocka_unit_test(heads_are_found_by_words),
		cmocka_unit_test(other_heads_are_unclear),
		cmocka_unit_test(names_of_other_bytes_are_other_names),
		cmocka_unit_test(heads_have_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
