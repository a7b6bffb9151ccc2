/* SPDX-License-Identifier: MIT */
/* The driver's part: what it did, how long its round trips were, what went wrong, what it cost. */
#include <string.h>

#include "report_parts.h"

/* Labels of a run at a rate are longer: "schedule delay". */
unsigned int report_driver_columns(const struct run_driver *driver)
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
	char text[SHORT_TEXT];

	if (driver->rate)
		items_add(items, "%s/s%s%s", page_count(driver->rate, text),
			  driver->arrival ? " " : "", driver->arrival ? driver->arrival : "");
	else if (driver->arrival && strcmp(driver->arrival, "closed"))
		items_add(items, "%s", driver->arrival);
	if (driver->think_ns)
		items_add(items, "think time %s", page_time((double)driver->think_ns, text));
}

/* Drivers of several targets: report_parts() lists them. */
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
	struct items items = items_begin(page, "", 0);
	char text[SHORT_TEXT];

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
	items_add(&items, "%s", page_time((double)driver->duration_ns, text));
	if (driver->warmup_ns)
		items_add(&items, "after %s of warm-up",
			  page_time((double)driver->warmup_ns, text));
	if (driver->host && run->host && strcmp(driver->host, run->host))
		items_add(&items, "driven from %s", driver->host);
	items_end(&items);
}

struct percentile {
	const char *label;
	double quantile;
};

/* "   p50 392.1 µs" each, appended to @text. */
static void append_percentiles(char *text, size_t size, const struct histogram *h,
			       const struct percentile *percentiles, size_t count)
{
	char value[SHORT_TEXT];

	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(text);

		page_time((double)histogram_quantile(h, percentiles[i].quantile), value);
		snprintf(text + used, size - used, "   %s %s", percentiles[i].label, value);
	}
}

/* The rate stands at this column, or on a line of its own where the page is too narrow. */
#define RATE_COLUMN 60

static void print_rate(const struct page *page, const struct run_driver *driver, unsigned int used)
{
	char rate[2 * SHORT_TEXT + 16], requests[SHORT_TEXT], each[SHORT_TEXT];

	page_count(driver->requests, requests);
	page_rate(run_driver_timely(driver), driver->duration_ns, each);
	if (driver->duration_ns)
		snprintf(rate, sizeof(rate), "%s requests \u00b7 %s/s", requests, each);
	else
		snprintf(rate, sizeof(rate), "%s requests", requests);
	if (used + 3 + page_columns(rate) > page->width) {
		fputc('\n', page->file);
		page_left(page, report_driver_columns(driver), "%s", "");
		page_left(page, 0, "%s", rate);
	} else {
		page_left(page, 0, "%*s%s", used + 3 > RATE_COLUMN ? 3 : (int)(RATE_COLUMN - used),
			  "", rate);
	}
}

/* "round trip   mean 406 µs   p50 …   p99 …", and the rate if @rated. */
static void print_headline(const struct page *page, const struct run_driver *driver,
			   const char *label, const struct histogram *h, bool rated)
{
	static const struct percentile percentiles[] = {{"p50", 0.5}, {"p99", 0.99}};
	int columns = (int)report_driver_columns(driver);
	char text[160], mean[SHORT_TEXT];

	if (h->count) {
		page_time(histogram_mean(h), mean);
		snprintf(text, sizeof(text), "%-*smean %s", columns, label, mean);
		append_percentiles(text, sizeof(text), h, percentiles, ARRAY_SIZE(percentiles));
	} else {
		snprintf(text, sizeof(text), "%-*sno request was completed", columns, label);
	}
	page_style(page, STYLE_BOLD);
	page_left(page, 0, "%s", text);
	page_style(page, STYLE_PLAIN);
	if (rated)
		print_rate(page, driver, page_columns(text));
	fputc('\n', page->file);
}

/* Said where they are many. */
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
	/* The far ones need enough values to be more than another name of the largest. */
	static const struct {
		struct percentile percentile;
		uint64_t least;
	} rows[] = {
		{{"p50", 0.5}, 1},     {{"p90", 0.9}, 1},	    {{"p99", 0.99}, 1},
		{{"p99.9", 0.999}, 1}, {{"p99.99", 0.9999}, 20000}, {{"p99.999", 0.99999}, 200000},
		{{"max", 1.0}, 1},
	};
	struct items items = items_begin(page, label, report_driver_columns(driver));
	char text[SHORT_TEXT];

	items_add(&items, "%s", page_count(h->count, text));
	if (h->count)
		items_add(&items, "mean %s", page_time(histogram_mean(h), text));
	if (h->count)
		items_add(&items, "deviation %s", page_time(histogram_stddev(h), text));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t value = histogram_quantile(h, rows[i].percentile.quantile);

		if (h->count >= rows[i].least)
			items_add(&items, "%s %s", rows[i].percentile.label,
				  page_time((double)value, text));
	}
	items_end(&items);
}

