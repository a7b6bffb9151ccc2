// SPDX-License-Identifier: MIT
/* Sizes of the data that are kept of services; see budget.h. tests/bench/memory.py measures it. */
#include "budget.h"

#include "host/memory.h"
#include "kernel/loader.h"
#include "sojourn/run.h"
#include "snapshot.h"

#define MIB	      (1ULL << 20)
#define DEFAULT_LEAST (256 * MIB)
#define DEFAULT_MOST  (2048 * MIB)

/* The program, its libraries and what loading takes, without any service. */
#define OWN_BYTES (40 * MIB)
/*
 * Readings in memory: that at the begin, that of the latest point, the current one, and as much
 * again as a document.
 */
#define READINGS       4
#define DOCUMENT_BYTES (100U << 10)
/* Memory of a sample: in two periods, whose arrays grow by doubling, and in a document. */
#define SAMPLE_BYTES (2 * 2 * sizeof(struct run_sample) + 1200)

/* Samples, the past, and phases: an eighth each. */
#define SHARE  8
#define SHARES 3

uint64_t budget_default(void)
{
	uint64_t limit = memory_limit(), share = memory_of_host() / 16;

	if (limit)
		return limit / 2;
	if (share < DEFAULT_LEAST)
		return DEFAULT_LEAST;
	return share < DEFAULT_MOST ? share : DEFAULT_MOST;
}

static int needs(const struct observer_config *config, uint64_t *ret_fixed, uint64_t *ret_service)
{
	int r = loader_map_needs(config, ret_fixed, ret_service);

	*ret_fixed += OWN_BYTES;
	*ret_service += READINGS * sizeof(struct run_service) + DOCUMENT_BYTES;
	return r;
}

int budget_divide(uint64_t bytes, const struct observer_config *config, struct budget *ret_budget)
{
	uint64_t share = bytes / SHARE, left = bytes - SHARES * share, services, samples;
	uint64_t fixed = 0, service = 0;
	int r = needs(config, &fixed, &service);

	if (r < 0)
		return r;
	services = left > fixed ? (left - fixed) / service : 0;
	samples = share / SAMPLE_BYTES;
	*ret_budget = (struct budget){
		.bytes = bytes,
		.services = services < SERVICES_MAX ? (uint32_t)services : SERVICES_MAX,
		.samples = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX,
		.series_bytes = share,
		.phase_bytes = share < SNAPSHOT_PHASE_BYTES ? share : SNAPSHOT_PHASE_BYTES,
	};
	return 0;
}

int budget_least(const struct observer_config *config, uint32_t services, uint64_t *ret_bytes)
{
	uint64_t fixed = 0, service = 0;
	int r = needs(config, &fixed, &service);

	if (r < 0)
		return r;
	*ret_bytes = (fixed + services * service) * SHARE / (SHARE - SHARES) + SHARE;
	return 0;
}

bool budget_lacks(const struct observer_config *config, uint64_t bytes)
{
	struct observer_config bare = *config;
	uint64_t least;

	bare.cpu = bare.http = false;
	bare.transmit_below = 0;
	return !budget_least(&bare, 1, &least) && bytes < least;
}
