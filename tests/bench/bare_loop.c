// SPDX-License-Identifier: MIT
/*
 * The cost of a request without a driver: closed loops over sockets without clock, statistics or
 * parser. They show which of epoll and io_uring is cheaper. The server parses nothing either, so it
 * is faster than its clients. See driver.py.
 *
 *     bare_loop serve PORT                          answers anything until it is ended
 *     bare_loop HOW http|udp PORT SOCKETS SECONDS   prints how many requests were answered
 *
 * HOW is one of:
 * - epoll: a request follows its response at once
 * - batched: after all readable data is read
 * - io_uring: multishot receives into provided buffers, sends submitted together
 */
#include <arpa/inet.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS_MAX   1000
#define BUFFER_SIZE   4096 /* a response is shorter, and comes in one piece */
#define BUFFERS	      1024 /* at least the number of sockets, and a power of two */
#define DATAGRAM_SIZE 64

struct load {
	int sockets[SOCKETS_MAX];
	int count;
	char request[256];
	size_t length;
	unsigned long answered;
	double end; /* of the run, in seconds */
};

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static struct sockaddr_in address_of(const char *port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)atoi(port)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_at(const char *port)
{
	struct sockaddr_in address = address_of(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, SOCKETS_MAX))
		fail("listen");
	return fd;
}

static void answer(int fd)
{
	static const char response[] = "HTTP/1.1 200 OK\r\nServer: bare_loop\r\n"
				       "Connection: keep-alive\r\nContent-Length: 40\r\n\r\n"
				       "0123456789abcdef0123456789abcdef01234567";
	char request[BUFFER_SIZE];

	if (recv(fd, request, sizeof(request), MSG_DONTWAIT) <= 0 ||
	    send(fd, response, sizeof(response) - 1, MSG_NOSIGNAL) < 0)
		close(fd);
}

static _Noreturn void serve(const char *port)
{
	int listener = listen_at(port), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[SOCKETS_MAX], event = {.events = EPOLLIN, .data.fd = listener};

	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(epoll, events, SOCKETS_MAX, -1);

		for (int i = 0; i < count; i++) {
			if (events[i].data.fd != listener) {
				answer(events[i].data.fd);
				continue;
			}
			event.data.fd = accept(listener, NULL, NULL);
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		}
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void ask(const struct load *load, int i)
{
	if (send(load->sockets[i], load->request, load->length, MSG_NOSIGNAL) < 0)
		fail("send");
}

static void open_sockets(struct load *load, bool udp, const char *port)
{
	struct sockaddr_in address = address_of(port);

	for (int i = 0; i < load->count; i++) {
		load->sockets[i] = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
		if (load->sockets[i] < 0 ||
		    connect(load->sockets[i], (struct sockaddr *)&address, sizeof(address)))
			fail("connect");
	}
	if (udp)
		load->length = DATAGRAM_SIZE;
	else
		load->length = (size_t)snprintf(load->request, sizeof(load->request),
						"GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n"
						"User-Agent: bare_loop\r\n\r\n",
						port);
}

/* Return how many of the sockets have had their response; @ret_answered lists them. */
static int receive(struct load *load, int epoll, bool batched, int *ret_answered)
{
	struct epoll_event events[SOCKETS_MAX];
	int ready = epoll_wait(epoll, events, load->count, 1000), count = 0;
	char buffer[BUFFER_SIZE];

	for (int i = 0; i < ready; i++) {
		int which = (int)events[i].data.u32;

		if (recv(load->sockets[which], buffer, sizeof(buffer), MSG_DONTWAIT) <= 0)
			fail("recv");
		load->answered++;
		if (batched)
			ret_answered[count++] = which;
		else
			ask(load, which);
	}
	return count;
}

static void run_epoll(struct load *load, bool batched)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), answered[SOCKETS_MAX];

	for (int i = 0; i < load->count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		epoll_ctl(epoll, EPOLL_CTL_ADD, load->sockets[i], &event);
		ask(load, i);
	}
	while (now() < load->end) {
		int count = receive(load, epoll, batched, answered);

		for (int i = 0; i < count; i++)
			ask(load, answered[i]);
	}
}

static void run_at_once(struct load *load)
{
	run_epoll(load, false);
}

