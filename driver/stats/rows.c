// SPDX-License-Identifier: MIT
/* The counts of each step. row_stats_record() runs for every request of a scenario. */
#include "rows.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sojourn/run_sum.h"

static size_t size_of(const struct row_table *table)
{
	return (size_t)table->steps * table->workers * sizeof(*table->rows);
}

int row_table_open(struct row_table *table, uint32_t steps, uint32_t workers)
{
	struct row_table opened = {.steps = steps, .workers = workers};
	void *memory;

	if (steps) {
		/* Memory that no worker touches costs nothing. */
		memory = mmap(NULL, size_of(&opened), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return -ENOMEM;
		opened.rows = memory;
	}
	*table = opened;
	return 0;
}

void row_table_close(struct row_table *table)
{
	if (table->rows)
		munmap(table->rows, size_of(table));
	*table = (struct row_table){0};
}

struct run_row *row_table_row(const struct row_table *table, uint32_t worker)
{
	return table->rows ? table->rows + (size_t)worker * table->steps : NULL;
}

void row_stats_add(struct run_row *sum, const struct run_row *stats)
{
	sum->requests += stats->requests;
	sum->drained += stats->drained;
	sum->bytes_in += stats->bytes_in;
	sum->bytes_out += stats->bytes_out;
	run_counts_add(sum->status, stats->status, ARRAY_SIZE(sum->status));
	run_counts_add(sum->errors, stats->errors, ARRAY_SIZE(sum->errors));
	histogram_add(&sum->round_trip, &stats->round_trip);
	histogram_add(&sum->response_time, &stats->response_time);
}

void row_table_add(const struct row_table *table, uint32_t step, struct run_row *sum)
{
	for (uint32_t i = 0; i < table->workers; i++)
		row_stats_add(sum, row_table_row(table, i) + step);
}

uint64_t row_table_requests(const struct row_table *table, uint32_t step)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < table->workers; i++)
		sum += __atomic_load_n(&row_table_row(table, i)[step].requests, __ATOMIC_RELAXED);
	return sum;
}

void row_stats_record(struct run_row *stats, const struct engine_result *result,
		      uint64_t intended_ns, bool late)
{
	enum run_error failure = engine_failure(result);
	unsigned int hundreds = result->status / 100;

	stats->bytes_in += result->bytes_in;
	stats->bytes_out += result->bytes_out;
	if (failure != RUN_NO_ERROR)
		stats->errors[failure]++;
	if (result->error != RUN_NO_ERROR)
		return;
	/* row_table_requests() may read at any time. */
	__atomic_store_n(&stats->requests, stats->requests + 1, __ATOMIC_RELAXED);
	stats->drained += late;
	stats->status[hundreds < ARRAY_SIZE(stats->status) ? hundreds : 0]++;
	histogram_record(&stats->round_trip, result->end_ns - result->start_ns);
	if (intended_ns)
		histogram_record(&stats->response_time, result->end_ns - intended_ns);
}
