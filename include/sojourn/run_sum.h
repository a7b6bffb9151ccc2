/* SPDX-License-Identifier: MIT */
/* What sums and differences of run documents are made of. Neighbour: run.h (the documents). */
#ifndef SOJOURN_RUN_SUM_H
#define SOJOURN_RUN_SUM_H

#include "sojourn/run.h"

/* Whether both are of the same port and protocol in the same network namespace; of whichever host. */
bool run_same_port(const struct run_service *a, const struct run_service *b);
/* Likewise, and of the same turn: their counts are of one kind. */
bool run_same_service(const struct run_service *a, const struct run_service *b);

/* NULL: @run has none like it. */
struct run_service *run_find_service(const struct run *run, const struct run_service *like);

/*
 * What an exchange has of @stage on average, in ns, of those that were timed: these of the residence's stages
 * add up to it. Of accept_queue that is what requests waited there, for its own times are of connections. 0
 * where nothing was measured.
 */
double run_stage_mean(const struct run_service *service, enum stage stage);

/*
 * Whether so many replies of this period (UDP) could not be matched to their requests that `service` of the
 * others does not stand for all.
 */
bool run_service_is_doubtful(const struct run_service *service);

/* Makes @stage not measured, for @reason, which is the stage's from here on. */
void run_stage_forget(struct run_stage *stage, char *reason);

/*
 * Makes `service` not measured where it is doubtful. For what is shown: from a reading that others are
 * subtracted from, it would take the histogram away.
 */
void run_doubt(struct run *run);

struct run_program *run_find_program(const struct run_cost *cost, const char *name);

static inline void run_counts_add(uint64_t *counts, const uint64_t *others, size_t count)
{
	for (size_t i = 0; i < count; i++)
		counts[i] += others[i];
}

/*
 * Adds what counts of @earlier, another observation of the service; state stays that of @service. A stage is
 * measured if it was in both; its reason may be taken from @earlier.
 */
void run_service_add(struct run_service *service, struct run_service *earlier);

void run_reclaimed_add(struct run_reclaimed *sum, const struct run_reclaimed *other);

/* Adds up by name; those that @cost lacks are added to it. -ENOMEM: some may be missing. */
int run_cost_add_programs(struct run_cost *cost, const struct run_cost *other);

#endif
