// SPDX-License-Identifier: MIT
/* The time in which all of several drivers measured: see sojourn/shared.h. */
#include "sojourn/shared.h"

/* A share of the phase, and of an interval. */
#define TOGETHER_PER 100U

struct bounds {
	uint64_t begin_ns, end_ns; /* of the time that all share; empty if the end is not later */
	bool aligned;		   /* all intervals begin together */
};

static bool is_aligned(uint64_t distance_ns, uint64_t interval_ns)
{
	uint64_t rest = interval_ns ? distance_ns % interval_ns : 0;

	return rest <= interval_ns / TOGETHER_PER ||
	       interval_ns - rest <= interval_ns / TOGETHER_PER;
}

/* Parts are in order of start, and the first interval begins with the first part. */
static struct bounds bounds_of(const struct run_driver *driver)
{
	struct bounds bounds = {.end_ns = UINT64_MAX, .aligned = true};

	for (size_t i = 0; i < driver->part_count; i++) {
		uint64_t begin_ns = driver->parts[i].begin_ns - driver->parts[0].begin_ns;
		uint64_t end_ns = begin_ns + driver->parts[i].duration_ns;

		bounds.aligned &= is_aligned(begin_ns, driver->interval_ns);
		if (begin_ns > bounds.begin_ns)
			bounds.begin_ns = begin_ns;
		if (end_ns < bounds.end_ns)
			bounds.end_ns = end_ns;
	}
	return bounds;
}

static void add_interval(struct run_shared *shared, const struct run_interval *interval,
			 uint64_t interval_ns, const struct bounds *bounds)
{
	if (interval->begin_ns + interval_ns / TOGETHER_PER < bounds->begin_ns ||
	    interval->begin_ns + interval_ns > bounds->end_ns)
		return;
	shared->duration_ns += interval_ns;
	shared->requests += interval->requests;
}

struct run_shared run_driver_shared(const struct run_driver *driver)
{
	const uint64_t least_ns = driver->duration_ns / TOGETHER_PER;
	struct run_shared shared = {0};
	struct bounds bounds;
	uint64_t together_ns;

	if (driver->part_count < 2)
		return shared;
	bounds = bounds_of(driver);
	together_ns = bounds.end_ns > bounds.begin_ns ? bounds.end_ns - bounds.begin_ns : 0;
	shared.apart = together_ns < driver->duration_ns - least_ns;
	for (size_t i = 0; i < driver->interval_count && bounds.aligned; i++)
		add_interval(&shared, &driver->intervals[i], driver->interval_ns, &bounds);
	shared.known = shared.duration_ns > 0;
	return shared;
}
