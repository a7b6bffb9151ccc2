/* SPDX-License-Identifier: MIT */
/*
 * Counts of values (ns) in the project's one bucket layout (wire/buckets.h): recording costs a few
 * instructions, adding and subtracting are exact, percentiles err by at most 1.6 %.
 * Not thread safe: one histogram per thread, added up afterwards.
 */
#ifndef SOJOURN_HISTOGRAM_H
#define SOJOURN_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "wire/buckets.h"

struct histogram {
	uint64_t count;
	uint64_t sum; /* exact, not from bucket centres */
	uint64_t max; /* exact where known; see histogram_subtract() */
	uint64_t buckets[BUCKET_COUNT];
};

static inline void histogram_record(struct histogram *h, uint64_t value)
{
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->buckets[bucket_index(value)]++;
}

/* Adds every count of @other: the result is what one histogram would have recorded of both. */
void histogram_add(struct histogram *h, const struct histogram *other);

/*
 * Removes every count of @earlier, an earlier reading of the same histogram. The maximum of the
 * remaining values is only known to their highest bucket: it becomes that bucket's upper edge, or
 * the old maximum if that is lower. Values may have grown since, as a response that goes on: they
 * are taken out where they are now, or nearly so, and what they grew by stays in the sum.
 */
void histogram_subtract(struct histogram *h, const struct histogram *earlier);

/* Mean, 0 if empty. */
double histogram_mean(const struct histogram *h);

/*
 * Standard deviation, 0 if empty: each value taken as its bucket's centre, which errs by less than 0.8 %
 * of the largest values; 0 where all lie in one bucket.
 */
double histogram_stddev(const struct histogram *h);

/*
 * The value below or at which a share @quantile (0 … 1) of the values lies: the upper edge of the
 * bucket that holds the ceil(quantile × count)-th smallest value (nearest rank), but never above
 * max. 0 if empty.
 */
uint64_t histogram_quantile(const struct histogram *h, double quantile);

/* How many values there are above the step before, up to and with this bound. */
struct histogram_step {
	uint64_t up_to;
	uint64_t count;
};

/*
 * The distribution in at most @most (2 or more) steps: of one factor each from p1, with what is below, to
 * p99, and one to the maximum for what is above. Returns how many there are, of values that are not all the
 * same.
 */
size_t histogram_steps(const struct histogram *h, size_t most, struct histogram_step *ret_steps);

#endif
