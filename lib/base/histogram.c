// SPDX-License-Identifier: MIT
/* Arithmetic on histograms; wire/buckets.h has the bucket layout. */
#include "sojourn/histogram.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

void histogram_add(struct histogram *h, const struct histogram *other)
{
	h->count += other->count;
	h->sum += other->sum;
	if (other->max > h->max)
		h->max = other->max;
	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		h->buckets[i] += other->buckets[i];
}

/* Return the upper edge of the highest used bucket, or 0. The last bucket has no upper edge. */
static uint64_t highest_edge(const struct histogram *h)
{
	for (unsigned int i = BUCKET_COUNT; i-- > 0;)
		if (h->buckets[i])
			return i == BUCKET_COUNT - 1 ? UINT64_MAX : bucket_upper(i);
	return 0;
}

static uint64_t since(uint64_t now, uint64_t earlier)
{
	return now > earlier ? now - earlier : 0;
}

/* A value that left its bucket moved up: subtract it from the next higher used one. */
static void subtract_buckets(struct histogram *h, const struct histogram *earlier)
{
	uint64_t moved = 0;

	for (unsigned int i = 0; i < BUCKET_COUNT; i++) {
		uint64_t gone = earlier->buckets[i] + moved;

		if (!gone)
			continue;
		moved = since(gone, h->buckets[i]);
		h->buckets[i] = since(h->buckets[i], gone);
	}
}

void histogram_subtract(struct histogram *h, const struct histogram *earlier)
{
	uint64_t edge;

	/* Most histograms of a reading are empty. Their memory was never written, and costs nothing. */
	if (!h->count && !h->sum && !h->max)
		return;
	h->count = since(h->count, earlier->count);
	h->sum = since(h->sum, earlier->sum);
	subtract_buckets(h, earlier);

	/* A maximum set since then is in the highest bucket, and stays exact. */
	if (h->buckets[bucket_index(h->max)])
		return;
	edge = highest_edge(h);
	if (edge < h->max)
		h->max = edge;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

/* The last bucket has no upper edge: use the maximum. */
static double centre_of(const struct histogram *h, unsigned int i)
{
	double lower = (double)bucket_lower(i);

	return i == BUCKET_COUNT - 1 ? (lower + (double)h->max) / 2
				     : (lower + (double)bucket_upper(i)) / 2;
}

double histogram_stddev(const struct histogram *h)
{
	double mean = 0, squares = 0;

	if (!h->count)
		return 0;
	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		if (h->buckets[i])
			mean += (double)h->buckets[i] / (double)h->count * centre_of(h, i);
	for (unsigned int i = 0; i < BUCKET_COUNT; i++) {
		double distance;

		if (!h->buckets[i])
			continue;
		distance = centre_of(h, i) - mean;
		squares += (double)h->buckets[i] / (double)h->count * distance * distance;
	}
	return sqrt(squares);
}

/* Return the nearest rank, 1 … count. The product may round above the integer it equals. */
static uint64_t rank_of(const struct histogram *h, double quantile)
{
	double product = quantile * (double)h->count;
	double rank = ceil(product - product * 4 * DBL_EPSILON);

	if (!(rank > 1))
		return 1;
	return rank >= (double)h->count ? h->count : (uint64_t)rank;
}

uint64_t histogram_quantile(const struct histogram *h, double quantile)
{
	uint64_t rank = rank_of(h, quantile), seen = 0;

	if (!h->count)
		return 0;
	for (unsigned int i = 0; i < BUCKET_COUNT - 1; i++) {
		seen += h->buckets[i];
		if (seen >= rank)
			return bucket_upper(i) < h->max ? bucket_upper(i) : h->max;
	}
	/* The last bucket also counts values beyond the layout. */
	return h->max;
}

/* ---- steps ---- */

/* Count the values in buckets up to that of @bound. */
static uint64_t count_up_to(const struct histogram *h, uint64_t bound)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i <= bucket_index(bound); i++)
		count += h->buckets[i];
	return count;
}

/* Steps narrower than a bucket would be partly empty. */
static size_t steps_between(uint64_t from, uint64_t to, size_t most)
{
	uint32_t buckets = bucket_index(to) - bucket_index(from) + 1;

	return buckets < most ? buckets : most;
}

size_t histogram_steps(const struct histogram *h, size_t most, struct histogram_step *ret_steps)
{
	uint64_t first = histogram_quantile(h, 0.01), from = first ? first : 1;
	uint64_t to = histogram_quantile(h, 0.99), before = 0;
	bool above = h->max > to;
	size_t count = steps_between(from, to, above ? most - 1 : most);

	for (size_t i = 0; i < count; i++) {
		double part = (double)(i + 1) / (double)count;
		uint64_t bound =
			i + 1 < count
				? (uint64_t)((double)from * pow((double)to / (double)from, part))
				: to;

		ret_steps[i] = (struct histogram_step){bound, count_up_to(h, bound) - before};
		before += ret_steps[i].count;
	}
	if (above)
		ret_steps[count++] = (struct histogram_step){h->max, h->count - before};
	return count;
}
