// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/status.h and hpack.h, the kernel's own sources: statuses as nghttp2 writes them, those
 * of gRPC among them, and those that are not known. Frames are cut anywhere.
 */
#include <stdbool.h>
#include <stdio.h>

#include "sender.h"

struct seen {
	unsigned int frames;
	__u32 status;
};

static void look(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	static const struct hpack_table none;
	struct seen *seen = context;

	(void)end;
	if (!(what & HTTP2_BEGINS) || s->type != HTTP2_HEADERS)
		return;
	seen->frames++;
	seen->status = http2_status(s, &none);
}

/* Return the status in a server's HEADERS with @block and @padding bytes, however they are cut. */
static __u32 status_in(uint8_t flags, uint8_t padding, const void *block, size_t length)
{
	uint8_t bytes[1024] = {0}, *at = bytes + HTTP2_HEADER;
	__u32 status = STATUS_UNKNOWN;
	size_t size;

	if (flags & HTTP2_PADDED)
		*at++ = padding;
	if (flags & HTTP2_PRIORITISED)
		at += PRIORITY_BYTES;
	memcpy(at, block, length);
	size = (size_t)(at + length - bytes) + padding;
	assert_true(size <= sizeof(bytes));
	bytes[1] = (uint8_t)((size - HTTP2_HEADER) >> 8);
	bytes[2] = (uint8_t)(size - HTTP2_HEADER);
	bytes[3] = HTTP2_HEADERS;
	bytes[4] = flags | HTTP2_END_HEADERS;
	bytes[8] = 1;
	for (size_t cut = 0; cut <= size; cut++) {
		struct http2_side s = {.settled = 1};
		struct seen seen = {0};

		/* Bytes that an earlier frame left there must not count. */
		memset(s.field, 0x88, sizeof(s.field));
		assert_true(walker_feed(&s, bytes, cut, look, &seen));
		assert_true(walker_feed(&s, bytes + cut, size - cut, look, &seen));
		assert_int_equal(seen.frames, 1);
		if (cut)
			assert_int_equal(seen.status, status);
		status = seen.status;
	}
	return status;
}

#define BLOCK(text)	  text, sizeof(text) - 1
#define PLAIN_BLOCK(text) status_in(0, 0, BLOCK(text))

/* ---- as an encoder writes them ---- */

static size_t deflate(nghttp2_hd_deflater *deflater, unsigned int status, uint8_t *block,
		      size_t size)
{
	char value[8];
	nghttp2_nv fields[] = {
		{(uint8_t *)":status", (uint8_t *)value, 7, 3, NGHTTP2_NV_FLAG_NONE},
		{(uint8_t *)"server", (uint8_t *)"none", 6, 4, NGHTTP2_NV_FLAG_NONE},
	};
	ssize_t length;

	snprintf(value, sizeof(value), "%u", status);
	length = nghttp2_hd_deflate_hd(deflater, block, size, fields, 2);
	assert_true(length > 0);
	return (size_t)length;
}

static bool is_static(unsigned int status)
{
	return status == 200 || status == 204 || status == 206 || status == 304 || status == 400 ||
	       status == 404 || status == 500;
}

/*
 * nghttp2 writes a status first as a literal, then from the dynamic table, which is unknown here.
 * After a resize it is a literal again.
 */
static void nghttp2_writes_each(void **state)
{
	for (unsigned int status = 100; status < 600; status++) {
		nghttp2_hd_deflater *deflater;
		uint8_t block[256];
		size_t length;

		assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
		length = deflate(deflater, status, block, sizeof(block));
		assert_int_equal(status_in(0, 0, block, length), status);
		assert_int_equal(status_in(HTTP2_PADDED, 9, block, length), status);
		length = deflate(deflater, status, block, sizeof(block));
		assert_int_equal(status_in(0, 0, block, length), is_static(status) ? status : 0);
		assert_int_equal(nghttp2_hd_deflate_change_table_size(deflater, 0), 0);
		assert_int_equal(nghttp2_hd_deflate_change_table_size(deflater, 4096), 0);
		length = deflate(deflater, status, block, sizeof(block));
		assert_int_equal(block[0], 0x20);
		assert_int_equal(status_in(0, 0, block, length), status);
		assert_int_equal(status_in(HTTP2_PADDED | HTTP2_PRIORITISED, 200, block, length),
				 status);
		nghttp2_hd_deflate_del(deflater);
	}
}

