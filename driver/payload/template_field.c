// SPDX-License-Identifier: MIT
/* The table of fields: syntax, maximum length, and rendering of each. */
#include "template_field.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "ldap.h"
#include "random.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define DIGITS_MAX 20U /* of 64 bits */
#define LENGTH_MAX 65536U
#define COLUMN_MAX 1000U
#define UUID_SIZE  36U

const char template_forms[] = "counter[:DIGITS] counter-be:BYTES counter-le:BYTES "
			      "random:MIN-MAX random-hex:DIGITS random-bytes:BYTES uuid timestamp "
			      "timestamp-ms timestamp-ns row[:COLUMN] client[:DIGITS] var:NAME";

static int parse_none(const char *text, struct template_part *part)
{
	(void)part;
	return text ? -EINVAL : 0;
}

static int parse_digits(const char *text, struct template_part *part)
{
	part->a = 1;
	return text ? units_parse_u64(text, 1, DIGITS_MAX, &part->a) : 0;
}

static int parse_width(const char *text, struct template_part *part)
{
	if (!text || units_parse_u64(text, 1, 8, &part->a) || (part->a & (part->a - 1)))
		return -EINVAL;
	return 0;
}

static int parse_length(const char *text, struct template_part *part)
{
	return text ? units_parse_u64(text, 1, LENGTH_MAX, &part->a) : -EINVAL;
}

static int parse_range(const char *text, struct template_part *part)
{
	const char *dash = text ? strchr(text, '-') : NULL;
	char low[DIGITS_MAX + 1];

	if (!dash || (size_t)(dash - text) >= sizeof(low))
		return -EINVAL;
	memcpy(low, text, (size_t)(dash - text));
	low[dash - text] = '\0';
	if (units_parse_u64(low, 0, UINT64_MAX - 1, &part->a))
		return -EINVAL;
	return units_parse_u64(dash + 1, part->a, UINT64_MAX - 1, &part->b);
}

/* a: the column; 0: the whole row. */
static int parse_row(const char *text, struct template_part *part)
{
	if (!part->rows || !part->rows->count)
		return -EINVAL;
	return text ? units_parse_u64(text, 1, COLUMN_MAX, &part->a) : 0;
}

/* a: the variable's index. -ENODATA: no variable of this name has a value. */
static int parse_variable(const char *text, struct template_part *part)
{
	const struct template_variables *variables = part->variables;

	if (!text || !*text)
		return -EINVAL;
	for (size_t i = 0; variables && i < variables->count; i++)
		if (!strcmp(variables->list[i].name, text) && (variables->visible >> i & 1)) {
			part->a = i;
			return 0;
		}
	return -ENODATA;
}

static size_t max_variable(const struct template_part *part)
{
	return part->variables->list[part->a].max;
}

static size_t max_length(const struct template_part *part)
{
	return part->a;
}

static size_t max_row(const struct template_part *part)
{
	size_t max = 0;

	for (size_t i = 0; i < part->rows->count; i++)
		if (part->rows->list[i].length > max)
			max = part->rows->list[i].length;
	return max;
}

/* Write a decimal number, with leading zeros up to @width. */
static size_t put_number(uint64_t value, uint64_t width, char *buffer)
{
	char digits[DIGITS_MAX];
	size_t length = 0;

	do {
		digits[DIGITS_MAX - ++length] = (char)('0' + value % 10);
		value /= 10;
	} while (value || length < width);
	memcpy(buffer, digits + DIGITS_MAX - length, length);
	return length;
}

static size_t render_counter(const struct template_part *part, const struct template_turn *turn,
			     char *buffer)
{
	return put_number(turn->number, part->a, buffer);
}

static size_t render_counter_be(const struct template_part *part, const struct template_turn *turn,
				char *buffer)
{
	for (size_t i = 0; i < part->a; i++)
		buffer[i] = (char)(turn->number >> 8 * (part->a - 1 - i));
	return part->a;
}

static size_t render_counter_le(const struct template_part *part, const struct template_turn *turn,
				char *buffer)
{
	for (size_t i = 0; i < part->a; i++)
		buffer[i] = (char)(turn->number >> 8 * i);
	return part->a;
}

/* Of all messages of this process: the steps of a scenario share their connections. */
static size_t render_ldap_id(const struct template_part *part, const struct template_turn *turn,
			     char *buffer)
{
	static atomic_uint_fast64_t numbers;
	uint64_t number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	uint32_t id = LDAP_ID_FIRST + (uint32_t)(number % LDAP_ID_COUNT);

	(void)part;
	(void)turn;
	for (size_t i = 0; i < LDAP_ID_SIZE; i++)
		buffer[i] = (char)(id >> 8 * (LDAP_ID_SIZE - 1 - i));
	return LDAP_ID_SIZE;
}

/* The high half of the product is even enough, without a division (Lemire 2019). */
static size_t render_random(const struct template_part *part, const struct template_turn *turn,
			    char *buffer)
{
	uint64_t span = part->b - part->a + 1;
	__extension__ unsigned __int128 product = random_next(turn->random);

	product *= span;
	return put_number(part->a + (uint64_t)(product >> 64), 1, buffer);
}

