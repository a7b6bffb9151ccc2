// SPDX-License-Identifier: MIT
/* A sweep: its conclusion, and a row for each step. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "parts.h"
#include "sojourn/report.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

#define LABEL	 15
#define BAR_MAX	 20
#define BAR_MIN	 8 /* shorter ones are useless */
#define KNEE	 "\u25c4 knee"
#define KNEE_GAP 8 /* its columns, with the gap before */
#define REMARKS	 256

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

/* The table of steps, as far as the page has room. */
struct table {
	const struct page *page;
	const struct run_sweep *sweep;
	bool shown[COLUMN_COUNT];
	unsigned int width;
	unsigned int bar; /* columns of the longest bar; 0: no room */
	double highest;
};

static bool is_rated(const struct run_sweep *sweep)
{
	return sweep->over && !strcmp(sweep->over, "rate");
}

static const char *unit_of(const struct run_sweep *sweep)
{
	return is_rated(sweep) ? "requests/s" : "connections";
}

static bool has_server(const struct run_sweep *sweep)
{
	for (size_t i = 0; i < sweep->step_count; i++)
		if (sweep->steps[i].server_exchanges.known)
			return true;
	return false;
}

static unsigned int width_of(const struct table *table)
{
	unsigned int width = 0;

	for (unsigned int i = 0; i < COLUMN_COUNT; i++)
		width += table->shown[i] ? widths[i] : 0;
	return width;
}

/* A narrow page first omits columns that can be derived. */
static struct table table_of(const struct page *page, const struct run_sweep *sweep)
{
	static const enum column spare[] = {COLUMN_EACH, COLUMN_SERVER};
	struct table table = {.page = page, .sweep = sweep};

	for (unsigned int i = 0; i < COLUMN_COUNT; i++)
		table.shown[i] = i != COLUMN_SERVER || has_server(sweep);
	for (unsigned int i = 0; i < ARRAY_SIZE(spare) && width_of(&table) > page->width; i++)
		table.shown[spare[i]] = false;
	table.width = width_of(&table);
	for (size_t i = 0; i < sweep->step_count; i++)
		table.highest = fmax(table.highest, run_sweep_throughput(&sweep->steps[i]));
	if (table.highest > 0 && page->width >= table.width + 2 + BAR_MIN + KNEE_GAP)
		table.bar = page->width - table.width - 2 - KNEE_GAP;
	if (table.bar > BAR_MAX)
		table.bar = BAR_MAX;
	return table;
}

static void print_head(const struct table *table)
{
	const char *const names[COLUMN_COUNT] = {
		is_rated(table->sweep) ? "due/s" : "connections",
		"good/s",
		"server's/s",
		"each/s",
		"p50",
		"p99",
		"errors",
	};

	page_style(table->page, STYLE_DIM);
	for (unsigned int i = 0; i < COLUMN_COUNT; i++)
		if (table->shown[i])
			page_right(table->page, widths[i], "%s", names[i]);
	page_style(table->page, STYLE_PLAIN);
	fputc('\n', table->page->file);
}

static const char *server_rate(const struct run_sweep_step *step, char text[static SHORT_TEXT])
{
	if (!step->server_exchanges.known || !step->server_duration_ns.known)
		return "-";
	return page_rate(step->server_exchanges.value, step->server_duration_ns.value, text);
}

/* Below 10 a whole number is too coarse. */
static const char *fine_rate(double per_second, char ret_text[static SHORT_TEXT])
{
	if (per_second >= 9.995 || per_second <= 0)
		return units_format_count((uint64_t)(per_second + 0.5), ret_text, SHORT_TEXT);
	snprintf(ret_text, SHORT_TEXT, "%.*f", per_second < 0.995 ? 3 : 2, per_second);
	return ret_text;
}

/* Return a connection's good responses per second. */
static const char *rate_of_each(const struct run_sweep *sweep, const struct run_sweep_step *step,
				char text[static SHORT_TEXT])
{
	uint64_t clients = is_rated(sweep) ? sweep->connections : step->load;

	return clients ? fine_rate(run_sweep_throughput(step) / (double)clients, text) : "-";
}

/* Append a part to @text, after ", ", as far as there is room. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format,
						      ...)
{
	size_t used = strlen(text);
	va_list args;

	if (used)
		used += (size_t)snprintf(text + used, size - used, ", ");
	va_start(args, format);
	if (used < size)
		vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* Write caveats on a step's figures: "not steady, 12 never sent"; or "". */