static void literals_of_any_form(void **state)
{
	assert_int_equal(PLAIN_BLOCK("\x08\x03"
				     "418"),
			 418); /* not indexed */
	assert_int_equal(PLAIN_BLOCK("\x18\x03"
				     "503"),
			 503); /* never indexed */
	assert_int_equal(PLAIN_BLOCK("\x48\x03"
				     "301"),
			 301); /* by any of the names */
	assert_int_equal(PLAIN_BLOCK("\x4e\x03"
				     "301"),
			 301);
	assert_int_equal(PLAIN_BLOCK("\x0e\x03"
				     "599"),
			 599);
	assert_int_equal(PLAIN_BLOCK("\x08\x82\x08\x01"), 100); /* 1, 0, 0 are 15 bits, and a one */
	assert_int_equal(PLAIN_BLOCK("\x3f\xe1\x1f\x88"), 200);
	assert_int_equal(status_in(HTTP2_PRIORITISED, 0, BLOCK("\x88")), 200);
}

static void what_does_not_stand_there_is_not_known(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} blocks[] = {
		{BLOCK("")},
		{BLOCK("\xbe")},	 /* the dynamic table's first entry */
		{BLOCK("\x87")},	 /* :scheme */
		{BLOCK("\x8f")},	 /* accept-charset */
		{BLOCK("\xff\x80\x01")}, /* far in the dynamic table */
		{BLOCK("\x47\x03"
		       "200")}, /* another name */
		{BLOCK("\x4f\x03"
		       "200")},
		{BLOCK("\x00\x07:status\x03"
		       "200")}, /* a name that is spelled out */
		{BLOCK("\x48")},
		{BLOCK("\x48\x03"
		       "20")},
		{BLOCK("\x48\x02"
		       "20")},
		{BLOCK("\x48\x04"
		       "2000")},
		{BLOCK("\x48\x03"
		       "099")},
		{BLOCK("\x48\x03"
		       "600")},
		{BLOCK("\x48\x03"
		       "2x0")},
		{BLOCK("\x08\x82\x08\x00")},	 /* the last byte is not filled with ones */
		{BLOCK("\x08\x83\x08\x01\xff")}, /* a byte too many */
		{BLOCK("\x08\x82\x60\x00")},	 /* no digit */
		{BLOCK("\x20")},
		{BLOCK("\x20\x20\x20\x88")}, /* more changes of the size than allowed */
		{BLOCK("\x3f\xff\xff\xff\xff\x01\x88")},
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
		assert_int_equal(status_in(0, 0, blocks[i].bytes, blocks[i].length),
				 STATUS_UNKNOWN);
	/* Padding alone is no field. */
	assert_int_equal(status_in(HTTP2_PADDED, 3, BLOCK("")), STATUS_UNKNOWN);
	assert_int_equal(status_in(HTTP2_PADDED, 4, BLOCK("\x48\x03")), STATUS_UNKNOWN);
	/* A length of padding that no frame can have. */
	assert_int_equal(status_in(HTTP2_PADDED, 0, BLOCK("")), STATUS_UNKNOWN);
}

/*
 * Return 1 if the @length bytes at the top of @value are a status, else 0. nghttp2 must read the
 * same status.
 */