static size_t render_random_bytes(const struct template_part *part,
				  const struct template_turn *turn, char *buffer)
{
	for (size_t i = 0; i < part->a; i += 8) {
		uint64_t word = random_next(turn->random);
		size_t left = part->a - i;

		memcpy(buffer + i, &word, left < 8 ? left : 8);
	}
	return part->a;
}

static const char hex_digits[] = "0123456789abcdef";

static size_t render_random_hex(const struct template_part *part, const struct template_turn *turn,
				char *buffer)
{
	uint64_t word = 0;

	for (size_t i = 0; i < part->a; i++, word >>= 4) {
		if (i % 16 == 0)
			word = random_next(turn->random);
		buffer[i] = hex_digits[word & 0xf];
	}
	return part->a;
}

/* Version 4, variant 10 (RFC 9562). */
static size_t render_uuid(const struct template_part *part, const struct template_turn *turn,
			  char *buffer)
{
	uint64_t high = (random_next(turn->random) & ~UINT64_C(0xf000)) | 0x4000;
	uint64_t low = random_next(turn->random) >> 2 | UINT64_C(1) << 63;
	size_t at = 0;

	(void)part;
	for (unsigned int i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			buffer[at++] = '-';
		buffer[at++] = hex_digits[(i < 16 ? high : low) >> (60 - 4 * (i % 16)) & 0xf];
	}
	return at;
}

static size_t render_timestamp(const struct template_part *part, const struct template_turn *turn,
			       char *buffer)
{
	(void)part;
	(void)turn;
	return put_number(clock_wall_ns() / NSEC_PER_SEC, 1, buffer);
}

static size_t render_timestamp_ms(const struct template_part *part,
				  const struct template_turn *turn, char *buffer)
{
	(void)part;
	(void)turn;
	return put_number(clock_wall_ns() / NSEC_PER_MSEC, 1, buffer);
}

static size_t render_timestamp_ns(const struct template_part *part,
				  const struct template_turn *turn, char *buffer)
{
	(void)part;
	(void)turn;
	return put_number(clock_wall_ns(), 1, buffer);
}

/* Return the @column-th part of the row between commas, from 1; empty beyond the last. */
static struct template_row column_of(struct template_row row, uint64_t column)
{
	const char *end = row.begin + row.length;

	while (--column && row.begin < end) {
		const char *comma = memchr(row.begin, ',', (size_t)(end - row.begin));

		row.begin = comma ? comma + 1 : end;
	}
	row.length = (size_t)(end - row.begin);
	if (row.length) {
		const char *comma = memchr(row.begin, ',', row.length);

		row.length = comma ? (size_t)(comma - row.begin) : row.length;
	}
	return row;
}

static size_t render_row(const struct template_part *part, const struct template_turn *turn,
			 char *buffer)
{
	struct template_row row = part->rows->list[(turn->number - 1) % part->rows->count];

	if (part->a)
		row = column_of(row, part->a);
	memcpy(buffer, row.begin, row.length);
	return row.length;
}

static size_t render_client(const struct template_part *part, const struct template_turn *turn,
			    char *buffer)
{
	return put_number(turn->client, part->a, buffer);
}

static size_t render_variable(const struct template_part *part, const struct template_turn *turn,
			      char *buffer)
{
	const struct template_value *value = &turn->values[part->a];

	memcpy(buffer, value->bytes, value->length);
	return value->length;
}

/* clang-format off */
static const struct template_field fields[] = {
	{"counter", true, false, parse_digits, DIGITS_MAX, NULL, render_counter},
	{"counter-be", true, true, parse_width, 0, max_length, render_counter_be},
	{"counter-le", true, true, parse_width, 0, max_length, render_counter_le},
	{"random", false, false, parse_range, DIGITS_MAX, NULL, render_random},
	{"random-hex", false, false, parse_length, 0, max_length, render_random_hex},
	{"random-bytes", false, true, parse_length, 0, max_length, render_random_bytes},
	{"uuid", true, false, parse_none, UUID_SIZE, NULL, render_uuid},
	{"timestamp", false, false, parse_none, DIGITS_MAX, NULL, render_timestamp},
	{"timestamp-ms", false, false, parse_none, DIGITS_MAX, NULL, render_timestamp_ms},
	{"timestamp-ns", false, false, parse_none, DIGITS_MAX, NULL, render_timestamp_ns},
	{"row", false, false, parse_row, 0, max_row, render_row},
	{"client", false, false, parse_digits, DIGITS_MAX, NULL, render_client},
	{"var", false, false, parse_variable, 0, max_variable, render_variable},
	{"ldap-id", true, true, parse_none, LDAP_ID_SIZE, NULL, render_ldap_id}, /* of message.c alone */
};
/* clang-format on */

const struct template_field *template_field_find(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strlen(fields[i].name) == length && !strncmp(fields[i].name, name, length))
			return &fields[i];
	return NULL;
}