static const char *remarks_of(const struct run_sweep_step *step, char ret_text[static REMARKS])
{
	*ret_text = '\0';
	if (!step->steady)
		add(ret_text, REMARKS, "not steady");
	if (step->first_throughput.known)
		add(ret_text, REMARKS, "measured again, %s/s at first",
		    as_count(step->first_throughput.value));
	if (step->unsent)
		add(ret_text, REMARKS, "%s never sent", as_count(step->unsent));
	if (step->limited)
		add(ret_text, REMARKS, "limited by the driver (%s)", step->limited);
	return ret_text;
}

/* Return the step from which on throughput stops growing, or the number of steps. */
static size_t knee_of(const struct run_sweep *sweep)
{
	size_t i = 0;

	if (!sweep->knee.known)
		return sweep->step_count;
	while (i < sweep->step_count && sweep->steps[i].load < sweep->knee.value)
		i++;
	return i;
}

static const char *rate_of(const struct run_sweep_target *target, uint64_t duration_ns,
			   char text[static SHORT_TEXT])
{
	return page_rate(run_sweep_good(&target->good, target->requests, target->drained),
			 duration_ns, text);
}

/* Print a row per target, below the row of all. */
static void print_targets(const struct page *page, const struct run_sweep_step *step)
{
	for (size_t i = 0; i < step->target_count; i++) {
		const struct run_sweep_target *target = &step->targets[i];
		autoitems struct items items = items_begin(page, "", LABEL);

		items_add(&items, "%s", target->name ? target->name : "(no name)");
		items_add(&items, "%s/s", rate_of(target, step->duration_ns, UNITS_ROOM));
		items_add(&items, "p50 %s", as_quantile(&target->latency, 0.5));
		items_add(&items, "p99 %s", as_quantile(&target->latency, 0.99));
		items_count(&items, "errors", target->errors);
	}
}

/* Print throughput as a bar, padded with blanks if more follows. */
static void print_bar(const struct table *table, const struct run_sweep_step *step, bool goes_on)
{
	unsigned int length = 0, columns = 0;

	if (!table->bar)
		return;
	length = (unsigned int)(run_sweep_throughput(step) / table->highest * table->bar + 0.5);
	if (!length && !goes_on)
		return;
	fputs("  ", table->page->file);
	for (; columns < length; columns++)
		fputs("\u2588", table->page->file);
	for (; goes_on && columns < table->bar; columns++)
		fputc(' ', table->page->file);
}

/* End the row: bar, knee, and remarks, on lines of their own if needed. */
static void end_row(const struct table *table, size_t index)
{
	const struct run_sweep_step *step = &table->sweep->steps[index];
	unsigned int used = table->width + (table->bar ? 2 + table->bar : 0);
	char remarks[REMARKS], text[REMARKS + sizeof(KNEE) + 2] = "";
	bool fits;

	remarks_of(step, remarks);
	if (index == knee_of(table->sweep))
		add(text, sizeof(text), KNEE);
	if (*remarks)
		add(text, sizeof(text), "%s", remarks);
	fits = used + 2 + text_columns(text) <= table->page->width;
	print_bar(table, step, *text && fits);
	if (*text && fits)
		page_left(table->page, 0, "  %s", text);
	fputc('\n', table->page->file);
	if (*text && !fits) {
		page_left(table->page, LABEL, "%s", "");
		page_wrap(table->page, LABEL, "%s", text);
	}
}

static void print_step(const struct table *table, size_t index)
{
	const struct run_sweep_step *step = &table->sweep->steps[index];
	const char *const cells[COLUMN_COUNT] = {
		as_count(step->load),
		fine_rate(run_sweep_throughput(step), UNITS_ROOM),
		server_rate(step, UNITS_ROOM),
		rate_of_each(table->sweep, step, UNITS_ROOM),
		as_quantile(&step->latency, 0.5),
		as_quantile(&step->latency, 0.99),
		as_count(step->errors),
	};

	for (unsigned int i = 0; i < COLUMN_COUNT; i++)
		if (table->shown[i])
			page_right(table->page, widths[i], "%s", cells[i]);
	end_row(table, index);
	print_targets(table->page, step);
}

/* Write "2,500 requests/s from 3 connections on", or why there is no plateau. */
static const char *plateau_of(const struct run_sweep *sweep, char ret_text[static REMARKS])
{
	if (!sweep->plateau.known)
		snprintf(ret_text, REMARKS, "none: %s",
			 sweep->unfitted ? sweep->unfitted : "not looked for");
	else if (!sweep->knee.known)
		snprintf(ret_text, REMARKS, "%s requests/s", as_count(sweep->plateau.value));
	else
		snprintf(ret_text, REMARKS, "%s requests/s from %s %s on",
			 as_count(sweep->plateau.value), as_count(sweep->knee.value),
			 sweep->knee.value == 1 && !is_rated(sweep) ? "connection"
								    : unit_of(sweep));
	return ret_text;
}

