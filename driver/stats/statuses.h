/* SPDX-License-Identifier: MIT */
/*
 * Counts by status code: rows for each worker. While all responses have the same status, the
 * worker's totals are its row, and a request costs one comparison. Neighbours: rows.h (the rows),
 * stats.h (the totals).
 */
#ifndef DRIVER_STATS_STATUSES_H
#define DRIVER_STATS_STATUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "rows.h"
#include "stats.h"

#define STATUSES_MAX 64U /* further codes share one row */

/* A zeroed one is valid and empty. */
struct status_rows {
	/* status of all results so far; 0: none; STATUSES_MIXED: several, or a failure */
	uint32_t only;
	uint32_t count;
	uint16_t codes[STATUSES_MAX];
	struct run_row rows[STATUSES_MAX + 1]; /* the last one: all other codes */
};

#define STATUSES_MIXED UINT32_MAX

struct status_table {
	uint32_t workers;
	struct status_rows *list; /* by worker, which alone writes it */
};

/* -ENOMEM. */
int status_table_open(struct status_table *table, uint32_t workers);
void status_table_close(struct status_table *table);

void status_rows_clear(struct status_rows *rows);

/* Return whether counting a result in the totals suffices. */
static inline bool status_rows_is_same(const struct status_rows *rows,
				       const struct engine_result *result)
{
	return result->status == rows->only && result->error == RUN_NO_ERROR;
}

/*
 * Record a result for which status_rows_is_same() is false. @total and @stats: the two parts of the
 * worker's counts before it. @intended_ns, @late: see row_stats_record().
 */
void status_rows_record(struct status_rows *rows, const struct engine_result *result,
			uint64_t intended_ns, bool late, const struct stats *total,
			const struct stats *stats);
/* End the measured phase; @total has all counts. */
void status_rows_settle(struct status_rows *rows, const struct stats *total);

/* Sum all workers' rows, while they are quiet, in the order of codes. -ENOMEM. */
int status_table_fill(const struct status_table *table, struct run_row_list *ret_rows);

#endif
