// SPDX-License-Identifier: MIT
/*
 * Workers in several processes, for more descriptors than one may have. Each is forked before there is a
 * thread or a loop, and linked to this one by a socket pair; a child that goes away by itself ends the
 * run. Neighbours: crew_child.c (the other end), crew_threads.c (what works there).
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "crew_child.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"

#define END_TIMEOUT_NS (5 * NSEC_PER_SEC)
#define END_POLL_NS    (2 * NSEC_PER_MSEC)

struct process {
	struct crew *crew;
	pid_t pid; /* 0: not there any more */
	int fd;
	uv_poll_t poll;
	bool polled; /* poll is to be closed */
	bool quiet;
	bool failed;
	bool ready;
	bool has_snapshot;
	struct stats snapshot;
	char *received; /* of the message that is arriving, header included */
	size_t length, capacity;
};

struct crew {
	void (*ring)(void *user);
	void *user;
	char *lost; /* what became of one */
	struct crew_result result;
	uint32_t count;
	struct process processes[];
};

/* The first loss counts: the others follow from it. */
__attribute__((format(printf, 2, 3))) static void lose(struct crew *crew, const char *format, ...)
{
	va_list args;

	if (crew->lost)
		return;
	va_start(args, format);
	if (vasprintf(&crew->lost, format, args) < 0)
		crew->lost = NULL;
	va_end(args);
}

/* In the child: nothing of the parent's may reach it but its own connection. */
static _Noreturn void become_child(struct crew *crew, const struct crew_setup *setup, int fd,
				   const sigset_t *signals)
{
	struct crew_setup own = *setup;

	own.process = crew->count;
	/* If the parent is gone already, the connection tells. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ctrl-C reaches all of a terminal's processes: it is the parent's to say what follows. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigprocmask(SIG_SETMASK, signals, NULL);
	for (uint32_t i = 0; i < crew->count; i++)
		close(crew->processes[i].fd);
	_exit(crew_child_run(&own, fd));
}

static int fork_process(struct crew *crew, const struct crew_setup *setup, const int ends[2],
			pid_t *ret_pid)
{
	sigset_t held, before;
	int err = 0;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigprocmask(SIG_BLOCK, &held, &before);
	*ret_pid = fork();
	if (!*ret_pid) {
		close(ends[0]);
		become_child(crew, setup, ends[1], &before);
	}
	if (*ret_pid < 0)
		err = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int start_process(struct crew *crew, const struct crew_setup *setup)
{
	struct process *process = &crew->processes[crew->count];
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	err = fork_process(crew, setup, ends, &process->pid);
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return err;
	}
	process->crew = crew;
	process->fd = ends[0];
	process->quiet = true;
	crew->count++;
	return 0;
}

static void processes_free(struct crew *crew);

static int processes_create(const struct crew_setup *setup, struct crew **ret_crew,
			    char **ret_error)
{
	uint32_t count = setup->options->processes;
	struct crew *crew = calloc(1, sizeof(*crew) + count * sizeof(crew->processes[0]));
	int err = 0;

	if (!crew)
		return -ENOMEM;
	while (!err && crew->count < count)
		err = start_process(crew, setup);
	if (err) {
		refuse(ret_error, "--processes: cannot start process %u of %u: %s", crew->count + 1,
		       count, strerror(-err));
		processes_free(crew);
		return -EINVAL;
	}
	*ret_crew = crew;
	return 0;
}

/* What wait() says, for people. */
static void tell_end(struct process *process, int status)
{
	char text[128];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "process %d was ended by signal %d (%s)",
			 (int)process->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "process %d ended by itself, with status %d",
			 (int)process->pid, WEXITSTATUS(status));
	lose(process->crew, "a part of the load is gone: %s: no result", text);
}

static void bury(struct process *process)
{
	int status = 0;

	uv_poll_stop(&process->poll);
	while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
		;
	tell_end(process, status);
	process->pid = 0;
}

