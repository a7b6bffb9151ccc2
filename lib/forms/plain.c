// SPDX-License-Identifier: MIT
/* Text without controls of a terminal; see plain.h. */
#include "plain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/text.h"

/* Print a line and its end, which may be that of RFC 4180. Return what follows it. */
static char *put_line(char *line, FILE *file)
{
	size_t length = strcspn(line, "\n"), shown = length;
	bool is_last = !line[length];

	if (!is_last && length && line[length - 1] == '\r')
		shown--;
	line[shown] = '\0';
	text_make_printable(line, '?');
	fputs(line, file);
	if (!is_last)
		fputs(shown < length ? "\r\n" : "\n", file);
	return line + length + !is_last;
}

int plain_print(int (*print)(const void *what, FILE *file), const void *what, FILE *file)
{
	autofree char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int r = memory ? print(what, memory) : -errno;

	if (memory && fclose(memory) && !r)
		r = -errno;
	for (char *line = text; !r && line && *line;)
		line = put_line(line, file);
	return !r && ferror(file) ? -EIO : r;
}
