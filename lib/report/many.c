// SPDX-License-Identifier: MIT
/*
 * The table of many services: for each its rate, its mean time, and the part that holds most of it.
 */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

#define RATE_COLUMNS 10
#define MEAN_COLUMNS 10
#define P99_COLUMNS  12
#define LAST_COLUMNS 18 /* "socket queue 77 %"; longer text is wrapped */
#define GAP	     2
/* Age from which an open request is reported. */
#define OLD_NS NSEC_PER_SEC

/* The positions of the columns. */
struct layout {
	unsigned int name; /* columns of the name */
	bool percentiles;
	unsigned int last; /* start of the last column */
};

const char *report_name(const struct run_service *service, char buffer[static REPORT_NAME])
{
	const char *open = strchr(service->address, ':') ? "[" : "", *close = *open ? "]" : "";
	const struct run_process *first = service->process_count ? service->processes : NULL;
	char place[RUN_PLACE_NAME];
	bool placed = *run_place_name(&service->place, place);

	/* The processes of many pods have one name. */
	snprintf(buffer, REPORT_NAME, "%s %s%s%s:%u%s%.100s%s%.*s", service->protocol, open,
		 service->address, close, service->port, service->host ? " on " : "",
		 service->host ? service->host : "", placed || first ? " " : "",
		 placed	 ? (int)sizeof(place)
		 : first ? (int)sizeof(first->comm)
			 : 0,
		 placed	 ? place
		 : first ? first->comm
			 : "");
	return buffer;
}

/* Omit the "tcp" that nearly all have. */
static const char *name_of(const struct run_service *service, char buffer[static REPORT_NAME])
{
	report_name(service, buffer);
	return strncmp(buffer, "tcp ", 4) ? buffer : buffer + 4;
}

static struct layout layout_of(const struct page *page, const struct run_service **services,
			       size_t count)
{
	unsigned int most = page->width >= 80 ? 36 : 20;
	struct layout layout = {0};
	char name[REPORT_NAME];

	for (size_t i = 0; i < count; i++) {
		unsigned int columns = text_columns(name_of(services[i], name));

		if (columns <= most && columns > layout.name)
			layout.name = columns;
	}
	layout.last = layout.name + RATE_COLUMNS + MEAN_COLUMNS + GAP;
	layout.percentiles = layout.last + 2 * P99_COLUMNS + LAST_COLUMNS <= page->width;
	layout.last += layout.percentiles ? 2 * P99_COLUMNS : 0;
	return layout;
}

static void print_titles(const struct page *page, const struct layout *layout)
{
	page_style(page, STYLE_DIM);
	page_left(page, layout->name, "service");
	page_right(page, RATE_COLUMNS, "requests");
	page_right(page, MEAN_COLUMNS, "mean");
	if (layout->percentiles) {
		page_right(page, P99_COLUMNS, "p99 waiting");
		page_right(page, P99_COLUMNS, "p99 service");
	}
	page_left(page, GAP, "%s", "");
	page_wrap(page, layout->last, "most of the mean");
	page_style(page, STYLE_PLAIN);
}

static uint64_t p99_of(const struct run_stage *stage)
{
	return stage->measured && stage->histogram.count
		       ? histogram_quantile(&stage->histogram, 0.99)
		       : 0;
}

static uint64_t p99_waiting(const struct run_service *service)
{
	uint64_t accept = p99_of(&service->stages[STAGE_ACCEPT_QUEUE]);
	uint64_t socket = p99_of(&service->stages[STAGE_SOCKET_QUEUE]);

	return accept > socket ? accept : socket;
}

static bool is_old(const struct run_open *open)
{
	return open->oldest_ns.known && open->oldest_ns.value >= OLD_NS;
}

/* Write " · open 3, oldest 12.3 s", or nothing if none is old: a hanging server must be noticed. */
static const char *old_requests(const struct run_open *open, char buffer[static 96])
{
	*buffer = 0;
	if (is_old(open))
		snprintf(buffer, 96, " \u00b7 open %s, oldest %s",
			 as_count(open->read.value + open->unread.value),
			 as_time((double)open->oldest_ns.value));
	return buffer;
}

/* Print the last column, from @column on. The outcome has a line of its own if it does not fit. */
static void print_last(const struct page *page, unsigned int column,
		       const struct run_service *service, const char *text)
{
	char outcome[REPORT_OUTCOME];
	bool fits;

	report_outcome(service, outcome);
	fits = column + text_columns(text) + text_columns(outcome) <= page->width;
	page_wrap(page, column, "%s%s", text, fits ? outcome : "");
	if (fits || !*outcome)
		return;
	page_left(page, GAP, "%s", "");
	page_wrap(page, GAP, "%s", outcome + strlen(" \u00b7 "));
}

#define LAST_TEXT 1024

