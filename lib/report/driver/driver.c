// SPDX-License-Identifier: MIT
/*
 * The driver's part: counts, round trips, also over time and by step, target and status, and its
 * cost. Failures are in failures.c.
 */
#include <math.h>
#include <string.h>

#include "parts.h"
#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/shared.h"
#include "sojourn/text.h"

/* A run at a rate has a longer label: "schedule delay". */
static unsigned int label_columns(const struct run_driver *driver)
{
	return driver->schedule_delay.count ? LABEL_COLUMNS + 3 : LABEL_COLUMNS;
}

void report_limited(const struct page *page, const struct run_driver *driver)
{
	if (!driver->limited)
		return;
	page_style(page, STYLE_HOT);
	page_wrap(page, 0, "LIMITED BY THE DRIVER, not by the server (%s): %s",
		  driver->limited->by ? driver->limited->by : "unknown",
		  driver->limited->why ? driver->limited->why : "no reason given");
	page_style(page, STYLE_PLAIN);
}

static void add_arrival(struct items *items, const struct run_driver *driver)
{
	if (driver->rate)
		items_add(items, "%s/s%s%s", as_count(driver->rate), driver->arrival ? " " : "",
			  driver->arrival ? driver->arrival : "");
	else if (driver->arrival && strcmp(driver->arrival, "closed"))
		items_add(items, "%s", driver->arrival);
	if (driver->think_ns)
		items_add(items, "think time %s", as_setting(driver->think_ns));
}

/* report_drivers() lists drivers of several targets. */
static void add_target(struct items *items, const struct run_driver *driver)
{
	if (driver->scenario)
		items_add(items, "scenario %s", driver->scenario);
	if (driver->scenario && !driver->target)
		return;
	if (driver->rows[RUN_ROWS_TARGET].count)
		items_add(items, "%s%s%zu targets in turn", driver->method ? driver->method : "",
			  driver->method ? " " : "", driver->rows[RUN_ROWS_TARGET].count);
	else if (driver->part_count > 1 && !driver->target)
		items_add(items, "several targets");
	else
		items_add(items, "%s%s%s", driver->method ? driver->method : "",
			  driver->method ? " " : "",
			  driver->target ? driver->target : "(no target)");
}

void report_target(const struct page *page, const struct run *run)
{
	const struct run_driver *driver = run->driver;
	autoitems struct items items = items_begin(page, "", 0);

	if (driver->part_count > 1)
		items_add(&items, "%zu drivers", driver->part_count);
	add_target(&items, driver);
	if (driver->new_connections)
		items_add(&items, "%u at a time, each on a new connection", driver->connections);
	else
		items_add(&items, "%u connection%s", driver->connections,
			  driver->connections == 1 ? "" : "s");
	if (driver->processes > 1)
		items_add(&items, "%u processes", driver->processes);
	items_add(&items, "%u thread%s", driver->threads, driver->threads == 1 ? "" : "s");
	add_arrival(&items, driver);
	items_add(&items, "%s", as_time((double)driver->duration_ns));
	if (driver->warmup_ns)
		items_add(&items, "after %s of warm-up", as_setting(driver->warmup_ns));
	if (driver->host && run->host && strcmp(driver->host, run->host))
		items_add(&items, "driven from %s", driver->host);
}

struct percentile {
	const char *label;
	double quantile;
};

/* Append "   p50 392.1 µs" for each percentile to @text. */
static void append_percentiles(char *text, size_t size, const struct histogram *h,
			       const struct percentile *percentiles, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(text);

		snprintf(text + used, size - used, "   %s %s", percentiles[i].label,
			 as_time((double)histogram_quantile(h, percentiles[i].quantile)));
	}
}

/* Column of the rate; a narrow page has it on its own line. */
#define RATE_COLUMN 60

/*
 * Append "500/s" to @text. Of drivers that measured apart it counts the time that all of them share,
 * or else says that it does not.
 */