/* The parts of a series as they were sent; what follows them is at @ret_end. */
static int unpack_series(const char *data, const char *end, size_t count, struct series *series,
			 const char **ret_end)
{
	int err = 0;

	series->list = NULL;
	series->count = 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct series_part part;

		memcpy(&part, data, sizeof(part));
		data += sizeof(part);
		part.buckets = (struct series_bucket *)data;
		data += part.bucket_count * sizeof(*part.buckets);
		err = data <= end ? series_append(series, &part) : -EBADMSG;
	}
	*ret_end = data;
	return err;
}

/* Adds the received result to those of the others. */
static int take_result(struct crew *crew, const char *data, size_t length)
{
	const struct crew_result *sent = (const struct crew_result *)data;
	struct sampler samples = sent->samples;
	struct series series = sent->series;
	const char *rest;
	int err = unpack_series(data + sizeof(*sent), data + length, sent->series.count, &series,
				&rest);

	samples.list = (struct sample *)rest;
	if (!err)
		err = crew_result_add(&crew->result, &sent->stats, &series, &samples);
	series_clear(&series);
	cpu_time_add(&crew->result.cpu, &(struct cpu_time){0}, &sent->cpu);
	return err;
}

static void handle(struct process *process, enum crew_message message, const char *data,
		   size_t length)
{
	int err = 0;

	switch (message) {
	case CREW_READY:
		process->ready = true;
		break;
	case CREW_QUIET:
		process->quiet = true;
		break;
	case CREW_FAILED:
		process->failed = true;
		break;
	case CREW_SNAPSHOT:
		memcpy(&process->snapshot, data, sizeof(process->snapshot));
		process->has_snapshot = true;
		break;
	case CREW_RESULT:
		err = take_result(process->crew, data, length);
		break;
	case CREW_ERROR:
		memcpy(&err, data, sizeof(err));
		break;
	}
	if (err)
		lose(process->crew, "a part of the load cannot go on: %s", strerror(-err));
}

/* Handles the messages that are complete. */
static void digest(struct process *process)
{
	struct crew_header header;
	size_t at = 0;

	while (process->length - at >= sizeof(header)) {
		memcpy(&header, process->received + at, sizeof(header));
		if (process->length - at - sizeof(header) < header.length)
			break;
		at += sizeof(header);
		handle(process, header.message, process->received + at, header.length);
		at += header.length;
	}
	memmove(process->received, process->received + at, process->length - at);
	process->length -= at;
}

static int make_room(struct process *process)
{
	size_t capacity = process->capacity ? process->capacity * 2 : 1 << 17;
	char *grown;

	if (process->length < process->capacity)
		return 0;
	grown = realloc(process->received, capacity);
	if (!grown)
		return -ENOMEM;
	process->received = grown;
	process->capacity = capacity;
	return 0;
}

static void on_message(uv_poll_t *poll, int status, int events)
{
	struct process *process = poll->data;
	struct crew *crew = process->crew;
	ssize_t got = -1;

	(void)status;
	(void)events;
	if (make_room(process))
		lose(crew, "%s", strerror(ENOMEM));
	else
		got = recv(process->fd, process->received + process->length,
			   process->capacity - process->length, MSG_DONTWAIT);
	if (got > 0) {
		process->length += (size_t)got;
		digest(process);
	} else if (!got || (errno != EAGAIN && errno != EINTR)) {
		bury(process);
	}
	crew->ring(crew->user);
}

static bool are_ready(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->count; i++)
		if (!crew->processes[i].ready)
			return false;
	return true;
}

static int processes_open(struct crew *crew, uv_loop_t *loop, void (*ring)(void *user), void *user,
			  char **ret_error)
{
	int err = 0;

	crew->ring = ring;
	crew->user = user;
	for (uint32_t i = 0; i < crew->count && !err; i++) {
		struct process *process = &crew->processes[i];

		err = uv_poll_init(loop, &process->poll, process->fd);
		if (err)
			break;
		process->polled = true;
		process->poll.data = process;
		err = uv_poll_start(&process->poll, UV_READABLE, on_message);
	}
	while (!err && !crew->lost && !are_ready(crew))
		uv_run(loop, UV_RUN_ONCE);
	return err ? err : crew->lost ? refuse(ret_error, "%s", crew->lost) : 0;
}

