// SPDX-License-Identifier: MIT
/* Reads small files of /proc and /sys. */
#include "sojourn/procfs.h"

#include <errno.h>
#include <stdarg.h>

#include "sojourn/cleanup.h"

FILE *procfs_open(const char *format, ...)
{
	char path[512];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	errno = ENAMETOOLONG;
	return length < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

int procfs_read(FILE *file, char *ret_text, size_t size)
{
	autofclose FILE *own = file;
	size_t length;

	if (!own)
		return -errno;
	length = fread(ret_text, 1, size - 1, own);
	ret_text[length] = '\0';
	return ferror(own) ? -EIO : (int)length;
}
