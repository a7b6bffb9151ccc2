/* SPDX-License-Identifier: MIT */
/* Time in the whole project: CLOCK_MONOTONIC, nanoseconds. */
#ifndef SOJOURN_CLOCK_H
#define SOJOURN_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

static inline uint64_t clock_timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

/* Read the clock of the kernel's bpf_ktime_get_ns() (outside of time namespaces). */
static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return clock_timespec_ns(&ts);
}

/* Read the wall clock, for labels in documents only, never for a duration. */
static inline uint64_t clock_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return clock_timespec_ns(&ts);
}

/*
 * Return how far the wall clock is ahead of clock_now_ns(), by the quickest of some readings: others may run between the
 * two clocks of one.
 */
static inline uint64_t clock_wall_ahead_ns(void)
{
	uint64_t quickest_ns = UINT64_MAX, ahead_ns = 0;

	for (unsigned int i = 0; i < 8 && quickest_ns > NSEC_PER_USEC; i++) {
		uint64_t before_ns = clock_now_ns(), wall_ns = clock_wall_ns();
		uint64_t took_ns = clock_now_ns() - before_ns;

		if (took_ns >= quickest_ns)
			continue;
		quickest_ns = took_ns;
		ahead_ns = wall_ns - before_ns;
	}
	return ahead_ns;
}

/* Read the CPU time of this process, all threads. */
static inline uint64_t clock_process_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return clock_timespec_ns(&ts);
}

/* Read the CPU time of this thread. */
static inline uint64_t clock_thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return clock_timespec_ns(&ts);
}

/* Sleep until clock_now_ns() is @at_ns, despite signals. */
static inline void clock_sleep_until(uint64_t at_ns)
{
	const struct timespec at = {.tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(at_ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

#endif
