// SPDX-License-Identifier: MIT
/* Chooses the exchanges kept for joining; see sample.h. */
#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sampler_open(struct sampler *sampler, uint32_t capacity)
{
	*sampler = (struct sampler){0};
	if (!capacity)
		return 0;
	sampler->list = calloc(capacity, sizeof(*sampler->list));
	if (!sampler->list)
		return -ENOMEM;
	sampler->capacity = capacity;
	sampler->threshold = RUN_SAMPLE_ALL;
	return 0;
}

void sampler_close(struct sampler *sampler)
{
	free(sampler->list);
	*sampler = (struct sampler){0};
}

int sampler_reserve(struct sampler *sampler, uint32_t capacity)
{
	struct sample *list;

	if (capacity <= sampler->capacity)
		return 0;
	list = reallocarray(sampler->list, capacity, sizeof(*list));
	if (!list)
		return -ENOMEM;
	sampler->list = list;
	sampler->capacity = capacity;
	return 0;
}

void sampler_reset(struct sampler *sampler)
{
	sampler->count = 0;
	sampler->threshold = sampler->capacity ? RUN_SAMPLE_ALL : 0;
}

static void lower_threshold(struct sampler *sampler, uint64_t threshold)
{
	uint32_t kept = 0;

	if (threshold >= sampler->threshold)
		return;
	sampler->threshold = threshold;
	for (uint32_t i = 0; i < sampler->count; i++)
		if (sampler->list[i].hash < threshold)
			sampler->list[kept++] = sampler->list[i];
	sampler->count = kept;
}

/* Keep @sample if it is drawn. The loop ends by threshold 0, which keeps nothing. */
void sampler_add(struct sampler *sampler, const struct sample *sample)
{
	while (sampler->count == sampler->capacity && sampler->threshold)
		lower_threshold(sampler, sampler->threshold / 2);
	if (sampler_wants(sampler, sample->hash))
		sampler->list[sampler->count++] = *sample;
}

void sampler_merge(struct sampler *sum, const struct sampler *other)
{
	lower_threshold(sum, other->threshold);
	for (uint32_t i = 0; i < other->count; i++)
		if (sampler_wants(sum, other->list[i].hash))
			sampler_add(sum, &other->list[i]);
}

static void fill(const struct sample *sample, bool rated, bool stepped,
		 struct run_sample *ret_sample)
{
	*ret_sample = (struct run_sample){
		.flow = sample->flow,
		.index = sample->index,
		.known = RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP | RUN_SAMPLE_BYTES_IN |
			 RUN_SAMPLE_BYTES_OUT,
		.bytes_in = sample->bytes_out, /* the request's, as the server sees it */
		.bytes_out = sample->bytes_in,
		.start_ns = sample->start_ns,
		.round_trip_ns = sample->round_trip_ns,
	};
	if (stepped) {
		ret_sample->known |= RUN_SAMPLE_STEP;
		ret_sample->step = sample->step;
	}
	if (!rated)
		return;
	ret_sample->known |= RUN_SAMPLE_RESPONSE;
	ret_sample->response_ns = sample->wait_ns + sample->round_trip_ns;
}

#define SAMPLES_AT_ONCE 1024

/* Free the memory after the last sample. If that fails, the list stays as long. */
static void shorten(struct sampler *sampler)
{
	struct sample *list;

	if (!sampler->count) {
		sampler_close(sampler);
		return;
	}
	list = reallocarray(sampler->list, sampler->count, sizeof(*list));
	if (!list)
		return;
	sampler->list = list;
	sampler->capacity = sampler->count;
}

struct run_samples *sampler_result(struct sampler *sampler, bool rated, bool stepped)
{
	autosamples struct run_samples *samples = run_samples_new();

	if (!samples || run_samples_reserve(samples, sampler->count))
		return NULL;
	samples->threshold = sampler->threshold;
	/* Start at the end: the list shrinks as the result grows. Both are never held in full. */
	while (sampler->count) {
		struct run_sample *sample = run_add_sample(samples);

		if (!sample)
			return NULL;
		fill(&sampler->list[--sampler->count], rated, stepped, sample);
		if (sampler->count % SAMPLES_AT_ONCE == 0)
			shorten(sampler);
	}
	return TAKE_PTR(samples);
}
