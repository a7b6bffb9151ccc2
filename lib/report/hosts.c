// SPDX-License-Identifier: MIT
/*
 * The hosts of one service, and its pods or containers there, compared. The first line says which of them is the
 * slow one, and each has a row; compared.c says which services these are. Rows have the mean round trip of the
 * joined exchanges if the driver's side is known, and the mean at the server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

#define COUNT_COLUMNS 12
#define TIME_COLUMNS  15
/* Of a part and its share. */
#define PART_COLUMNS 24U
#define GAP	     2
/* Widest name that does not push its row aside. */
#define NAME_MOST 40U
/* A host's name, a pod's and its namespace. */
#define ROW_NAME  REPORT_HOST_NAME
#define HOST_MOST 255

/* With fewer requests a single one could decide. */
#define FEWEST 30
/* A host is the slow one if its mean exceeds that of the others by so much. */
#define SLOWER 1.25
/* A request that is open for longer may never be answered. */
#define OLD_NS NSEC_PER_SEC

struct host_row {
	const struct run_service *first; /* its host, pod or container are the row's */
	size_t host_length;		 /* with which the name begins */
	char name[ROW_NAME];
	const struct run_joined_step *joined; /* NULL: no joined exchange */
	const struct run_service *busiest;
	uint64_t exchanges;
	uint64_t timed;
	double residence_ns; /* sum of the timed exchanges */
	uint64_t open;
	uint64_t oldest_ns;
	uint64_t lost;
	struct histogram service;
	bool unknown; /* no times, since: */
	char why[320];
};

/* A host that got no request is in the table, but not compared. */
static bool is_idle(const struct host_row *row)
{
	return !row->exchanges && !row->open;
}

struct hosts {
	const struct run *run;
	struct host_row *rows;
	size_t count;
	bool joined; /* all have joined exchanges, so that their means are round trips */
	/* Of the rows: "host", "pod", "container", or both, as "host and pod". */
	char kind[24];
	char plural[24];
};

/* ---- the rows ---- */

static struct host_row *row_of(struct hosts *hosts, const struct run_service *service)
{
	struct host_row *row;

	for (size_t i = 0; i < hosts->count; i++)
		if (run_same_instance(hosts->rows[i].first, service))
			return &hosts->rows[i];
	row = &hosts->rows[hosts->count++];
	row->first = service;
	row->joined = report_joined_of(hosts->run, service);
	return row;
}

/* Name the rows by what they differ in: by host, by pod or container, or by both. */
static void name_rows(struct hosts *hosts)
{
	bool pods = false, containers = false, several = false;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct run_place *place = &hosts->rows[i].first->place;

		pods |= place->pod[0] || place->pod_uid[0];
		containers |= !place->pod[0] && !place->pod_uid[0] &&
			      (place->container[0] || place->container_id[0]);
		several |= !text_same(hosts->rows[i].first->host, hosts->rows[0].first->host);
	}
	several |= hosts->rows[0].first->host && !pods && !containers;
	snprintf(hosts->kind, sizeof(hosts->kind), "%s%s%s", several ? "host" : "",
		 several && (pods || containers) ? " and " : "",
		 pods	      ? "pod"
		 : containers ? "container"
			      : "");
	snprintf(hosts->plural, sizeof(hosts->plural), "%s",
		 several ? "hosts"
		 : pods	 ? "pods"
			 : "containers");
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_row *row = &hosts->rows[i];
		char place[RUN_PLACE_NAME];

		run_place_name(&row->first->place, place);
		if (!several && !*place)
			strcpy(place, "the host itself");
		snprintf(row->name, sizeof(row->name), "%.*s%s%s", HOST_MOST,
			 several && row->first->host ? row->first->host : "",
			 several && *place ? " " : "", place);
		if (several && row->first->host)
			row->host_length = strnlen(row->first->host, HOST_MOST);
	}
}

static void add_service(struct host_row *row, const struct run *run,
			const struct run_service *service)
{
	const struct run_service none = {0};
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;
	struct report_verdict verdict = {0};

	if (!row->busiest || service->exchanges > row->busiest->exchanges)
		row->busiest = service;
	row->exchanges += service->exchanges;
	row->timed += timed;
	row->residence_ns += run_residence_mean(service) * (double)timed;
	row->open += service->open.read.value + service->open.unread.value;
	if (service->open.oldest_ns.value > row->oldest_ns)
		row->oldest_ns = service->open.oldest_ns.value;
	row->lost += report_lost(run, service) - report_lost(run, &none);
	histogram_add(&row->service, &service->stages[STAGE_SERVICE].histogram);
	if (service->exchanges && report_service_verdict(run, service, &verdict) && !verdict.part) {
		row->unknown = true;
		snprintf(row->why, sizeof(row->why), "%.319s", verdict.text);
	}
}

