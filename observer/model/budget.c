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
 * Readings in memory: that at the begin, those of the latest second and of the latest ten, the
 * printed one, and the current one.
 */
#define READINGS       5
#define DOCUMENT_BYTES (100U << 10)
/* Memory of a sample: in two periods, whose arrays grow by doubling, and in a document. */
#define SAMPLE_BYTES (2 * 2 * sizeof(struct run_sample) + 1200)

/* Samples, the past, and phases: an eighth each. Of phases half is for their series. */
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

/* Of a histogram without values only the page of its other members is ever written. */
#define UNWRITTEN (sizeof(struct histogram) - 4096)
/* service_4xx, service_5xx and gRPC's: of failed requests. */
#define FAILED_HISTOGRAMS 3

/*
 * Return the memory of a service in a reading. Histograms of options that are not given are never
 * written, and their pages never allocated (main.c).
 */
static uint64_t reading_bytes(const struct observer_config *config)
{
	size_t unwritten = 0;

	if (!config->cpu)
		unwritten += RUN_CPU_COUNT;
	if (!config->transmit_below)
		unwritten += STAGE_COUNT - STAGE_TRANSMIT_QUEUE;
	if (!config->http)
		unwritten += FAILED_HISTOGRAMS;
	return sizeof(struct run_service) - unwritten * UNWRITTEN +
	       (config->route_rows + config->command_rows) * sizeof(struct run_route);
}

static int all_needs(const struct observer_config *config, struct loader_needs *ret_needs)
{
	int r = loader_map_needs(config, ret_needs);

	ret_needs->fixed_bytes += OWN_BYTES;
	ret_needs->service_bytes += READINGS * reading_bytes(config) + DOCUMENT_BYTES;
	return r;
}

static uint32_t services_within(uint64_t bytes, const struct loader_needs *needs, uint32_t copies)
{
	uint64_t left = bytes > needs->fixed_bytes ? bytes - needs->fixed_bytes : 0;
	uint64_t services = left / (needs->service_bytes + copies * needs->copy_bytes);

	return services < SERVICES_MAX ? (uint32_t)services : SERVICES_MAX;
}

/* Return the greatest power of two below @copies. */
static uint32_t fewer(uint32_t copies)
{
	uint32_t power = 1;

	while (2 * power < copies)
		power *= 2;
	return power;
}

int budget_divide(uint64_t bytes, const struct observer_config *config, uint32_t wanted,
		  struct budget *ret_budget)
{
	uint64_t share = bytes / SHARE, left = bytes - SHARES * share, samples;
	struct loader_needs needs = {};
	int r = all_needs(config, &needs);
	uint32_t copies = needs.cpus;

	if (r < 0)
		return r;
	while (copies > needs.copies_least && services_within(left, &needs, copies) < wanted)
		copies = fewer(copies);
	samples = share / SAMPLE_BYTES;
	*ret_budget = (struct budget){
		.bytes = bytes,
		.services = services_within(left, &needs, copies),
		.copies = copies,
		.shared = copies < needs.cpus,
		.samples = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX,
		.past_bytes = share,
		.phase_bytes = share / 2 < SNAPSHOT_PHASE_BYTES ? share / 2 : SNAPSHOT_PHASE_BYTES,
		.phase_series_bytes = share / 2,
	};
	return 0;
}

int budget_least(const struct observer_config *config, uint32_t services, uint64_t *ret_bytes)
{
	struct loader_needs needs = {};
	int r = all_needs(config, &needs);
	uint64_t service = needs.service_bytes + needs.copies_least * needs.copy_bytes;

	if (r < 0)
		return r;
	*ret_bytes = (needs.fixed_bytes + services * service) * SHARE / (SHARE - SHARES) + SHARE;
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
