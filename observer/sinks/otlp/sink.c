// SPDX-License-Identifier: MIT
/* Readings on their way to the process that sends them; see sink.h. That process: process.c. */
#include "sink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "process/passing.h"
#include "process/reserve.h"
#include "sojourn/clock.h"
#include "sojourn/metrics.h"
#include "sojourn/write_all.h"

#define STOP_NS (3 * NSEC_PER_SEC)
#define LAST_NS NSEC_PER_SEC

struct sink_otlp {
	struct sink sink;
	const struct snapshot_source *source;
	pid_t pid;
	int fd; /* to the process */
	struct metrics *metrics;
	void (*say)(int error);
	bool said;
	uint64_t started_ns; /* wall clock */
};

/* ---- the process ---- */

/* Copy @text to a file that exists only in memory. */
static int share(const char *text, int *ret_fd)
{
	autoclose int fd = memfd_create("sojourn-reading", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : write_all(fd, text, strlen(text), NULL);

	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Give a reading to the process, without waiting. -EAGAIN: earlier ones still wait there, so this one is skipped. */
static int give(struct sink_otlp *sink, const char *text)
{
	autoclose int fd = -1;
	RESERVE_SCOPE; /* the reading needs a descriptor */
	int r = share(text, &fd);

	return r < 0 ? r : passing_send(sink->fd, 0, fd, MSG_DONTWAIT);
}

static void pause_briefly(void)
{
	struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
}

/* Give the last reading to the process, waiting until there is room for it. */
static int give_last(struct sink_otlp *sink, const char *text)
{
	uint64_t deadline_ns = clock_now_ns() + LAST_NS;
	int r = give(sink, text);

	while (r == -EAGAIN && clock_now_ns() < deadline_ns) {
		pause_briefly();
		r = give(sink, text);
	}
	return r;
}

/* Return whether the process has ended. waitpid() fails if SIGCHLD is ignored: then there is nothing to wait for. */
static bool ended(const struct sink_otlp *sink)
{
	return waitpid(sink->pid, NULL, WNOHANG) != 0;
}

/* A process that takes longer ends after its last request, or with us: we may not kill it any more. */
static void close_sink(struct sink *base)
{
	struct sink_otlp *sink = (struct sink_otlp *)base;
	uint64_t deadline_ns = clock_now_ns() + STOP_NS;

	cleanup_close(&sink->fd);
	while (sink->pid > 0 && !ended(sink) && clock_now_ns() < deadline_ns)
		pause_briefly();
	if (sink->metrics)
		metrics_free(sink->metrics);
	free(sink);
}

/* ---- readings ---- */

/* If a reading is lost, the next one has everything but its time. Only the end of all sending has to be reported. */
static void push(struct sink_otlp *sink, const struct run *run,
		 int (*hand)(struct sink_otlp *sink, const char *text))
{
	autofree char *text = metrics_otlp(sink->metrics, run, sink->started_ns, clock_wall_ns());
	int r = text ? hand(sink, text) : -ENOMEM;

	if (r < 0 && r != -EAGAIN && !sink->said) {
		sink->said = true;
		sink->say(r);
	}
}

static int interval(struct sink *base)
{
	struct sink_otlp *sink = (struct sink_otlp *)base;
	const struct snapshot_source *source = sink->source;
	autorun struct run *run = NULL;
	int r = source->brief(source->context, &run);

	if (!r)
		r = source->judge(source->context, run);
	if (!r && source->calls)
		r = source->calls(source->context, run);
	if (!r)
		push(sink, run, give);
	return r;
}

static int end(struct sink *sink, struct run *run)
{
	push((struct sink_otlp *)sink, run, give_last);
	return 0;
}

static const struct sink_operations operations = {
	.interval = interval, .end = end, .close = close_sink};

/* Start the process. Its first message says whether it can work at all. */
static int start(struct sink_otlp *sink, const struct otlp_target *target)
{
	int32_t word = 0;
	int ends[2], none, r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	sink->pid = fork();
	if (!sink->pid) {
		close(ends[0]);
		otlp_process(target, ends[1]);
	}
	close(ends[1]);
	sink->fd = ends[0];
	if (sink->pid < 0)
		return -errno;
	r = passing_receive(sink->fd, &word, &none);
	return r ? r : word;
}

int sink_otlp_open(const struct otlp_target *target, void (*say)(int error), struct sink **ret_sink)
{
	struct sink_otlp *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	*sink = (struct sink_otlp){.sink.operations = &operations, .say = say, .fd = -1};
	sink->metrics = metrics_new(target->buckets);
	r = sink->metrics ? start(sink, target) : -ENOMEM;
	if (r < 0)
		sink_close(&sink->sink);
	else
		*ret_sink = &sink->sink;
	return r;
}

void sink_otlp_begin(struct sink *base, const struct snapshot_source *source)
{
	struct sink_otlp *sink = (struct sink_otlp *)base;

	sink->source = source;
	sink->started_ns = clock_wall_ns();
}
