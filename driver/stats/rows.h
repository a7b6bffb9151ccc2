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

/* Members as in struct stats. */
struct row_stats {
	uint64_t requests;
	uint64_t late; /* responses after the end of the phase */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t status[6];
	uint64_t errors[RUN_ERROR_COUNT];
	struct histogram round_trip;
	struct histogram response_time;
};

/* A zeroed one is valid: without steps. */
struct row_table {
	uint32_t steps;
	uint32_t workers;
	struct row_stats *rows;
};

/* -ENOMEM. */
int row_table_open(struct row_table *table, uint32_t steps, uint32_t workers);
void row_table_close(struct row_table *table);

/* Return a worker's row, a struct for each step, which only that worker writes; NULL: no steps. */
struct row_stats *row_table_row(const struct row_table *table, uint32_t worker);

/* Add all workers' counts of a step to @sum, while they are quiet. */
void row_table_add(const struct row_table *table, uint32_t step, struct row_stats *sum);
/* Return how many requests of a step are complete so far, at any time. */
uint64_t row_table_requests(const struct row_table *table, uint32_t step);

void row_stats_add(struct row_stats *sum, const struct row_stats *stats);
/* Fill everything but the row's name. */
void row_stats_fill(const struct row_stats *stats, struct run_row *row);

/* @intended_ns: intended start under a rate, otherwise 0. @late: after the end of the phase. */
void row_stats_record(struct row_stats *stats, const struct engine_result *result,
		      uint64_t intended_ns, bool late);

#endif
