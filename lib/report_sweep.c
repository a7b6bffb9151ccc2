// SPDX-License-Identifier: MIT
/* A sweep: a row for each load, and what follows from them. */
#include <math.h>
#include <string.h>

#include "report_parts.h"
#include "sojourn/clock.h"
#include "sojourn/sweep.h"

#define LABEL 15

enum column {
	COLUMN_LOAD,
	COLUMN_THROUGHPUT,
	COLUMN_SERVER,
	COLUMN_EACH,
	COLUMN_P50,
	COLUMN_P99,
	COLUMN_ERRORS,
	COLUMN_COUNT
};

static const unsigned int widths[COLUMN_COUNT] = {11, 12, 12, 12, 11, 11, 9};

static bool is_over_rate(const struct run_sweep *sweep)
{
	return sweep->over && !strcmp(sweep->over, "rate");
}

static bool has_server(const struct run_sweep *sweep)
{
	for (size_t i = 0; i < sweep->step_count; i++)
		if (sweep->steps[i].server_exchanges.known)
			return true;
	return false;
}

static void print_head(const struct page *page, const struct run_sweep *sweep)
{
	const char *const names[COLUMN_COUNT] = {
		is_over_rate(sweep) ? "due/s" : "connections",
		"good/s",
		"server's/s",
		"each/s",
		"p50",
		"p99",
		"errors",
	};

	page_style(page, STYLE_DIM);
	for (unsigned int i = 0; i < COLUMN_COUNT; i++)
		if (i != COLUMN_SERVER || has_server(sweep))
			page_right(page, widths[i], "%s", names[i]);
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
}

static const char *server_rate(const struct run_sweep_step *step, char text[static SHORT_TEXT])
{
	if (!step->server_exchanges.known || !step->server_duration_ns.known)
		return "-";
	return page_rate(step->server_exchanges.value, step->server_duration_ns.value, text);
}

static const char *quantile(const struct histogram *latency, double of,
			    char text[static SHORT_TEXT])
{
	if (!latency->count)
		return "-";
	return page_time((double)histogram_quantile(latency, of), text);
}

static uint64_t good_of(const struct run_sweep_step *step)
{
	return run_sweep_good(&step->good, step->requests, step->drained);
}

/* Below 10 a whole number would be too coarse, or 0. */
static const char *small_rate(uint64_t count, uint64_t ns, char text[static SHORT_TEXT])
{
	double rate = ns ? (double)count * (double)NSEC_PER_SEC / (double)ns : 0;

	if (rate >= 9.995 || !count)
		return page_rate(count, ns, text);
	snprintf(text, SHORT_TEXT, "%.*f", rate < 0.995 ? 3 : 2, rate);
	return text;
}

/* What one client has of it: a connection's good responses per second. */
static const char *rate_of_each(const struct run_sweep *sweep, const struct run_sweep_step *step,
				char text[static SHORT_TEXT])
{
	uint64_t clients = is_over_rate(sweep) ? sweep->connections : step->load;

	return clients ? small_rate(good_of(step), step->duration_ns * clients, text) : "-";
}

/* What is to be known before a row's figures are used. */
static void print_remarks(const struct page *page, const struct run_sweep_step *step)
{
	char text[SHORT_TEXT];

	if (!step->steady)
		page_left(page, 0, "  not steady");
	if (step->unsent)
		page_left(page, 0, "  %s never sent", page_count(step->unsent, text));
	if (step->limited)
		page_left(page, 0, "  limited by the driver (%s)", step->limited);
}

/* Under the row of all of them. */
static void print_targets(const struct page *page, const struct run_sweep_step *step)
{
	char text[SHORT_TEXT];

	for (size_t i = 0; i < step->target_count; i++) {
		const struct run_sweep_target *target = &step->targets[i];
		struct items items = items_begin(page, "", LABEL);

		items_add(&items, "%s", target->name ? target->name : "(no name)");
		items_add(
			&items, "%s/s",
			page_rate(run_sweep_good(&target->good, target->requests, target->drained),
				  step->duration_ns, text));
		items_add(&items, "p50 %s", quantile(&target->latency, 0.5, text));
		items_add(&items, "p99 %s", quantile(&target->latency, 0.99, text));
		items_add(&items, "errors %s", page_count(target->errors, text));
		items_end(&items);
	}
}

static void print_step(const struct page *page, const struct run_sweep *sweep,
		       const struct run_sweep_step *step)
{
	char text[SHORT_TEXT];

	page_right(page, widths[COLUMN_LOAD], "%s", page_count(step->load, text));
	page_right(page, widths[COLUMN_THROUGHPUT], "%s",
		   page_rate(good_of(step), step->duration_ns, text));
	if (has_server(sweep))
		page_right(page, widths[COLUMN_SERVER], "%s", server_rate(step, text));
	page_right(page, widths[COLUMN_EACH], "%s", rate_of_each(sweep, step, text));
	page_right(page, widths[COLUMN_P50], "%s", quantile(&step->latency, 0.5, text));
	page_right(page, widths[COLUMN_P99], "%s", quantile(&step->latency, 0.99, text));
	page_right(page, widths[COLUMN_ERRORS], "%s", page_count(step->errors, text));
	print_remarks(page, step);
	fputc('\n', page->file);
	print_targets(page, step);
}

