// SPDX-License-Identifier: MIT
/* What this host allows the driver: descriptors and source ports. */
#include "host_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

/* Standard streams, signal pipe, libraries; and an epoll, an event and a null fd for every loop. */
#define FILES_BASE	 32U
#define FILES_PER_THREAD 8U

static rlim_t files_besides(uint32_t threads)
{
	return FILES_BASE + (rlim_t)threads * FILES_PER_THREAD;
}

static int refuse_files(uint32_t connections, uint32_t processes, uint32_t threads, rlim_t hard,
			char **ret_error)
{
	rlim_t each = hard > files_besides(threads) ? hard - files_besides(threads) : 0;
	char remedy[64] = "";

	if (each)
		snprintf(remedy, sizeof(remedy), ", use --processes=%" PRIu64,
			 (uint64_t)((connections + each - 1) / each));
	return refuse(ret_error,
		      "--connections: %u connections in %u process%s need %" PRIu64
		      " open files in each, but the hard limit is %" PRIu64
		      " (ulimit -Hn); raise it%s or use at most %" PRIu64 " connections",
		      connections, processes, processes == 1 ? "" : "es",
		      (uint64_t)(files_besides(threads) + (connections - 1) / processes + 1),
		      (uint64_t)hard, remedy, (uint64_t)each * processes);
}

int limits_raise_files(uint32_t connections, uint32_t processes, uint32_t threads, char **ret_error)
{
	rlim_t needed = files_besides(threads) + (connections - 1) / processes + 1;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= needed)
		return 0;
	if (limit.rlim_max < needed)
		return refuse_files(connections, processes, threads, limit.rlim_max, ret_error);
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
