/* SPDX-License-Identifier: MIT */
/*
 * The exchanges that one worker keeps for joining with the observer's. The hash alone chooses them,
 * so that both sides choose the same (wire/flow.h). Memory is bounded: when full, the threshold is
 * halved and samples above it are dropped.
 */
#ifndef DRIVER_STATS_SAMPLE_H
#define DRIVER_STATS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/run.h"
#include "wire/flow.h"

struct sample {
	struct flow flow;
	uint32_t index; /* of the request on its connection, from 0 */
	uint32_t hash;
	uint32_t step;	   /* of a scenario */
	uint64_t start_ns; /* request handed to the kernel */
	uint64_t round_trip_ns;
	uint64_t wait_ns; /* under a rate: due → start */
	uint64_t bytes_in;
	uint64_t bytes_out;
};

struct sampler {
	struct sample *list;
	uint32_t count;
	uint32_t capacity;
	uint64_t threshold; /* 0 … RUN_SAMPLE_ALL */
};

/* Keep up to @capacity samples; 0: none. -ENOMEM. */
int sampler_open(struct sampler *sampler, uint32_t capacity);
void sampler_close(struct sampler *sampler);

/* Return whether to give an exchange of this hash to sampler_add(): one compare. */
static inline bool sampler_wants(const struct sampler *sampler, uint32_t hash)
{
	return hash < sampler->threshold;
}

/* Add a wanted sample, unless making room drops it. */
void sampler_add(struct sampler *sampler, const struct sample *sample);

/* Make room for at least @capacity. -ENOMEM. */
int sampler_reserve(struct sampler *sampler, uint32_t capacity);

/* Empty the sampler. */
void sampler_reset(struct sampler *sampler);

/* Add @other's samples, with the lower of both thresholds. */
void sampler_merge(struct sampler *sum, const struct sampler *other);

/*
 * Convert the samples for the run document, and empty @sampler. @rated: wait_ns is valid; @stepped:
 * step is. Return NULL without memory.
 */
struct run_samples *sampler_result(struct sampler *sampler, bool rated, bool stepped);

#endif