/* A stage takes accept_queue's mean over connections, so only the timed exchanges' sum is divided. */
static double residence_of(const struct host_row *row)
{
	return row->timed ? row->residence_ns / (double)row->timed : 0;
}

static double mean_of(const struct hosts *hosts, const struct host_row *row)
{
	if (!hosts->joined)
		return residence_of(row);
	/* Without the wait before sending, which is the driver's: all hosts share its connections. */
	return row->joined ? (double)row->joined->sum.round_trip_ns / (double)row->joined->count
			   : 0;
}

static uint64_t weight_of(const struct hosts *hosts, const struct host_row *row)
{
	if (!hosts->joined)
		return row->timed;
	return row->joined ? row->joined->count : 0;
}

static bool is_old(const struct host_row *row)
{
	return row->oldest_ns >= OLD_NS;
}

/* Order hosts that may hang first, then those whose times are known, the slowest first; idle last. */
static int compare_rows(const void *a, const void *b, void *user)
{
	const struct hosts *hosts = user;
	const struct host_row *one = a, *other = b;

	if (is_old(one) != is_old(other))
		return is_old(one) ? -1 : 1;
	if (is_idle(one) != is_idle(other))
		return is_idle(one) ? 1 : -1;
	if (one->unknown != other->unknown)
		return one->unknown ? 1 : -1;
	if (mean_of(hosts, one) != mean_of(hosts, other))
		return mean_of(hosts, one) < mean_of(hosts, other) ? 1 : -1;
	return strcmp(one->name, other->name);
}

static void hosts_free(struct hosts *hosts)
{
	if (!hosts)
		return;
	free(hosts->rows);
	free(hosts);
}
DEFINE_CLEANUP(struct hosts *, hosts_free)

static bool open_hosts(const struct run *run, struct hosts **ret_hosts)
{
	const struct report_compared compared = report_compared(run);
	CLEANUP(cleanup_hosts_free) struct hosts *hosts = NULL;

	if (!compared.ports.count)
		return false;
	hosts = calloc(1, sizeof(*hosts));
	if (!hosts)
		return false;
	hosts->run = run;
	hosts->rows = calloc(run->service_count, sizeof(*hosts->rows));
	if (!hosts->rows)
		return false;
	for (size_t i = 0; i < run->service_count; i++)
		if (report_is_compared(&compared, run, &run->services[i]))
			add_service(row_of(hosts, &run->services[i]), run, &run->services[i]);
	if (!hosts->count)
		return false;
	name_rows(hosts);
	hosts->joined = true;
	for (size_t i = 0; i < hosts->count; i++)
		hosts->joined &= !hosts->rows[i].exchanges || hosts->rows[i].joined;
	qsort_r(hosts->rows, hosts->count, sizeof(*hosts->rows), compare_rows, hosts);
	*ret_hosts = TAKE_PTR(hosts);
	return true;
}

/* ---- the answer ---- */

/* Write "service 97 %": the largest part of the host's mean. */
static void name_part(const struct hosts *hosts, const struct host_row *row, size_t size,
		      char *ret_text)
{
	struct report_part part, largest = {0};
	struct report_verdict verdict = {0};
	struct run_parts sum = {0};

	*ret_text = '\0';
	if (row->joined)
		sum = row->joined->sum;
	sum.wait_ns = 0;
	for (size_t i = 0; hosts->joined && i < REPORT_PARTS; i++)
		if (report_part(hosts->run->joined, &sum, i, &part) && part.name[0] != ' ' &&
		    part.sum_ns > largest.sum_ns)
			largest = part;
	if (largest.sum_ns)
		snprintf(ret_text, size, "%s %s", largest.name, as_share(largest.share));
	else if (!hosts->joined && report_service_verdict(hosts->run, row->busiest, &verdict) &&
		 verdict.part)
		snprintf(ret_text, size, "%s %s", verdict.part, as_share(verdict.percent));
}

/* The mean of all hosts whose times are known, but for the first. */
static double mean_of_others(const struct hosts *hosts, size_t known)
{
	double sum_ns = 0, count = 0;

	for (size_t i = 1; i < known; i++) {
		double weight = (double)weight_of(hosts, &hosts->rows[i]);

		sum_ns += mean_of(hosts, &hosts->rows[i]) * weight;
		count += weight;
	}
	return count > 0 ? sum_ns / count : 0;
}

