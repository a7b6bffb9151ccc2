// SPDX-License-Identifier: MIT
/* Phrases that describe a failure. Neighbours: stats/stats.c (keeps the first), host/explain.c. */
#include "detail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#define BYTES_MAX 24U /* maximum of a quotation */
#define WORD	  96

/* Remove half a character at the end. */
static void trim(char *text)
{
	size_t length = strlen(text);

	while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		text[--length] = '\0';
	if (length && (unsigned char)text[length - 1] >= 0xc0)
		text[length - 1] = '\0';
}

void detail_add(char *text, size_t size, const char *format, ...)
{
	size_t length = strlen(text);
	va_list values;
	int added;

	va_start(values, format);
	added = vsnprintf(text + length, size - length, format, values);
	va_end(values);
	if (added > 0 && (size_t)added >= size - length)
		trim(text);
}

void detail_add_code(char *text, size_t size, int code)
{
	char words[WORD], name[WORD];

	detail_add(text, size, "%s (%s)", uv_strerror_r(code, words, sizeof(words)),
		   uv_err_name_r(code, name, sizeof(name)));
}

void detail_add_bytes(char *text, size_t size, const char *bytes, size_t length)
{
	size_t shown = length < BYTES_MAX ? length : BYTES_MAX;

	detail_add(text, size, "'");
	for (size_t i = 0; i < shown; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		if (byte == '\r' || byte == '\n')
			detail_add(text, size, byte == '\r' ? "\\r" : "\\n");
		else if (byte < ' ' || byte > '~')
			detail_add(text, size, "\\x%02x", byte);
		else
			detail_add(text, size, "%c", byte);
	}
	detail_add(text, size, shown < length ? "…'" : "'");
}

void detail_add_received(char *text, size_t size, uint64_t bytes)
{
	if (bytes)
		detail_add(text, size, "%" PRIu64 " byte%s of the response had come", bytes,
			   bytes == 1 ? "" : "s");
	else
		detail_add(text, size, "nothing of the response had come");
}
