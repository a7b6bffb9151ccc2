// SPDX-License-Identifier: MIT
/* Counts by status code: see statuses.h. */
#include "statuses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sojourn/cleanup.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

int status_table_open(struct status_table *table, uint32_t workers)
{
	/* Memory that no worker touches costs nothing. */
	void *memory = mmap(NULL, workers * sizeof(*table->list), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*table = (struct status_table){workers, memory};
	return 0;
}

void status_table_close(struct status_table *table)
{
	if (table->list)
		munmap(table->list, table->workers * sizeof(*table->list));
	*table = (struct status_table){0};
}

/* Do not touch unused rows: they would take memory. */
void status_rows_clear(struct status_rows *rows)
{
	uint32_t used = rows->count + (rows->count == STATUSES_MAX);

	memset(rows->rows, 0, used * sizeof(rows->rows[0]));
	rows->only = rows->count = 0;
}

static struct run_row *find_row(struct status_rows *rows, uint16_t code)
{
	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->codes[i] == code)
			return &rows->rows[i];
	if (rows->count == STATUSES_MAX)
		return &rows->rows[STATUSES_MAX];
	rows->codes[rows->count] = code;
	return &rows->rows[rows->count++];
}

static void add_total(struct run_row *row, const struct stats *total)
{
	row->requests += total->requests;
	row->drained += total->late.count;
	row->bytes_in += total->bytes_in;
	row->bytes_out += total->bytes_out;
	run_counts_add(row->status, total->status, ARRAY_SIZE(row->status));
	run_counts_add(row->errors, total->errors, ARRAY_SIZE(row->errors));
	histogram_add(&row->round_trip, &total->round_trip);
	histogram_add(&row->response_time, &total->response_time);
}

static bool has_counted(const struct stats *stats)
{
	return stats->requests || stats_errors(stats);
}

/* Return false for the first result of all: until another status comes, the totals are its row. */
static bool begin_rows(struct status_rows *rows, const struct engine_result *result,
		       const struct stats *total, const struct stats *stats)
{
	struct run_row *row;

	if (!rows->only && result->error == RUN_NO_ERROR && !has_counted(total) &&
	    !has_counted(stats)) {
		rows->only = result->status;
		return false;
	}
	if (rows->only) {
		row = find_row(rows, (uint16_t)rows->only);
		add_total(row, total);
		add_total(row, stats);
	}
	rows->only = STATUSES_MIXED;
	return true;
}

void status_rows_record(struct status_rows *rows, const struct engine_result *result,
			uint64_t intended_ns, bool late, const struct stats *total,
			const struct stats *stats)
{
	if (rows->only != STATUSES_MIXED && !begin_rows(rows, result, total, stats))
		return;
	if (result->error == RUN_NO_ERROR && result->status)
		row_stats_record(find_row(rows, result->status), result, intended_ns, late);
}

void status_rows_settle(struct status_rows *rows, const struct stats *total)
{
	if (rows->only && rows->only != STATUSES_MIXED)
		add_total(find_row(rows, (uint16_t)rows->only), total);
}

static void add_worker(struct status_rows *sum, const struct status_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++)
		row_stats_add(find_row(sum, rows->codes[i]), &rows->rows[i]);
	if (rows->count == STATUSES_MAX)
		row_stats_add(&sum->rows[STATUSES_MAX], &rows->rows[STATUSES_MAX]);
}

static int append(struct run_row_list *list, const struct run_row *stats, uint16_t code)
{
	struct run_row *row = &list->list[list->count++];

	*row = *stats;
	row->name = code ? text_format("%u", code) : strdup("other");
	return row->name ? 0 : -ENOMEM;
}

/* Codes have three digits and sort before "other". */
static int compare_names(const void *a, const void *b)
{
	const struct run_row *first = a, *second = b;

	return strcmp(first->name, second->name);
}

int status_table_fill(const struct status_table *table, struct run_row_list *ret_rows)
{
	autofree struct status_rows *sum = calloc(1, sizeof(*sum));
	int err = 0;

	if (!sum)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->workers; i++)
		add_worker(sum, &table->list[i]);
	if (!sum->count)
		return 0;
	ret_rows->list = calloc(sum->count + 1, sizeof(*ret_rows->list));
	if (!ret_rows->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < sum->count && !err; i++)
		err = append(ret_rows, &sum->rows[i], sum->codes[i]);
	if (!err && sum->rows[STATUSES_MAX].requests)
		err = append(ret_rows, &sum->rows[STATUSES_MAX], 0);
	if (!err)
		qsort(ret_rows->list, ret_rows->count, sizeof(*ret_rows->list), compare_names);
	return err;
}
