// SPDX-License-Identifier: MIT
/* A TCP connection with ourselves; see loopback.h. */
#include "loopback.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sojourn/cleanup.h"

int loopback_enter(void)
{
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	autoclose int fd = -1;

	if (unshare(CLONE_NEWNET) < 0)
		return -EPERM;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &up))
		return 0;
	/* Without CAP_NET_ADMIN. -EPERM would say that this is still the former namespace. */
	return errno == EPERM ? -EACCES : -errno;
}

int loopback_listen(struct sockaddr_in *ret_address)
{
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*ret_address);

	*ret_address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	if (fd < 0 || bind(fd, (struct sockaddr *)ret_address, size) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)ret_address, &size) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int loopback_connect(int listener, const struct sockaddr_in *address, int *ret_client,
		     int *ret_server)
{
	const int yes = 1;

	*ret_client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*ret_client < 0 ||
	    connect(*ret_client, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -errno;
	*ret_server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*ret_server < 0 ||
	    setsockopt(*ret_client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0 ||
	    setsockopt(*ret_server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
		return -errno;
	return 0;
}