static unsigned int compare_value(uint32_t value, uint8_t length)
{
	uint8_t block[] = {0x08, 0x80 | length, (uint8_t)(value >> 16), (uint8_t)(value >> 8),
			   (uint8_t)value};
	size_t size = 2U + length;
	struct hpack h = {.left = (uint32_t)size};
	nghttp2_hd_inflater *inflater;
	nghttp2_nv field = {0};
	char text[16];
	__u32 status;
	int flags = 0;

	for (size_t i = 0; i < sizeof(block); i++)
		h.high |= (uint64_t)block[i] << (56 - 8 * i);
	status = status_of_block(&h);
	if (!status)
		return 0;
	snprintf(text, sizeof(text), "%u", status);
	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	assert_int_equal(nghttp2_hd_inflate_hd2(inflater, &field, &flags, block, size, 1), size);
	assert_int_equal(field.valuelen, 3);
	assert_memory_equal(field.value, text, 3);
	nghttp2_hd_inflate_del(inflater);
	return 1;
}

/*
 * Of all values of two bytes, and of three bytes that end in ones as required, exactly the 500
 * statuses are known.
 */
static void any_value_is_nghttp2s_or_not_known(void **state)
{
	unsigned int known = 0;

	for (uint32_t value = 0; value < 1U << 16; value++)
		known += compare_value(value << 8, 2);
	for (uint32_t value = 0; value < 1U << 18; value++)
		known += compare_value(value << 6 | 0x3f, 3);
	assert_int_equal(known, 500);
}

/* ---- connections ---- */

#define BLOCKS	    2000
#define FIELDS_MOST 8
/* The least bytes of a block in its first frame: a status and all that may precede it. */
#define BLOCK_LEAST 12

/* The facts in a block; 0: it has none. */
struct said {
	unsigned int status;
	unsigned int grpc; /* 1 + the status of gRPC */
	bool of_grpc;	   /* its type is that of gRPC */
	bool of_events;	   /* of server-sent events */
};

/* The bytes that a server sends, and what its blocks say. */
struct connection {
	struct sender sender;
	struct said said[BLOCKS];
	unsigned int count;
};

/* Return 1 + the status of gRPC in a text. */
static unsigned int grpc_of(const char *text, size_t length)
{
	char number[4] = "";
	unsigned int value;

	if (!length || length > 3 || strspn(text, "0123456789") < length)
		return 1 + GRPC_OTHER;
	memcpy(number, text, length);
	value = (unsigned int)strtoul(number, NULL, 10);
	return 1 + (value <= GRPC_LAST ? value : GRPC_OTHER);
}

/* Mostly give the fields of gRPC a value that they may have. Return its length. */
static size_t grpc_value(struct connection *c, const char *name, char *value, size_t size)
{
	static const char *const types[] = {
		"application/grpc",
		"application/grpc+proto",
		"application/grpc;charset=utf-8",
		"application/grpc-web",
		"application/grpcx",
		"application/grp",
		"text/html",
		"application/grpc+",
		"application/grpc;",
		"text/event-stream",
		"text/event-stream;charset=utf-8",
		"text/event-stream; charset=utf-8",
		"text/event-stream ;a=b",
		"text/event-stream,text/html",
		"text/event-stream;",
		"text/event-streams",
		"text/event-streamish",
		"text/event-stream2;a=b",
		"text/event-stream-x",
		"text/event-stream+json",
		"text/event-streal",
		"text/event-strea",
	};

	if (!any(&c->sender, 8))
		return size;
	if (!strcmp(name, "grpc-status"))
		return (size_t)sprintf(value, any(&c->sender, 9) ? "%u" : "%02u",
				       any(&c->sender, any(&c->sender, 9) ? 17 : 2000));
	if (!strcmp(name, "content-type"))
		return (size_t)sprintf(value, "%s",
				       types[any(&c->sender, sizeof(types) / sizeof(*types))]);
	return size;
}

static bool is_grpc(const char *value, size_t length)
{
	return length >= 16 && !memcmp(value, "application/grpc", 16) &&
	       (length == 16 || value[16] == '+' || value[16] == ';');
}

static bool is_events(const char *value, size_t length)
{
	return length >= 17 && !memcmp(value, "text/event-stream", 17) &&
	       (length == 17 || strchr(",; ", value[17]));
}

