// SPDX-License-Identifier: MIT
/* What this host allows the driver: descriptors and source ports. */
#include "limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "refuse.h"
#include "sojourn/cleanup.h"

/* Standard streams, signal pipe, libraries; and an epoll, an event and a null fd for every loop. */
#define FILES_BASE	 32U
#define FILES_PER_THREAD 8U

int limits_raise_files(uint32_t connections, uint32_t threads, char **ret_error)
{
	rlim_t needed = FILES_BASE + (rlim_t)connections + (rlim_t)threads * FILES_PER_THREAD;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= needed)
		return 0;
	if (limit.rlim_max < needed)
		return refuse(ret_error,
			      "--connections: %u connections need %" PRIu64
			      " open files, but the hard limit is %" PRIu64
			      " (ulimit -Hn); raise it or use at most %" PRIu64 " connections",
			      connections, (uint64_t)needed, (uint64_t)limit.rlim_max,
			      limit.rlim_max > needed - connections
				      ? (uint64_t)(limit.rlim_max - (needed - connections))
				      : 0);
	limit.rlim_cur = needed;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return refuse(ret_error, "cannot raise the limit of open files to %" PRIu64 ": %s",
			      (uint64_t)needed, strerror(errno));
	return 0;
}

uint32_t limits_port_range(void)
{
	autofclose FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned int low, high;

	if (!file || fscanf(file, "%u %u", &low, &high) != 2 || low > high || high > UINT16_MAX)
		return 0;
	return low | high << 16;
}
