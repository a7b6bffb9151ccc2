// SPDX-License-Identifier: MIT
/*
 * Sockets of TCP Fast Open that need no cookie get their source port in connect() and leave the SYN to the
 * first write(), which never comes: no packet, no counter, no TIME_WAIT. Neighbour: source.c.
 */
#include "source_probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "sojourn/cleanup.h"

#define DISCARD 9 /* the port that stands for any: nothing gets there */

#ifndef TCP_FASTOPEN_NO_COOKIE
#define TCP_FASTOPEN_NO_COOKIE 34 /* Linux 4.15 */
#endif

static int prepare(int fd, uint32_t range)
{
	const int on = 1;

	if (setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)))
		return -errno;
	return 0;
}

static int choose_port(uint32_t range, uint16_t *ret_port)
{
	const struct sockaddr_in goal = {
		.sin_family = AF_INET,
		.sin_port = htons(DISCARD),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	struct sockaddr_in own = {0};
	socklen_t length = sizeof(own);
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : prepare(fd, range);

	if (err)
		return err;
	/* EINPROGRESS: a SYN did leave, as after much trouble with Fast Open. Something refuses it. */
	if ((connect(fd, (const struct sockaddr *)&goal, sizeof(goal)) && errno != EINPROGRESS) ||
	    getsockname(fd, (struct sockaddr *)&own, &length))
		return -errno;
	*ret_port = ntohs(own.sin_port);
	return 0;
}

/* Whether they are of both parities. */
static bool is_mixed(const uint16_t *ports, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if ((ports[i] ^ ports[0]) & 1)
			return true;
	return false;
}

enum source_choice source_probe_judge(int err, const uint16_t *ports, size_t count)
{
	return !err && is_mixed(ports, count) ? SOURCE_RANGE : SOURCE_OWN;
}

int source_probe(uint32_t range, uint16_t ports[static SOURCE_PROBE_PORTS], size_t *ret_count)
{
	size_t count = 0;
	int err = 0;

	while (!err && count < SOURCE_PROBE_PORTS && !is_mixed(ports, count)) {
		err = choose_port(range, &ports[count]);
		count++;
	}
	if (!err)
		*ret_count = count;
	return err;
}
