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

/* In the process that has most of them. */
static uint64_t sockets_of_process(const struct limits_need *need)
{
	return ((uint64_t)(need->connections - 1) / need->processes + 1) * need->sockets;
}

static int refuse_files(const struct limits_need *need, rlim_t hard, char **ret_error)
{
	rlim_t besides = files_besides(need->threads);
	uint64_t each = hard > besides ? (uint64_t)(hard - besides) / need->sockets : 0;
	char all[64] = "", remedy[128] = "";

	if (need->sockets > 1)
		snprintf(all, sizeof(all), " to each of %u servers", need->sockets);
	if (each)
		snprintf(remedy, sizeof(remedy),
			 ", use --processes=%" PRIu64 " or use at most %" PRIu64 " connections",
			 (need->connections + each - 1) / each, each * need->processes);
	return refuse(ret_error,
		      "--connections: %u connections%s in %u process%s need %" PRIu64
		      " open files in each, but the hard limit is %" PRIu64
		      " (ulimit -Hn); raise it%s",
		      need->connections, all, need->processes, need->processes == 1 ? "" : "es",
		      besides + sockets_of_process(need), (uint64_t)hard, remedy);
}

int limits_raise_files(const struct limits_need *need, char **ret_error)
{
	rlim_t needed = files_besides(need->threads) + sockets_of_process(need);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= needed)
		return 0;
	if (limit.rlim_max < needed)
		return refuse_files(need, limit.rlim_max, ret_error);
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
