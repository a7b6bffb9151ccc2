// SPDX-License-Identifier: MIT
/* Waits for keys, and for the time of the next reading; see replay.h. */
#include "replay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "player.h"
#include "live.h"
#include "sojourn/cli.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"

static int open_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&signals, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Take all pending signals. Return whether one of them asks to end. */
static bool take_signals(int fd, struct sink *sink)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			sink_resize(sink);
		else
			end = true;
	}
	return end;
}

/* Milliseconds until the next reading is due, rounded up; -1: none is. */
static int timeout_ms(struct live_player *player, const struct sink *sink)
{
	uint64_t stay_ns, now = clock_now_ns();
	int r = sink_live_paused(sink) ? -ENODATA : live_player_stay_ns(player, &stay_ns);

	if (r < 0)
		return -1;
	if (player->shown_ns + stay_ns <= now)
		return 0;
	stay_ns = player->shown_ns + stay_ns - now;
	return stay_ns > 3600 * NSEC_PER_SEC ? 3600000
					     : (int)((stay_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

/* -ECANCELED: it was left. */
static int wait_once(struct live_player *player, struct sink *sink, int signal_fd)
{
	struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
			       {.fd = sink_fd(sink), .events = POLLIN}};
	int n = poll(fds, ARRAY_SIZE(fds), timeout_ms(player, sink));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents && take_signals(signal_fd, sink))
		return -ECANCELED;
	return n ? sink_run(sink, fds[1].revents) : sink_interval(sink);
}

static int play(struct live_player *player)
{
	autosink struct sink *sink = NULL;
	autoclose int signal_fd = open_signals();
	int r = signal_fd < 0 ? signal_fd : sink_live_open_player(player, &sink);

	while (!r)
		r = wait_once(player, sink, signal_fd);
	return r == -ECANCELED ? 0 : r;
}

int replay(const char *path)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	CLEANUP(live_player_done) struct live_player player = {};
	autofree char *error = NULL;
	int r = recording_open(path, &recording, &error);

	if (r == -EINVAL) {
		log_error("--replay: '%s': %s", path, error ? error : "not a recording");
		return EXIT_USAGE;
	}
	if (r < 0) {
		log_errno(r, "--replay: cannot read '%s'", path);
		return EXIT_FAILURE;
	}
	live_player_init(&player, recording);
	r = play(&player);
	if (r == -EOPNOTSUPP)
		log_error("the terminal (TERM=%s) cannot be drawn on: 'sojourn report' prints it",
			  getenv("TERM") ? getenv("TERM") : "");
	else if (r == -ENODATA)
		log_error("--replay: '%s': a recording without one whole reading", path);
	else if (r < 0)
		log_errno(r, "replaying ended early");
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
