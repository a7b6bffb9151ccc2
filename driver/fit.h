/* SPDX-License-Identifier: MIT */
/*
 * What a sweep concludes from its figures, as pure functions: whether a step was steady, whether more
 * load only queues, and where throughput stops to grow with load.
 */
#ifndef DRIVER_FIT_H
#define DRIVER_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether the rate over equal intervals stayed the same: both halves agree within 5 % or within what
 * their own scatter explains (2 standard errors), and the scatter itself is below a quarter of the
 * mean, not counting that of independent arrivals. At least 6 intervals; fewer are not steady.
 */
bool fit_is_steady(const uint64_t *counts, size_t count);

/* One step of a sweep. */
struct fit_point {
	double load;	   /* connections, or requests/s that were due; above 0 */
	double throughput; /* requests/s */
	double latency_ns; /* mean */
};

/*
 * Whether the last two steps brought nothing but waiting: neither has 3 % more throughput than the
 * best before them, and latency rose with the load. @points in order of load.
 */
bool fit_only_queues(const struct fit_point *points, size_t count);

/*
 * Throughput in proportion to the load up to the knee, then level or falling by a power of the load:
 * the least squares of relative errors (of logarithms), so that each step counts alike.
 */
struct fit {
	double knee;	/* load */
	double plateau; /* throughput at the knee */
	double decline; /* exponent by which throughput falls beyond it; 0: level */
	double misfit;	/* relative: root of the mean square */
};

/*
 * -ENODATA: fewer than 4 points with throughput. -ERANGE: it still grew at the end, i.e. fewer than 2
 * points lie beyond the knee; then there is no plateau.
 */
int fit_plateau(const struct fit_point *points, size_t count, struct fit *ret_fit);

#endif
