/* SPDX-License-Identifier: MIT */
/* The driver's part over time and by driver. Neighbour: report_driver.c (the whole). */
#include <math.h>

#include "report_parts.h"
#include "sojourn/clock.h"

struct rates {
	unsigned int count;
	double mean, deviation, lowest, highest; /* requests/s */
};

/* Of the intervals of full length: the last one is shorter. */
static struct rates measure_rates(const struct run_driver *driver)
{
	double seconds = (double)driver->interval_ns / (double)NSEC_PER_SEC, squares = 0;
	struct rates rates = {.lowest = INFINITY};

	for (size_t i = 0; i < driver->interval_count; i++) {
		double rate = (double)driver->intervals[i].requests / seconds;
		double before = rate - rates.mean;

		if (driver->intervals[i].duration_ns != driver->interval_ns)
			continue;
		rates.count++;
		rates.mean += before / rates.count;
		squares += before * (rate - rates.mean);
		rates.lowest = fmin(rates.lowest, rate);
		rates.highest = fmax(rates.highest, rate);
	}
	if (rates.count)
		rates.deviation = sqrt(squares / rates.count);
	return rates;
}

static void add_ports(struct items *items, const struct run_driver *driver)
{
	char used[SHORT_TEXT], capacity[SHORT_TEXT];
	uint64_t most = 0;

	for (size_t i = 0; i < driver->interval_count; i++)
		if (driver->intervals[i].ports.known && driver->intervals[i].ports.value > most)
			most = driver->intervals[i].ports.value;
	if (most && driver->ports.capacity.known)
		items_add(items, "source ports at most %s of %s", page_count(most, used),
			  page_count(driver->ports.capacity.value, capacity));
}

void report_intervals(const struct page *page, const struct run_driver *driver)
{
	struct rates rates = measure_rates(driver);
	struct items items;
	char text[SHORT_TEXT];

	if (rates.count < 3)
		return;
	items = items_begin(page, "intervals", report_driver_columns(driver));
	items_add(&items, "%u of %s", rates.count, page_time((double)driver->interval_ns, text));
	items_add(&items, "lowest %s/s", page_count((uint64_t)(rates.lowest + 0.5), text));
	items_add(&items, "highest %s/s", page_count((uint64_t)(rates.highest + 0.5), text));
	items_add(&items, "deviation %s/s", page_count((uint64_t)(rates.deviation + 0.5), text));
	add_ports(&items, driver);
	if (driver->drift.known)
		items_add(&items, "correlation with time %+.2f", driver->drift.value);
	items_end(&items);
}

void report_drivers(const struct page *page, const struct run_driver *driver)
{
	char text[SHORT_TEXT];

	for (size_t i = 0; i < driver->part_count && driver->part_count > 1; i++) {
		const struct run_part *part = &driver->parts[i];
		struct items items =
			items_begin(page, i ? "" : "drivers", report_driver_columns(driver));

		items_add(&items, "%s", part->host ? part->host : "(unknown host)");
		items_add(&items, "%s", part->target ? part->target : "(no target)");
		items_add(&items, "%u connections", part->connections);
		items_add(&items, "from %s",
			  page_time((double)(part->begin_ns - driver->begin_ns), text));
		items_add(&items, "for %s", page_time((double)part->duration_ns, text));
		items_add(&items, "%s/s",
			  page_rate(run_timely(part->requests, part->drained), part->duration_ns,
				    text));
		items_add(&items, "p50 %s",
			  page_time((double)histogram_quantile(&part->latency, 0.5), text));
		items_add(&items, "p99 %s",
			  page_time((double)histogram_quantile(&part->latency, 0.99), text));
		items_add(&items, "errors %s", page_count(part->errors, text));
		items_end(&items);
	}
}