static void append_rate(const struct run_driver *driver, uint64_t timely, const char *what,
			size_t size, char *text)
{
	const struct run_shared shared = run_driver_shared(driver);
	/* Intervals do not tell apart how requests failed. */
	const bool all = shared.apart && shared.known && !*what;
	const uint64_t duration_ns = all ? shared.duration_ns : driver->duration_ns;
	size_t used = strlen(text);

	snprintf(text + used, size - used, " \u00b7 %s/s%s",
		 as_rate(all ? shared.requests : timely, duration_ns), what);
	if (!shared.apart)
		return;
	used = strlen(text);
	snprintf(text + used, size - used, " while %s measured, %s",
		 all ? "all drivers" : "any driver", as_time((double)duration_ns));
}

/*
 * Write "1,000 requests · 500/s", or after failures the good ones: a quick failure is no
 * throughput.
 */
static void format_rate(const struct run_driver *driver, size_t size, char *ret_text)
{
	struct run_outcome outcome = run_driver_outcome(driver);
	uint64_t timely = run_timely(outcome.good, driver->drained);

	if (outcome.failed)
		snprintf(ret_text, size, "%s of %s good", as_count(outcome.good),
			 as_count(outcome.tried));
	else
		snprintf(ret_text, size, "%s requests", as_count(outcome.good));
	if (driver->duration_ns && (outcome.good || !outcome.failed))
		append_rate(driver, timely, outcome.failed ? " good" : "", size, ret_text);
}

static void print_rate(const struct page *page, const struct run_driver *driver, unsigned int used)
{
	char rate[4 * SHORT_TEXT + 64];
	unsigned int columns, gap;

	format_rate(driver, sizeof(rate), rate);
	columns = text_columns(rate);
	gap = used + 3 > RATE_COLUMN || RATE_COLUMN + columns > page->width ? 3
									    : RATE_COLUMN - used;
	if (used + gap + columns <= page->width) {
		page_left(page, gap, "%s", "");
	} else {
		fputc('\n', page->file);
		page_left(page, label_columns(driver), "%s", "");
	}
	page_left(page, 0, "%s", rate);
}

/* Print "round trip   mean 406 µs   p50 …   p99 …", and the rate if @rated. */
static void print_headline(const struct page *page, const struct run_driver *driver,
			   const char *label, const struct histogram *h, bool rated)
{
	static const struct percentile percentiles[] = {{"p50", 0.5}, {"p99", 0.99}};
	int columns = (int)label_columns(driver);
	char text[160];

	if (h->count) {
		snprintf(text, sizeof(text), "%-*smean %s", columns, label,
			 as_time(histogram_mean(h)));
		append_percentiles(text, sizeof(text), h, percentiles, ARRAY_SIZE(percentiles));
	} else {
		snprintf(text, sizeof(text), "%-*sno request was completed", columns, label);
	}
	page_style(page, STYLE_BOLD);
	page_left(page, 0, "%s", text);
	page_style(page, STYLE_PLAIN);
	if (rated)
		print_rate(page, driver, text_columns(text));
	fputc('\n', page->file);
}

/* Mention late responses if they are many. */
static void print_drained(const struct page *page, const struct run_driver *driver)
{
	if (driver->drained > driver->requests / 100)
		page_wrap(page, 0,
			  "note: responses that came after the measured phase are in the "
			  "percentiles, but not all of them in the rate");
}

void report_response_time(const struct page *page, const struct run_driver *driver)
{
	if (!driver->rate)
		return;
	print_headline(page, driver, "response time", &driver->response_time, true);
	print_drained(page, driver);
}

void report_round_trip(const struct page *page, const struct run_driver *driver)
{
	print_headline(page, driver, "round trip", &driver->round_trip, !driver->rate);
	if (!driver->rate)
		print_drained(page, driver);
}

