// SPDX-License-Identifier: MIT
/* Starting the blocking threads, and stopping them. */
#include "blocking.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

bool blocking_is_stopping(struct blocking *blocking)
{
	return atomic_load(&blocking->stopping);
}

void blocking_sleep(struct blocking *blocking, uint64_t ns, bool spin)
{
	uint64_t deadline = clock_now_ns() + ns, now = clock_now_ns();
	struct pollfd stop = {.fd = blocking->stop_fd, .events = POLLIN};

	while (now < deadline && !blocking_is_stopping(blocking)) {
		uint64_t left = deadline - now;
		struct timespec timeout = {(time_t)(left / NSEC_PER_SEC),
					   (long)(left % NSEC_PER_SEC)};

		if (!spin)
			ppoll(&stop, 1, &timeout, NULL);
		now = clock_now_ns();
	}
}

bool blocking_wait_readable(struct blocking *blocking, int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = blocking->stop_fd, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return !blocking_is_stopping(blocking);
}

bool blocking_wait_turn(struct blocking *blocking, uint64_t delay_ns, uint64_t *ret_turn,
			uint64_t *ret_readable_ns)
{
	struct server *server = blocking->server;
	struct turn_wait turn;

	if (!blocking_wait_readable(blocking, server->fd))
		return false;
	*ret_readable_ns = clock_now_ns();
	turn = server_take_turn(server, delay_ns);
	blocking_sleep(blocking, turn.wait_ns, false);
	if (!turn_is_mine(&server->shared->turn, turn.mine))
		return false;
	*ret_turn = turn.mine;
	return true;
}

static void wait_for_stop(struct server *server)
{
	struct pollfd control = {.fd = server->control, .events = POLLIN};

	do
		poll(&control, 1, -1);
	while (!server_control(server));
}

static void stop(struct blocking *blocking)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&blocking->lock);
	atomic_store(&blocking->stopping, true);
	pthread_mutex_unlock(&blocking->lock);
	/* A write of 1 to an eventfd that holds 0 cannot fail. */
	if (write(blocking->stop_fd, &one, sizeof(one)) < 0)
		abort();
	/* Wakes accept() and, although it fails on an unconnected socket, recvfrom() on UDP. */
	shutdown(blocking->server->fd, SHUT_RD);
	blocking_tcp_stop(blocking);
}

/* Return how many threads start: one that accepts, or several that share the UDP socket. */
static size_t thread_count(const struct blocking *blocking)
{
	if (blocking->server->protocol || !blocking->thread_per_connection)
		return 1;
	return blocking->server->options->workers;
}

static size_t start_threads(struct blocking *blocking, pthread_t *threads, size_t count)
{
	void *(*work)(void *) = blocking->server->protocol ? blocking_tcp : blocking_udp;
	size_t started = 0;

	while (started < count && !pthread_create(&threads[started], NULL, work, blocking))
		started++;
	return started;
}

int blocking_run(struct server *server, bool thread_per_connection)
{
	struct blocking blocking = {
		.server = server,
		.thread_per_connection = thread_per_connection,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	size_t count = thread_count(&blocking), started;
	autofree pthread_t *threads = calloc(count, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	blocking.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (blocking.stop_fd < 0)
		return -errno;
	started = start_threads(&blocking, threads, count);
	if (started == count) {
		server_announce(server);
		wait_for_stop(server);
	}
	stop(&blocking);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	blocking_tcp_join(&blocking);
	close(blocking.stop_fd);
	return started == count ? 0 : -EAGAIN;
}
