/* SPDX-License-Identifier: MIT */
/* The operations behind sums and differences of run documents. Neighbour: run.h (the documents). */
#ifndef SOJOURN_RUN_SUM_H
#define SOJOURN_RUN_SUM_H

#include "sojourn/run.h"

/* Return whether port, protocol and network namespace are equal, on any host. */
bool run_same_port(const struct run_service *a, const struct run_service *b);
/* Return whether the turn is equal too, so that counts are comparable. */
bool run_same_service(const struct run_service *a, const struct run_service *b);

/* Return the service like @like, or NULL. */
struct run_service *run_find_service(const struct run *run, const struct run_service *like);

/* Subtract the counts of calls of @earlier, an earlier reading, by their places. */
void run_calls_subtract(struct run_service *service, const struct run_service *earlier);

/*
 * Return the average of @stage over all timed exchanges, in ns, so that the averages of the stages
 * sum to that of the residence. For accept_queue this is the wait of requests, since its histogram
 * is per connection. 0 if nothing was measured.
 */
double run_stage_mean(const struct run_service *service, enum stage stage);
/* Return the sum of the averages of the residence's stages, in ns. */
double run_residence_mean(const struct run_service *service);

/*
 * Return whether too many replies of this period (UDP) were unmatched for `service` to represent
 * all.
 */
bool run_service_is_doubtful(const struct run_service *service);

/* Make @stage not measured, for @reason, which it takes over. */
void run_stage_forget(struct run_stage *stage, char *reason);

/*
 * Make doubtful `service` stages not measured, for display only: a later difference would need the
 * histogram.
 */
void run_doubt(struct run *run);

static inline uint64_t run_counts_sum(const uint64_t *counts, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += counts[i];
	return sum;
}

static inline void run_counts_add(uint64_t *counts, const uint64_t *others, size_t count)
{
	for (size_t i = 0; i < count; i++)
		counts[i] += others[i];
}

/*
 * Add the counts of @earlier, another observation of the service; gauges stay @service's. A stage
 * is measured if it was in both; its reason may be taken from @earlier.
 */
void run_service_add(struct run_service *service, struct run_service *earlier);

void run_reclaimed_add(struct run_reclaimed *sum, const struct run_reclaimed *other);

/* Keep the greater number of CPUs that share a copy. */
void run_cost_share(struct run_cost *cost, const struct run_cost *other);

/* Add up by name; programs that @cost lacks are added. -ENOMEM: some may be missing. */
int run_cost_add_programs(struct run_cost *cost, const struct run_cost *other);

#endif