static void report_histogram(const struct page *page, const struct run_driver *driver,
			     const char *label, const struct histogram *h)
{
	/* High percentiles need enough values to differ from the maximum. */
	static const struct {
		struct percentile percentile;
		uint64_t least;
	} rows[] = {
		{{"p50", 0.5}, 1},     {{"p90", 0.9}, 1},	    {{"p99", 0.99}, 1},
		{{"p99.9", 0.999}, 1}, {{"p99.99", 0.9999}, 20000}, {{"p99.999", 0.99999}, 200000},
		{{"max", 1.0}, 1},
	};
	autoitems struct items items = items_begin(page, label, label_columns(driver));

	items_add(&items, "%s", as_count(h->count));
	if (h->count)
		items_time(&items, "mean", histogram_mean(h));
	if (h->count)
		items_time(&items, "deviation", histogram_stddev(h));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t value = histogram_quantile(h, rows[i].percentile.quantile);

		if (h->count >= rows[i].least)
			items_add(&items, "%s %s", rows[i].percentile.label,
				  as_time((double)value));
	}
}

static void report_responses(const struct page *page, const struct run_driver *driver)
{
	static const char *const classes[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
	autoitems struct items items = items_begin(page, "responses", label_columns(driver));

	_Static_assert(ARRAY_SIZE(classes) == ARRAY_SIZE(driver->status), "a name for each class");
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (driver->status[i])
			items_add(&items, "%s %s", driver->method || i ? classes[i] : "complete",
				  as_count(driver->status[i]));
	items_add(&items, "in %s", as_bytes(driver->bytes_in));
	items_add(&items, "out %s", as_bytes(driver->bytes_out));
	items_count(&items, "errors", run_driver_errors(driver));
}

static void report_streams(const struct page *page, const struct run_driver *driver)
{
	autoitems struct items items = items_begin(page, "streams", label_columns(driver));

	items_add(&items, "up to %s at a time on a connection", as_count(driver->streams));
}

static bool is_grpc(const struct run_driver *driver)
{
	for (size_t i = 0; i < RUN_GRPC_STATUS_COUNT; i++)
		if (driver->grpc[i])
			return true;
	return false;
}

static void report_grpc(const struct page *page, const struct run_driver *driver)
{
	autoitems struct items items = items_begin(page, "gRPC", label_columns(driver));

	for (size_t i = 0; i < RUN_GRPC_STATUS_COUNT; i++)
		if (driver->grpc[i])
			items_add(&items, "%s %s", as_words(run_grpc_status_names[i]),
				  as_count(driver->grpc[i]));
	/* Of unary calls these say nothing new. */
	if (driver->messages_sent != driver->requests ||
	    driver->messages_received != driver->requests) {
		items_count(&items, "messages sent", driver->messages_sent);
		items_count(&items, "received", driver->messages_received);
	}
}

static void report_datagrams(const struct page *page, const struct run_driver *driver)
{
	bool any = false;

	for (unsigned int i = 0; i < RUN_DATAGRAM_COUNT; i++) {
		if (!driver->datagrams[i])
			continue;
		page_left(page, label_columns(driver), "%s", any ? "" : "datagrams");
		page_right(page, 10, "%s", as_count(driver->datagrams[i]));
		page_left(page, 1, "%s", "");
		page_wrap(page, label_columns(driver) + 11, "%s: %s", run_datagram_names[i],
			  run_datagram_help[i]);
		any = true;
	}
}

static void report_cpu(const struct page *page, const struct run_driver *driver)
{
	uint64_t cpu_ns = driver->cpu_user_ns + driver->cpu_system_ns;
	autoitems struct items items = items_begin(page, "driver CPU", label_columns(driver));

	items_add(&items, "%s", as_time((double)cpu_ns));
	items_time(&items, "user", (double)driver->cpu_user_ns);
	items_time(&items, "system", (double)driver->cpu_system_ns);
	if (driver->cpu_wait_ns.known)
		items_add(&items, "waited %s for one", as_time((double)driver->cpu_wait_ns.value));
	if (driver->requests)
		items_add(&items, "%s per 100,000 requests",
			  as_time((double)cpu_ns * 1e5 / (double)driver->requests));
}

/* ---- over time ---- */

struct rates {
	unsigned int count;
	double mean, deviation, lowest, highest; /* requests/s */
};

/* Use full intervals only: the last one is shorter. */
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
	uint64_t most = 0;

	for (size_t i = 0; i < driver->interval_count; i++)
		if (driver->intervals[i].ports.known && driver->intervals[i].ports.value > most)
			most = driver->intervals[i].ports.value;
	if (most && driver->ports.capacity.known)
		items_add(items, "source ports at most %s of %s", as_count(most),
			  as_count(driver->ports.capacity.value));
}

