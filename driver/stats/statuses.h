/* SPDX-License-Identifier: MIT */
/*
 * What is counted by status code: rows for each worker. As long as
 * every response has had the same status the worker's totals are that status' row, and a request costs
 * one comparison. Neighbours: rows.h (the rows), stats.h (the totals).
 */
#ifndef DRIVER_STATS_STATUSES_H
#define DRIVER_STATS_STATUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "rows.h"
#include "stats.h"

#define STATUSES_MAX 64U /* beyond them the others are one row */

/* A zeroed one is valid and empty. */
struct status_rows {
	uint32_t only; /* every result so far was complete and had it; 0: none; STATUSES_MIXED */
	uint32_t count;
	uint16_t codes[STATUSES_MAX];
	struct row_stats rows[STATUSES_MAX + 1]; /* the last one: all others */
};

#define STATUSES_MIXED UINT32_MAX

struct status_table {
	uint32_t workers;
	struct status_rows *list; /* by worker; only that one writes it */
};

/* -ENOMEM. */
int status_table_open(struct status_table *table, uint32_t workers);
void status_table_close(struct status_table *table);

void status_rows_clear(struct status_rows *rows);

/* Whether nothing is to be done for a result but to count it in the totals. */
static inline bool status_rows_is_same(const struct status_rows *rows,
				       const struct engine_result *result)
{
	return result->status == rows->only && result->error == RUN_NO_ERROR;
}

/*
 * A result for which that is not so. @total and @stats: what the worker has counted before it, in two
 * parts. @intended_ns, @late: as in row_stats_record().
 */
void status_rows_record(struct status_rows *rows, const struct engine_result *result,
			uint64_t intended_ns, bool late, const struct stats *total,
			const struct stats *stats);
/* The measured phase is over, and @total is all. */
void status_rows_settle(struct status_rows *rows, const struct stats *total);

/* All workers' rows added up, while they are quiet; from the lowest code up. -ENOMEM. */
int status_table_fill(const struct status_table *table, struct run_row_list *ret_rows);

#endif
