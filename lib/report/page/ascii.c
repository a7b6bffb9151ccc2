// SPDX-License-Identifier: MIT
/* Reports without UTF-8: each other character becomes one of ASCII, so that columns stay. */
#include "ascii.h"

#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

static const struct {
	const char *character;
	char instead;
} replacements[] = {
	{"\u00b5", 'u'}, {"\u00b7", '|'}, {"\u2190", '<'}, {"\u2192", '>'}, {"\u251c", '|'},
	{"\u2514", '`'}, {"\u2502", '|'}, {"\u2588", '#'}, {"\u25c4", '<'}, {"\u2212", '-'},
	{"\u2013", '-'}, {"\u00d7", 'x'}, {"\u2026", '.'}, {"\u2264", '<'}, {"\u2265", '>'},
};

/* Return the number of bytes of the UTF-8 character at @text. */
static size_t length_of(const char *text)
{
	size_t length = 1;

	while (((unsigned char)text[length] & 0xc0) == 0x80)
		length++;
	return length;
}

static char instead_of(const char *character, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(replacements); i++)
		if (strlen(replacements[i].character) == length &&
		    !memcmp(character, replacements[i].character, length))
			return replacements[i].instead;
	return '?';
}

void report_to_ascii(char *text)
{
	char *out = text;

	while (*text) {
		size_t length = length_of(text);

		*out++ = (unsigned char)*text < 0x80 && length == 1 ? *text
								    : instead_of(text, length);
		text += length;
	}
	*out = '\0';
}

/*
 * Look at the variables in setlocale()'s order, without changing how numbers are written. If none
 * is set, as in many containers, assume a modern terminal.
 */
bool report_locale_is_ascii(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return !strcasestr(value, "utf-8") && !strcasestr(value, "utf8");
	}
	return false;
}
