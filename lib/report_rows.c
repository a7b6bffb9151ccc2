/* SPDX-License-Identifier: MIT */
/* Steps, targets and statuses, one row after the other. Neighbour: report_driver.c (all of them together). */
#include "report_parts.h"

/* Of the shares of a step, so that they fit into a line with what is before. */
#define JOINED_COLUMNS 56

static void add_histogram(struct items *items, const char *label, const struct histogram *h)
{
	char mean[SHORT_TEXT], p50[SHORT_TEXT], p99[SHORT_TEXT], max[SHORT_TEXT];

	if (h->count)
		items_add(items, "%s mean %s, p50 %s, p99 %s, max %s", label,
			  page_time(histogram_mean(h), mean),
			  page_time((double)histogram_quantile(h, 0.5), p50),
			  page_time((double)histogram_quantile(h, 0.99), p99),
			  page_time((double)h->max, max));
}

static void add_errors(struct items *items, const struct run_row *row)
{
	char text[SHORT_TEXT], words[SHORT_TEXT];

	if (!run_row_errors(row))
		return;
	items_add(items, "errors %s", page_count(run_row_errors(row), text));
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		if (row->errors[i])
			items_add(items, "%s %s", page_words(run_error_names[i], words),
				  page_count(row->errors[i], text));
}

/* Where the joined exchanges of a step spent their time; NULL: not a step, or nothing was joined. */
static void add_joined(struct items *items, const struct run_joined_step *step)
{
	char count[SHORT_TEXT], mean[SHORT_TEXT], shares[256];

	if (!step || !step->count)
		return;
	report_shares(&step->sum, JOINED_COLUMNS, sizeof(shares), shares);
	items_add(items, "%s joined: mean %s, of it %s", page_count(step->count, count),
		  page_time((double)run_parts_total(&step->sum) / (double)step->count, mean),
		  shares);
}

static const struct run_joined_step *joined_step(const struct run *run, enum run_rows_by by,
						 size_t number)
{
	if (by != RUN_ROWS_STEP || !run->joined || number >= run->joined->step_count)
		return NULL;
	return &run->joined->steps[number];
}

static void report_row(const struct page *page, const struct run_driver *driver, const char *label,
		       const struct run_row *row, const struct run_joined_step *step)
{
	struct items items = items_begin(page, label, report_driver_columns(driver));
	char text[SHORT_TEXT];

	items_add(&items, "%s", row->name ? row->name : "(no name)");
	items_add(&items, "%s", page_count(row->requests, text));
	if (driver->duration_ns)
		items_add(&items, "%s/s",
			  page_rate(run_row_timely(row), driver->duration_ns, text));
	add_errors(&items, row);
	add_histogram(&items, "response time", &row->response_time);
	add_histogram(&items, "round trip", &row->round_trip);
	add_joined(&items, step);
	if (row->target)
		items_add(&items, "%s%s%s", row->method ? row->method : "", row->method ? " " : "",
			  row->target);
	items_end(&items);
}

void report_rows(const struct page *page, const struct run *run)
{
	for (enum run_rows_by by = 0; by < RUN_ROWS_COUNT; by++) {
		const struct run_row_list *rows = &run->driver->rows[by];

		/* One status alone says what all of them together say. */
		if (by == RUN_ROWS_STATUS && rows->count < 2)
			continue;
		for (size_t i = 0; i < rows->count; i++)
			report_row(page, run->driver, i ? "" : run_rows_names[by], &rows->list[i],
				   joined_step(run, by, i));
	}
}
