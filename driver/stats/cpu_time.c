// SPDX-License-Identifier: MIT
/* CPU time and the wait for it, as the kernel counts them per thread. */
#include "cpu_time.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sojourn/clock.h"
#include "sojourn/cleanup.h"

#define TASKS "/proc/self/task"

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NSEC_PER_SEC + (uint64_t)time.tv_usec * NSEC_PER_USEC;
}

/* Read "ran waited times", in ns, see the kernel's Documentation/scheduler/sched-stats.rst. */
static bool read_wait(const char *tid, uint64_t *ret_ns)
{
	char path[64], text[128];
	autoclose int fd = -1;
	ssize_t length;

	snprintf(path, sizeof(path), TASKS "/%.16s/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return sscanf(text, "%*u %" SCNu64, ret_ns) == 1;
}

static bool sum_waits(uint64_t *ret_ns)
{
	autoclosedir DIR *dir = opendir(TASKS);
	struct dirent *entry;
	uint64_t sum = 0, wait_ns;
	bool any = false;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (!read_wait(entry->d_name, &wait_ns))
			return false;
		sum += wait_ns;
		any = true;
	}
	*ret_ns = sum;
	return any;
}

void cpu_time_read(struct cpu_time *ret_time)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	*ret_time = (struct cpu_time){
		.wall_ns = clock_now_ns(),
		.user_ns = time_ns(usage.ru_utime),
		.system_ns = time_ns(usage.ru_stime),
	};
	ret_time->wait_unknown = !sum_waits(&ret_time->wait_ns);
}

static uint64_t between(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

void cpu_time_add(struct cpu_time *sum, const struct cpu_time *begin, const struct cpu_time *end)
{
	uint64_t span_ns = between(begin->wall_ns, end->wall_ns);

	sum->wall_ns = sum->wall_ns > span_ns ? sum->wall_ns : span_ns;
	sum->user_ns += between(begin->user_ns, end->user_ns);
	sum->system_ns += between(begin->system_ns, end->system_ns);
	sum->wait_ns += between(begin->wait_ns, end->wait_ns);
	sum->wait_unknown |= begin->wait_unknown || end->wait_unknown;
}
