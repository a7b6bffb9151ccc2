// SPDX-License-Identifier: MIT
/* The rules for results limited by the client. The first one that holds is reported. */
#include "limited.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/units.h"

#define CPU_FULL      0.95
#define DELAY_HIGH_NS (1 * NSEC_PER_MSEC)
#define SPAN_LEAST_NS (100 * NSEC_PER_MSEC) /* a shorter span is mostly its start */
#define DELAYS_LEAST  100		    /* with fewer, one of them is more than 1 % */
#define DELAY_SHARE   0.1		    /* of the response time: less explains nothing */

static double usable_cpus(const struct run_driver *driver)
{
	cpu_set_t set;
	unsigned int cpus = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		cpus = (unsigned int)CPU_COUNT(&set);
	return driver->threads < cpus ? driver->threads : cpus;
}

static int is_out_of_ports(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why)
{
	uint64_t failures = driver->errors[RUN_ERROR_ADDRESS_UNAVAILABLE];

	(void)cpu_span_ns;
	if (!failures)
		return 0;
	return asprintf(ret_why, "%s connections found no free source port", as_count(failures));
}

static int is_out_of_files(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why)
{
	uint64_t failures = driver->errors[RUN_ERROR_TOO_MANY_FILES];

	(void)cpu_span_ns;
	if (!failures)
		return 0;
	return asprintf(ret_why, "%s connections found no free file descriptor",
			as_count(failures));
}

/* The kernel's counts of CPU time are of another moment than the clock, so the sum may be more. */
static double percent_of(double part, double whole)
{
	return fmin(100 * part / whole, 100);
}

static int is_cpu_full(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why)
{
	double cpus = usable_cpus(driver);
	double used = (double)(driver->cpu_user_ns + driver->cpu_system_ns);
	double share = cpu_span_ns ? used / (double)cpu_span_ns / cpus : 0;

	if (share < CPU_FULL || cpu_span_ns < SPAN_LEAST_NS)
		return 0;
	return asprintf(ret_why, "it used %.0f %% of the %.0f CPU%s that %u thread%s can have",
			percent_of(share, 1), cpus, cpus > 1 ? "s" : "", driver->threads,
			driver->threads > 1 ? "s" : "");
}

/* A thread that never idles cannot do more, however many CPUs there are. */
static int is_never_idle(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why)
{
	double used = (double)(driver->cpu_user_ns + driver->cpu_system_ns);
	double time = (double)cpu_span_ns * driver->threads;
	double waited = (double)driver->cpu_wait_ns.value;

	if (!driver->cpu_wait_ns.known || cpu_span_ns < SPAN_LEAST_NS ||
	    used + waited < CPU_FULL * time)
		return 0;
	return asprintf(
		ret_why,
		"its %u thread%s had something to do %.0f %% of the time, but others had the "
		"CPU%s for %.0f %% of it",
		driver->threads, driver->threads > 1 ? "s" : "", percent_of(used + waited, time),
		usable_cpus(driver) > 1 ? "s" : "", percent_of(waited, time));
}

/*
 * Return whether the delay is a part of the response times that counts. Beside a server that stalls for a second, 10 ms
 * of the driver's own are none.
 */
static bool is_considerable(const struct run_driver *driver, double p99)
{
	const struct histogram *times = &driver->response_time;

	return p99 >= DELAY_SHARE * (double)histogram_quantile(times, 0.99) ||
	       histogram_mean(&driver->schedule_delay) >= DELAY_SHARE * histogram_mean(times);
}

/*
 * No percentile has the requests that timed out. Where they are more than 1 %, the slowest ones waited for the server,
 * however late the others left.
 */
static bool has_timed_out(const struct run_driver *driver)
{
	return driver->errors[RUN_ERROR_TIMEOUT] * 100 > run_driver_outcome(driver).tried;
}

static int is_late(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why)
{
	uint64_t p99 = histogram_quantile(&driver->schedule_delay, 0.99);

	(void)cpu_span_ns;
	if (p99 < DELAY_HIGH_NS || driver->schedule_delay.count < DELAYS_LEAST ||
	    !is_considerable(driver, (double)p99) || has_timed_out(driver))
		return 0;
	return asprintf(ret_why,
			"1 %% of the requests left %s or more after they could have: its loop was "
			"late",
			as_time((double)p99));
}

/*
 * Each returns 0 if the rule does not hold, otherwise the length of *ret_why, or -1 without memory.
 */
static const struct {
	const char *by;
	int (*holds)(const struct run_driver *driver, uint64_t cpu_span_ns, char **ret_why);
} rules[] = {
	{"ports", is_out_of_ports}, {"files", is_out_of_files}, {"cpu", is_cpu_full},
	{"cpu", is_never_idle},	    {"schedule", is_late},
};

int limited_fill(struct run_driver *driver, uint64_t cpu_span_ns)
{
	char *why = NULL;
	int found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rules) && !found; i++) {
		found = rules[i].holds(driver, cpu_span_ns, &why);
		if (found <= 0)
			continue;
		driver->limited = calloc(1, sizeof(*driver->limited));
		if (!driver->limited) {
			free(why);
			return -ENOMEM;
		}
		driver->limited->why = why;
		driver->limited->by = strdup(rules[i].by);
		return driver->limited->by ? 0 : -ENOMEM;
	}
	return found < 0 ? -ENOMEM : 0;
}
