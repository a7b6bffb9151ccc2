/* SPDX-License-Identifier: MIT */
/* What sums and differences of run documents are made of. Neighbour: run.h (the documents). */
#ifndef SOJOURN_RUN_SUM_H
#define SOJOURN_RUN_SUM_H

#include "sojourn/run.h"

/* Whether both are of the same port and protocol in the same network namespace; of whichever host. */
bool run_same_service(const struct run_service *a, const struct run_service *b);

/* NULL: @run has none like it. */
struct run_service *run_find_service(const struct run *run, const struct run_service *like);

/*
 * What an exchange has of @stage on average, in ns, of those that were timed: these of the residence's stages
 * add up to it. Of accept_queue that is what requests waited there, for its own times are of connections. 0
 * where nothing was measured.
 */
double run_stage_mean(const struct run_service *service, enum stage stage);
struct run_program *run_find_program(const struct run_cost *cost, const char *name);

void run_counts_add(uint64_t *counts, const uint64_t *others, size_t count);

/* A sum is known where both are. */
void run_number_add(struct run_number *number, const struct run_number *other);

/* Adds up by name; those that @cost lacks are added to it. -ENOMEM: some may be missing. */
int run_cost_add_programs(struct run_cost *cost, const struct run_cost *other);

#endif