static void command(struct crew *crew, const struct crew_command *order)
{
	for (uint32_t i = 0; i < crew->count; i++)
		/* One that cannot be sent to is gone, which its connection tells. */
		if (crew->processes[i].pid)
			send(crew->processes[i].fd, order, sizeof(*order), MSG_NOSIGNAL);
}

static void processes_set_phase(struct crew *crew, enum worker_phase phase, uint64_t begin_ns,
				uint64_t stop_ns)
{
	const struct crew_command order = {
		.phase = phase, .begin_ns = begin_ns, .stop_ns = stop_ns};
	bool load = phase == WORKER_WARMUP || phase == WORKER_MEASURE;

	for (uint32_t i = 0; i < crew->count && load; i++)
		crew->processes[i].quiet = false;
	if (phase == WORKER_MEASURE)
		crew_result_clear(&crew->result);
	command(crew, &order);
}

static bool processes_is_quiet(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->count; i++)
		if (!crew->processes[i].quiet)
			return false;
	return true;
}

static bool processes_has_failed(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->count; i++)
		if (crew->processes[i].failed)
			return true;
	return false;
}

static const char *processes_lost(struct crew *crew)
{
	return crew->lost;
}

static void processes_ask_snapshot(struct crew *crew)
{
	const struct crew_command order = {.snapshot = true};

	for (uint32_t i = 0; i < crew->count; i++)
		crew->processes[i].has_snapshot = false;
	command(crew, &order);
}

static bool processes_has_snapshot(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->count; i++)
		if (!crew->processes[i].has_snapshot)
			return false;
	return true;
}

static void processes_add_snapshot(struct crew *crew, struct stats *sum)
{
	for (uint32_t i = 0; i < crew->count; i++) {
		stats_add(sum, &crew->processes[i].snapshot);
		crew->processes[i].has_snapshot = false;
	}
}

static int processes_collect(struct crew *crew, struct crew_result *result)
{
	const struct crew_result *sum = &crew->result;

	cpu_time_add(&result->cpu, &(struct cpu_time){0}, &sum->cpu);
	return crew_result_add(result, &sum->stats, &sum->series, &sum->samples);
}

static void processes_close(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->count; i++)
		if (crew->processes[i].polled)
			uv_close((uv_handle_t *)&crew->processes[i].poll, NULL);
}

/* A child ends within milliseconds; one that does not (it is stopped, or swapped out) is killed. */
static void await_end(struct process *process)
{
	const struct timespec pause = {.tv_nsec = END_POLL_NS};
	uint64_t deadline_ns = clock_now_ns() + END_TIMEOUT_NS;

	while (process->pid && !waitpid(process->pid, NULL, WNOHANG)) {
		if (clock_now_ns() > deadline_ns) {
			kill(process->pid, SIGKILL);
			waitpid(process->pid, NULL, 0);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

static void processes_free(struct crew *crew)
{
	/* Without its connection a child ends, wherever it is. */
	for (uint32_t i = 0; i < crew->count; i++)
		close(crew->processes[i].fd);
	for (uint32_t i = 0; i < crew->count; i++) {
		await_end(&crew->processes[i]);
		free(crew->processes[i].received);
	}
	crew_result_clear(&crew->result);
	free(crew->lost);
	free(crew);
}

const struct crew_kind crew_processes = {
	.create = processes_create,
	.open = processes_open,
	.set_phase = processes_set_phase,
	.is_quiet = processes_is_quiet,
	.has_failed = processes_has_failed,
	.lost = processes_lost,
	.ask_snapshot = processes_ask_snapshot,
	.has_snapshot = processes_has_snapshot,
	.add_snapshot = processes_add_snapshot,
	.collect = processes_collect,
	.close = processes_close,
	.free = processes_free,
};