static void note_type(struct said *said, const char *value, size_t length)
{
	said->of_grpc |= is_grpc(value, length);
	said->of_events |= is_events(value, length);
}

/* Note what a field says. */
static void note(struct said *said, const char *name, const char *value, size_t length)
{
	if (!strcmp(name, "grpc-status"))
		said->grpc = grpc_of(value, length);
	else if (!strcmp(name, "content-type"))
		note_type(said, value, length);
}

/*
 * Write a random block: few names and values, which stay in the table, and new ones of any length,
 * which evict others.
 */
static void block_made(struct connection *c)
{
	static const char *const names[] = {"server", "date",	     "x-request-id", "content-type",
					    "x-one",  "grpc-status", "set-cookie",   "location"};
	static const unsigned int statuses[] = {200, 404, 418, 503, 302, 429, 201, 100, 103, 599};
	char values[FIELDS_MOST][512], status[8];
	nghttp2_nv fields[FIELDS_MOST + 1];
	size_t count = 0, of_values = any(&c->sender, FIELDS_MOST);
	uint8_t block[BLOCK_MOST], type = HTTP2_HEADERS;
	unsigned int kind = any(&c->sender, 10);
	struct said *said = &c->said[c->count];
	ssize_t length;

	if (kind == 0) {
		type = HTTP2_PUSH_PROMISE;
	} else if (kind > 1) {
		said->status = statuses[any(&c->sender, sizeof(statuses) / sizeof(*statuses))];
		snprintf(status, sizeof(status), "%u", said->status);
		fields[count++] = (nghttp2_nv){(uint8_t *)":status", (uint8_t *)status, 7, 3,
					       NGHTTP2_NV_FLAG_NONE};
	}
	for (size_t i = 0; i < of_values; i++) {
		const char *name = names[any(&c->sender, 8)];
		size_t size = any(&c->sender, 4) ? any(&c->sender, 40)
						 : any(&c->sender, sizeof(values[0]));

		memset(values[i], any(&c->sender, 2) ? 'a' : '~', size);
		if (size && any(&c->sender, 2))
			values[i][0] = (char)('a' + any(&c->sender, 26));
		size = grpc_value(c, name, values[i], size);
		note(said, name, values[i], size);
		fields[count++] = (nghttp2_nv){
			(uint8_t *)name, (uint8_t *)values[i], strlen(name), size,
			any(&c->sender, 9) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
	}
	if (!any(&c->sender, 100))
		assert_int_equal(nghttp2_hd_deflate_change_table_size(c->sender.deflater,
								      any(&c->sender, 4097)),
				 0);
	length = nghttp2_hd_deflate_hd(c->sender.deflater, block, sizeof(block), fields, count);
	assert_true(length >= 0);
	block_written(&c->sender, type, block, (size_t)length);
	c->count++;
}

struct compared {
	const struct connection *c;
	struct hpack_table fields;
	unsigned int blocks, ended;
};

static void compare(void *context, const struct http2_side *s, uint32_t what, const uint8_t *end)
{
	struct compared *compared = context;
	__u32 status;

	if (!http2_is_block(s))
		return;
	status = http2_block_begins(s, &compared->fields, what);
	http2_blocks(s, &compared->fields, what, (uintptr_t)end);
	if (what & HTTP2_BEGINS && s->type != HTTP2_CONTINUATION)
		assert_int_equal(status, compared->c->said[compared->blocks++].status);
	if (what & HTTP2_ENDS && http2_block_is_over(s, &compared->fields)) {
		const struct said *said = &compared->c->said[compared->blocks - 1];

		compared->ended++;
		assert_int_equal(compared->fields.grpc, said->grpc);
		assert_int_equal(!!(compared->fields.said & HPACK_SAID_GRPC), said->of_grpc);
		assert_int_equal(!!(compared->fields.said & HPACK_SAID_EVENTS), said->of_events);
		assert_int_equal(!!(compared->fields.said & HPACK_SAID_OK), said->status == 200);
	}
}

/* Each status that nghttp2 writes on connections with thousands of fields is known and right. */
static void the_dynamic_table_is_followed(void **state)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		static const size_t pieces[] = {1, 13, 1000, BYTES_MOST};
		struct connection c = {.sender = {.seed = seed,
						  .least = BLOCK_LEAST,
						  .bytes = malloc(BYTES_MOST)}};

		assert_non_null(c.sender.bytes);
		assert_int_equal(nghttp2_hd_deflate_new(&c.sender.deflater, 4096), 0);
		while (c.count < BLOCKS)
			block_made(&c);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
			struct http2_side s = {.settled = 1};
			struct compared compared = {.c = &c};

			for (size_t at = 0; at < c.sender.length; at += pieces[i])
				assert_true(walker_feed(&s, c.sender.bytes + at,
							c.sender.length - at < pieces[i]
								? c.sender.length - at
								: pieces[i],
							compare, &compared));
			assert_int_equal(compared.blocks, BLOCKS);
			assert_int_equal(compared.fields.walk.lost, 0);
			assert_true(compared.ended > BLOCKS / 2);
		}
		nghttp2_hd_deflate_del(c.sender.deflater);
		free(c.sender.bytes);
	}
}

