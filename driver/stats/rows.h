/* SPDX-License-Identifier: MIT */
/*
 * The counts of each step or target: a row for each worker. Neighbours: stats.h (counts of all
 * requests), statuses.h (by status), run/result.c (adds rows up).
 */
#ifndef DRIVER_STATS_ROWS_H
#define DRIVER_STATS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "sojourn/histogram.h"
#include "sojourn/run.h"

/*
 * Rows have no names, and count as drained all responses after the end of the phase. A zeroed table is
 * valid: without steps.
 */
struct row_table {
	uint32_t steps;
	uint32_t workers;
	struct run_row *rows;
};

/* -ENOMEM. */
int row_table_open(struct row_table *table, uint32_t steps, uint32_t workers);
void row_table_close(struct row_table *table);

/* Return a worker's row, a struct for each step, which only that worker writes; NULL: no steps. */
struct run_row *row_table_row(const struct row_table *table, uint32_t worker);

/* Add all workers' counts of a step to @sum, while they are quiet. */
void row_table_add(const struct row_table *table, uint32_t step, struct run_row *sum);
/* Return how many requests of a step are complete so far, at any time. */
uint64_t row_table_requests(const struct row_table *table, uint32_t step);

void row_stats_add(struct run_row *sum, const struct run_row *stats);

/* @intended_ns: intended start under a rate, otherwise 0. @late: after the end of the phase. */
void row_stats_record(struct run_row *stats, const struct engine_result *result,
		      uint64_t intended_ns, bool late);

#endif
