// SPDX-License-Identifier: MIT
/* The process that makes files, and the observer's requests to it; see scribe.h. */
#include "scribe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine.h"
#include "passing.h"
#include "reserve.h"
#include "sojourn/cleanup.h"
#include "sojourn/ending.h"
#include "sojourn/run.h"

enum request {
	WRITE_DOCUMENT,
	FOLLOW_RECORDING,
};

struct scribe {
	int fd;
	bool waits; /* the document's path may be a pipe: opening it waits for a reader */
};

/* ---- the process ---- */

static int fulfil(const struct scribe_files *files, int32_t request, int content, int *ret_fd)
{
	if (request == WRITE_DOCUMENT && files->document && content >= 0)
		return run_write_file(content, files->document);
	if (request == FOLLOW_RECORDING && files->recording)
		return files->follow(files->recording, ret_fd);
	return -EINVAL;
}

/* Ignore the signals of a terminal and of a service manager: this process ends when the observer does. */
static int settle(int fd)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (fcntl(fd, F_SETOWN, getpid()) < 0)
		return -errno;
	/* Otherwise our copy of its socket would keep the OTLP process running after the observer. */
	for (int other = STDERR_FILENO + 1; other < fd; other++)
		close(other);
	return confine_files();
}

/*
 * While @on, SIGIO ends this process when the observer ends, even if we wait for a pipe's reader. PR_SET_PDEATHSIG
 * cannot do so: the kernel checks whether the parent, by then another user, may send that signal.
 */
static void follow_observer(int fd, bool on)
{
	struct pollfd other = {.fd = fd};
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
	if (on && poll(&other, 1, 0) > 0)
		_exit(EXIT_FAILURE);
}

_Noreturn static void serve(const struct scribe_files *files, bool waits, int fd)
{
	int32_t word = settle(fd), request;
	int content = -1;

	if (passing_send(fd, word, -1, 0) || word)
		_exit(EXIT_FAILURE);
	while (!passing_receive(fd, &request, &content)) {
		autoclose int theirs = content;
		autoclose int made = -1;

		if (waits)
			follow_observer(fd, true);
		word = fulfil(files, request, theirs, &made);
		if (waits)
			follow_observer(fd, false);
		if (passing_send(fd, word, made, 0))
			break;
	}
	_exit(EXIT_SUCCESS);
}

/* ---- the observer ---- */

static int ask(const struct scribe *scribe, enum request request, int content, int *ret_fd)
{
	int32_t word = 0;
	int r = passing_send(scribe->fd, request, content, 0);

	if (!r)
		r = passing_receive(scribe->fd, &word, ret_fd);
	return r ? r : word;
}

int scribe_start(const struct scribe_files *files, struct scribe **ret_scribe)
{
	struct scribe *scribe = calloc(1, sizeof(*scribe));
	int ends[2], none, r = 0;
	int32_t word = 0;
	struct stat st;
	pid_t pid;

	if (!scribe)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		free(scribe);
		return -errno;
	}
	scribe->waits = files->document && !stat(files->document, &st) && !S_ISREG(st.st_mode);
	pid = fork();
	if (!pid)
		serve(files, scribe->waits, ends[1]);
	if (pid < 0)
		r = -errno;
	close(ends[1]);
	scribe->fd = ends[0];
	if (!r)
		r = passing_receive(scribe->fd, &word, &none);
	if (!r)
		r = word;
	if (r < 0)
		scribe_stop(scribe);
	else
		*ret_scribe = scribe;
	return r;
}

void scribe_stop(struct scribe *scribe)
{
	if (!scribe)
		return;
	cleanup_close(&scribe->fd);
	free(scribe);
}

/* Print the document to memory first, so that nobody reads half of one. */
static FILE *open_memory(void)
{
	int fd = memfd_create("sojourn-document", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file)
		cleanup_close(&fd);
	return file;
}

int scribe_write(struct scribe *scribe, const struct run *run)
{
	RESERVE_SCOPE;
	autofclose FILE *file = open_memory();
	struct ending before;
	int none, r = file ? run_print_json(run, file) : -ENOMEM;

	if (r)
		return r;
	if (scribe->waits)
		ending_allow(&before);
	r = ask(scribe, WRITE_DOCUMENT, fileno(file), &none);
	if (scribe->waits)
		ending_restore(&before);
	return r;
}

int scribe_follow(void *context, int *ret_fd)
{
	*ret_fd = -1;
	return ask(context, FOLLOW_RECORDING, -1, ret_fd);
}
