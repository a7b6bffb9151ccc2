/* SPDX-License-Identifier: MIT */
/* What this process' threads had of CPUs, and how long they waited for one that others had. */
#ifndef DRIVER_STATS_CPU_TIME_H
#define DRIVER_STATS_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_time {
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t
		wall_ns; /* of a reading: when, CLOCK_MONOTONIC; of a sum: the longest of its spans */
	uint64_t wait_ns;  /* ready to run, but in a run queue; of the threads that are there */
	bool wait_unknown; /* the kernel does not tell (CONFIG_SCHED_INFO), or could not be asked */
};

/* Up to now, of all threads: getrusage(), /proc/self/task/TID/schedstat. */
void cpu_time_read(struct cpu_time *ret_time);

/* Adds what passed between two readings to @sum, which begins zeroed. */
void cpu_time_add(struct cpu_time *sum, const struct cpu_time *begin, const struct cpu_time *end);

#endif