/* Return how many rows, the first ones, have times of enough requests. */
static size_t count_known(const struct hosts *hosts)
{
	size_t known = 0;

	while (known < hosts->count && !hosts->rows[known].unknown &&
	       weight_of(hosts, &hosts->rows[known]) >= FEWEST)
		known++;
	return known;
}

static size_t count_used(const struct hosts *hosts)
{
	size_t used = 0;

	while (used < hosts->count && !is_idle(&hosts->rows[used]))
		used++;
	return used;
}

/* "host a", "pod shop/web-1", or "host a, pod shop/web-1". */
static const char *full_name(const struct host_row *row, char buffer[static ROW_NAME + 8])
{
	size_t host = row->host_length;
	const char *place = row->name + host;

	snprintf(buffer, ROW_NAME + 8, "%s%.*s%s%.*s", host ? "host " : "", (int)host, row->name,
		 host && *place ? "," : "", RUN_PLACE_NAME, place);
	return buffer;
}

static void tell_hanging(const struct host_row *row, struct report_verdict *verdict)
{
	char name[ROW_NAME + 8];

	snprintf(verdict->text, sizeof(verdict->text),
		 "%.400s may hang: %s request%s open there, the oldest for %s",
		 full_name(row, name), as_count(row->open), row->open == 1 ? " is" : "s are",
		 as_time((double)row->oldest_ns));
}

static void tell_slow(const struct hosts *hosts, size_t known, struct report_verdict *verdict)
{
	const struct host_row *slowest = &hosts->rows[0], *fastest = &hosts->rows[known - 1];
	double most_ns = mean_of(hosts, slowest), others_ns = mean_of_others(hosts, known);
	const char *what = hosts->joined ? "mean round trip" : "mean time at the server";
	const char *most = as_time(most_ns);
	char part[SHORT_TEXT * 2];
	char name[ROW_NAME + 8];

	name_part(hosts, slowest, sizeof(part), part);
	if (most_ns < SLOWER * others_ns)
		snprintf(verdict->text, sizeof(verdict->text),
			 "no %s is the slow one: %s from %s (%.200s) to %s (%.200s)", hosts->kind,
			 what, as_time(mean_of(hosts, fastest)), fastest->name, most,
			 slowest->name);
	else
		snprintf(verdict->text, sizeof(verdict->text),
			 "%.400s is the slow one: %s %s, %s the other%s %s; most of it: %s",
			 full_name(slowest, name), what, most,
			 text_same(hosts->kind, "host") ? "on" : "of", known > 2 ? "s" : "",
			 as_time(others_ns), part);
}

bool report_hosts_verdict(const struct run *run, struct report_verdict *ret_verdict)
{
	CLEANUP(cleanup_hosts_free) struct hosts *hosts = NULL;
	size_t known, used;

	if (!open_hosts(run, &hosts))
		return false;
	used = count_used(hosts);
	if (used < 2)
		return false;
	*ret_verdict = (struct report_verdict){0};
	known = count_known(hosts);
	if (is_old(&hosts->rows[0]))
		tell_hanging(&hosts->rows[0], ret_verdict);
	else if (known == used)
		tell_slow(hosts, known, ret_verdict);
	else
		snprintf(ret_verdict->text, sizeof(ret_verdict->text),
			 "not known which %s is the slow one: %.100s: %s", hosts->kind,
			 hosts->rows[known].name,
			 hosts->rows[known].unknown ? hosts->rows[known].why
						    : "too few requests were timed");
	return true;
}

/* ---- the table ---- */

static unsigned int name_columns(const struct hosts *hosts)
{
	unsigned int columns = text_columns("all ") + text_columns(hosts->plural);

	for (size_t i = 0; i < hosts->count; i++) {
		unsigned int name = text_columns(hosts->rows[i].name);

		if (name <= NAME_MOST && name > columns)
			columns = name;
	}
	return columns;
}

/* The columns of times: a narrow page has the mean alone. */
static unsigned int time_columns(const struct page *page, const struct hosts *hosts)
{
	unsigned int used = name_columns(hosts) + COUNT_COLUMNS + PART_COLUMNS;
	unsigned int most = hosts->joined ? 3 : 2;

	while (most > 1 && used + most * TIME_COLUMNS > page->width)
		most--;
	return most;
}

static void print_titles(const struct page *page, const struct hosts *hosts)
{
	static const char *const titles[] = {"round trip", "at the server", "p99 service"};

	page_style(page, STYLE_DIM);
	page_left(page, name_columns(hosts), "%s", hosts->kind);
	page_right(page, COUNT_COLUMNS, "requests");
	for (unsigned int i = 0; i < time_columns(page, hosts); i++)
		page_right(page, TIME_COLUMNS, "%s", titles[i + !hosts->joined]);
	page_left(page, GAP, "%s", "");
	page_wrap(page, 0, "most of the mean");
	page_style(page, STYLE_PLAIN);
}

