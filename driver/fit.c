// SPDX-License-Identifier: MIT
/* Steadiness, and two straight lines through log throughput over log load; see fit.h. */
#include "fit.h"

#include <errno.h>
#include <math.h>

#define INTERVALS_MIN	 6
#define HALVES_APART	 0.05
#define STANDARD_ERRORS	 2.0
#define SCATTER_MAX	 0.25
#define GAIN		 1.03
#define POINTS_MIN	 4
#define BEYOND_MIN	 2
#define BEYOND		 1.05 /* so much more load than the knee's is beyond it */
#define KNEES_PER_OCTAVE 200  /* tried: the knee is found to 0.2 % */

struct moments {
	double mean;
	double variance;
};

static struct moments measure(const uint64_t *counts, size_t count)
{
	struct moments moments = {0};

	for (size_t i = 0; i < count; i++)
		moments.mean += (double)counts[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		double apart = (double)counts[i] - moments.mean;

		moments.variance += apart * apart / (double)(count - 1);
	}
	return moments;
}

bool fit_is_steady(const uint64_t *counts, size_t count)
{
	struct moments all, first, second;
	double apart, error;
	size_t half, rest;

	if (count < INTERVALS_MIN)
		return false;
	all = measure(counts, count);
	half = count / 2;
	rest = count - half;
	first = measure(counts, half);
	second = measure(counts + half, rest);
	apart = fabs(second.mean - first.mean);
	error = sqrt(first.variance / (double)half + second.variance / (double)rest);
	if (all.mean <= 0 ||
	    all.variance > all.mean + SCATTER_MAX * SCATTER_MAX * all.mean * all.mean)
		return false;
	return apart <= HALVES_APART * all.mean || apart <= STANDARD_ERRORS * error;
}

bool fit_only_queues(const struct fit_point *points, size_t count)
{
	double best = 0;

	if (count < 4)
		return false;
	for (size_t i = 0; i < count - 2; i++)
		best = fmax(best, points[i].throughput);
	for (size_t i = count - 2; i < count; i++)
		if (points[i].throughput > GAIN * best ||
		    points[i].latency_ns <= points[i - 1].latency_ns)
			return false;
	return true;
}

/*
 * The line for a given knee: log throughput − min(log load, log knee) = level − decline × how far the
 * load is beyond it. Returns the sum of squares.
 */
static double fit_line(const struct fit_point *points, size_t count, double knee, struct fit *fit)
{
	double n = 0, w = 0, z = 0, ww = 0, wz = 0, squares = 0, level, decline = 0;

	for (size_t i = 0; i < count; i++) {
		double beyond = fmax(0, log(points[i].load) - knee);
		double height = log(points[i].throughput) - fmin(log(points[i].load), knee);

		n += 1;
		w += beyond;
		z += height;
		ww += beyond * beyond;
		wz += beyond * height;
	}
	if (n * ww - w * w > 1e-12)
		decline = fmax(0, -(n * wz - w * z) / (n * ww - w * w));
	level = (z + decline * w) / n;
	for (size_t i = 0; i < count; i++) {
		double beyond = fmax(0, log(points[i].load) - knee);
		double height = log(points[i].throughput) - fmin(log(points[i].load), knee);
		double apart = height - level + decline * beyond;

		squares += apart * apart;
	}
	*fit = (struct fit){.knee = exp(knee),
			    .plateau = exp(level + knee),
			    .decline = decline,
			    .misfit = sqrt(squares / n)};
	return squares;
}

static size_t count_beyond(const struct fit_point *points, size_t count, double knee)
{
	size_t beyond = 0;

	for (size_t i = 0; i < count; i++)
		beyond += points[i].load > BEYOND * knee;
	return beyond;
}

int fit_plateau(const struct fit_point *points, size_t count, struct fit *ret_fit)
{
	struct fit fit, best = {0};
	double least = INFINITY, first, last;
	unsigned int steps;

	for (size_t i = 0; i < count; i++)
		if (points[i].throughput <= 0 || points[i].load <= 0)
			return -ENODATA;
	if (count < POINTS_MIN)
		return -ENODATA;
	first = log(points[0].load);
	last = log(points[count - 1].load);
	steps = (unsigned int)((last - first) / M_LN2 * KNEES_PER_OCTAVE) + 1;
	for (unsigned int i = 0; i <= steps; i++) {
		double knee = first + (last - first) * i / steps;
		double squares = fit_line(points, count, knee, &fit);

		if (squares < least) {
			least = squares;
			best = fit;
		}
	}
	if (count_beyond(points, count, best.knee) < BEYOND_MIN)
		return -ERANGE;
	*ret_fit = best;
	return 0;
}
