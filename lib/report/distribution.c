// SPDX-License-Identifier: MIT
/* How latencies are distributed, drawn: steps of one factor up to p99, and what is above it in one row. */
#include <math.h>

#include "parts.h"

#define BAR_MAX	      40
#define BOUND_COLUMNS 8
#define COUNT_COLUMNS 12
#define FEWEST	      10 /* values that make a picture */

/* Values in the buckets up to that of @bound. */
static uint64_t count_up_to(const struct histogram *h, uint64_t bound)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i <= bucket_index(bound); i++)
		count += h->buckets[i];
	return count;
}

/* Where the steps begin: what is faster is rare, and in the first row. */
static uint64_t floor_of(const struct histogram *h)
{
	uint64_t ns = histogram_quantile(h, 0.01);

	return ns ? ns : 1;
}

/* A step narrower than a bucket would be a comb. */
static unsigned int steps_of(uint64_t from_ns, uint64_t to_ns, unsigned int most)
{
	uint32_t buckets = bucket_index(to_ns) - bucket_index(from_ns) + 1;

	return buckets < most ? buckets : most;
}

static void print_row(const struct page *page, const char *label, const char *word,
		      uint64_t bound_ns, uint64_t count, uint64_t highest)
{
	unsigned int used = LABEL_COLUMNS + 6 + BOUND_COLUMNS + COUNT_COLUMNS + 2;
	unsigned int room = page->width > used ? page->width - used : 0;
	unsigned int most = room < BAR_MAX ? room : BAR_MAX;
	unsigned int bar = highest ? (unsigned int)((count * most + highest - 1) / highest) : 0;
	char text[SHORT_TEXT];

	page_left(page, LABEL_COLUMNS, "%s", label);
	page_left(page, 6, "%s", word);
	page_right(page, BOUND_COLUMNS, "%s", page_time((double)bound_ns, text));
	page_right(page, COUNT_COLUMNS, "%s", page_count(count, text));
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
	uint64_t from_ns = floor_of(h), to_ns = histogram_quantile(h, 0.99);
	bool above = h->max > to_ns;
	unsigned int steps = steps_of(from_ns, to_ns, above ? rows - 1 : rows);
	uint64_t before = 0, highest = 0, counts[REPORT_DISTRIBUTION_ROWS] = {0};
	uint64_t bounds[REPORT_DISTRIBUTION_ROWS];

	for (unsigned int i = 0; i < steps; i++) {
		double part = (double)(i + 1) / steps;

		bounds[i] = i + 1 < steps ? (uint64_t)((double)from_ns *
						       pow((double)to_ns / (double)from_ns, part))
					  : to_ns;
		counts[i] = count_up_to(h, bounds[i]) - before;
		before += counts[i];
		highest = counts[i] > highest ? counts[i] : highest;
	}
	highest = h->count - before > highest ? h->count - before : highest;
	for (unsigned int i = 0; i < steps; i++)
		print_row(page, i ? "" : "distribution", "up to", bounds[i], counts[i], highest);
	if (above)
		print_row(page, "", "to", h->max, h->count - before, highest);
}
