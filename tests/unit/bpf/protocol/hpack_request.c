// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/hpack_request.h, the kernel's own source, and the places of observer/kernel/tables/route.c. The
 * route of each request that nghttp2 writes is that of the rule, however its frames and bytes are cut. The text of its
 * path is kept.
 */
#include <stdio.h>

#include "routes.h"
#include "sender.h"

#include "../../bpf/protocol/hpack_request.h"
#include "paths.h"

#define BLOCKS	   1500
#define PATH_FIELD 0x84 /* ":path: /" */

struct path {
	char bytes[1024];
	size_t length;
};

/* The bytes that a client sends, and the route and path of each request. */
struct client {
	struct sender sender;
	const char *routes[BLOCKS];
	struct path *paths;
	unsigned int count;
};

static const char *const given[] = {
	"/api/*",	"GET /api/*",	  "/api/users/*",	"POST /api/users/", "/*",
	"/a",		"PUT /a",	  "LONGEST-ALLOWED /a", "/index.html",	    "GET /",
	"/~|\\^`{}<>*", "/test.Echo/Get", "/test.Echo/G*",	"POST /test.E*",    "/%C3%A9",
	"/aa",
};

static const char *const methods[] = {
	"GET", "POST", "PUT", "LONGEST-ALLOWED", "LONGEST-ALLOWEDX", "OPTIONS", "DELETE",
	"get", "PUTT", "PU"};

/* Make a path: a route's, perhaps cut off, or with more after it. Some have bytes that Huffman's code makes longer. */
static void path_made(struct client *c, struct path *ret_path)
{
	const size_t size = 256;
	char *path = ret_path->bytes;
	const char *text = strchr(given[any(&c->sender, sizeof(given) / sizeof(*given))], '/');
	size_t length = (size_t)snprintf(path, size, "%s", text);
	static const char *const ends[] = {"?", "?a=/b*",     "/",	  "a",
					   "x", "~~~~~~~~~~", "\x01\xff", "\\"};

	if (path[length - 1] == '*')
		length--;
	if (!any(&c->sender, 4))
		length = any(&c->sender, (unsigned int)length + 1);
	for (unsigned int more = any(&c->sender, 3); more; more--)
		length += (size_t)snprintf(path + length, size - length, "%s",
					   ends[any(&c->sender, 8)]);
	if (!any(&c->sender, 20)) {
		size_t fill = any(&c->sender, 600);

		memset(path + length, any(&c->sender, 2) ? 'e' : '\\', fill);
		length += fill;
	}
	ret_path->length = length;
}

static nghttp2_nv field(struct client *c, const char *name, const char *value, size_t length)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), length,
			    any(&c->sender, 6) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
}

/* Write a random request, whose path is often one of the latest ones, and other fields that evict entries. */
static void request_made(struct client *c)
{
	static struct path paths[16];
	unsigned int at = any(&c->sender, 16), with_path = any(&c->sender, 30);
	const char *method = methods[any(&c->sender, sizeof(methods) / sizeof(*methods))];
	char agent[512];
	nghttp2_nv fields[5];
	size_t count = 0;
	uint8_t block[BLOCK_MOST];
	ssize_t length;

	if (!c->count || !any(&c->sender, 3))
		path_made(c, &paths[at]);
	if (any(&c->sender, 2))
		method = any(&c->sender, 2) ? "GET" : "POST";
	fields[count++] = field(c, ":method", method, strlen(method));
	if (any(&c->sender, 4))
		fields[count++] = field(c, ":scheme", "http", 4);
	if (with_path)
		fields[count++] = field(c, ":path", paths[at].bytes, paths[at].length);
	if (any(&c->sender, 2)) { /* in another order */
		nghttp2_nv first = fields[0];

		fields[0] = fields[count - 1];
		fields[count - 1] = first;
	}
	memset(agent, any(&c->sender, 2) ? 'a' : '~', sizeof(agent));
	fields[count++] = field(c, any(&c->sender, 2) ? "user-agent" : ":pathx", agent,
				any(&c->sender, 2) ? 3 : any(&c->sender, 512));
	if (!any(&c->sender, 50))
		assert_int_equal(nghttp2_hd_deflate_change_table_size(c->sender.deflater,
								      any(&c->sender, 4097)),
				 0);
	length = nghttp2_hd_deflate_hd(c->sender.deflater, block, sizeof(block), fields, count);
	assert_true(length > 0);
	block_written(&c->sender, HTTP2_HEADERS, block, (size_t)length);
	c->paths[c->count] = with_path ? paths[at] : (struct path){.length = 0};
	c->routes[c->count++] =
		with_path ? route_by_rule(method, strlen(method), paths[at].bytes, paths[at].length)
			  : "other";
}