static void print_plateau(const struct page *page, const struct run_sweep *sweep)
{
	char text[REMARKS];
	autoitems struct items items = items_begin(page, "plateau", LABEL);

	page_style(page, STYLE_BOLD);
	if (!sweep->plateau.known) {
		page_left(page, LABEL, "%s", "plateau");
		page_wrap(page, LABEL, "%s", plateau_of(sweep, text));
		page_style(page, STYLE_PLAIN);
		return;
	}
	items_add(&items, "%s", plateau_of(sweep, text));
	page_style(page, STYLE_PLAIN);
	if (sweep->misfit_per_mille.known)
		items_add(&items, "steps off the fit by %.1f %%",
			  (double)sweep->misfit_per_mille.value / 10);
}

static void print_three_quarters(const struct page *page, const struct run_sweep *sweep)
{
	const struct run_sweep_step *step = sweep->three_quarters;
	struct items items;
	char remarks[REMARKS];

	if (!step)
		return;
	items = items_begin(page, "at 75 % of it", LABEL);
	items_add(&items, "%s/s due", as_count(step->load));
	items_add(&items, "%s/s", fine_rate(run_sweep_throughput(step), UNITS_ROOM));
	if (step->latency.count)
		items_time(&items, "mean", histogram_mean(&step->latency));
	items_add(&items, "p50 %s", as_quantile(&step->latency, 0.5));
	items_add(&items, "p99 %s", as_quantile(&step->latency, 0.99));
	items_add(&items, "p99.9 %s", as_quantile(&step->latency, 0.999));
	items_some(&items, "errors", step->errors);
	if (*remarks_of(step, remarks))
		items_add(&items, "%s", remarks);
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

/* Add "GET http://10.0.0.1/" or "GET of 2 targets in turn". */
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

/* Print how far apart the members of a fleet began, in the worst of the steps. */
static void print_fleet(const struct page *page, const struct run_sweep *sweep)
{
	struct report_spread spread = {0};
	autoitems struct items items = items_begin(page, "fleet", LABEL);

	for (size_t i = 0; i < sweep->step_count; i++)
		report_spread_add(&spread, sweep->steps[i].members, sweep->steps[i].member_count);
	if (!spread.members)
		return;
	report_spread_items(&items, &spread);
}

void report_sweep(const struct page *page, const struct run *run)
{
	const struct run_sweep *sweep = run->sweep;
	struct table table;
	struct items items;

	if (!sweep)
		return;
	items = items_begin(page, "", 0);
	items_add(&items, "sweep over %s", is_rated(sweep) ? "rates" : "numbers of connections");
	add_target(&items, sweep);
	if (is_rated(sweep))
		items_add(&items, "%u connections", sweep->connections);
	items_end(&items);
	print_plateau(page, sweep);
	print_three_quarters(page, sweep);
	print_fleet(page, sweep);
	if (sweep->resumed) {
		page_left(page, LABEL, "%s", "resumed");
		page_wrap(page, LABEL,
			  "%s, as its coordinator had ended; what that was measuring is in no step",
			  sweep->resumed);
	}
	if (sweep->stopped) {
		page_left(page, LABEL, "%s", "stopped");
		page_wrap(page, LABEL, "%s", sweep->stopped);
	}
	fputc('\n', page->file);
	table = table_of(page, sweep);
	print_head(&table);
	for (size_t i = 0; i < sweep->step_count; i++)
		print_step(&table, i);
}

void report_sweep_step(const struct run_sweep *sweep, const struct run_sweep_step *step, FILE *file)
{
	char remarks[REMARKS];
	const char *unit = unit_of(sweep);

	if (step == sweep->three_quarters)
		unit = "requests/s, 75 % of the plateau";
	else if (step->load == 1)
		unit = is_rated(sweep) ? "request/s" : "connection";

	fprintf(file, "%s %s: %s/s, p50 %s, p99 %s", as_count(step->load), unit,
		fine_rate(run_sweep_throughput(step), UNITS_ROOM), as_quantile(&step->latency, 0.5),
		as_quantile(&step->latency, 0.99));
	if (step->errors)
		fprintf(file, ", errors %s", as_count(step->errors));
	if (*remarks_of(step, remarks))
		fprintf(file, ", %s", remarks);
	fputc('\n', file);
	fflush(file);
}
