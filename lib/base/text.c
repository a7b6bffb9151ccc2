// SPDX-License-Identifier: MIT
/* Texts from elsewhere, and sentences that quote them. */
#include "sojourn/refuse.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/text.h"

bool text_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool text_begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* Return the character's length, and its code in @ret_code; 0: not UTF-8 (RFC 3629, 3 and 4). */
static size_t character(const unsigned char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *text < 0x80		 ? 1
			: (*text & 0xe0) == 0xc0 ? 2
			: (*text & 0xf0) == 0xe0 ? 3
			: (*text & 0xf8) == 0xf0 ? 4
						 : 0;
	uint32_t code = length > 1 ? *text & (0x7fU >> length) : *text;

	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fU);
	}
	if (!length || code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return length;
}

/* Invisible characters: terminals obey the first two ranges; the others reverse or hide text. */
static bool is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},
		{0x61c, 0x61c},	  {0x200b, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	}
	return false;
}

void text_make_printable(char *text, char substitute)
{
	const unsigned char *from = (const unsigned char *)text;
	char *to = text;

	while (*from) {
		uint32_t code = 0;
		size_t length = character(from, &code);

		if (!length || is_control(code))
			*to++ = substitute;
		else
			for (size_t i = 0; i < length; i++)
				*to++ = (char)from[i];
		from += length ? length : 1;
	}
	*to = '\0';
}

void text_make_utf8(char *text)
{
	json_t *json = json_string(text);

	json_decref(json);
	for (char *c = text; !json && *c; c++)
		if (*c & 0x80)
			*c = '?';
}

char *text_format_args(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

char *text_format(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_format_args(format, args);
	va_end(args);
	return text;
}

int refuse(char **ret_error, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_format_args(format, args);
	va_end(args);
	if (!text)
		return -ENOMEM;
	/* The message is one line, even if a quoted value has line ends. */
	text_make_printable(text, ' ');
	*ret_error = text;
	return -EINVAL;
}

char *text_words(char *text)
{
	for (char *c = text; *c; c++)
		if (*c == '_')
			*c = ' ';
	return text;
}

unsigned int text_columns(const char *text)
{
	unsigned int columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}
