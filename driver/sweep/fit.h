/* SPDX-License-Identifier: MIT */
/*
 * Conclusions from a sweep's figures, as pure functions: steady steps, outliers, mere queuing, and
 * the plateau of throughput.
 */
#ifndef DRIVER_SWEEP_FIT_H
#define DRIVER_SWEEP_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_OFF_MAX    0.15 /* steps further from the line: no plateau */
#define FIT_COLLAPSE   0.7  /* less than this share of a smaller load's throughput: no plateau */
#define FIT_POINTS_MIN 4U
#define FIT_BEYOND_MIN 2U

/*
 * Return whether the rate was constant over equal intervals. Both halves agree within 5 % or 2
 * standard errors of their own scatter. The scatter, less that of independent arrivals, is below a
 * quarter of the mean. Fewer than 6 intervals are not steady.
 */
bool fit_is_steady(const uint64_t *counts, size_t count);

/* One step of a sweep. */
struct fit_point {
	double load;	   /* connections, or requests/s due; above 0 */
	double throughput; /* requests/s; above 0 */
	double latency_ns; /* mean */
};

/*
 * Return whether the last two steps only added waiting: neither has 3 % more throughput than the
 * best before them, and latency rose with the load. @points are in order of load.
 */
bool fit_only_queues(const struct fit_point *points, size_t count);

/*
 * Return the step that is furthest from the others, by more than FIT_OFF_MAX, and not @settled;
 * @count if there is none. A step below the straight line between its neighbours, in logarithms,
 * was disturbed. So was, perhaps, one above all others.
 */
size_t fit_find_outlier(const struct fit_point *points, const bool *settled, size_t count);

enum fit_verdict {
	FIT_FOUND,
	FIT_TOO_FEW,   /* fewer than FIT_POINTS_MIN steps */
	FIT_COLLAPSED, /* a step has less than FIT_COLLAPSE of what a smaller load had */
	FIT_GREW,      /* throughput grew up to the last step */
	FIT_OFF,       /* steps are further than FIT_OFF_MAX from the line */
	FIT_TOO_CLOSE, /* the largest load is less than twice the smallest */
	FIT_NO_END,    /* fewer than FIT_BEYOND_MIN steps beyond the knee */
};

/*
 * Throughput proportional to the load up to the knee, then level or falling by a power of the load.
 * Least squares of relative errors (logarithms), so that each step counts alike.
 */
struct fit {
	double knee;	/* a load */
	double plateau; /* throughput at the knee */
	double decline; /* exponent of the fall beyond the knee; 0: level */
	double misfit;	/* relative root mean square */
	double growth;	/* of the last step over the best before, relative */
	size_t best;	/* FIT_COLLAPSED: the step with most throughput before the fallen one */
	size_t fallen;	/* FIT_COLLAPSED */
};

/* Fit @points in order of load. Without FIT_FOUND only members that the verdict names are valid. */
enum fit_verdict fit_plateau(const struct fit_point *points, size_t count, struct fit *ret_fit);

/*
 * Say why there is no plateau, for any verdict except FIT_FOUND, with the arguments and results of
 * fit_plateau(). @unit: of the loads. Return NULL without memory; the caller frees the sentence.
 */
char *fit_explain(enum fit_verdict verdict, const struct fit *fit, const struct fit_point *points,
		  size_t count, const char *unit);

#endif