static void print_times(const struct page *page, const struct hosts *hosts,
			const struct host_row *row)
{
	const double times_ns[] = {
		mean_of(hosts, row),
		residence_of(row),
		(double)histogram_quantile(&row->service, 0.99),
	};

	for (unsigned int i = 0; i < time_columns(page, hosts); i++)
		page_right(page, TIME_COLUMNS, "%s", as_time(times_ns[i + !hosts->joined]));
}

/* Write the row's last column: the largest part of its mean, or why there is none. */
static void describe(const struct hosts *hosts, const struct host_row *row, size_t size,
		     char *ret_text)
{
	if (is_old(row))
		snprintf(ret_text, size, "%s open, the oldest for %s", as_count(row->open),
			 as_time((double)row->oldest_ns));
	else if (row->unknown)
		snprintf(ret_text, size, "%s", row->why);
	else if (row->exchanges)
		name_part(hosts, row, size, ret_text);
	else
		snprintf(ret_text, size, "no requests");
}

static bool has_times(const struct host_row *row)
{
	return row->timed && !row->unknown;
}

static void print_row(const struct page *page, const struct hosts *hosts,
		      const struct host_row *row)
{
	unsigned int column = name_columns(hosts) + COUNT_COLUMNS + GAP;
	char said[REPORT_HOST_TEXT];

	page_style(page, is_old(row) ? STYLE_HOT : STYLE_PLAIN);
	if (text_columns(row->name) > name_columns(hosts)) {
		page_wrap(page, 0, "%s", row->name);
		page_left(page, name_columns(hosts), "%s", "");
	} else {
		page_left(page, name_columns(hosts), "%s", row->name);
	}
	page_style(page, STYLE_PLAIN);
	page_right(page, COUNT_COLUMNS, "%s", as_count(row->exchanges));
	if (has_times(row))
		print_times(page, hosts, row);
	page_left(page, GAP, "%s", "");
	describe(hosts, row, sizeof(said), said);
	page_wrap(page, column, "%s", said);
}

static void print_total(const struct page *page, const struct hosts *hosts)
{
	autoitems struct items items = items_begin(page, "", 0);
	uint64_t exchanges = 0, lost = 0;

	for (size_t i = 0; i < hosts->count; i++) {
		exchanges += hosts->rows[i].exchanges;
		lost += hosts->rows[i].lost;
	}
	page_left(page, name_columns(hosts), "all %s", hosts->plural);
	page_right(page, COUNT_COLUMNS, "%s", as_count(exchanges));
	page_left(page, GAP, "%s", "");
	items.column = name_columns(hosts) + COUNT_COLUMNS + GAP;
	items_count(&items, "lost", lost);
	if (hosts->run->driver && hosts->run->driver->requests != exchanges)
		items_count(&items, "the driver completed", hosts->run->driver->requests);
}

void report_hosts(const struct page *page, const struct run *run, size_t most)
{
	CLEANUP(cleanup_hosts_free) struct hosts *hosts = NULL;
	size_t shown;

	if (!open_hosts(run, &hosts))
		return;
	shown = hosts->count < most ? hosts->count : most;
	fputc('\n', page->file);
	print_titles(page, hosts);
	for (size_t i = 0; i < shown; i++)
		print_row(page, hosts, &hosts->rows[i]);
	if (shown < hosts->count)
		page_wrap(page, 0, "and %zu more, which are faster", hosts->count - shown);
	print_total(page, hosts);
}

int report_list_hosts(const struct run *run, size_t *ret_count, struct report_host **ret_list)
{
	CLEANUP(cleanup_hosts_free) struct hosts *hosts = NULL;
	struct report_host *list;

	*ret_count = 0;
	if (!open_hosts(run, &hosts))
		return 0;
	list = calloc(hosts->count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < hosts->count; i++) {
		const struct host_row *row = &hosts->rows[i];

		list[i] = (struct report_host){
			.requests = row->exchanges,
			.timed = has_times(row),
			.joined = has_times(row) && hosts->joined && row->joined,
			.at_server_ns = residence_of(row),
			.service_p99_ns = histogram_quantile(&row->service, 0.99),
		};
		strcpy(list[i].name, row->name);
		strcpy(list[i].kind, hosts->kind);
		if (list[i].joined)
			list[i].round_trip_ns = mean_of(hosts, row);
		describe(hosts, row, sizeof(list[i].text), list[i].text);
	}
	*ret_count = hosts->count;
	*ret_list = list;
	return 0;
}