/* Print how the rate varied, from three intervals on. */
static void report_intervals(const struct page *page, const struct run_driver *driver)
{
	struct rates rates = measure_rates(driver);
	autoitems struct items items = items_begin(page, "intervals", label_columns(driver));

	if (rates.count < 3)
		return;
	items_add(&items, "%u of %s", rates.count, as_setting(driver->interval_ns));
	items_add(&items, "lowest %s/s", as_rate_of(rates.lowest));
	items_add(&items, "highest %s/s", as_rate_of(rates.highest));
	items_add(&items, "deviation %s/s", as_rate_of(rates.deviation));
	add_ports(&items, driver);
	if (driver->drift.known)
		items_add(&items, "correlation with time %+.2f", driver->drift.value);
}

/* ---- by step, target and status, and by driver ---- */

/* Limits the shares of a step to its line. */
#define JOINED_COLUMNS 56

static void add_histogram(struct items *items, const char *label, const struct histogram *h)
{
	if (h->count)
		items_add(items, "%s mean %s, p50 %s, p99 %s, max %s", label,
			  as_time(histogram_mean(h)), as_time((double)histogram_quantile(h, 0.5)),
			  as_time((double)histogram_quantile(h, 0.99)), as_time((double)h->max));
}

static void add_errors(struct items *items, const struct run_row *row)
{
	if (!run_row_errors(row))
		return;
	items_count(items, "errors", run_row_errors(row));
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		if (row->errors[i])
			items_add(items, "%s %s", as_words(run_error_names[i]),
				  as_count(row->errors[i]));
}

/* Add where a step's joined exchanges spent their time; NULL: not a step, or none joined. */
static void add_joined(struct items *items, const struct run_joined *joined,
		       const struct run_joined_step *step)
{
	char shares[256];

	if (!step || !step->count)
		return;
	report_shares(joined, &step->sum, JOINED_COLUMNS, sizeof(shares), shares);
	items_add(items, "%s joined: mean %s, of it %s", as_count(step->count),
		  as_time((double)run_parts_total(&step->sum) / (double)step->count), shares);
}

static const struct run_joined_step *joined_step(const struct run *run, enum run_rows_by by,
						 size_t number)
{
	if (by != RUN_ROWS_STEP || !run->joined || number >= run->joined->step_count)
		return NULL;
	return &run->joined->steps[number];
}

static void add_p50_p99(struct items *items, const struct histogram *h)
{
	items_time(items, "p50", (double)histogram_quantile(h, 0.5));
	items_time(items, "p99", (double)histogram_quantile(h, 0.99));
}

/* Add the percentiles shown without -v. */
static void add_quantiles(struct items *items, const struct run_row *row)
{
	const struct histogram *h =
		row->response_time.count ? &row->response_time : &row->round_trip;

	if (h->count)
		add_p50_p99(items, h);
}

