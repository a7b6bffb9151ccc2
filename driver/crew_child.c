// SPDX-License-Identifier: MIT
/*
 * A process of a crew: a loop that carries the parent's commands out with threads of its own and tells
 * what became of them. It ends when the parent says so or is gone.
 */
#include "crew_child.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct child {
	uv_loop_t loop;
	uv_poll_t commands;
	int fd;
	struct crew *crew;
	bool measuring;
	bool told_quiet;
	bool told_failed;
	bool asked; /* for a snapshot */
	bool over;
	struct stats snapshot;
};

static void end(struct child *child)
{
	child->over = true;
	uv_stop(&child->loop);
}

/* Blocks until it is through: the workers have threads of their own. */
static void send_all(struct child *child, const void *data, size_t length)
{
	struct pollfd room = {.fd = child->fd, .events = POLLOUT};
	const char *bytes = data;

	while (length && !child->over) {
		ssize_t sent = send(child->fd, bytes, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN && poll(&room, 1, -1) >= 0)
			continue;
		if (sent < 0) {
			end(child); /* the parent is gone */
			return;
		}
		bytes += sent;
		length -= (size_t)sent;
	}
}

static void tell(struct child *child, enum crew_message message, const void *data, size_t length)
{
	struct crew_header header = {.message = message, .length = length};

	send_all(child, &header, sizeof(header));
	send_all(child, data, length);
}

static void tell_error(struct child *child, int err)
{
	tell(child, CREW_ERROR, &err, sizeof(err));
}

static uint64_t length_of(const struct crew_result *result)
{
	const struct series *series = &result->series;
	uint64_t length = sizeof(struct crew_result) + series->count * sizeof(*series->list);

	length += result->samples.count * sizeof(*result->samples.list);
	for (size_t i = 0; i < series->count; i++)
		length += series->list[i].bucket_count * sizeof(struct series_bucket);
	return length;
}

static void send_result(struct child *child, const struct crew_result *result)
{
	const struct series *series = &result->series;
	struct crew_header header = {.message = CREW_RESULT, .length = length_of(result)};

	send_all(child, &header, sizeof(header));
	send_all(child, result, sizeof(*result));
	for (size_t i = 0; i < series->count; i++) {
		const struct series_part *part = &series->list[i];

		send_all(child, part, sizeof(*part));
		send_all(child, part->buckets, part->bucket_count * sizeof(*part->buckets));
	}
	send_all(child, result->samples.list,
		 result->samples.count * sizeof(*result->samples.list));
}

static void tell_result(struct child *child)
{
	autofree struct crew_result *result = calloc(1, sizeof(*result));
	int err = result ? crew_threads.collect(child->crew, result) : -ENOMEM;

	if (err)
		tell_error(child, err);
	else
		send_result(child, result);
	if (result)
		crew_result_clear(result);
}

static void tell_snapshot(struct child *child)
{
	child->asked = false;
	child->snapshot = (struct stats){0};
	crew_threads.add_snapshot(child->crew, &child->snapshot);
	tell(child, CREW_SNAPSHOT, &child->snapshot, sizeof(child->snapshot));
}

static void on_ring(void *user)
{
	struct child *child = user;

	if (!child->told_failed && crew_threads.has_failed(child->crew)) {
		child->told_failed = true;
		tell(child, CREW_FAILED, NULL, 0);
	}
	if (child->asked && crew_threads.has_snapshot(child->crew))
		tell_snapshot(child);
	if (child->told_quiet || !crew_threads.is_quiet(child->crew))
		return;
	child->told_quiet = true;
	if (child->measuring)
		tell_result(child);
	child->measuring = false;
	tell(child, CREW_QUIET, NULL, 0);
}

static void obey(struct child *child, const struct crew_command *command)
{
	bool load = command->phase == WORKER_WARMUP || command->phase == WORKER_MEASURE;

	if (command->snapshot) {
		child->asked = true;
		crew_threads.ask_snapshot(child->crew);
		return;
	}
	if (load) {
		child->told_quiet = false;
		child->measuring = command->phase == WORKER_MEASURE;
	}
	crew_threads.set_phase(child->crew, command->phase, command->begin_ns, command->stop_ns);
}

/* A command arrives whole: it was sent as one, and is far smaller than any socket buffer. */
static void on_command(uv_poll_t *poll, int status, int events)
{
	struct child *child = poll->data;
	struct crew_command command;
	ssize_t got = recv(child->fd, &command, sizeof(command), 0);

	(void)status;
	(void)events;
	if (got == sizeof(command))
		obey(child, &command);
	else if (got >= 0 || (errno != EINTR && errno != EAGAIN))
		end(child); /* the parent is gone */
}

static int open_child(struct child *child, const struct crew_setup *setup)
{
	int err = uv_loop_init(&child->loop);

	if (err)
		return err;
	err = uv_poll_init(&child->loop, &child->commands, child->fd);
	if (!err) {
		child->commands.data = child;
		err = uv_poll_start(&child->commands, UV_READABLE, on_command);
	}
	if (!err)
		err = crew_threads.create(setup, &child->crew, NULL);
	return err ? err : crew_threads.open(child->crew, &child->loop, on_ring, child, NULL);
}

int crew_child_run(const struct crew_setup *setup, int fd)
{
	struct child *child = calloc(1, sizeof(*child));
	int err;

	if (!child)
		return EXIT_FAILURE;
	child->fd = fd;
	child->told_quiet = true;
	err = open_child(child, setup);
	if (err) {
		tell_error(child, err);
		return EXIT_FAILURE; /* the process ends, and all it has with it */
	}
	tell(child, CREW_READY, NULL, 0);
	while (!child->over)
		uv_run(&child->loop, UV_RUN_DEFAULT);
	crew_threads.close(child->crew);
	uv_close((uv_handle_t *)&child->commands, NULL);
	uv_run(&child->loop, UV_RUN_DEFAULT);
	uv_loop_close(&child->loop);
	crew_threads.free(child->crew);
	free(child);
	return EXIT_SUCCESS;
}
