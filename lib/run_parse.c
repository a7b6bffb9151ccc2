/* SPDX-License-Identifier: MIT */
/* JSON text of unknown origin into a tree, within limits; what the tree means is run_read.c's. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "run_members.h"
#include "run_reader.h"
#include "sojourn/text.h"

/* Keeps @ret_error's message and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static int fail(char **ret_error, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(ret_error, format, args);
	va_end(args);
	if (length < 0) {
		*ret_error = NULL;
		return -ENOMEM;
	}
	text_make_printable(*ret_error, '?');
	return -EINVAL;
}

/* Every object and array costs the parser a hundred bytes or more for two or three of text. */
static size_t count_containers(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += text[i] == '[' || text[i] == '{';
	return count;
}

int reader_parse(const char *text, size_t length, json_t **ret_document, char **ret_error)
{
	json_error_t error;
	json_t *document;

	if (length > RUN_TEXT_LIMIT)
		return fail(ret_error, "longer than %u bytes, which no run document is",
			    RUN_TEXT_LIMIT);
	if (count_containers(text, length) > RUN_CONTAINER_LIMIT)
		return fail(ret_error, "more than %u objects and arrays, which no run document has",
			    RUN_CONTAINER_LIMIT);
	document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!document && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!document)
		return fail(ret_error, "line %d, column %d: %s; must be JSON (RFC 8259)",
			    error.line, error.column, error.text);
	*ret_document = document;
	return 0;
}
