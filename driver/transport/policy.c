// SPDX-License-Identifier: MIT
/* Applies the connection policy to sockets. Neighbours: options/link.c, engine/connection.c. */
#include "policy.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/procfs.h"
#include "sojourn/refuse.h"

/* Return 0 if @size is within the limit in the file, or the file cannot be read. */
static int check_buffer(const char *option, uint32_t size, const char *sysctl, char **ret_error)
{
	autofclose FILE *file = procfs_open("/proc/sys/net/core/%s", sysctl);
	uint64_t limit;

	if (!file || fscanf(file, "%" SCNu64, &limit) != 1 || size <= limit)
		return 0;
	return refuse(ret_error,
		      "--%s: %" PRIu32 " bytes are more than this host grants: net.core.%s is "
		      "%" PRIu64 "; raise it or use at most that",
		      option, size, sysctl, limit);
}

int policy_check(const struct connection_policy *policy, char **ret_error)
{
	int err = check_buffer("send-buffer", policy->send_buffer, "wmem_max", ret_error);

	if (err)
		return err;
	return check_buffer("receive-buffer", policy->receive_buffer, "rmem_max", ret_error);
}

bool policy_limit_is_over(const struct connection_policy *policy, uint64_t served,
			  uint64_t opened_ns)
{
	return (policy->requests && served >= policy->requests) ||
	       (policy->lifetime_ns && clock_now_ns() - opened_ns >= policy->lifetime_ns);
}

static void set_buffer(int fd, int name, uint32_t size)
{
	const int value = (int)size;

	if (size)
		setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value));
}

void policy_apply(const struct connection_policy *policy, int fd)
{
	const int on = 1;

	if (!policy->delay)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	set_buffer(fd, SO_SNDBUF, policy->send_buffer);
	set_buffer(fd, SO_RCVBUF, policy->receive_buffer);
}
