// SPDX-License-Identifier: MIT
/* Median and its bounds; see spread.h. */
#include "spread.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void rounds_add(struct rounds *rounds, double value)
{
	if (rounds->count < SPREAD_ROUNDS)
		rounds->values[rounds->count++] = value;
}

double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/*
 * Take the bounds by rank, which is valid for any distribution: each value is below the true median
 * as likely as a coin shows heads.
 */
struct spread spread_of(struct rounds *rounds)
{
	size_t count = rounds->count;
	struct spread spread = {.rounds = count};
	double rank;

	if (count < SPREAD_LEAST)
		return spread;
	rank = floor((double)count / 2 - 0.98 * sqrt((double)count));
	spread.median = median_of(rounds->values, count);
	spread.low = rounds->values[rank > 0 ? (size_t)rank : 0];
	spread.high = rounds->values[count - 1 - (rank > 0 ? (size_t)rank : 0)];
	return spread;
}
