/* SPDX-License-Identifier: MIT */
/* CPU time of this process' threads, and how long they waited for a CPU in use by others. */
#ifndef DRIVER_STATS_CPU_TIME_H
#define DRIVER_STATS_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_time {
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t wall_ns;  /* of a reading: CLOCK_MONOTONIC; of a sum: its longest span */
	uint64_t wait_ns;  /* ready to run, but queued; of existing threads */
	bool wait_unknown; /* not reported by the kernel (CONFIG_SCHED_INFO), or reading failed */
};

/* Read the times of all threads so far: getrusage(), /proc/self/task/TID/schedstat. */
void cpu_time_read(struct cpu_time *ret_time);

/* Add the time between two readings to @sum, which starts zeroed. */
void cpu_time_add(struct cpu_time *sum, const struct cpu_time *begin, const struct cpu_time *end);

#endif
