/* SPDX-License-Identifier: MIT */
/* The reader's place in a run document, and its complaints: see run_reader.h. */
#include "run_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "sojourn/text.h"

size_t reader_enter(struct reader *reader, const char *format, ...)
{
	size_t before = reader->length, space = sizeof(reader->path) - before;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(reader->path + before, space, format, args);
	va_end(args);
	if (length > 0)
		reader->length += (size_t)length < space ? (size_t)length : space - 1;
	return before;
}

size_t reader_enter_member(struct reader *reader, const char *name)
{
	return reader_enter(reader, "%s%s", reader->length ? "." : "", name);
}

void reader_leave(struct reader *reader, size_t before)
{
	reader->length = before;
	reader->path[before] = '\0';
}

/* What stands at the refused place, in a few words. */
static const char *describe(const json_t *json, char *buffer, size_t size)
{
	static const char *const types[] = {
		[JSON_OBJECT] = "is an object", [JSON_ARRAY] = "is an array",
		[JSON_STRING] = "is a string",	[JSON_TRUE] = "is true",
		[JSON_FALSE] = "is false",	[JSON_NULL] = "is null",
	};

	if (!json)
		return "is missing";
	if (json_is_integer(json))
		snprintf(buffer, size, "is %" JSON_INTEGER_FORMAT, json_integer_value(json));
	else if (json_is_real(json))
		snprintf(buffer, size, "is %g", json_real_value(json));
	else if (json_is_string(json) && json_string_length(json) <= 40)
		snprintf(buffer, size, "is \"%s\"", json_string_value(json));
	else
		return types[json_typeof(json)];
	return buffer;
}

int reader_refuse(struct reader *reader, const json_t *json, const char *allowed, ...)
{
	char must[128], is[64];
	va_list args;

	va_start(args, allowed);
	vsnprintf(must, sizeof(must), allowed, args);
	va_end(args);
	if (asprintf(&reader->error, "%s: %s, must be %s", reader->path,
		     describe(json, is, sizeof(is)), must) < 0) {
		reader->error = NULL;
		return -ENOMEM;
	}
	text_make_printable(reader->error, '?');
	return -EINVAL;
}

int reader_integer(struct reader *reader, const json_t *json, uint64_t max, uint64_t *ret_value)
{
	json_int_t value = json_integer_value(json);

	if (!json_is_integer(json) || value < 0 || (uint64_t)value > max)
		return reader_refuse(reader, json, "a whole number from 0 to %" PRIu64, max);
	*ret_value = (uint64_t)value;
	return 0;
}
