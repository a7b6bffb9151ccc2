// SPDX-License-Identifier: MIT
/*
 * One datagram to a socket of the service manager is all of sd_notify(3) that is used here. The library for it
 * depends on others for compression and cgroups. See notify.h.
 */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "sojourn/cleanup.h"
#include "sojourn/log.h"

/* A path, or @ and a name in the abstract namespace. */
static int parse_address(const char *text, struct sockaddr_un *ret_address, socklen_t *ret_length)
{
	size_t length = strlen(text);

	if ((*text != '/' && *text != '@') || length < 2 || length >= sizeof(ret_address->sun_path))
		return -EINVAL;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, text, length);
	if (*text == '@')
		ret_address->sun_path[0] = 0;
	*ret_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	return 0;
}

static int connect_to(const char *text, int *ret_fd)
{
	struct sockaddr_un address;
	socklen_t length = 0;
	autoclose int fd = -1;
	int r = parse_address(text, &address, &length);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void say(int error)
{
	log_errno(error, "cannot notify the service manager at NOTIFY_SOCKET=%s",
		  getenv("NOTIFY_SOCKET"));
}

int notify_open(void)
{
	const char *text = getenv("NOTIFY_SOCKET");
	int fd = -1, r = text ? connect_to(text, &fd) : 0;

	if (r < 0)
		say(r);
	return fd;
}

void notify_ready(int fd, const char *url)
{
	static const char message[] = "READY=1";

	if (fd >= 0 && send(fd, message, strlen(message), MSG_NOSIGNAL) < 0)
		say(-errno);
	if (url)
		fprintf(stderr, "sojourn: listening on %s\n", url);
	else
		log_debug("observing");
}
