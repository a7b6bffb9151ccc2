/* SPDX-License-Identifier: MIT */
/*
 * What a sweep concludes from its figures, as pure functions: whether a step was steady, whether one is
 * off the others, whether more load only queues, and where throughput stops to grow with load.
 */
#ifndef DRIVER_SWEEP_FIT_H
#define DRIVER_SWEEP_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_OFF_MAX    0.15 /* steps further from the line tell no plateau */
#define FIT_COLLAPSE   0.7  /* of a smaller load's throughput: less is no plateau */
#define FIT_POINTS_MIN 4U
#define FIT_BEYOND_MIN 2U

/*
 * Whether the rate over equal intervals stayed the same: both halves agree within 5 % or within what
 * their own scatter explains (2 standard errors), and the scatter itself is below a quarter of the
 * mean, not counting that of independent arrivals. At least 6 intervals; fewer are not steady.
 */
bool fit_is_steady(const uint64_t *counts, size_t count);

/* One step of a sweep. */
struct fit_point {
	double load;	   /* connections, or requests/s that were due; above 0 */
	double throughput; /* requests/s; above 0 */
	double latency_ns; /* mean */
};

/*
 * Whether the last two steps brought nothing but waiting: neither has 3 % more throughput than the
 * best before them, and latency rose with the load. @points in order of load.
 */
bool fit_only_queues(const struct fit_point *points, size_t count);

/*
 * The step that is furthest off the others, by more than FIT_OFF_MAX, of those that are not @settled;
 * @count if none is. Throughput bends only downwards (in logarithms): a step below the straight line
 * between its neighbours was disturbed, and so may be one above all others.
 */
size_t fit_find_outlier(const struct fit_point *points, const bool *settled, size_t count);

enum fit_verdict {
	FIT_FOUND,
	FIT_TOO_FEW,   /* fewer than FIT_POINTS_MIN steps */
	FIT_COLLAPSED, /* a step has less than FIT_COLLAPSE of what a smaller load had */
	FIT_GREW,      /* throughput still grew at the last step */
	FIT_OFF,       /* the steps are further than FIT_OFF_MAX off the line */
	FIT_TOO_CLOSE, /* the largest load is less than twice the smallest */
	FIT_NO_END,    /* fewer than FIT_BEYOND_MIN steps lie beyond the knee */
};

/*
 * Throughput in proportion to the load up to the knee, then level or falling by a power of the load:
 * the least squares of relative errors (of logarithms), so that each step counts alike.
 */
struct fit {
	double knee;	/* load */
	double plateau; /* throughput at the knee */
	double decline; /* exponent by which throughput falls beyond it; 0: level */
	double misfit;	/* relative: root of the mean square */
	double growth;	/* of the last step over the best before it, relative */
	size_t best;	/* FIT_COLLAPSED: the step with most throughput before the one that fell */
	size_t fallen;	/* FIT_COLLAPSED */
};

/* @points in order of load. Of @ret_fit only what the verdict names is meant, unless it is FIT_FOUND. */
enum fit_verdict fit_plateau(const struct fit_point *points, size_t count, struct fit *ret_fit);

#endif