struct compared {
	const struct client *c;
	struct hpack_request requests;
	struct path_texts texts;
	unsigned int ended;
};

static void compare(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	struct compared *compared = context;
	const struct path *path = &compared->c->paths[compared->ended];
	const struct route_path *text;
	uint32_t route;

	if (!http2_is_block(s))
		return;
	hpack_request_frame(s, &compared->requests, what, (uintptr_t)end);
	if (!(what & HTTP2_ENDS) || s->block)
		return;
	route = hpack_request_route(&compared->requests, routes_count);
	assert_in_range(route, ROUTE_UNKNOWN_COUNT, ROUTE_UNKNOWN_COUNT + routes_count);
	assert_string_equal(routes_by_row[route - ROUTE_UNKNOWN_COUNT],
			    compared->c->routes[compared->ended]);
	compared->ended++;
	text = path_text_of(&compared->texts, &compared->requests);
	if (compared->requests.has & HPACK_HAS(HPACK_PATH))
		assert_true(text && path_text_fits(text, path->bytes, path->length));
}

static void each_route_is_that_of_the_rule(void **state)
{
	routes_given(given, sizeof(given) / sizeof(*given));
	for (unsigned int seed = 1; seed <= 10; seed++) {
		static const size_t pieces[] = {1, 7, 1000, BYTES_MOST};
		struct client c = {
			.sender = {.seed = seed, .filler = PATH_FIELD, .bytes = malloc(BYTES_MOST)},
			.paths = calloc(BLOCKS, sizeof(*c.paths))};

		assert_non_null(c.sender.bytes);
		assert_non_null(c.paths);
		assert_int_equal(nghttp2_hd_deflate_new(&c.sender.deflater, 4096), 0);
		while (c.count < BLOCKS)
			request_made(&c);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
			struct http2_side s = {.settled = 1, .by_client = 1, .followed = 1};
			struct compared compared = {.c = &c};

			for (size_t at = 0; at < c.sender.length; at += pieces[i])
				assert_true(walker_feed(&s, c.sender.bytes + at,
							c.sender.length - at < pieces[i]
								? c.sender.length - at
								: pieces[i],
							compare, &compared));
			assert_int_equal(compared.ended, BLOCKS);
		}
		nghttp2_hd_deflate_del(c.sender.deflater);
		free(c.sender.bytes);
		free(c.paths);
	}
}

/* ---- bytes in the test's own hands ---- */

/* Return what a block of these bytes says after those before it. */
static const char *says(struct hpack_request *requests, const char *block, size_t length)
{
	static const char *const reasons[ROUTE_UNKNOWN_COUNT] = {
		[ROUTE_HTTP2] = "not known", [ROUTE_STRANGE] = "strange"};
	uint8_t bytes[512] = {0, 0, (uint8_t)length, HTTP2_HEADERS, HTTP2_END_HEADERS, 0, 0, 0, 1};
	struct http2_side s = {.settled = 1, .by_client = 1, .followed = 1};
	uint32_t said, used, route;

	memcpy(bytes + HTTP2_HEADER, block, length);
	said = http2_step(&s, (uintptr_t)bytes, (uint32_t)(HTTP2_HEADER + length), &used);
	hpack_request_frame(&s, requests, said, (uintptr_t)bytes + used);
	route = hpack_request_route(requests, routes_count);
	return route < ROUTE_UNKNOWN_COUNT ? reasons[route]
					   : routes_by_row[route - ROUTE_UNKNOWN_COUNT];
}

#define SAYS(requests, block) says(requests, block, sizeof(block) - 1)

static void forms_that_nghttp2_does_not_write(void **state)
{
	struct hpack_request none = {0};

	routes_given(given, sizeof(given) / sizeof(*given));
	assert_string_equal(SAYS(&none, "\x82\x84"), "GET /");
	assert_string_equal(SAYS(&none, "\x83\x84"), "/*");
	assert_string_equal(SAYS(&none, "\x83\x85"), "/index.html");
	assert_string_equal(SAYS(&none, "\x82\x05\x02/a"), "/a");
	assert_string_equal(SAYS(&none, "\x82\x14\x02/a"), "/a");
	/* Names that are spelled out, plain and in Huffman's code. */
	assert_string_equal(SAYS(&none, "\x00\x07:method\x03PUT\x00\x05:path\x02/a"), "PUT /a");
	assert_string_equal(SAYS(&none, "\x82\x10\x84\xb9\x58\xd3\x3f\x02/a"), "/a");
	assert_string_equal(SAYS(&none, "\x00\x07:methos\x03PUT\x84"), "strange");
	/* Neither a method, nor one path, nor one that the table has. */
	assert_string_equal(SAYS(&none, "\x84"), "strange");
	assert_string_equal(SAYS(&none, "\x82\x84\x85"), "strange");
	assert_string_equal(SAYS(&none, "\x82\x83\x84"), "strange");
	assert_string_equal(SAYS(&none, "\x82"), "other");
	assert_string_equal(SAYS(&none, "\x82\xbe"), "not known");
	assert_string_equal(SAYS(&none, "\x82\x7f\x00\x02/a"), "not known");
	assert_string_equal(SAYS(&none, "\x82\x84\xbe"), "GET /"); /* both are known */
}