/* After a block that breaks off or is wrong, no entry of the table is known. */
static void a_block_that_is_wrong_loses_the_table(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} blocks[] = {
		{BLOCK("\x48\x03"
		       "41")},				 /* the end is missing */
		{BLOCK("\x40\xff\xff\xff\xff\xff\x0f")}, /* no string is as long */
		{BLOCK("\xff")},
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		struct connection c = {.said = {{.status = 418}, {.status = 418}}};
		struct compared compared = {.c = &c};
		struct http2_side s = {.settled = 1};

		c.sender.bytes = malloc(BYTES_MOST);
		assert_non_null(c.sender.bytes);
		frame(&c.sender, HTTP2_HEADERS, HTTP2_END_HEADERS,
		      (const uint8_t *)"\x48\x03"
				       "418",
		      5);
		frame(&c.sender, HTTP2_HEADERS, HTTP2_END_HEADERS, (const uint8_t *)"\xbe", 1);
		frame(&c.sender, HTTP2_HEADERS, HTTP2_END_HEADERS, (const uint8_t *)blocks[i].bytes,
		      blocks[i].length);
		frame(&c.sender, HTTP2_HEADERS, HTTP2_END_HEADERS, (const uint8_t *)"\xbe", 1);
		assert_true(walker_feed(&s, c.sender.bytes, c.sender.length, compare, &compared));
		assert_int_equal(compared.blocks, 4);
		free(c.sender.bytes);
	}
}

/* ---- statuses of gRPC ---- */

/* Return what a field "grpc-status" with these bytes says, by its own text if nghttp2 accepts it. */
static unsigned int grpc_by_nghttp2(const uint8_t *block, size_t size)
{
	nghttp2_hd_inflater *inflater;
	unsigned int status = 1 + GRPC_OTHER;
	nghttp2_nv field = {0};
	int flags = 0;

	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	if (nghttp2_hd_inflate_hd2(inflater, &field, &flags, block, size, 1) == (ssize_t)size)
		status = grpc_of((const char *)field.value, field.valuelen);
	nghttp2_hd_inflate_del(inflater);
	return status;
}

