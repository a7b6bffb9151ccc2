// SPDX-License-Identifier: MIT
/* Opens closed standard streams, keeps a limit of file sizes from ending the program, and reports a full one. */
#include "sojourn/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sojourn/log.h"

void streams_begin(void)
{
	int fd;

	/* The signal would end the program in the middle of its report; write() says EFBIG instead. */
	signal(SIGXFSZ, SIG_IGN);
	/* open() takes the lowest free descriptor. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Return why standard output cannot be written; 0: not known. An earlier failure has left no reason, so write once more. */
static int find_reason(void)
{
	if (fflush(stdout))
		return errno;
	clearerr(stdout);
	return fputc('\n', stdout) == EOF || fflush(stdout) ? errno : 0;
}

int streams_end(int status)
{
	int before = ferror(stdout), error = 0;

	if (before)
		error = find_reason();
	else if (fflush(stdout))
		error = errno;
	/* A reader that stops early, such as head, is no failure. */
	if (error == EPIPE || (!before && !error))
		return status;
	if (error)
		log_errno(-error, "cannot write to standard output");
	else
		log_error("cannot write to standard output");
	return status ? status : EXIT_FAILURE;
}
