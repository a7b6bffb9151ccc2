// SPDX-License-Identifier: MIT
/* The distribution of latencies, drawn: steps of equal factor up to p99, and one row above. */
#include "parts.h"

#define BAR_MAX	      40
#define BOUND_COLUMNS 8
#define COUNT_COLUMNS 12
#define FEWEST	      10 /* minimum of values for a picture */

/* Return the start of the steps: rare faster values are in the first row. */
static uint64_t floor_of(const struct histogram *h)
{
	uint64_t ns = histogram_quantile(h, 0.01);

	return ns ? ns : 1;
}

static void print_row(const struct page *page, const char *label, const char *word,
		      uint64_t bound_ns, uint64_t count, uint64_t highest)
{
	unsigned int used = LABEL_COLUMNS + 6 + BOUND_COLUMNS + COUNT_COLUMNS + 2;
	unsigned int room = page->width > used ? page->width - used : 0;
	unsigned int most = room < BAR_MAX ? room : BAR_MAX;
	unsigned int bar = highest ? (unsigned int)((count * most + highest - 1) / highest) : 0;

	page_left(page, LABEL_COLUMNS, "%s", label);
	page_left(page, 6, "%s", word);
	page_right(page, BOUND_COLUMNS, "%s", as_time((double)bound_ns));
	page_right(page, COUNT_COLUMNS, "%s", as_count(count));
	page_left(page, 0, "%s", bar ? "  " : "");
	for (unsigned int i = 0; i < bar; i++)
		page_left(page, 0, "\u2588");
	fputc('\n', page->file);
}

bool report_has_distribution(const struct histogram *h)
{
	return h->count >= FEWEST && bucket_index(floor_of(h)) < bucket_index(h->max);
}

void report_distribution(const struct page *page, const struct histogram *h, unsigned int rows)
{
	struct histogram_step steps[REPORT_DISTRIBUTION_ROWS];
	size_t count = histogram_steps(h, rows, steps);
	bool above = h->max > histogram_quantile(h, 0.99);
	uint64_t highest = 0;

	for (size_t i = 0; i < count; i++)
		highest = steps[i].count > highest ? steps[i].count : highest;
	for (size_t i = 0; i < count; i++)
		print_row(page, i ? "" : "distribution", above && i + 1 == count ? "to" : "up to",
			  steps[i].up_to, steps[i].count, highest);
}
