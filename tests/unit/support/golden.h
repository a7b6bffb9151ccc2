/* SPDX-License-Identifier: MIT */
/* Whole reports compared with files of golden/; with SOJOURN_UPDATE_GOLDEN=1 these are written. */
#ifndef UNIT_SUPPORT_GOLDEN_H
#define UNIT_SUPPORT_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "unit.h"

static inline char *support_read_golden(const char *path)
{
	autofclose FILE *file = fopen(path, "r");
	char *text = calloc(1, 65536);

	assert_non_null(text);
	if (file)
		text[fread(text, 1, 65535, file)] = '\0';
	return text;
}

static inline void support_write_golden(const char *path, const char *text)
{
	autofclose FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
}

static inline void support_golden(const char *text, const char *path)
{
	autofree char *expected = NULL;

	if (getenv("SOJOURN_UPDATE_GOLDEN"))
		support_write_golden(path, text);
	expected = support_read_golden(path);
	if (strcmp(text, expected))
		print_error("%s: is\n%s\nnot\n%s\n", path, text, expected);
	assert_string_equal(text, expected);
}

#endif
