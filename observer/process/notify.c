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

static int tell_manager(void)
{
	static const char message[] = "READY=1";
	const char *text = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t length = 0;
	autoclose int fd = -1;
	int r = text ? parse_address(text, &address, &length) : 0;

	if (r < 0 || !text)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, message, strlen(message), MSG_NOSIGNAL,
			     (const struct sockaddr *)&address, length) < 0)
		return -errno;
	return 0;
}

void notify_ready(const char *url)
{
	int r = tell_manager();

	if (r < 0)
		log_errno(r, "cannot notify the service manager at NOTIFY_SOCKET=%s",
			  getenv("NOTIFY_SOCKET"));
	if (url)
		fprintf(stderr, "sojourn: listening on %s\n", url);
	else
		log_debug("observing");
}
