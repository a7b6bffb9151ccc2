// SPDX-License-Identifier: MIT
/* The observation's side of the process that sends; see otlp_sender.h. That process: otlp_process.c. */
#include "otlp_sender.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "otlp_process.h"
#include "sojourn/clock.h"

/* A reading of fifty services; the kernel gives less to those without CAP_NET_ADMIN. */
#define BUFFER_BYTES (1 << 20)
#define STOP_NS	     (3 * NSEC_PER_SEC)
#define DRAIN_NS     NSEC_PER_SEC

struct otlp_sender {
	pid_t pid;
	int fd;
	char *frame; /* being handed over; NULL: none */
	size_t length;
	size_t given;
};

static int open_channel(int ret_ends[2])
{
	int bytes = BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends) < 0)
		return -errno;
	if (setsockopt(ret_ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(ret_ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return 0;
}

/* Its first word says whether it can work at all. */
static int hear_first(int fd)
{
	int32_t word;

	return recv(fd, &word, sizeof(word), MSG_WAITALL) == sizeof(word) ? word : -EPIPE;
}

int otlp_sender_start(const struct otlp_target *target, struct otlp_sender **ret_sender)
{
	CLEANUP(cleanup_otlp_sender_stop) struct otlp_sender *sender = calloc(1, sizeof(*sender));
	int ends[2], r;

	if (!sender)
		return -ENOMEM;
	sender->fd = -1;
	r = open_channel(ends);
	if (r < 0)
		return r;
	sender->pid = fork();
	if (!sender->pid) {
		close(ends[0]);
		otlp_process(target, ends[1]);
	}
	close(ends[1]);
	sender->fd = ends[0];
	if (sender->pid < 0)
		return -errno;
	r = hear_first(sender->fd);
	if (r < 0)
		return r;
	*ret_sender = TAKE_PTR(sender);
	return 0;
}

/* -EAGAIN: some of it is left. */
static int give(struct otlp_sender *sender)
{
	while (sender->given < sender->length) {
		ssize_t n = send(sender->fd, sender->frame + sender->given,
				 sender->length - sender->given, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		sender->given += (size_t)n;
	}
	free(TAKE_PTR(sender->frame));
	return 0;
}

/* The length, then the text. */
static int begin_frame(struct otlp_sender *sender, const char *text)
{
	uint32_t length = (uint32_t)strlen(text);

	sender->frame = malloc(sizeof(length) + length);
	if (!sender->frame)
		return -ENOMEM;
	memcpy(sender->frame, &length, sizeof(length));
	memcpy(sender->frame + sizeof(length), text, length);
	sender->length = sizeof(length) + length;
	sender->given = 0;
	return 0;
}

int otlp_sender_push(struct otlp_sender *sender, const char *text)
{
	int r = sender->frame ? give(sender) : 0;

	if (!r)
		r = begin_frame(sender, text);
	if (r < 0)
		return r;
	r = give(sender);
	return r == -EAGAIN ? 0 : r; /* the rest goes before the next one */
}

static void pause_briefly(void)
{
	struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
}

/* Until all of the frame is handed over, it has ended, or it is too late. */
static void drain(struct otlp_sender *sender, uint64_t deadline_ns)
{
	while (sender->frame && give(sender) == -EAGAIN && clock_now_ns() < deadline_ns)
		pause_briefly();
}

int otlp_sender_push_last(struct otlp_sender *sender, const char *text)
{
	drain(sender, clock_now_ns() + DRAIN_NS);
	return otlp_sender_push(sender, text);
}

/* -1: it is not ours to wait for; somebody ignores SIGCHLD. */
static bool ended(const struct otlp_sender *sender)
{
	return waitpid(sender->pid, NULL, WNOHANG) != 0;
}

/* It dies with us at the latest, whether it may be killed or not. */
void otlp_sender_stop(struct otlp_sender *sender)
{
	uint64_t deadline_ns = clock_now_ns() + STOP_NS;
	bool over;

	if (!sender)
		return;
	if (sender->fd >= 0)
		drain(sender, deadline_ns);
	cleanup_close(&sender->fd);
	over = sender->pid <= 0 || ended(sender);
	while (!over && clock_now_ns() < deadline_ns) {
		pause_briefly();
		over = ended(sender);
	}
	if (!over)
		kill(sender->pid, SIGKILL);
	free(sender->frame);
	free(sender);
}
