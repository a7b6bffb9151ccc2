// SPDX-License-Identifier: MIT
/* This host's limits for the driver: descriptors and source ports. */
#include "host_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

/* Standard streams, signal pipe, libraries; each loop's epoll, event and null descriptors. */
#define FILES_BASE	 32U
#define FILES_PER_THREAD 8U

/* Return the need of each of @tables tables that share the connections. */
static uint64_t files_of(const struct limits_need *need, uint32_t tables)
{
	uint64_t connections = (need->connections - 1) / tables + 1;

	return FILES_BASE + (uint64_t)need->threads * FILES_PER_THREAD +
	       connections * need->sockets;
}

static int refuse_files(const struct limits_need *need, uint64_t hard, char **ret_error)
{
	uint64_t besides = FILES_BASE + (uint64_t)need->threads * FILES_PER_THREAD;
	uint64_t each = hard > besides ? (hard - besides) / need->sockets : 0;
	char all[64] = "", among[64] = "", threads[64] = "", fewer[64] = "";
	struct limits_need more = *need;

	while (more.threads < more.connections && files_of(&more, more.threads) > hard)
		more.threads++;
	if (need->sockets > 1)
		snprintf(all, sizeof(all), " to each of %u servers", need->sockets);
	if (need->threads > 1)
		snprintf(among, sizeof(among), " in each of %u threads", need->threads);
	if (each && files_of(&more, more.threads) <= hard)
		snprintf(threads, sizeof(threads), ", use --threads=%u", more.threads);
	if (each)
		snprintf(fewer, sizeof(fewer), " or use at most %" PRIu64 " connections",
			 each * need->threads);
	return refuse(ret_error,
		      "--connections: %u connections%s need %" PRIu64
		      " open files%s, but the hard limit is %" PRIu64 " (ulimit -Hn); raise it%s%s",
		      need->connections, all, files_of(need, need->threads), among, hard, threads,
		      fewer);
}

int limits_raise_files(const struct limits_need *need, bool *ret_own_files, char **ret_error)
{
	uint64_t needed = files_of(need, 1);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	*ret_own_files = limit.rlim_max < needed && !limits_own_files();
	if (*ret_own_files)
		needed = files_of(need, need->threads);
	if (limit.rlim_cur >= needed)
		return 0;
	if (limit.rlim_max < needed)
		return refuse_files(need, limit.rlim_max, ret_error);
	limit.rlim_cur = needed;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return refuse(ret_error, "cannot raise the limit of open files to %" PRIu64 ": %s",
			      needed, strerror(errno));
	return 0;
}

/* Containers may forbid unshare(), but not close_range() (Linux 5.9). */
int limits_own_files(void)
{
	if (!close_range(UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) || !unshare(CLONE_FILES))
		return 0;
	return -errno;
}

uint32_t limits_port_range(void)
{
	autofclose FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned int low, high;

	if (!file || fscanf(file, "%u %u", &low, &high) != 2 || low > high || high > UINT16_MAX)
		return 0;
	return low | high << 16;
}