static void report_row(const struct page *page, const struct run *run, const char *label,
		       const struct run_row *row, const struct run_joined_step *step)
{
	const struct run_driver *driver = run->driver;
	autoitems struct items items = items_begin(page, label, label_columns(driver));

	items_add(&items, "%s", row->name ? row->name : "(no name)");
	items_add(&items, "%s", as_count(row->requests));
	/* A row has no intervals, which would say what is of the time that all drivers share. */
	if (driver->duration_ns && !run_driver_shared(driver).apart)
		items_add(&items, "%s/s", as_rate(run_row_timely(row), driver->duration_ns));
	add_errors(&items, row);
	if (page->verbose) {
		add_histogram(&items, "response time", &row->response_time);
		add_histogram(&items, "round trip", &row->round_trip);
	} else {
		add_quantiles(&items, row);
	}
	add_joined(&items, run->joined, step);
	if (row->target && page->verbose)
		items_add(&items, "%s%s%s", row->method ? row->method : "", row->method ? " " : "",
			  row->target);
}

/* A large scenario has many rows, and so has a large fleet. */
static const size_t most_rows[] = {[TIGHT_NOT] = 8, [TIGHT_SHORT] = 2, [TIGHT_MOST] = 0};

static size_t rows_of(const struct page *page, size_t count)
{
	size_t most = most_rows[page->tight];

	return page->verbose || count <= most ? count : most;
}

/* Count those of @label that have no row, if any. */
static void report_more(const struct page *page, const struct run_driver *driver, const char *label,
			size_t shown, size_t count)
{
	if (shown == count)
		return;
	page_left(page, label_columns(driver), "%s", shown ? "" : label);
	page_wrap(page, label_columns(driver), "%s%zu%s with -v", shown ? "and " : "",
		  count - shown, shown ? " more" : "");
}

static void report_rows_by(const struct page *page, const struct run *run, enum run_rows_by by)
{
	const struct run_row_list *rows = &run->driver->rows[by];
	size_t shown = rows_of(page, rows->count);

	for (size_t i = 0; i < shown; i++)
		report_row(page, run, i ? "" : run_rows_names[by], &rows->list[i],
			   joined_step(run, by, i));
	report_more(page, run->driver, run_rows_names[by], shown, rows->count);
}

/* Print statuses only if there are several; failures name theirs anyway. */
static void report_rows(const struct page *page, const struct run *run)
{
	report_rows_by(page, run, RUN_ROWS_STEP);
	report_rows_by(page, run, RUN_ROWS_TARGET);
	if (page->verbose && run->driver->rows[RUN_ROWS_STATUS].count > 1)
		report_rows_by(page, run, RUN_ROWS_STATUS);
}

/* Drivers that began and ended within this share of the phase count as together. */
#define TOGETHER 0.01

/* Add the target, times and errors in which a driver differs from all of them together. */
static void add_apart(struct items *items, const struct run_driver *driver,
		      const struct run_part *part)
{
	double offset_ns = (double)(part->begin_ns - driver->begin_ns);
	double least_ns = TOGETHER * (double)driver->duration_ns;

	/* Neither has one if the drivers had several targets, or a scenario. */
	if (!text_same(part->target, driver->target))
		items_add(items, "%s", part->target ? part->target : "(no target)");
	if (offset_ns >= least_ns ||
	    fabs((double)part->duration_ns - (double)driver->duration_ns) >= least_ns) {
		items_time(items, "from", offset_ns);
		items_time(items, "for", (double)part->duration_ns);
	}
	items_some(items, "errors", part->errors);
}

static void report_part_of(const struct page *page, const struct run_driver *driver, size_t i)
{
	const struct run_part *part = &driver->parts[i];
	autoitems struct items items = items_begin(page, i ? "" : "drivers", label_columns(driver));

	items_add(&items, "%s", part->host ? part->host : "(unknown host)");
	items_add(&items, "%u connection%s", part->connections, part->connections == 1 ? "" : "s");
	items_add(&items, "%s/s",
		  as_rate(run_timely(part->requests, part->drained), part->duration_ns));
	if (part->latency.count)
		add_p50_p99(&items, &part->latency);
	else
		items_add(&items, "no request was completed");
	add_apart(&items, driver, part);
}