static void print_times(const struct page *page, const struct layout *layout,
			const struct run_service *service, const struct report_verdict *verdict)
{
	char old[96], last[LAST_TEXT];

	page_right(page, MEAN_COLUMNS, "%s", as_time(verdict->total_ns));
	if (layout->percentiles) {
		page_right(page, P99_COLUMNS, "%s", as_time((double)p99_waiting(service)));
		page_right(page, P99_COLUMNS, "%s",
			   as_time((double)p99_of(&service->stages[STAGE_SERVICE])));
	}
	page_left(page, GAP, "%s", "");
	snprintf(last, sizeof(last), "%s %s%s%s%s", verdict->part, as_share(verdict->percent),
		 *verdict->upstream ? ", for " : "", verdict->upstream,
		 old_requests(&service->open, old));
	print_last(page, layout->last, service, last);
}

/* Print why a service has no times. */
static void print_reason(const struct page *page, unsigned int column,
			 const struct run_service *service, const char *reason)
{
	char old[96], last[LAST_TEXT];

	page_left(page, GAP, "%s", "");
	old_requests(&service->open, old);
	if (reason)
		snprintf(last, sizeof(last), "%s%s", reason, old);
	else
		snprintf(last, sizeof(last), "no exchanges \u00b7 accepted %s%s",
			 as_count(service->accepted), old);
	print_last(page, column + GAP, service, last);
}

static void print_row(const struct page *page, const struct layout *layout, const struct run *run,
		      const struct run_service *service)
{
	struct report_verdict verdict = {0};
	bool judged = report_service_verdict(run, service, &verdict);
	char buffer[REPORT_NAME];
	const char *name = name_of(service, buffer);
	unsigned int column = layout->name;

	page_style(page, is_old(&service->open) ? STYLE_HOT : STYLE_PLAIN);
	page_left(page, layout->name, "%s", name);
	page_style(page, STYLE_PLAIN);
	if (text_columns(name) > layout->name) {
		fputc('\n', page->file);
		page_left(page, layout->name, "%s", "");
	}
	if (service->exchanges) {
		page_right(page, RATE_COLUMNS, "%s/s",
			   as_rate(service->exchanges, report_span(run, service)));
		column += RATE_COLUMNS;
	}
	if (verdict.part)
		print_times(page, layout, service, &verdict);
	else
		print_reason(page, column, service, judged ? verdict.text : NULL);
}

static uint64_t busyness(const struct run_service *service)
{
	return service->exchanges + report_pushed(service);
}

/* Return how long all requests took; 0: that is not known. */
static double time_taken(const struct run_service *service)
{
	return run_residence_mean(service) * (double)service->exchanges;
}

/* Order services that may hang first, then those with the most time of requests. A busy one may be a fast one. */
static int compare_services(const void *a, const void *b)
{
	const struct run_service *one = *(const struct run_service *const *)a;
	const struct run_service *other = *(const struct run_service *const *)b;

	if (is_old(&one->open) != is_old(&other->open))
		return is_old(&one->open) ? -1 : 1;
	if (time_taken(one) != time_taken(other))
		return time_taken(one) < time_taken(other) ? 1 : -1;
	if (busyness(one) != busyness(other))
		return busyness(one) < busyness(other) ? 1 : -1;
	return one->port - other->port;
}

/* Print losses, and where to read more. */
static void print_sum(const struct page *page, const struct run *run,
		      const struct run_service **services, size_t count)
{
	const struct run_service none = {0};
	uint64_t of_all = report_lost(run, &none), lost = of_all, not_timed = 0;
	autoitems struct items items = items_begin(page, "", 0);

	for (size_t i = 0; i < count; i++) {
		lost += report_lost(run, services[i]) - of_all;
		not_timed += report_not_timed(services[i]);
	}
	items_count(&items, "lost", lost);
	items_some(&items, "not timed", not_timed);
	if (!page->verbose)
		items_add(&items, "-v or --port PORT shows the stages of each");
}

/* The sum of those without a row: "and 12 more: 45 exchanges". */
static void print_rest(const struct page *page, const struct run_service **services, size_t count)
{
	uint64_t exchanges = 0;

	for (size_t i = 0; i < count; i++)
		exchanges += services[i]->exchanges;
	if (count)
		page_wrap(page, 0, "and %zu more: %s exchange%s", count, as_count(exchanges),
			  exchanges == 1 ? "" : "s");
}

void report_many(const struct page *page, const struct run *run,
		 const struct run_service **services, size_t count, size_t most)
{
	size_t shown = count < most ? count : most;
	struct layout layout;

	qsort(services, count, sizeof(*services), compare_services);
	layout = layout_of(page, services, shown);
	print_titles(page, &layout);
	for (size_t i = 0; i < shown; i++)
		print_row(page, &layout, run, services[i]);
	print_rest(page, services + shown, count - shown);
	print_sum(page, run, services, count);
}
