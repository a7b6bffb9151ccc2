// SPDX-License-Identifier: MIT
/* Parses routes, and makes the places by which the kernel side finds them; see route.h. */
#include "route.h"

#include <stdbool.h>
#include <string.h>

#define METHOD_LETTERS	   "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
#define STRING_OF_(number) #number
#define STRING_OF(number)  STRING_OF_(number)

#define ROUTE_FORM                                                                           \
	"a path, or the start of one before a final *, perhaps after a method in capitals: " \
	"/health, '/api/*' or 'GET /api/*'; other characters as clients send them: %C3%A9"
#define ROUTE_LONG                      \
	"a path of at most " STRING_OF( \
		ROUTE_PATH_LIMIT) " bytes, and a method of at most " STRING_OF(ROUTE_METHOD_LIMIT)

/* Take the method and the space after it, if there are any. NULL: they have another form. */
static const char *take_method(const char *text, struct route_key *key)
{
	size_t length = strspn(text, METHOD_LETTERS);

	if (*text == '/')
		return text;
	if (!length || length > ROUTE_METHOD_LIMIT || text[length] != ' ')
		return NULL;
	memcpy(key->method, text, length);
	return text + length + 1;
}

/* A request's path has no such bytes. */
static int is_of_path(const char *path, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)path[i];

		if (byte <= ' ' || byte >= 0x7f || byte == '?' || byte == '*')
			return 0;
	}
	return *path == '/';
}

const char *route_parse(const char *text, struct route_key *ret_key)
{
	struct route_key key = {};
	const char *path = take_method(text, &key);
	size_t length, whole;

	if (!path && strspn(text, METHOD_LETTERS) > ROUTE_METHOD_LIMIT)
		return ROUTE_LONG;
	if (!path || !*path)
		return ROUTE_FORM;
	whole = strlen(path);
	length = whole - (path[whole - 1] == '*');
	if (!length || !is_of_path(path, length))
		return ROUTE_FORM;
	if (length > ROUTE_PATH_LIMIT)
		return ROUTE_LONG;
	memcpy(key.path, path, length);
	key.whole = length == whole;
	*ret_key = key;
	return NULL;
}

/* ---- places ---- */

/* A byte in a code: its bits, the last one lowest. */
struct code {
	uint32_t bits;
	uint32_t length;
};

/* Of ' ' to '~' in Huffman's code (RFC 7541, B). */
static const struct code huffman[] = {
	{0x14, 6},     {0x3f8, 10},  {0x3f9, 10},  {0xffa, 12},	 {0x1ff9, 13}, {0x15, 6},
	{0xf8, 8},     {0x7fa, 11},  {0x3fa, 10},  {0x3fb, 10},	 {0xf9, 8},    {0x7fb, 11},
	{0xfa, 8},     {0x16, 6},    {0x17, 6},	   {0x18, 6},	 {0x0, 5},     {0x1, 5},
	{0x2, 5},      {0x19, 6},    {0x1a, 6},	   {0x1b, 6},	 {0x1c, 6},    {0x1d, 6},
	{0x1e, 6},     {0x1f, 6},    {0x5c, 7},	   {0xfb, 8},	 {0x7ffc, 15}, {0x20, 6},
	{0xffb, 12},   {0x3fc, 10},  {0x1ffa, 13}, {0x21, 6},	 {0x5d, 7},    {0x5e, 7},
	{0x5f, 7},     {0x60, 7},    {0x61, 7},	   {0x62, 7},	 {0x63, 7},    {0x64, 7},
	{0x65, 7},     {0x66, 7},    {0x67, 7},	   {0x68, 7},	 {0x69, 7},    {0x6a, 7},
	{0x6b, 7},     {0x6c, 7},    {0x6d, 7},	   {0x6e, 7},	 {0x6f, 7},    {0x70, 7},
	{0x71, 7},     {0x72, 7},    {0xfc, 8},	   {0x73, 7},	 {0xfd, 8},    {0x1ffb, 13},
	{0x7fff0, 19}, {0x1ffc, 13}, {0x3ffc, 14}, {0x22, 6},	 {0x7ffd, 15}, {0x3, 5},
	{0x23, 6},     {0x4, 5},     {0x24, 6},	   {0x5, 5},	 {0x25, 6},    {0x26, 6},
	{0x27, 6},     {0x6, 5},     {0x74, 7},	   {0x75, 7},	 {0x28, 6},    {0x29, 6},
	{0x2a, 6},     {0x7, 5},     {0x2b, 6},	   {0x76, 7},	 {0x2c, 6},    {0x8, 5},
	{0x9, 5},      {0x2d, 6},    {0x77, 7},	   {0x78, 7},	 {0x79, 7},    {0x7a, 7},
	{0x7b, 7},     {0x7ffe, 15}, {0x7fc, 11},  {0x3ffd, 14}, {0x1ffd, 13},
};

