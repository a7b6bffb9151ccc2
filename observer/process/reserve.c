// SPDX-License-Identifier: MIT
/* Holds and releases open files; see reserve.h. */
#include "reserve.h"

#include <fcntl.h>
#include <stdbool.h>

#include "sojourn/cleanup.h"

static struct {
	bool wanted;
	unsigned int users;
	unsigned int count;
	int fds[RESERVE_FILES];
} reserve;

void reserve_fill(void)
{
	reserve.wanted = true;
	while (!reserve.users && reserve.count < RESERVE_FILES) {
		/* An open file each: a duplicate would hold a descriptor, but no place in the host's table. */
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return;
		reserve.fds[reserve.count++] = fd;
	}
}

void reserve_use(void)
{
	if (reserve.users++)
		return;
	while (reserve.count)
		cleanup_close(&reserve.fds[--reserve.count]);
}

void reserve_used(void)
{
	reserve.users--;
	if (!reserve.users && reserve.wanted)
		reserve_fill();
}
