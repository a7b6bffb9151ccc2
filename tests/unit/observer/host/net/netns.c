// SPDX-License-Identifier: MIT
/* One reading of a namespace, while sockets in it come and go. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/net/netns.h"
#include "unit.h"

#define KEPT	 120
#define TURNS	 20
#define READINGS 100

static int open_udp(void)
{
	const struct sockaddr_in address = {AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		abort();
	return fd;
}

static void *come_and_go(void *context)
{
	atomic_bool *ended = context;
	int fds[TURNS];

	while (!*ended) {
		for (int i = 0; i < TURNS; i++)
			fds[i] = open_udp();
		for (int i = 0; i < TURNS; i++)
			close(fds[i]);
	}
	return NULL;
}

/* The kernel shows the table of UDP in pieces, and a socket in two of them if others come or go between them. */
static void each_udp_socket_is_there_once(void **state)
{
	atomic_bool ended = false;
	pthread_t thread;
	int fds[KEPT];

	for (int i = 0; i < KEPT; i++)
		fds[i] = open_udp();
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &ended), 0);
	for (int i = 0; i < READINGS; i++) {
		struct resource_netns netns;

		assert_int_equal(netns_read(SOCKETS_NETLINK, 0, &netns), 0);
		assert_true(netns.udp.count >= KEPT / 2);
		for (size_t k = 1; k < netns.udp.count; k++)
			assert_true(!netns.udp.sockets[k].inode ||
				    netns.udp.sockets[k].inode != netns.udp.sockets[k - 1].inode);
		netns_free(&netns);
	}
	ended = true;
	pthread_join(thread, NULL);
	for (int i = 0; i < KEPT; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_udp_socket_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
