// SPDX-License-Identifier: MIT
/* The observer's event loop; see loop.h. */
#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sojourn/clock.h"

/* The time that the command has to end after SIGTERM. */
#define COMMAND_GRACE_NS (2 * NSEC_PER_SEC)

enum source {
	WAIT_SIGNAL,
	WAIT_END,
	WAIT_INTERVAL,
	WAIT_POINT, /* the last one that the loop opens */
	WAIT_MODEL,
	WAIT_SINKS, /* the first of them */
	WAIT_COUNT = WAIT_SINKS + LOOP_SINKS
};

struct loop {
	struct loop_options options;
	struct pollfd fds[WAIT_COUNT];
	sigset_t old_signals;
	pid_t child;
	int status;
	bool stop;
};

/* ---- opening ---- */

static int open_signals(struct loop *loop)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &signals, &loop->old_signals) < 0)
		return -errno;
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	loop->fds[WAIT_SIGNAL].fd = fd;
	return fd < 0 ? -errno : 0;
}

static int open_timer(struct pollfd *pollfd)
{
	pollfd->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return pollfd->fd < 0 ? -errno : 0;
}

static int start_timer(const struct pollfd *pollfd, uint64_t ns, bool repeat)
{
	struct timespec time = {(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
	struct itimerspec spec = {.it_value = time};

	if (repeat)
		spec.it_interval = time;
	return timerfd_settime(pollfd->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

static int loop_init(struct loop *loop)
{
	int r = open_signals(loop);

	for (size_t i = WAIT_END; !r && i <= WAIT_POINT; i++)
		r = open_timer(&loop->fds[i]);
	for (size_t i = 0; i < loop->options.sink_count; i++)
		loop->fds[WAIT_SINKS + i].fd = sink_fd(loop->options.sinks[i]);
	loop->fds[WAIT_MODEL].fd = model_fd(loop->options.model);
	return r;
}

int loop_open(const struct loop_options *options, struct loop **ret_loop)
{
	CLEANUP(cleanup_loop_close) struct loop *loop = calloc(1, sizeof(*loop));
	int r;

	if (!loop)
		return -ENOMEM;
	loop->options = *options;
	for (size_t i = 0; i < WAIT_COUNT; i++)
		loop->fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	r = loop_init(loop);
	if (r < 0)
		return r;
	*ret_loop = TAKE_PTR(loop);
	return 0;
}

void loop_close(struct loop *loop)
{
	if (!loop)
		return;
	for (size_t i = WAIT_SIGNAL; i <= WAIT_POINT; i++)
		cleanup_close(&loop->fds[i].fd);
	free(loop);
}

/* ---- the command ---- */

static int start_command(struct loop *loop)
{
	char **command = loop->options.command;

	if (!command)
		return 0;
	loop->child = fork();
	if (loop->child < 0)
		return -errno;
	if (loop->child)
		return 0;
	sigprocmask(SIG_SETMASK, &loop->old_signals, NULL);
	signal(SIGXFSZ, SIG_DFL); /* see streams_begin() */
	execvp(command[0], command);
	/* Only the child knows the error: the parent sees 127, as a shell would. */
	dprintf(STDERR_FILENO, "sojourn observe: cannot run '%s': %s\n", command[0],
		strerror(errno));
	_exit(127);
}

static void reap(struct loop *loop)
{
	int status;

	if (loop->child <= 0 || waitpid(loop->child, &status, WNOHANG) != loop->child)
		return;
	loop->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	loop->child = 0;
	loop->stop = true;
}

/* The observation ends before the command: ask it to end, and kill it after a while. */
static void end_command(struct loop *loop)
{
	uint64_t deadline_ns = clock_now_ns() + COMMAND_GRACE_NS;
	int sent = SIGTERM;

	while (loop->child > 0) {
		struct pollfd *signals = &loop->fds[WAIT_SIGNAL];
		struct signalfd_siginfo info;

		kill(loop->child, sent);
		(void)poll(signals, 1, 100);
		while (read(signals->fd, &info, sizeof(info)) > 0)
			;
		reap(loop);
		if (clock_now_ns() > deadline_ns)
			sent = SIGKILL;
	}
}

/* ---- waiting ---- */

static void on_signal(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->fds[WAIT_SIGNAL].fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(loop);
		else if (info.ssi_signo != SIGWINCH)
			loop->stop = true;
		for (size_t i = 0; info.ssi_signo == SIGWINCH && i < loop->options.sink_count; i++)
			sink_resize(loop->options.sinks[i]);
	}
}

static int run_sinks(struct loop *loop)
{
	int r = 0;

	for (size_t i = 0; !r && i < loop->options.sink_count; i++)
		r = sink_run(loop->options.sinks[i], loop->fds[WAIT_SINKS + i].revents);
	if (r != -ECANCELED)
		return r;
	loop->stop = true;
	return 0;
}

static int on_interval(struct loop *loop)
{
	uint64_t expirations;
	int r = 0;

	if (read(loop->fds[WAIT_INTERVAL].fd, &expirations, sizeof(expirations)) < 0)
		return 0;
	for (size_t i = 0; !r && i < loop->options.sink_count; i++)
		r = sink_interval(loop->options.sinks[i]);
	return r;
}

static int dispatch(struct loop *loop)
{
	uint64_t expirations;
	int r = 0;

	if (loop->fds[WAIT_SIGNAL].revents)
		on_signal(loop);
	if (loop->fds[WAIT_END].revents)
		loop->stop = true;
	if (loop->fds[WAIT_POINT].revents &&
	    read(loop->fds[WAIT_POINT].fd, &expirations, sizeof(expirations)) > 0)
		loop->options.point(loop->options.point_context);
	if (loop->fds[WAIT_MODEL].revents)
		r = model_drain(loop->options.model);
	if (!r)
		r = run_sinks(loop);
	return !r && loop->fds[WAIT_INTERVAL].revents ? on_interval(loop) : r;
}

static int wait_once(struct loop *loop)
{
	int timeout = -1;

	for (size_t i = 0; i < loop->options.sink_count; i++) {
		int wish = sink_timeout_ms(loop->options.sinks[i]);

		if (wish >= 0 && (timeout < 0 || wish < timeout))
			timeout = wish;
	}
	if (poll(loop->fds, WAIT_COUNT, timeout) < 0)
		return errno == EINTR ? 0 : -errno;
	return dispatch(loop);
}

int loop_run(struct loop *loop, int *ret_status)
{
	int r = start_command(loop);

	if (!r && loop->options.for_ns)
		r = start_timer(&loop->fds[WAIT_END], loop->options.for_ns, false);
	if (!r && loop->options.interval_ns)
		r = start_timer(&loop->fds[WAIT_INTERVAL], loop->options.interval_ns, true);
	if (!r && loop->options.point_ns)
		r = start_timer(&loop->fds[WAIT_POINT], loop->options.point_ns, true);
	while (!r && !loop->stop)
		r = wait_once(loop);
	end_command(loop);
	*ret_status = loop->status;
	return r;
}