static void a_block_that_is_wrong_loses_the_table(void **state)
{
	struct hpack_request requests = {0};

	routes_given(given, sizeof(given) / sizeof(*given));
	assert_string_equal(SAYS(&requests, "\x82\x44\x02/a"), "/a");
	assert_string_equal(SAYS(&requests, "\x83\xbe"), "/a");
	assert_string_equal(SAYS(&requests, "\x82\x84\x40\x05"), "not known");
	assert_string_equal(SAYS(&requests, "\x83\xbe"), "not known");
	assert_string_equal(SAYS(&requests, "\x83\x84"), "not known");
}

/* An entry before the latest 128, of a table that is larger than the usual one, is not known. */
static void old_entries_are_not_known(void **state)
{
	struct hpack_request requests = {0};

	routes_given(given, sizeof(given) / sizeof(*given));
	assert_string_equal(SAYS(&requests, "\x82\x44\x02/a"), "/a");
	for (unsigned int i = 1; i < HPACK_ENTRIES; i++)
		assert_string_equal(SAYS(&requests, "\x82\x84\x40\x01x\x01y"), "GET /");
	assert_string_equal(SAYS(&requests, "\x82\xff\x3e"), "/a"); /* 62 + 127 */
	assert_string_equal(SAYS(&requests, "\x82\x84\x40\x01x\x01y"), "GET /");
	assert_string_equal(SAYS(&requests, "\x82\xff\x3f"), "not known");
}

/* The text of the path of a block of these bytes after those before it; "?" before it: it is cut. */
#define TEXT(requests, texts, block)                      \
	({                                                \
		says(requests, block, sizeof(block) - 1); \
		text_of(path_text_of(texts, (requests))); \
	})

static const char *text_of(const struct route_path *kept)
{
	static char text[ROUTE_PATH_BYTES + 2];
	struct route_path plain;

	if (!kept)
		return "not kept";
	plain = *kept;
	route_path_plain(&plain);
	snprintf(text, sizeof(text), "%s%.*s", plain.whole ? "" : "?", (int)plain.length,
		 (const char *)plain.text);
	return text;
}

static void texts_of_paths_are_those_of_the_latest_block(void **state)
{
	struct hpack_request requests = {0};
	struct path_texts texts = {0};

	assert_string_equal(TEXT(&requests, &texts, "\x82\x84"), "/");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x85"), "/index.html");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x44\x04/a?b"), "/a");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x02/c"), "/c");
	assert_string_equal(TEXT(&requests, &texts, "\x82\xbe"), "/a");
	/* The first of two in a block is in the table. Its text is not kept, and not that of the other one in its place. */
	assert_string_equal(TEXT(&requests, &texts, "\x82\x44\x02/d\x04\x02/e"), "/e");
	assert_string_equal(TEXT(&requests, &texts, "\x82\xbf"), "/a");
	assert_string_equal(TEXT(&requests, &texts, "\x82\xbe"), "not kept");
	/* "/" in Huffman's code, and a byte that no route has. */
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x81\x63"), "/");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x85\x63\xff\xff\xff\xcf"), "?/");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x85\xff\xff\xff\xff\xff"), "?");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x80"), "");
	assert_string_equal(TEXT(&requests, &texts, "\x82\x04\x00"), "");
	assert_string_equal(
		TEXT(&requests, &texts,
		     "\x82\x04\x3a/123456789012345678901234567890123456789012345678901234567"),
		"?/12345678901234567890123456789012345678901234567890123456");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_route_is_that_of_the_rule),
		cmocka_unit_test(forms_that_nghttp2_does_not_write),
		cmocka_unit_test(a_block_that_is_wrong_loses_the_table),
		cmocka_unit_test(old_entries_are_not_known),
		cmocka_unit_test(texts_of_paths_are_those_of_the_latest_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
