// SPDX-License-Identifier: MIT
/* Decodes bytes written on a command line. */
#include "escape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

/* Return the digit's value, or -1. */
static int digit(char character)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = character ? strchr(digits, character) : NULL;

	return at ? (int)((at - digits) % 16) : -1;
}

/* Return the byte of two digits, or -1. */
static int pair(const char *text)
{
	int high = digit(text[0]);
	int low = high < 0 ? -1 : digit(text[1]);

	return low < 0 ? -1 : high << 4 | low;
}

/* Return the byte after a backslash, or -1; move @text past it. */
static int escaped(const char **text)
{
	static const char names[] = "rnt0\\";
	static const char bytes[] = "\r\n\t\0\\";
	const char *at = **text ? strchr(names, **text) : NULL;
	int byte;

	if (at) {
		(*text)++;
		return (unsigned char)bytes[at - names];
	}
	byte = **text == 'x' ? pair(*text + 1) : -1;
	*text += 3;
	return byte;
}

int escape_decode(const char *text, char **ret_bytes, size_t *ret_length)
{
	autofree char *bytes = malloc(strlen(text) + 1);
	size_t length = 0;

	if (!bytes)
		return -ENOMEM;
	while (*text) {
		int byte = (unsigned char)*text++;

		if (byte == '\\')
			byte = escaped(&text);
		if (byte < 0)
			return -EINVAL;
		bytes[length++] = (char)byte;
	}
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return 0;
}

int escape_decode_hex(const char *text, char **ret_bytes, size_t *ret_length)
{
	autofree char *bytes = malloc(strlen(text) / 2 + 1);
	size_t length = 0;

	if (!bytes)
		return -ENOMEM;
	for (;;) {
		int byte;

		text += strspn(text, " \t\r\n:");
		if (!*text)
			break;
		byte = pair(text);
		if (byte < 0)
			return -EINVAL;
		bytes[length++] = (char)byte;
		text += 2;
	}
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return 0;
}
