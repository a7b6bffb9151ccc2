// SPDX-License-Identifier: MIT
/*
 * The reference for the driver over UDP: a loop of epoll_wait(), recv() and send() without clock,
 * statistics or schedule, and the server for both.
 *
 *     bare_udp serve PORT                    echoes on 127.0.0.1 until it is ended
 *     bare_udp ask PORT SOCKETS SIZE SECONDS one request at a time on each; prints how many
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	     64
#define DATAGRAM_MAX 1500
#define SOCKETS_MAX  1000

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static struct sockaddr_in address_of(const char *port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static _Noreturn void serve(const char *port)
{
	static char bytes[BATCH][DATAGRAM_MAX];
	static struct sockaddr_in clients[BATCH];
	static struct mmsghdr messages[BATCH];
	static struct iovec pieces[BATCH];
	struct sockaddr_in address = address_of(port);
	const int size = 4 << 20;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("bare_udp");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count;

		for (int i = 0; i < BATCH; i++) {
			pieces[i] = (struct iovec){bytes[i], DATAGRAM_MAX};
			messages[i].msg_hdr = (struct msghdr){.msg_name = &clients[i],
							      .msg_namelen = sizeof(clients[i]),
							      .msg_iov = &pieces[i],
							      .msg_iovlen = 1};
		}
		count = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
		for (int i = 0; i < count; i++)
			pieces[i].iov_len = messages[i].msg_len;
		if (count > 0)
			sendmmsg(fd, messages, (unsigned int)count, 0);
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int ask(const char *port, int sockets, size_t size, double seconds)
{
	struct sockaddr_in address = address_of(port);
	struct epoll_event events[BATCH];
	char bytes[DATAGRAM_MAX] = "";
	int epoll = epoll_create1(0), fds[SOCKETS_MAX];
	unsigned long requests = 0;
	double end = now() + seconds;

	for (int i = 0; i < sockets; i++) {
		fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		if (fds[i] < 0 || connect(fds[i], (struct sockaddr *)&address, sizeof(address)))
			fail("bare_udp");
		events[0] = (struct epoll_event){.events = EPOLLIN, .data.fd = fds[i]};
		epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &events[0]);
		send(fds[i], bytes, size, 0);
	}
	while (now() < end) {
		int count = epoll_wait(epoll, events, BATCH, 1000);

		for (int i = 0; i < count; i++) {
			if (recv(events[i].data.fd, bytes, sizeof(bytes), 0) < 0)
				continue;
			requests++;
			send(events[i].data.fd, bytes, size, 0);
		}
	}
	printf("%lu\n", requests);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "ask") && atoi(argv[3]) <= SOCKETS_MAX)
		return ask(argv[2], atoi(argv[3]), (size_t)atoi(argv[4]), atof(argv[5]));
	fputs("Usage: bare_udp serve PORT | ask PORT SOCKETS SIZE SECONDS\n", stderr);
	return 2;
}
