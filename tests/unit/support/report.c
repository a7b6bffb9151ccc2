// SPDX-License-Identifier: MIT
/* Text reports of documents, and properties of every one; see report.h. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/report.h"
#include "golden.h"
#include "unit.h"

char *support_render_as(const struct run *run, const struct report_options *options)
{
	size_t length;
	char *text;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	assert_int_equal(report_text(run, options, file), 0);
	fclose(file);
	return text;
}

char *support_render(const struct run *run, unsigned int width, bool colour)
{
	struct report_options options = {.colour = colour, .verbose = true, .width = width};

	return support_render_as(run, &options);
}

static unsigned int columns_of(const char *line, size_t length)
{
	unsigned int columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += ((unsigned char)line[i] & 0xc0) != 0x80;
	return columns;
}

void support_check_text(const char *text, unsigned int width)
{
	assert_null(strstr(text, " nan"));
	assert_null(strstr(text, "inf "));
	assert_null(strstr(text, "(null)"));
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		if (columns_of(line, length) > width)
			fail_msg("wider than %u: %.*s", width, (int)length, line);
		assert_true(!length || line[length - 1] != ' ');
		line += length + (line[length] == '\n');
	}
}

static void check(const struct run *run, const char *name, unsigned int width, bool verbose)
{
	struct report_options options = {.verbose = verbose, .width = width};
	autofree char *text = support_render_as(run, &options), *file = NULL;

	support_check_text(text, width);
	assert_true(asprintf(&file, UNIT_DIR "/golden/%s.txt", name) > 0);
	support_golden(text, file);
}

void support_check_golden(const struct run *run, const char *name, unsigned int width)
{
	check(run, name, width, true);
}

void support_check_short(const struct run *run, const char *name, unsigned int width)
{
	check(run, name, width, false);
}
