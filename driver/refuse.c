// SPDX-License-Identifier: MIT
/* How modules hand a reason for people to the top layer, which alone logs it. */
#include "refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Values are quoted as the user gave them, with decoded line ends too; the sentence is one line. */
static void keep_on_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = ' ';
}

int refuse(char **ret_error, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return -ENOMEM;
	keep_on_one_line(text);
	*ret_error = text;
	return -EINVAL;
}
