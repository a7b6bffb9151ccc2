// SPDX-License-Identifier: MIT
/* Steadiness, outliers, and two straight lines through log throughput over log load: see fit.h. */
#include "fit.h"

#include <math.h>
#include <stdio.h>

#include "sojourn/text.h"
#include "sojourn/units.h"

#define INTERVALS_MIN	 6
#define HALVES_APART	 0.05
#define STANDARD_ERRORS	 2.0
#define SCATTER_MAX	 0.25
#define GAIN		 1.03
#define BEYOND		 1.05 /* times the knee's load: beyond the knee */
#define KNEES_PER_OCTAVE 200  /* candidates tried: the knee is found to 0.2 % */

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

static double highest_but(const struct fit_point *points, size_t count, size_t but)
{
	double highest = 0;

	for (size_t i = 0; i < count; i++)
		if (i != but)
			highest = fmax(highest, points[i].throughput);
	return highest;
}

static double growth_at(const struct fit_point *points, size_t at)
{
	return points[at].throughput / highest_but(points, at, at) - 1;
}

bool fit_only_queues(const struct fit_point *points, size_t count)
{
	double best;

	if (count < 4)
		return false;
	best = highest_but(points, count - 2, count);
	for (size_t i = count - 2; i < count; i++)
		if (points[i].throughput > GAIN * best ||
		    points[i].latency_ns <= points[i - 1].latency_ns)
			return false;
	return true;
}

/*
 * Fit the line for a given knee: log throughput − min(log load, log knee) = level − decline × how
 * far the load is beyond it. Return the sum of squares.
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

/* Return the straight line through two steps, in logarithms, at @load. */
static double line_through(const struct fit_point *a, const struct fit_point *b, double load)
{
	double slope = log(b->throughput / a->throughput) / log(b->load / a->load);

	return log(a->throughput) + slope * log(load / a->load);
}

/* Return the logarithmic distance of a step from the others; 0: it is plausible. */
static double distance_of(const struct fit_point *points, size_t count, size_t i)
{
	const struct fit_point *point = &points[i], *before = point - 1, *after = point + 1;
	double height = log(point->throughput);

	/* Throughput grows no faster than the load. */
	if (i == 0)
		return fmax(0, log(after->throughput / after->load) - height + log(point->load));
	if (i == count - 1)
		return fmax(0, log(before->throughput) - height);
	return fmax(line_through(before, after, point->load) - height,
		    height - log(highest_but(points, count, i)));
}

size_t fit_find_outlier(const struct fit_point *points, const bool *settled, size_t count)
{
	double worst = log1p(FIT_OFF_MAX);
	size_t found = count;

	for (size_t i = 0; count >= FIT_POINTS_MIN && i < count; i++) {
		double distance = settled[i] ? 0 : distance_of(points, count, i);

		if (distance <= worst)
			continue;
		worst = distance;
		found = i;
	}
	return found;
}

static struct fit best_line(const struct fit_point *points, size_t count)
{
	double first = log(points[0].load), last = log(points[count - 1].load);
	unsigned int steps = (unsigned int)((last - first) / M_LN2 * KNEES_PER_OCTAVE) + 1;
	struct fit fit, best = {0};
	double least = INFINITY;

	for (unsigned int i = 0; i <= steps; i++) {
		double knee = first + (last - first) * i / steps;
		double squares = fit_line(points, count, knee, &fit);

		if (squares < least) {
			least = squares;
			best = fit;
		}
	}
	return best;
}

static bool has_collapsed(const struct fit_point *points, size_t count, struct fit *fit)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++) {
		if (points[i].throughput > points[best].throughput)
			best = i;
		if (points[i].throughput >= FIT_COLLAPSE * points[best].throughput)
			continue;
		fit->best = best;
		fit->fallen = i;
		return true;
	}
	return false;
}

static enum fit_verdict judge(const struct fit_point *points, size_t count, const struct fit *fit)
{
	bool grew = fit->growth > GAIN - 1;
	bool ends = count_beyond(points, count, fit->knee) >= FIT_BEYOND_MIN;

	/* Growth in each of two steps is no chance, whatever the line says. */
	if (grew && growth_at(points, count - 2) > GAIN - 1)
		return FIT_GREW;
	if (ends && fit->misfit <= FIT_OFF_MAX)
		return FIT_FOUND;
	if (grew)
		return FIT_GREW;
	if (fit->misfit > FIT_OFF_MAX)
		return FIT_OFF;
	return points[count - 1].load < 2 * points[0].load ? FIT_TOO_CLOSE : FIT_NO_END;
}

enum fit_verdict fit_plateau(const struct fit_point *points, size_t count, struct fit *ret_fit)
{
	struct fit fit = {0};

	if (count < FIT_POINTS_MIN)
		return FIT_TOO_FEW;
	if (has_collapsed(points, count, &fit)) {
		*ret_fit = fit;
		return FIT_COLLAPSED;
	}
	fit = best_line(points, count);
	fit.growth = growth_at(points, count - 1);
	*ret_fit = fit;
	return judge(points, count, &fit);
}

/* ---- the verdict, as a sentence for people ---- */

/* Rates below 10 keep decimals. */
static const char *number(double value, char text[static UNITS_TEXT])
{
	if (value < 10)
		snprintf(text, UNITS_TEXT, "%.3g", value);
	else
		units_format_count((uint64_t)(value + 0.5), text, UNITS_TEXT);
	return text;
}

static char *explain_collapse(const struct fit_point *best, const struct fit_point *fallen,
			      const char *unit)
{
	return text_format("throughput fell by more than %.0f %%: %s/s at %s %s, %s/s at %s",
			   100 - 100 * FIT_COLLAPSE, number(best->throughput, UNITS_ROOM),
			   number(best->load, UNITS_ROOM), unit,
			   number(fallen->throughput, UNITS_ROOM),
			   number(fallen->load, UNITS_ROOM));
}

static char *explain_close(const struct fit_point *first, const struct fit_point *last,
			   const char *unit)
{
	return text_format("the loads are too close together, from %s to %s %s: spread them with "
			   "--ladder",
			   number(first->load, UNITS_ROOM), number(last->load, UNITS_ROOM), unit);
}

char *fit_explain(enum fit_verdict verdict, const struct fit *fit, const struct fit_point *points,
		  size_t count, const char *unit)
{
	switch (verdict) {
	case FIT_FOUND:
		return NULL;
	case FIT_TOO_FEW:
		return text_format("fewer than %u steps had good responses", FIT_POINTS_MIN);
	case FIT_COLLAPSED:
		return explain_collapse(&points[fit->best], &points[fit->fallen], unit);
	case FIT_GREW:
		return text_format("throughput still grew at the last step, by %.0f %%: go further "
				   "with --ladder",
				   100 * fit->growth);
	case FIT_OFF:
		return text_format(
			"the steps are %.0f %% off the best line through them, more than "
			"%.0f %%: longer ones (--duration) may scatter less",
			100 * fit->misfit, 100 * FIT_OFF_MAX);
	case FIT_TOO_CLOSE:
		return explain_close(&points[0], &points[count - 1], unit);
	case FIT_NO_END:
		return text_format(
			"fewer than %u steps lie beyond the knee: go further, or in smaller "
			"steps, with --ladder",
			FIT_BEYOND_MIN);
	}
	return NULL;
}