/* Of all values of up to two bytes, in Huffman's code or plain, each status is known and right. */
static void any_status_of_grpc_is_nghttp2s(void **state)
{
	unsigned int known[1 + GRPC_COUNT] = {0};

	for (uint32_t value = 0; value < 4U << 16; value++) {
		uint8_t length = 1 + (value >> 16 & 1), huffman = value >> 17 ? 0x80 : 0;
		uint8_t block[16] = "\0\x0bgrpc-status";
		struct hpack_table fields = {0};
		size_t size = 14U + length;

		block[13] = huffman | length;
		block[14] = (uint8_t)value;
		if (length == 2)
			block[15] = (uint8_t)(value >> 8);
		else if (value >> 8 & 0xff)
			continue;
		for (size_t i = 0; i < size; i++)
			hpack_byte(&fields, block[i]);
		assert_int_equal(fields.walk.stage, HPACK_AT_FIELD);
		assert_int_equal(fields.grpc, grpc_by_nghttp2(block, size));
		known[fields.grpc]++;
	}
	/* "0" and "00" in both ways, and "000", whose code has two bytes. Below: "10" and "010". */
	assert_int_equal(known[1], 5);
	for (unsigned int status = 10; status <= GRPC_LAST; status++)
		assert_int_equal(known[1 + status], 3);
}

static void follow(struct hpack_table *fields, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (fields->walk.skip)
			fields->walk.skip--;
		else
			hpack_byte(fields, bytes[i]);
}

/* After the table is lost nothing is read from it, and an entry that is no longer kept is obscure. */
static void what_is_not_known_is_obscure(void **state)
{
	static const uint8_t name[] = "\x40\x0bgrpc-status\x01"
				      "5",
			     other[] = "\x40\x01x\x01x";
	struct hpack_table fields = {0};

	follow(&fields, name, sizeof(name) - 1);
	for (unsigned int entry = 1; entry < HPACK_ENTRIES; entry++)
		follow(&fields, other, sizeof(other) - 1);
	assert_int_equal(fields.walk.entered, HPACK_ENTRIES);
	fields.grpc = 0;
	hpack_byte(&fields, 0xff); /* 127, and 62: the oldest entry */
	hpack_byte(&fields, HPACK_DYNAMIC_FIRST + HPACK_ENTRIES - 1 - 127);
	assert_int_equal(fields.grpc, 1 + 5);
	assert_false(http2_is_obscure(&fields));
	hpack_byte(&fields, 0xff);
	hpack_byte(&fields, HPACK_DYNAMIC_FIRST + HPACK_ENTRIES - 127);
	assert_true(http2_is_obscure(&fields));
	fields.said = 0;
	fields.walk.lost = 1;
	assert_true(http2_is_obscure(&fields));
}

/* ---- HTTP/1 ---- */

static __u32 line(const char *text)
{
	return status_of_line((const __u8 *)text);
}

static void lines_of_http1(void **state)
{
	assert_int_equal(line("HTTP/1.1 404 "), 404);
	assert_int_equal(line("HTTP/1.0 200 "), 200);
	assert_int_equal(line("HTTP/1.1 599 "), 599);
	assert_int_equal(line("HTTP/1.1 100 "), 100);
	assert_int_equal(line("HTTP/1.1 204\r"), 204);
	assert_int_equal(line("HTTP/1.1 2000"), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.1 200O"), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.x 200 "), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.1 600 "), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.1 099 "), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.1 20  "), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/1.1\t200 "), STATUS_UNKNOWN);
	assert_int_equal(line("HTTP/2.0 200 "), STATUS_UNKNOWN);
	assert_int_equal(line("http/1.1 200 "), STATUS_UNKNOWN);
	assert_int_equal(line("\x17\x03\x03\x00\x20zzzzzzzz"), STATUS_UNKNOWN);
	assert_true(status_is_interim(100) && status_is_interim(103) && !status_is_interim(101) &&
		    !status_is_interim(200) && !status_is_interim(STATUS_UNKNOWN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nghttp2_writes_each),
		cmocka_unit_test(literals_of_any_form),
		cmocka_unit_test(what_does_not_stand_there_is_not_known),
		cmocka_unit_test(any_value_is_nghttp2s_or_not_known),
		cmocka_unit_test(the_dynamic_table_is_followed),
		cmocka_unit_test(any_status_of_grpc_is_nghttp2s),
		cmocka_unit_test(what_is_not_known_is_obscure),
		cmocka_unit_test(a_block_that_is_wrong_loses_the_table),
		cmocka_unit_test(lines_of_http1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
