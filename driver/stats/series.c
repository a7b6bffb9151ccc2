// SPDX-License-Identifier: MIT
/* Intervals as lists of used buckets: a histogram is packed and unpacked once a second. */
#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

void series_begin(struct series *series, uint64_t begin_ns, uint64_t interval_ns, bool by_intention)
{
	*series = (struct series){
		.begin_ns = begin_ns, .interval_ns = interval_ns, .by_intention = by_intention};
}

void series_clear(struct series *series)
{
	for (size_t i = 0; i < series->count; i++)
		free(series->list[i].buckets);
	free(series->list);
	series->list = NULL;
	series->count = 0;
}

static uint64_t index_of(const struct series *series, uint64_t at_ns)
{
	return at_ns > series->begin_ns ? (at_ns - series->begin_ns) / series->interval_ns : 0;
}

uint64_t series_end_of(const struct series *series, uint64_t at_ns)
{
	return series->begin_ns + (index_of(series, at_ns) + 1) * series->interval_ns;
}

static void unpack(const struct series_part *part, struct histogram *h)
{
	h->count += part->latency_count;
	h->sum += part->latency_sum;
	if (part->latency_max > h->max)
		h->max = part->latency_max;
	for (size_t i = 0; i < part->bucket_count; i++)
		h->buckets[part->buckets[i].index] += part->buckets[i].count;
}

static int pack(const struct histogram *h, struct series_part *part)
{
	struct series_bucket *buckets;
	size_t count = 0;

	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		count += h->buckets[i] != 0;
	buckets = reallocarray(part->buckets, count ? count : 1, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	part->buckets = buckets;
	part->bucket_count = 0;
	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		if (h->buckets[i])
			buckets[part->bucket_count++] = (struct series_bucket){i, h->buckets[i]};
	part->latency_count = h->count;
	part->latency_sum = h->sum;
	part->latency_max = h->max;
	return 0;
}

static int add_latency(struct series_part *part, const struct histogram *latency)
{
	autofree struct histogram *sum = NULL;

	if (!part->latency_count)
		return pack(latency, part);
	sum = malloc(sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	*sum = *latency;
	unpack(part, sum);
	return pack(sum, part);
}

static int add_part(struct series_part *part, const struct series_part *other)
{
	autofree struct histogram *latency = calloc(1, sizeof(*latency));

	if (!latency)
		return -ENOMEM;
	part->requests += other->requests;
	part->errors += other->errors;
	part->connects += other->connects;
	part->bytes_in += other->bytes_in;
	part->bytes_out += other->bytes_out;
	unpack(other, latency);
	return add_latency(part, latency);
}

/* Double the length of the intervals. */
static int join(struct series *series)
{
	size_t half = series->count / 2 + series->count % 2;
	int err = 0;

	for (size_t i = 0; i < series->count; i++) {
		if (i % 2 == 0 && i)
			series->list[i / 2] = series->list[i];
		if (i % 2 == 0)
			continue;
		if (!err)
			err = add_part(&series->list[i / 2], &series->list[i]);
		free(series->list[i].buckets);
	}
	series->count = half;
	series->interval_ns *= 2;
	return err;
}

/* Make room for the interval of @at_ns; join intervals if there are too many. */
static int reach(struct series *series, uint64_t at_ns, size_t *ret_index)
{
	struct series_part *list;
	size_t count;
	int err = 0;

	while (!err && index_of(series, at_ns) >= RUN_INTERVALS_MAX)
		err = join(series);
	if (err)
		return err;
	*ret_index = (size_t)index_of(series, at_ns);
	count = *ret_index + 1;
	if (count <= series->count)
		return 0;
	list = reallocarray(series->list, count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memset(list + series->count, 0, (count - series->count) * sizeof(*list));
	series->list = list;
	series->count = count;
	return 0;
}

int series_put(struct series *series, uint64_t at_ns, const struct stats *stats)
{
	struct series_part *part;
	size_t index;
	int err = reach(series, at_ns, &index);

	if (err)
		return err;
	part = &series->list[index];
	part->requests += stats->requests;
	part->errors += stats_errors(stats);
	part->connects += stats->connects;
	part->bytes_in += stats->bytes_in;
	part->bytes_out += stats->bytes_out;
	return add_latency(part, series->by_intention ? &stats->response_time : &stats->round_trip);
}

/* Make @series as coarse as @other, so that its intervals contain those of @other. */
int series_add(struct series *series, const struct series *other)
{
	size_t index;
	int err = 0;

	if (!series->interval_ns)
		series_begin(series, other->begin_ns, other->interval_ns, other->by_intention);
	while (!err && series->interval_ns < other->interval_ns)
		err = join(series);
	for (size_t i = 0; i < other->count && !err; i++) {
		err = reach(series, other->begin_ns + i * other->interval_ns, &index);
		if (!err)
			err = add_part(&series->list[index], &other->list[i]);
	}
	return err;
}

/* Return the length of the last interval of a phase of @length_ns. */
static uint64_t last_length(const struct series *series, uint64_t length_ns)
{
	uint64_t before_ns = (series->count - 1) * series->interval_ns;

	if (length_ns <= before_ns || length_ns - before_ns > series->interval_ns)
		return series->interval_ns;
	return length_ns - before_ns;
}

int series_fill(struct series *series, uint64_t end_ns, struct run_driver *driver)
{
	size_t index;
	int err;

	/* The phase may end before a thread has begun it: there is no interval then. */
	if (end_ns <= series->begin_ns || !series->interval_ns)
		return 0;
	err = reach(series, end_ns - 1, &index);
	if (err)
		return err;
	driver->intervals = calloc(series->count, sizeof(*driver->intervals));
	if (!driver->intervals)
		return -ENOMEM;
	driver->interval_ns = series->interval_ns;
	driver->interval_count = series->count;
	for (size_t i = 0; i < series->count; i++) {
		const struct series_part *part = &series->list[i];
		struct run_interval *interval = &driver->intervals[i];

		interval->begin_ns = i * series->interval_ns;
		interval->duration_ns = series->interval_ns;
		interval->requests = part->requests;
		interval->errors = part->errors;
		interval->connects = part->connects;
		interval->bytes_in = part->bytes_in;
		interval->bytes_out = part->bytes_out;
		unpack(part, &interval->latency);
	}
	driver->intervals[series->count - 1].duration_ns =
		last_length(series, end_ns - series->begin_ns);
	driver->drift = run_drift(driver);
	return 0;
}