static void print_plateau(const struct page *page, const struct run_sweep *sweep)
{
	struct items items = items_begin(page, "plateau", LABEL);
	char text[SHORT_TEXT];

	if (sweep->plateau.known)
		items_add(&items, "%s requests/s", page_count(sweep->plateau.value, text));
	if (sweep->knee.known)
		items_add(&items, "from %s %s on", page_count(sweep->knee.value, text),
			  is_over_rate(sweep) ? "requests/s" : "connections");
	if (sweep->misfit_per_mille.known)
		items_add(&items, "steps off the fit by %.1f %%",
			  (double)sweep->misfit_per_mille.value / 10);
	if (!sweep->plateau.known)
		items_add(&items, "none: %s", sweep->unfitted ? sweep->unfitted : "not looked for");
	items_end(&items);
}

static void print_three_quarters(const struct page *page, const struct run_sweep *sweep)
{
	const struct run_sweep_step *step = sweep->three_quarters;
	struct items items;
	char text[SHORT_TEXT];

	if (!step)
		return;
	items = items_begin(page, "at 75 % of it", LABEL);
	items_add(&items, "%s/s due", page_count(step->load, text));
	items_add(&items, "%s/s", page_rate(good_of(step), step->duration_ns, text));
	if (step->latency.count)
		items_add(&items, "mean %s", page_time(histogram_mean(&step->latency), text));
	items_add(&items, "p50 %s", quantile(&step->latency, 0.5, text));
	items_add(&items, "p99 %s", quantile(&step->latency, 0.99, text));
	items_add(&items, "p99.9 %s", quantile(&step->latency, 0.999, text));
	if (step->errors)
		items_add(&items, "errors %s", page_count(step->errors, text));
	if (step->unsent)
		items_add(&items, "%s never sent", page_count(step->unsent, text));
	if (!step->steady)
		items_add(&items, "not steady");
	if (step->limited)
		items_add(&items, "limited by the driver (%s)", step->limited);
	items_end(&items);
	print_targets(page, step);
}

void report_sweep_limited(const struct page *page, const struct run *run)
{
	const struct run_sweep *sweep = run->sweep;
	size_t limited = 0;

	if (!sweep)
		return;
	for (size_t i = 0; i < sweep->step_count; i++)
		limited += sweep->steps[i].limited != NULL;
	if (!limited)
		return;
	page_style(page, STYLE_HOT);
	page_wrap(page, 0,
		  "LIMITED BY THE DRIVER, not by the server alone, in %zu of %zu steps: see the "
		  "remarks at their rows",
		  limited, sweep->step_count);
	page_style(page, STYLE_PLAIN);
}

#define BAR_MAX 50

/* "GET http://10.0.0.1/", "GET of 2 targets in turn". */
static void add_target(struct items *items, const struct run_sweep *sweep)
{
	const char *method = sweep->method ? sweep->method : "";
	size_t count = sweep->step_count ? sweep->steps[0].target_count : 0;

	if (count)
		items_add(items, "%s%s%zu targets in turn", method, *method ? " of " : "", count);
	else
		items_add(items, "%s%s%s", method, *method ? " " : "",
			  sweep->target ? sweep->target : "(no target)");
}

/* Throughput over load, drawn; a mark where the knee is. */
static void print_plot(const struct page *page, const struct run_sweep *sweep)
{
	bool marked = !sweep->knee.known;
	double highest = 0;
	char text[SHORT_TEXT];

	for (size_t i = 0; i < sweep->step_count; i++)
		highest = fmax(highest, run_sweep_throughput(&sweep->steps[i]));
	for (size_t i = 0; i < sweep->step_count && highest > 0; i++) {
		const struct run_sweep_step *step = &sweep->steps[i];
		bool knee = !marked && step->load >= sweep->knee.value;

		page_right(page, widths[COLUMN_LOAD], "%s", page_count(step->load, text));
		fputs("  ", page->file);
		for (int j = 0; j < (int)(run_sweep_throughput(step) / highest * BAR_MAX + 0.5);
		     j++)
			fputs("\u2588", page->file);
		fprintf(page->file, "%s\n", knee ? " \u25c4 knee" : "");
		marked = marked || knee;
	}
}

void report_sweep(const struct page *page, const struct run *run)
{
	const struct run_sweep *sweep = run->sweep;
	struct items items;

	if (!sweep)
		return;
	items = items_begin(page, "", 0);
	items_add(&items, "sweep over %s",
		  is_over_rate(sweep) ? "rates" : "numbers of connections");
	add_target(&items, sweep);
	if (is_over_rate(sweep))
		items_add(&items, "%u connections", sweep->connections);
	items_end(&items);
	fputc('\n', page->file);
	print_head(page, sweep);
	for (size_t i = 0; i < sweep->step_count; i++)
		print_step(page, sweep, &sweep->steps[i]);
	fputc('\n', page->file);
	print_plot(page, sweep);
	fputc('\n', page->file);
	print_plateau(page, sweep);
	print_three_quarters(page, sweep);
	if (!sweep->stopped)
		return;
	page_left(page, LABEL, "%s", "stopped");
	page_wrap(page, LABEL, "%s", sweep->stopped);
}
