// SPDX-License-Identifier: MIT
/* Sampled exchanges in memory: collecting, thinning, subtracting. JSON: json/samples.c. */
#include "samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct run_samples *run_samples_new(void)
{
	struct run_samples *samples = calloc(1, sizeof(*samples));

	if (samples)
		samples->threshold = RUN_SAMPLE_ALL;
	return samples;
}

void run_samples_free(struct run_samples *samples)
{
	if (!samples)
		return;
	free(samples->samples);
	free(samples);
}

int run_samples_reserve(struct run_samples *samples, size_t capacity)
{
	void *grown;

	if (capacity <= samples->capacity)
		return 0;
	grown = reallocarray(samples->samples, capacity, sizeof(*samples->samples));
	if (!grown)
		return -ENOMEM;
	samples->samples = grown;
	samples->capacity = capacity;
	return 0;
}

struct run_sample *run_add_sample(struct run_samples *samples)
{
	struct run_sample *sample;

	if (samples->count == samples->capacity &&
	    run_samples_reserve(samples, samples->capacity ? 2 * samples->capacity : 64))
		return NULL;
	sample = &samples->samples[samples->count++];
	memset(sample, 0, sizeof(*sample));
	return sample;
}

static uint32_t sample_hash(const struct run_sample *sample)
{
	return exchange_hash(flow_hash(&sample->flow), sample->index);
}

void run_samples_lower(struct run_samples *samples, uint64_t threshold)
{
	size_t kept = 0;

	if (threshold >= samples->threshold)
		return;
	samples->threshold = threshold;
	for (size_t i = 0; i < samples->count; i++)
		if (sample_hash(&samples->samples[i]) < threshold)
			samples->samples[kept++] = samples->samples[i];
	samples->count = kept;
}

int run_samples_add(struct run_samples *samples, const struct run_samples *other)
{
	run_samples_lower(samples, other->threshold);
	samples->lost += other->lost;
	samples->inconsistent += other->inconsistent;
	for (size_t i = 0; i < other->count; i++) {
		struct run_sample *sample;

		if (sample_hash(&other->samples[i]) >= samples->threshold)
			continue;
		sample = run_add_sample(samples);
		if (!sample)
			return -ENOMEM;
		*sample = other->samples[i];
	}
	return 0;
}

int run_sample_compare(const void *a, const void *b)
{
	const struct run_sample *x = a, *y = b;
	int flows = memcmp(&x->flow, &y->flow, sizeof(x->flow));

	return flows ? flows : (x->index > y->index) - (x->index < y->index);
}

/* A source port used again gives later exchanges the key of earlier ones: compare times too. */
static int compare_exchanges(const void *a, const void *b)
{
	const struct run_sample *x = a, *y = b;
	int keys = run_sample_compare(x, y);

	if (keys)
		return keys;
	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? 1 : -1;
	return (x->arrival_ns > y->arrival_ns) - (x->arrival_ns < y->arrival_ns);
}

void run_samples_subtract(struct run_samples *samples, const struct run_samples *earlier)
{
	autofree struct run_sample *sorted = NULL;
	size_t kept = 0;

	samples->lost -= samples->lost < earlier->lost ? samples->lost : earlier->lost;
	samples->inconsistent -= samples->inconsistent < earlier->inconsistent
					 ? samples->inconsistent
					 : earlier->inconsistent;
	if (!earlier->count)
		return;
	sorted = calloc(earlier->count, sizeof(*sorted));
	if (!sorted)
		return;
	memcpy(sorted, earlier->samples, earlier->count * sizeof(*sorted));
	qsort(sorted, earlier->count, sizeof(*sorted), compare_exchanges);
	for (size_t i = 0; i < samples->count; i++)
		if (!bsearch(&samples->samples[i], sorted, earlier->count, sizeof(*sorted),
			     compare_exchanges))
			samples->samples[kept++] = samples->samples[i];
	samples->count = kept;
}
