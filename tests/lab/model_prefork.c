// SPDX-License-Identifier: MIT
/*
 * Model `prefork`: processes that all accept from one inherited socket. The parent serves nothing.
 * It waits for signals, stops the workers by closing a pipe, and joins their parts of the truth.
 * Workers also stop if the parent is killed.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "address.h"
#include "server.h"
#include "sojourn/cleanup.h"

struct workers {
	struct server *server;
	int stop_pipe[2];  /* workers wait for its end of file */
	int ready_pipe[2]; /* each writes a byte when it serves */
	size_t count;
	size_t running;
	int failed; /* how many ended without being stopped */
	pid_t *pids;
};

/* Return the file name of a worker's part of the truth, to be freed; NULL without memory. */
static char *part_name(const struct server *server, pid_t pid)
{
	char *name = NULL;

	return asprintf(&name, "%s.part-%d", server->options->truth, pid) < 0 ? NULL : name;
}

static int write_part(struct server *server)
{
	autofree char *name = part_name(server, getpid());
	int fd = name ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	int err = fd < 0 ? -errno : 0;

	if (!err)
		err = truth_write(server->truth, address_port(&server->address), getpid(), fd);
	if (err)
		warnx("--truth: %s: %s", name ? name : "part", strerror(-err));
	return err;
}

static int worker_main(struct workers *workers, size_t index)
{
	struct server *server = workers->server;
	int err;

	close(workers->stop_pipe[1]);
	close(workers->ready_pipe[0]);
	close(server->control);
	server->ready = workers->ready_pipe[1];
	server->control = workers->stop_pipe[0];
	server->worker = true;
	server->counters = &server->shared->counters[index];
	err = server->options->blocking_workers ? blocking_run(server, false) : event_run(server);
	if (err)
		warnx("worker %d: %s", getpid(), strerror(-err));
	if (server->truth && write_part(server))
		err = -EIO;
	close(server->ready);
	free(workers->pids);
	server_close(server);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int start_workers(struct workers *workers)
{
	size_t count = workers->server->options->workers;

	while (workers->count < count) {
		pid_t pid = fork();

		if (pid == 0)
			exit(worker_main(workers, workers->count));
		if (pid < 0)
			return -errno;
		workers->pids[workers->count++] = pid;
		workers->running++;
	}
	return 0;
}

static void note_end(struct workers *workers, pid_t pid, int status, bool told)
{
	bool bad = WIFSIGNALED(status) || WEXITSTATUS(status) || !told;

	workers->running--;
	workers->failed += bad;
	if (WIFSIGNALED(status))
		warnx("worker %d: killed by signal %d", pid, WTERMSIG(status));
	else if (bad)
		warnx("worker %d: ended with status %d", pid, WEXITSTATUS(status));
}

/* Reap workers that died; the others continue without them. */
static void reap_ended(struct workers *workers)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		note_end(workers, pid, status, false);
}

/* Wait until all workers serve. Return early if one dies before: the others serve. */
static void wait_until_ready(struct workers *workers)
{
	char byte;

	close(workers->ready_pipe[1]);
	for (size_t ready = 0; ready < workers->count; ready++)
		if (read(workers->ready_pipe[0], &byte, 1) <= 0)
			break;
	close(workers->ready_pipe[0]);
}

static void wait_for_stop(struct workers *workers)
{
	struct pollfd control = {.fd = workers->server->control, .events = POLLIN};

	do {
		poll(&control, 1, -1);
		if (server_control(workers->server))
			return;
		reap_ended(workers);
	} while (workers->running);
}

static void stop_workers(struct workers *workers)
{
	int status;
	pid_t pid;

	close(workers->stop_pipe[1]);
	while (workers->running && (pid = wait(&status)) > 0)
		note_end(workers, pid, status, true);
	close(workers->stop_pipe[0]);
}

static int append_file(int to, int from)
{
	struct stat st;
	off_t offset = 0;

	if (fstat(from, &st))
		return -errno;
	while (offset < st.st_size)
		if (sendfile(to, from, &offset, (size_t)(st.st_size - offset)) <= 0)
			return -(errno ? errno : EIO);
	return 0;
}

/* Append a worker's part to the truth. A killed one has none, which was reported at its end. */
static int join_part(struct server *server, pid_t pid)
{
	autofree char *name = part_name(server, pid);
	autoclose int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	int err;

	if (fd < 0)
		return -errno;
	err = append_file(server->truth_fd, fd);
	unlink(name);
	return err;
}

static int join_parts(struct workers *workers)
{
	struct server *server = workers->server;
	int err;

	if (!server->truth)
		return 0;
	err = truth_write_header(server->truth_fd);
	for (size_t i = 0; i < workers->count && !err; i++) {
		err = join_part(server, workers->pids[i]);
		if (err == -ENOENT)
			err = 0;
	}
	if (err)
		warnx("--truth: %s: %s", server->options->truth, strerror(-err));
	return err;
}

static int open_pipes(struct workers *workers)
{
	int err;

	if (pipe2(workers->stop_pipe, O_CLOEXEC))
		return -errno;
	if (!pipe2(workers->ready_pipe, O_CLOEXEC))
		return 0;
	err = -errno;
	close(workers->stop_pipe[0]);
	close(workers->stop_pipe[1]);
	return err;
}

int model_prefork(struct server *server)
{
	struct workers workers = {.server = server};
	autofree pid_t *pids = calloc(server->options->workers, sizeof(*pids));
	int err = pids ? 0 : -ENOMEM;

	workers.pids = pids;
	if (!err)
		err = open_pipes(&workers);
	if (!err) {
		err = start_workers(&workers);
		wait_until_ready(&workers);
		if (!err) {
			server_announce(server);
			wait_for_stop(&workers);
		}
		stop_workers(&workers);
	}
	if (err)
		warnx("prefork: %s", strerror(-err));
	if (join_parts(&workers))
		err = -EIO;
	return err ? err : workers.failed ? -ECHILD : 0;
}
