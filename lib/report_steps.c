/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, one after the other. Neighbour: report_driver.c (all of them together). */
#include "report_parts.h"

static uint64_t errors_of(const struct run_scenario_step *step)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		sum += step->errors[i];
	return sum;
}

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

static void add_errors(struct items *items, const struct run_scenario_step *step)
{
	char text[SHORT_TEXT], words[SHORT_TEXT];

	if (!errors_of(step))
		return;
	items_add(items, "errors %s", page_count(errors_of(step), text));
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		if (step->errors[i])
			items_add(items, "%s %s", page_words(run_error_names[i], words),
				  page_count(step->errors[i], text));
}

void report_steps(const struct page *page, const struct run_driver *driver)
{
	char text[SHORT_TEXT];

	for (size_t i = 0; i < driver->step_count; i++) {
		const struct run_scenario_step *step = &driver->steps[i];
		struct items items =
			items_begin(page, i ? "" : "steps", report_driver_columns(driver));

		items_add(&items, "%s", step->name ? step->name : "(no name)");
		items_add(&items, "%s", page_count(step->requests, text));
		if (driver->duration_ns)
			items_add(&items, "%s/s",
				  page_rate(step->requests, driver->duration_ns, text));
		add_errors(&items, step);
		add_histogram(&items, "response time", &step->response_time);
		add_histogram(&items, "round trip", &step->round_trip);
		items_add(&items, "%s%s%s", step->method ? step->method : "",
			  step->method ? " " : "", step->target ? step->target : "");
		items_end(&items);
	}
}