static void run_batched(struct load *load)
{
	run_epoll(load, true);
}

#define SENT UINT32_MAX /* user_data of a send, which reports failures only */

struct rings {
	struct io_uring uring;
	struct io_uring_buf_ring *free;
	char (*buffers)[BUFFER_SIZE];
};

static void give_back(struct rings *rings, int buffer, int offset)
{
	io_uring_buf_ring_add(rings->free, rings->buffers[buffer], BUFFER_SIZE,
			      (unsigned short)buffer, io_uring_buf_ring_mask(BUFFERS), offset);
}

static void open_rings(struct rings *rings, const struct load *load)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = 4 * BUFFERS,
	};
	struct io_uring_buf_reg registration = {.ring_entries = BUFFERS};

	rings->buffers = aligned_alloc(BUFFER_SIZE, BUFFERS * sizeof(*rings->buffers));
	rings->free = aligned_alloc(BUFFER_SIZE, BUFFERS * sizeof(struct io_uring_buf));
	if (!rings->buffers || !rings->free)
		fail("aligned_alloc");
	registration.ring_addr = (uintptr_t)rings->free;
	/* liburing returns the error instead of setting errno. */
	if (io_uring_queue_init_params(2 * BUFFERS, &rings->uring, &params) ||
	    io_uring_register_ring_fd(&rings->uring) != 1 ||
	    io_uring_register_files(&rings->uring, load->sockets, (unsigned int)load->count) ||
	    io_uring_register_buf_ring(&rings->uring, &registration, 0))
		fail("io_uring");
	io_uring_buf_ring_init(rings->free);
	for (int i = 0; i < BUFFERS; i++)
		give_back(rings, i, i);
	io_uring_buf_ring_advance(rings->free, BUFFERS);
}

static void submit_receive(struct rings *rings, int i)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&rings->uring);

	io_uring_prep_recv_multishot(entry, i, NULL, 0, 0);
	entry->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
	io_uring_sqe_set_data64(entry, (uint64_t)i);
}

static void submit_send(struct rings *rings, const struct load *load, int i)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&rings->uring);

	io_uring_prep_send(entry, i, load->request, load->length, MSG_NOSIGNAL);
	entry->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data64(entry, SENT);
}

static void complete(struct rings *rings, struct load *load, const struct io_uring_cqe *entry,
		     int offset)
{
	int which = (int)entry->user_data;

	if (entry->user_data == SENT || entry->res <= 0)
		fail(entry->user_data == SENT ? "send" : "recv");
	give_back(rings, (int)(entry->flags >> IORING_CQE_BUFFER_SHIFT), offset);
	load->answered++;
	if (!(entry->flags & IORING_CQE_F_MORE))
		submit_receive(rings, which);
	submit_send(rings, load, which);
}

static void run_io_uring(struct load *load)
{
	struct rings rings;

	open_rings(&rings, load);
	for (int i = 0; i < load->count; i++) {
		submit_receive(&rings, i);
		submit_send(&rings, load, i);
	}
	while (now() < load->end) {
		struct io_uring_cqe *entry;
		unsigned int head;
		int count = 0;

		io_uring_submit_and_wait(&rings.uring, 1);
		io_uring_for_each_cqe(&rings.uring, head, entry)
			complete(&rings, load, entry, count++);
		io_uring_buf_ring_advance(rings.free, count);
		io_uring_cq_advance(&rings.uring, (unsigned int)count);
	}
}

static const struct {
	const char *name;
	void (*run)(struct load *load);
} ways[] = {
	{"epoll", run_at_once},
	{"batched", run_batched},
	{"io_uring", run_io_uring},
};

int main(int argc, char **argv)
{
	static struct load load;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	load.count = argc == 6 ? atoi(argv[4]) : 0;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (load.count < 1 || load.count > SOCKETS_MAX || strcmp(argv[1], ways[i].name))
			continue;
		open_sockets(&load, !strcmp(argv[2], "udp"), argv[3]);
		load.end = now() + atof(argv[5]);
		ways[i].run(&load);
		printf("%lu\n", load.answered);
		return EXIT_SUCCESS;
	}
	fputs("Usage: bare_loop serve PORT | epoll|batched|io_uring http|udp PORT SOCKETS "
	      "SECONDS\n",
	      stderr);
	return 2;
}