static void report_responses(const struct page *page, const struct run_driver *driver)
{
	static const char *const classes[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
	struct items items = items_begin(page, "responses", report_driver_columns(driver));
	char text[SHORT_TEXT];

	_Static_assert(ARRAY_SIZE(classes) == ARRAY_SIZE(driver->status), "a name for each class");
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (driver->status[i])
			items_add(&items, "%s %s", driver->method || i ? classes[i] : "complete",
				  page_count(driver->status[i], text));
	items_add(&items, "in %s", page_bytes(driver->bytes_in, text));
	items_add(&items, "out %s", page_bytes(driver->bytes_out, text));
	items_add(&items, "errors %s", page_count(run_driver_errors(driver), text));
	items_end(&items);
}

/* Requests beyond what the server allows wait for their turn. */
static void report_streams(const struct page *page, const struct run_driver *driver)
{
	struct items items = items_begin(page, "streams", report_driver_columns(driver));
	char text[SHORT_TEXT];

	items_add(&items, "up to %s at a time on a connection", page_count(driver->streams, text));
	if (driver->streams_allowed.known && driver->streams_allowed.value < driver->streams)
		items_add(&items, "the server allows only %s, the others wait",
			  page_count(driver->streams_allowed.value, text));
	items_end(&items);
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
	struct items items = items_begin(page, "gRPC", report_driver_columns(driver));
	char text[SHORT_TEXT], words[SHORT_TEXT];

	for (size_t i = 0; i < RUN_GRPC_STATUS_COUNT; i++)
		if (driver->grpc[i])
			items_add(&items, "%s %s", page_words(run_grpc_status_names[i], words),
				  page_count(driver->grpc[i], text));
	items_end(&items);
}

/* When it occurred, and what this host's numbers say to it. */
static void report_failure(const struct page *page, const struct run_driver *driver,
			   const char *kind)
{
	char first[SHORT_TEXT], last[SHORT_TEXT], rate[SHORT_TEXT];

	for (size_t i = 0; i < driver->failure_count; i++) {
		const struct run_failure *failure = &driver->failures[i];

		if (strcmp(failure->kind, kind))
			continue;
		page_left(page, report_driver_columns(driver) + 11, "%s", "");
		page_wrap(page, report_driver_columns(driver) + 11, "from %s to %s, %s/s%s%s",
			  page_time((double)failure->first_ns, first),
			  page_time((double)failure->last_ns, last),
			  page_rate(failure->count, driver->duration_ns, rate),
			  failure->explanation ? "; " : "",
			  failure->explanation ? failure->explanation : "");
	}
}

static void report_errors(const struct page *page, const struct run_driver *driver)
{
	char text[SHORT_TEXT], words[SHORT_TEXT];
	bool any = false;

	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++) {
		if (!driver->errors[i])
			continue;
		page_left(page, report_driver_columns(driver), "%s", any ? "" : "errors");
		page_right(page, 10, "%s", page_count(driver->errors[i], text));
		page_left(page, 1, "%s", "");
		page_wrap(page, report_driver_columns(driver) + 11, "%s: %s",
			  page_words(run_error_names[i], words), run_error_help[i]);
		report_failure(page, driver, run_error_names[i]);
		any = true;
	}
}

static void report_datagrams(const struct page *page, const struct run_driver *driver)
{
	char text[SHORT_TEXT];
	bool any = false;

	for (unsigned int i = 0; i < RUN_DATAGRAM_COUNT; i++) {
		if (!driver->datagrams[i])
			continue;
		page_left(page, report_driver_columns(driver), "%s", any ? "" : "datagrams");
		page_right(page, 10, "%s", page_count(driver->datagrams[i], text));
		page_left(page, 1, "%s", "");
		page_wrap(page, report_driver_columns(driver) + 11, "%s: %s", run_datagram_names[i],
			  run_datagram_help[i]);
		any = true;
	}
}

static void report_cpu(const struct page *page, const struct run_driver *driver)
{
	uint64_t cpu_ns = driver->cpu_user_ns + driver->cpu_system_ns;
	struct items items = items_begin(page, "driver CPU", report_driver_columns(driver));
	char text[SHORT_TEXT];

	items_add(&items, "%s", page_time((double)cpu_ns, text));
	items_add(&items, "user %s", page_time((double)driver->cpu_user_ns, text));
	items_add(&items, "system %s", page_time((double)driver->cpu_system_ns, text));
	if (driver->cpu_wait_ns.known)
		items_add(&items, "waited %s for one",
			  page_time((double)driver->cpu_wait_ns.value, text));
	if (driver->requests)
		items_add(&items, "%s per 100,000 requests",
			  page_time((double)cpu_ns * 1e5 / (double)driver->requests, text));
	items_end(&items);
}

void report_driver(const struct page *page, const struct run *run)
{
	const struct run_driver *driver = run->driver;

	if (driver->rate)
		report_histogram(page, driver, "response time", &driver->response_time);
	report_histogram(page, driver, "round trip", &driver->round_trip);
	if (driver->schedule_delay.count)
		report_histogram(page, driver, "schedule delay", &driver->schedule_delay);
	if (driver->first_byte.count)
		report_histogram(page, driver, "first byte", &driver->first_byte);
	report_histogram(page, driver, "connect", &driver->connect);
	if (driver->tls.count)
		report_histogram(page, driver, "TLS", &driver->tls);
	report_intervals(page, driver);
	report_rows(page, run);
	if (driver->streams > 1)
		report_streams(page, driver);
	report_responses(page, driver);
	if (is_grpc(driver))
		report_grpc(page, driver);
	report_errors(page, driver);
	report_datagrams(page, driver);
	report_cpu(page, driver);
	report_drivers(page, driver);
}