/* Print each of several drivers. */
static void report_drivers(const struct page *page, const struct run_driver *driver)
{
	size_t shown = rows_of(page, driver->part_count);

	if (driver->part_count < 2)
		return;
	for (size_t i = 0; i < shown; i++)
		report_part_of(page, driver, i);
	report_more(page, driver, "drivers", shown, driver->part_count);
}

void report_spread_add(struct report_spread *spread, const struct run_fleet_member *members,
		       size_t count)
{
	if (count > spread->members)
		spread->members = count;
	for (size_t i = 0; i < count; i++) {
		const struct run_number *skew = &members[i].start_skew_ns;
		const struct run_number *doubt = &members[i].clock_uncertainty_ns;

		if (skew->known && skew->value > spread->skew_ns)
			spread->skew_ns = skew->value;
		if (doubt->known && doubt->value > spread->doubt_ns)
			spread->doubt_ns = doubt->value;
	}
}

void report_spread_items(struct items *items, const struct report_spread *spread)
{
	items_add(items, "%zu member%s", spread->members, spread->members == 1 ? "" : "s");
	items_time(items, "began within", (double)spread->skew_ns);
	items_time(items, "clocks compared to within", (double)spread->doubt_ns);
}

static void report_fleet(const struct page *page, const struct run_driver *driver)
{
	struct report_spread spread = {0};
	autoitems struct items items = items_begin(page, "fleet", label_columns(driver));

	if (!driver->member_count)
		return;
	report_spread_add(&spread, driver->members, driver->member_count);
	report_spread_items(&items, &spread);
	for (size_t i = 0; i < driver->member_count; i++)
		if (driver->members[i].limited)
			items_add(&items, "%s did not keep up", driver->members[i].host);
}

void report_driver_rows(const struct page *page, const struct run *run)
{
	report_rows(page, run);
	report_datagrams(page, run->driver);
	report_drivers(page, run->driver);
	report_fleet(page, run->driver);
}

/* Both are equal for responses read at once. */
static bool is_first_byte_apart(const struct run_driver *driver)
{
	const struct histogram *first = &driver->first_byte, *all = &driver->round_trip;

	return first->count &&
	       (histogram_mean(all) > 1.01 * histogram_mean(first) ||
		histogram_quantile(all, 0.99) > histogram_quantile(first, 0.99) * 101 / 100);
}

void report_driver(const struct page *page, const struct run *run)
{
	const struct run_driver *driver = run->driver;

	if (driver->rate)
		report_histogram(page, driver, "response time", &driver->response_time);
	report_histogram(page, driver, "round trip", &driver->round_trip);
	if (driver->schedule_delay.count)
		report_histogram(page, driver, "schedule delay", &driver->schedule_delay);
	if (is_first_byte_apart(driver))
		report_histogram(page, driver, "first byte", &driver->first_byte);
	report_histogram(page, driver, "connect", &driver->connect);
	if (driver->tls.count)
		report_histogram(page, driver, "TLS", &driver->tls);
	report_intervals(page, driver);
	if (driver->streams > 1)
		report_streams(page, driver);
	report_responses(page, driver);
	if (is_grpc(driver))
		report_grpc(page, driver);
	report_cpu(page, driver);
}

/* Print percentiles that the distribution does not show. */
void report_beyond(const struct page *page, const struct run_driver *driver)
{
	const struct histogram *h = run_driver_latency(driver);
	autoitems struct items items = items_begin(page, "", label_columns(driver));

	if (!h->count || page->tight == TIGHT_MOST)
		return;
	items_time(&items, "p90", (double)histogram_quantile(h, 0.9));
	items_time(&items, "p99.9", (double)histogram_quantile(h, 0.999));
	items_time(&items, "max", (double)h->max);
	if (driver->new_connections && driver->connect.count)
		items_add(&items, "connecting %s (p50)",
			  as_time((double)histogram_quantile(&driver->connect, 0.5)));
	items_add(&items, "in %s", as_bytes(driver->bytes_in));
}
