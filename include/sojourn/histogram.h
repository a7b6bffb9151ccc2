/* SPDX-License-Identifier: MIT */
/*
 * Counts of values (ns) in the project's bucket layout (wire/buckets.h). Recording costs a few
 * instructions, adding and subtracting are exact, percentiles err by at most 1.6 %. Not thread
 * safe: use one histogram per thread and add them.
 */
#ifndef SOJOURN_HISTOGRAM_H
#define SOJOURN_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "wire/buckets.h"

struct histogram {
	uint64_t count;
	uint64_t sum; /* exact, not from bucket centres */
	uint64_t max; /* exact if known; see histogram_subtract() */
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

/* Add every count of @other: the result is that of recording both in one histogram. */
void histogram_add(struct histogram *h, const struct histogram *other);

/*
 * Remove every count of @earlier, an earlier reading of the same histogram. The maximum of the rest
 * becomes the upper edge of its highest bucket, or the old maximum if that is lower. A value of
 * @earlier may have grown since, like a response in progress. It is removed from a bucket near its
 * new value, and its growth stays in the sum.
 */
void histogram_subtract(struct histogram *h, const struct histogram *earlier);

/* Return the mean; 0 if empty. */
double histogram_mean(const struct histogram *h);

/*
 * Return the standard deviation; 0 if empty. Values count as their bucket's centre, which errs by
 * less than 0.8 % of the largest values; 0 if all are in one bucket.
 */
double histogram_stddev(const struct histogram *h);

/*
 * Return the value at or below which the share @quantile (0 … 1) lies. This is the upper edge of
 * the bucket with the ceil(quantile × count)-th smallest value (nearest rank), at most max. 0 if
 * empty.
 */
uint64_t histogram_quantile(const struct histogram *h, double quantile);

/* The count of values above the previous step's bound, up to and including this bound. */
struct histogram_step {
	uint64_t up_to;
	uint64_t count;
};

/*
 * Divide the distribution into at most @most (2 or more) steps. Each covers the same factor, from
 * p1, including all below, to p99; a last one covers the rest. Return their number; 0 if all values
 * are 0, or there are none.
 */
size_t histogram_steps(const struct histogram *h, size_t most, struct histogram_step *ret_steps);

#endif
