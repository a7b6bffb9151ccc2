// SPDX-License-Identifier: MIT
/*
 * Any bytes as header blocks of a client, through the kernel's own parser. Each block begins with its length. As long
 * as nghttp2 accepts the blocks, the route of each is that of the rule, by the method and path that nghttp2 reads. The
 * text that is kept of the path is that path's.
 */
#include <nghttp2/nghttp2.h>

#include "bpf/protocol/routes.h"
#include "fuzz.h"
#include "walker.h"

#include "../../bpf/protocol/hpack_request.h"
#include "bpf/protocol/paths.h"

static const char *const given[] = {"/a",	"/a*",	  "GET /a",	 "/*",
				    "PUT /",	"/~\\*",  "/index.html", "POST /ab*",
				    "A-B_C /a", "/s.E/G", "/s.E/*"};

/* A method or path, as nghttp2 reads it. */
struct text {
	char bytes[4096];
	size_t length;
	unsigned int times;
};

static void keep(struct text *text, const nghttp2_nv *field)
{
	text->times++;
	text->length =
		field->valuelen < sizeof(text->bytes) ? field->valuelen : sizeof(text->bytes);
	memcpy(text->bytes, field->value, text->length);
}

static bool is_named(const nghttp2_nv *field, const char *name)
{
	return field->namelen == strlen(name) && !memcmp(field->name, name, field->namelen);
}

/* Of the block that nghttp2 has read last. */
static struct text method, path;

/* Return the route of a block, NULL if it has no method or several of one; "": nghttp2 refuses it. */
static const char *route_by_nghttp2(nghttp2_hd_inflater *inflater, const uint8_t *block,
				    size_t size)
{
	size_t at = 0;
	int flags = 0;

	method.times = path.times = 0;
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv field;
		ssize_t used =
			nghttp2_hd_inflate_hd2(inflater, &field, &flags, block + at, size - at, 1);

		if (used < 0)
			return "";
		at += (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT && is_named(&field, ":method"))
			keep(&method, &field);
		if (flags & NGHTTP2_HD_INFLATE_EMIT && is_named(&field, ":path"))
			keep(&path, &field);
	}
	nghttp2_hd_inflate_end_headers(inflater);
	if (method.times != 1 || path.times > 1)
		return NULL;
	return path.times ? route_by_rule(method.bytes, method.length, path.bytes, path.length)
			  : "other";
}

/* Return the route by the kernel's parser, of a block in frames of @piece bytes. */
static const char *route_by_us(struct hpack_request *requests, const uint8_t *block, size_t size,
			       size_t piece)
{
	struct http2_side s = {.settled = 1, .by_client = 1, .followed = 1};
	uint32_t route;

	s.type = HTTP2_HEADERS;
	for (size_t at = 0; at == 0 || at < size; at += piece) {
		s.payload = (uint32_t)(size - at < piece ? size - at : piece);
		s.taken = s.payload;
		hpack_request_frame(&s, requests, HTTP2_BEGINS | HTTP2_ENDS,
				    (uintptr_t)block + at + s.taken);
		s.type = HTTP2_CONTINUATION;
	}
	route = hpack_request_route(requests, routes_count);
	require(route != ROUTE_HTTP2 && route <= ROUTE_UNKNOWN_COUNT + routes_count);
	return route < ROUTE_UNKNOWN_COUNT ? NULL : routes_by_row[route - ROUTE_UNKNOWN_COUNT];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hpack_request requests;
	static struct path_texts texts;
	nghttp2_hd_inflater *inflater;
	size_t piece = size ? 1 + data[0] : 1;

	if (!routes_count)
		routes_given(given, sizeof(given) / sizeof(*given));
	memset(&requests, 0, sizeof(requests));
	memset(&texts, 0, sizeof(texts));
	require(!nghttp2_hd_inflate_new(&inflater));
	for (size_t at = 1; at < size;) {
		size_t length = data[at++];
		const char *expected, *found;
		const struct route_path *text;

		if (length > size - at)
			length = size - at;
		expected = route_by_nghttp2(inflater, data + at, length);
		if (expected && !*expected)
			break;
		found = route_by_us(&requests, data + at, length, piece);
		require(!found == !expected && (!found || !strcmp(found, expected)));
		text = path_text_of(&texts, &requests);
		require(!found || !path.times || !text ||
			path_text_fits(text, path.bytes, path.length));
		at += length;
	}
	nghttp2_hd_inflate_del(inflater);
	return 0;
}