/* Return the byte whose code @bits begin with, of which @left are there. 0: none of those above, or a part of one. */
static uint8_t byte_of(uint32_t bits, size_t left, size_t *ret_length)
{
	for (size_t i = 0; i < sizeof(huffman) / sizeof(*huffman); i++) {
		*ret_length = huffman[i].length;
		if (*ret_length <= left && bits >> (32 - *ret_length) == huffman[i].bits)
			return (uint8_t)(' ' + i);
	}
	return 0;
}

/* Return the 32 bits of @bytes from bit @at on, of which @count are there. Zeros follow the last one. */
static uint32_t bits_at(const uint8_t *bytes, size_t count, size_t at)
{
	uint64_t bits = 0;

	for (size_t i = at / 8; i < at / 8 + 5; i++)
		bits = bits << 8 | (i < count ? bytes[i] : 0);
	return (uint32_t)(bits >> (8 - at % 8));
}

void route_path_plain(struct route_path *path)
{
	size_t bits = 8U * path->length, at = 0, count = 0, length;
	uint8_t text[ROUTE_PATH_BYTES + 1], *query;

	while (path->huffman && count < sizeof(text)) {
		text[count] = byte_of(bits_at(path->text, path->length, at), bits - at, &length);
		if (!text[count])
			break;
		at += length;
		count++;
	}
	if (path->huffman) {
		/* Fewer bits than a byte fill up the last one. */
		path->whole = path->whole && bits - at < 8 && count <= ROUTE_PATH_BYTES;
		path->length = (uint8_t)(count < ROUTE_PATH_BYTES ? count : ROUTE_PATH_BYTES);
		path->huffman = 0;
		memcpy(path->text, text, path->length);
	}
	query = memchr(path->text, '?', path->length);
	if (query) {
		path->length = (uint8_t)(query - path->text);
		path->whole = 1;
	}
}

static struct code code_of(char byte, bool in_huffman)
{
	return in_huffman ? huffman[byte - ' '] : (struct code){(unsigned char)byte, 8};
}

/* Bytes that may follow the text of a route. */
enum tail {
	TAIL_NONE,
	TAIL_QUERY, /* "?" and any bytes, or nothing */
	TAIL_ANY,
};

/* The bits that a text begins with. */
struct bits {
	uint8_t bytes[ROUTE_PATH_HUFFMAN_PLACES + 8];
	uint32_t text; /* bits of the route's text */
	uint32_t all;  /* and of what follows it */
};

static void add(struct bits *bits, struct code code)
{
	while (code.length--) {
		if (code.bits >> code.length & 1)
			bits->bytes[bits->all / 8] |= (uint8_t)(0x80 >> bits->all % 8);
		bits->all++;
	}
}

/* The rest of a code's last byte is filled with ones, with which "?" begins, too. */
static struct bits bits_of(const char *text, enum tail tail, bool in_huffman)
{
	struct bits bits = {};

