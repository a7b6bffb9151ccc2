/* SPDX-License-Identifier: MIT */
/*
 * Parts of JSON text that need no tree. Documents are nearly all numbers: printing them by printf(),
 * or as jansson's values, takes several times as long.
 */
#ifndef LIB_JSON_PRINT_H
#define LIB_JSON_PRINT_H

#include <stdint.h>
#include <stdio.h>

/* Most JSON readers use 64 signed bits for integers: that is the document's range. */
static inline void print_integer(uint64_t value, FILE *file)
{
	char digits[20], *end = digits + sizeof(digits), *at = end;

	if (value > INT64_MAX)
		value = INT64_MAX;
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	fwrite_unlocked(at, 1, (size_t)(end - at), file);
}

static inline void print_char(char c, FILE *file)
{
	putc_unlocked(c, file);
}

static inline void print_plain(const char *text, FILE *file)
{
	fputs_unlocked(text, file);
}

/* Print @separator and the member's @name, which needs no escaping. */
static inline void print_name(const char *separator, const char *name, FILE *file)
{
	print_plain(separator, file);
	print_char('"', file);
	print_plain(name, file);
	print_plain("\":", file);
}

#endif
