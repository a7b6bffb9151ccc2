// SPDX-License-Identifier: MIT
/* write() until everything is written; see write_all.h. */
#include "sojourn/write_all.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, const void *bytes, size_t length, size_t *ret_written)
{
	size_t done = 0;
	int r = 0;

	while (done < length && !r) {
		ssize_t written = write(fd, (const char *)bytes + done, length - done);

		if (written >= 0)
			done += (size_t)written;
		else if (errno != EINTR)
			r = -errno;
	}
	if (ret_written)
		*ret_written = done;
	return r;
}
