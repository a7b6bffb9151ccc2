// SPDX-License-Identifier: MIT
/* How what a crew's workers counted is added up. */
#include "crew.h"

uint32_t crew_worker_samples(const struct options *options)
{
	uint32_t workers = options->threads * options->processes;

	return (options->samples + workers - 1) / workers;
}

static int add_samples(struct sampler *sum, const struct sampler *other)
{
	int err = 0;

	if (!other->capacity)
		return 0;
	if (!sum->capacity)
		err = sampler_open(sum, other->capacity);
	if (!err)
		err = sampler_reserve(sum, sum->count + other->count);
	if (!err)
		sampler_merge(sum, other);
	return err;
}

int crew_result_add(struct crew_result *result, const struct stats *stats,
		    const struct series *series, const struct sampler *samples)
{
	int err = series_add(&result->series, series);

	stats_add(&result->stats, stats);
	return err ? err : add_samples(&result->samples, samples);
}

void crew_result_clear(struct crew_result *result)
{
	series_clear(&result->series);
	sampler_close(&result->samples);
	*result = (struct crew_result){0};
}
