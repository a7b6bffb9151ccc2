// SPDX-License-Identifier: MIT
/* Opens closed standard streams, and reports a full one. */
#include "sojourn/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sojourn/log.h"

/* open() takes the lowest free descriptor. */
void streams_begin(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int streams_end(int status)
{
	int before = ferror(stdout);
	int error = fflush(stdout) ? errno : 0;

	/* A reader that stops early, such as head, is no failure. */
	if (error == EPIPE || (!before && !error))
		return status;
	if (error)
		log_errno(-error, "cannot write to standard output");
	else
		log_error("cannot write to standard output");
	return status ? status : EXIT_FAILURE;
}
