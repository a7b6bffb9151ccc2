// SPDX-License-Identifier: MIT
/*
 * Parses untrusted JSON text within limits, and tracks the reader's place for errors: see reader.h.
 */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "run/members.h"
#include "sojourn/refuse.h"
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

/* Describe the refused value in a few words. */
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
	reader->error = text_format("%s: %s, must be %s", reader->path,
				    describe(json, is, sizeof(is)), must);
	if (!reader->error)
		return -ENOMEM;
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

int reader_member(struct reader *reader, const json_t *object, const char *name, uint64_t max,
		  uint64_t *ret_value)
{
	size_t before = reader_enter_member(reader, name);
	int err = reader_integer(reader, json_object_get(object, name), max, ret_value);

	reader_leave(reader, before);
	return err;
}

/* The parser needs a hundred bytes or more per object and array, the text two or three. */
static size_t count_containers(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += text[i] == '[' || text[i] == '{';
	return count;
}

/* Such files are left by full disks and programs that were killed. */
static bool is_blank(const char *text, size_t length)
{
	static const char blanks[] = {' ', '\t', '\r', '\n'};

	while (length && memchr(blanks, text[length - 1], sizeof(blanks)))
		length--;
	return !length;
}

int reader_parse(const char *text, size_t length, json_t **ret_document, char **ret_error)
{
	json_error_t error;
	json_t *document;

	if (length > RUN_TEXT_LIMIT)
		return refuse(ret_error, "longer than %u bytes, which no run document is",
			      RUN_TEXT_LIMIT);
	if (count_containers(text, length) > RUN_CONTAINER_LIMIT)
		return refuse(ret_error,
			      "more than %u objects and arrays, which no run document has",
			      RUN_CONTAINER_LIMIT);
	if (is_blank(text, length))
		return refuse(ret_error, "is empty; must be a run document");
	document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!document && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	text_make_printable(error.text, '?');
	if (!document)
		return refuse(ret_error, "line %d, column %d: %s; must be JSON (RFC 8259)",
			      error.line, error.column, error.text);
	*ret_document = document;
	return 0;
}
