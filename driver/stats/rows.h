/* SPDX-License-Identifier: MIT */
/*
 * What each step of a scenario, or target, counts: a row for each worker. Neighbours: stats.h (the same of all requests), statuses.h (the same by status), run/result.c (adds
 * the rows up).
 */
#ifndef DRIVER_STATS_ROWS_H
#define DRIVER_STATS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "sojourn/histogram.h"
#include "sojourn/run.h"

/* Members mean what they mean in struct stats. */
struct row_stats {
	uint64_t requests;
	uint64_t late; /* responses after the phase had ended */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t status[6];
	uint64_t errors[RUN_ERROR_COUNT];
	struct histogram round_trip;
	struct histogram response_time;
};

/* A zeroed one is valid: there are no steps. */
struct row_table {
	uint32_t steps;
	uint32_t workers;
	struct row_stats *rows;
};

/* -ENOMEM. */
int row_table_open(struct row_table *table, uint32_t steps, uint32_t workers);
void row_table_close(struct row_table *table);

/* The row of a worker, a struct for each step; NULL if there are none. Only that worker writes it. */
struct row_stats *row_table_row(const struct row_table *table, uint32_t worker);

/* Adds all workers' of a step to @sum; while they are quiet. */
void row_table_add(const struct row_table *table, uint32_t step, struct row_stats *sum);
/* How many requests of a step were completed so far; at any time. */
uint64_t row_table_requests(const struct row_table *table, uint32_t step);

void row_stats_add(struct row_stats *sum, const struct row_stats *stats);
/* All but what names the row. */
void row_stats_fill(const struct row_stats *stats, struct run_row *row);

/* @intended_ns: when it was meant to leave, under a rate; else 0. @late: the phase had ended. */
void row_stats_record(struct row_stats *stats, const struct engine_result *result,
		      uint64_t intended_ns, bool late);

#endif
