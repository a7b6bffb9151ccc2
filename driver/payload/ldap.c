// SPDX-License-Identifier: MIT
/* Finds the messages of LDAP in a payload. */
#include "ldap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

#define SEQUENCE	0x30
#define INTEGER		0x02
#define ABANDON_REQUEST 0x50
#define LENGTH_BYTES	3 /* a payload is no longer */

struct cursor {
	const char *at, *end;
	const struct template_rows *rows;
	bool fields; /* may be in the text */
};

static bool at_field(const struct cursor *c)
{
	return c->fields && c->end - c->at >= 2 && c->at[0] == '{' && c->at[1] == '{';
}

/* Take a constant byte. -ENODATA: there is none. */
static int take(struct cursor *c)
{
	if (c->at == c->end || at_field(c))
		return -ENODATA;
	return (uint8_t)*c->at++;
}

/* Return the bytes that a field gives for one request: in LDAP it has to give as many for all. -ENOMEM. */
static int64_t width_of(const struct template *field)
{
	uint64_t random = 1;
	const struct template_turn turn = {.number = 1, .client = 1, .random = &random};
	autofree char *buffer = malloc(field->max + 1);

	return buffer ? (int64_t)template_render(field, &turn, buffer) : -ENOMEM;
}

/* Pass a field. Return how many bytes it gives. -ENODATA also for variables, which have no value yet. -ENOMEM. */
static int64_t pass_field(struct cursor *c)
{
	const char *close = memmem(c->at, (size_t)(c->end - c->at), "}}", 2);
	autofree char *error = NULL;
	struct template field = {};
	int64_t width;

	if (!close)
		return -ENODATA;
	width = template_add(&field, "--payload", TEMPLATE_BYTES, c->at,
			     (size_t)(close + 2 - c->at), c->rows, &error);
	if (!width)
		width = width_of(&field);
	else if (width != -ENOMEM)
		width = -ENODATA;
	template_clear(&field);
	c->at = close + 2;
	return width;
}

/* Pass @count bytes as they are sent. */
static int pass(struct cursor *c, uint64_t count)
{
	while (count) {
		int64_t width = 1;

		if (c->at == c->end)
			return -ENODATA;
		if (at_field(c))
			width = pass_field(c);
		else
			c->at++;
		if (width < 0)
			return (int)width;
		if ((uint64_t)width > count)
			return -ENODATA;
		count -= (uint64_t)width;
	}
	return 0;
}

/* Definite lengths only (RFC 4511, 5.1). */
static int take_length(struct cursor *c, uint64_t *ret_length)
{
	int byte = take(c), more;

	*ret_length = 0;
	if (byte < 0x80) {
		*ret_length = byte < 0 ? 0 : (uint64_t)byte;
		return byte < 0 ? byte : 0;
	}
	for (more = byte & 0x7f; more; more--) {
		byte = take(c);
		if (byte < 0 || *ret_length >> 8 * LENGTH_BYTES)
			return -ENODATA;
		*ret_length = *ret_length << 8 | (uint64_t)byte;
	}
	return 0;
}

static void put(struct ldap_message *message, uint64_t byte)
{
	message->head[message->head_length++] = (char)byte;
}

static void put_head(struct ldap_message *message, uint64_t length)
{
	int bytes = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : LENGTH_BYTES;

	message->head_length = 0;
	put(message, SEQUENCE);
	if (bytes)
		put(message, 0x80 | (uint64_t)bytes);
	else
		put(message, length);
	while (bytes--)
		put(message, length >> 8 * bytes & 0xff);
	put(message, INTEGER);
	put(message, LDAP_ID_SIZE);
}

static int take_message(struct cursor *c, struct ldap_message *message)
{
	uint64_t length;
	int size, err;

	if (take(c) != SEQUENCE || take_length(c, &length) || take(c) != INTEGER)
		return -ENODATA;
	size = take(c);
	if (size < 1 || size > (int)LDAP_ID_SIZE || length < 2 + (uint64_t)size)
		return -ENODATA;
	for (int i = 0; i < size; i++)
		if (take(c) < 0)
			return -ENODATA;
	length -= 2 + (uint64_t)size;
	put_head(message, length + 2 + LDAP_ID_SIZE);
	message->rest = c->at;
	if (c->at < c->end && (uint8_t)*c->at == ABANDON_REQUEST)
		return -ENODATA;
	err = length >> (8 * LENGTH_BYTES - 1) ? -ENODATA : pass(c, length);
	message->rest_length = (size_t)(c->at - message->rest);
	return err;
}

int ldap_split(const char *text, size_t length, bool fields, const struct template_rows *rows,
	       struct ldap_messages *ret_messages)
{
	struct cursor c = {.at = text, .end = text + length, .fields = fields, .rows = rows};
	int err = length ? 0 : -ENODATA;

	ret_messages->count = 0;
	while (!err && c.at < c.end) {
		if (ret_messages->count == LDAP_MESSAGES)
			return -ENODATA;
		err = take_message(&c, &ret_messages->list[ret_messages->count++]);
	}
	return err;
}
