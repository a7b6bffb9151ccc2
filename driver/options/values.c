// SPDX-License-Identifier: MIT
/* Reads files that options name. */
#include "rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

/* Grow while reading: a pipe has no known length. */
static int read_all(FILE *file, size_t max, char **ret_bytes, size_t *ret_length)
{
	autofree char *bytes = NULL;
	size_t length = 0, size = 4096;

	while (length <= max) {
		char *grown = realloc(bytes, size *= 2);

		if (!grown)
			return -ENOMEM;
		bytes = grown;
		length += fread(bytes + length, 1, size - length, file);
		if (length < size)
			break;
	}
	if (ferror(file))
		return -EIO;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return length > max ? -EFBIG : 0;
}

int option_read_file(const char *name, const char *path, size_t max, char **ret_bytes,
		     size_t *ret_length, char **ret_error)
{
	autofclose FILE *file = fopen(path, "re");
	autofree char *bytes = NULL;
	size_t length;
	int err;

	if (!file)
		return refuse(ret_error, "--%s: cannot open '%s': %s", name, path, strerror(errno));
	err = read_all(file, max, &bytes, &length);
	if (err == -EFBIG)
		return refuse(ret_error, "--%s: '%s' is larger than %zu MiB", name, path,
			      max >> 20);
	if (err == -EIO)
		return refuse(ret_error, "--%s: cannot read '%s': %s", name, path, strerror(errno));
	if (err)
		return err;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return 0;
}
