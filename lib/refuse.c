// SPDX-License-Identifier: MIT
/* How modules hand a reason for people to the top layer, which alone logs it. */
#include "sojourn/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "sojourn/text.h"

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
	/* Values are quoted as the user gave them, with decoded line ends too; the sentence is one line. */
	text_make_printable(text, ' ');
	*ret_error = text;
	return -EINVAL;
}
