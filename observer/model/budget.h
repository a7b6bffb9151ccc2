/* SPDX-License-Identifier: MIT */
/*
 * How the observer divides its memory between slots of services, sampled exchanges, and the past. Everything beyond
 * the budget is reported, and takes no memory.
 */
#ifndef OBSERVER_MODEL_BUDGET_H
#define OBSERVER_MODEL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/config.h"

struct budget {
	uint64_t bytes;
	uint32_t services;   /* maximum with slots; 0: too little for one */
	uint32_t copies;     /* of each slot (bpf/copies.h) */
	bool shared;	     /* fewer than CPUs */
	uint32_t samples;    /* maximum in a period; all periods may have twice as many */
	uint64_t past_bytes; /* for the past of services: see budget_past() */
	/* For all phases together: the readings at their begins, and their series. */
	uint64_t phase_bytes, phase_series_bytes;
};

/* The bytes of the past: the history of /v1/past, and the series of the whole observation's document. */
struct budget_past {
	uint64_t history_bytes, series_bytes;
};

/* Divide @bytes. The history takes half, up to @most; without a @history the series take all. */
static inline struct budget_past budget_past(uint64_t bytes, bool history, uint64_t most)
{
	uint64_t half = history ? bytes / 2 : 0, taken = half < most ? half : most;

	return (struct budget_past){taken, bytes - taken};
}

/*
 * Return half of the cgroup's limit. Without a limit return a share of the host's memory, within
 * bounds.
 */
uint64_t budget_default(void);

/*
 * Divide @bytes for an observation of @wanted services with @config, whose max_services and copies are ignored. If
 * @bytes are too little for a copy of each slot on every CPU, CPUs share copies. 0 or -errno.
 */
int budget_divide(uint64_t bytes, const struct observer_config *config, uint32_t wanted,
		  struct budget *ret_budget);
/* Return the memory that slots for this many services take at least. 0 or -errno. */
int budget_least(const struct observer_config *config, uint32_t services, uint64_t *ret_bytes);

/* Return whether @bytes are too little for any service, even without the programs that a kernel may refuse. */
bool budget_lacks(const struct observer_config *config, uint64_t bytes);

#endif