	for (; *text; text++)
		add(&bits, code_of(*text, in_huffman));
	bits.text = bits.all;
	if (tail == TAIL_QUERY)
		add(&bits, code_of('?', in_huffman));
	while (tail == TAIL_NONE && bits.all % 8)
		add(&bits, (struct code){1, 1});
	return bits;
}

/* Return whether @byte may be at @place. */
static bool byte_fits(const struct bits *bits, enum tail tail, uint32_t place, uint32_t byte)
{
	uint32_t left = bits->all > 8 * place ? bits->all - 8 * place : 0;
	uint32_t mask = left < 8 ? 0xffU << (8 - left) & 0xff : 0xff;

	if (!left)
		return tail != TAIL_NONE;
	return ((byte ^ bits->bytes[place]) & mask) == 0;
}

/* Return whether the text may end before @place. */
static bool end_fits(const struct bits *bits, enum tail tail, uint32_t place)
{
	if (place == (bits->text + 7) / 8)
		return true;
	return tail != TAIL_NONE && 8 * place >= bits->all;
}

static void fill(struct route_place *places, size_t count, const char *text, enum tail tail,
		 bool in_huffman, uint32_t route)
{
	struct bits bits = bits_of(text, tail, in_huffman);

	for (uint32_t place = 0; place < count; place++) {
		for (uint32_t byte = 0; byte < 256; byte++)
			if (!byte_fits(&bits, tail, place, byte))
				places[place].by_byte[byte] |= route;
		if (!end_fits(&bits, tail, place))
			places[place].at_end |= route;
	}
}

/* Fill the entries of the static table (RFC 7541, A). */
static void fill_static(struct route_place *entries, const struct route_key *key, uint32_t route)
{
	const char *const methods[] = {"GET", "POST"}, *const paths[] = {"/", "/index.html"};
	size_t length = strlen(key->path);

	for (size_t i = 0; i < 2; i++) {
		if (*key->method && strcmp(key->method, methods[i]) != 0)
			entries->by_byte[2 + i] |= route;
		if (strncmp(key->path, paths[i], length + key->whole) != 0)
			entries->by_byte[4 + i] |= route;
	}
}

static void fill_route(struct route_place *places, const struct route_key *key, uint32_t route)
{
	enum tail tail = key->whole ? TAIL_QUERY : TAIL_ANY;

	if (*key->method) {
		fill(places + ROUTE_AT_METHOD, ROUTE_METHOD_PLACES, key->method, TAIL_NONE, false,
		     route);
		fill(places + ROUTE_AT_METHOD_HUFFMAN, ROUTE_METHOD_PLACES, key->method, TAIL_NONE,
		     true, route);
	}
	fill(places + ROUTE_AT_PATH, ROUTE_PATH_PLACES, key->path, tail, false, route);
	fill(places + ROUTE_AT_PATH_HUFFMAN, ROUTE_PATH_HUFFMAN_PLACES, key->path, tail, true,
	     route);
	fill_static(places + ROUTE_AT_STATIC, key, route);
}

/* Return whether requests that match both count for @key: its path is longer, or it alone has a method. */
static bool is_better(const struct route_key *key, const struct route_key *other)
{
	size_t length = strlen(key->path) + key->whole, others = strlen(other->path) + other->whole;

	return length != others ? length > others : *key->method && !*other->method;
}

void routes_fill(struct route_place places[static ROUTE_PLACES], const char *const *routes,
		 size_t count, uint8_t ret_rows[static ROUTES_MOST])
{
	struct route_key keys[ROUTES_MOST] = {0};

	for (size_t i = 0; i < count; i++)
		(void)route_parse(routes[i], &keys[i]);
	for (size_t i = 0; i < count; i++) {
		uint8_t row = 0;

		for (size_t k = 0; k < count; k++)
			row += is_better(&keys[k], &keys[i]) ||
			       (k < i && !is_better(&keys[i], &keys[k]));
		ret_rows[i] = row;
		fill_route(places, &keys[i], 1U << row);
	}
}
