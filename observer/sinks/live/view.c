// SPDX-License-Identifier: MIT
/* Rows out of readings: filter, order, past; see view.h. */
#include "view.h"

#include <errno.h>
#include <string.h>

#include "model/interval.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"

void live_view_init(struct live_view *view)
{
	*view = (struct live_view){.sort = LIVE_COLUMN_REQUESTS};
}

void live_view_done(struct live_view *view)
{
	run_free(view->total);
	run_free(view->judged);
	run_free(view->interval);
	run_free(view->found);
	for (size_t i = 0; i < view->history_count; i++) {
		free(view->histories[i]->key);
		free(view->histories[i]);
	}
	free(view->histories);
	free(view->rows);
	*view = (struct live_view){};
}

const struct run *live_view_period(const struct live_view *view)
{
	if (!view->show_total)
		return view->interval;
	return view->judged ? view->judged : view->total;
}

const struct live_row *live_view_selected(const struct live_view *view)
{
	return view->row_count ? &view->rows[view->selected] : NULL;
}

static double seconds_of(const struct run *run)
{
	return (double)run->duration_ns / (double)NSEC_PER_SEC;
}

/* ---- the past ---- */

static struct live_history *find_history(const struct live_view *view,
					 const struct run_service *service)
{
	for (size_t i = 0; i < view->history_count; i++) {
		if (run_same_service(view->histories[i]->key, service))
			return view->histories[i];
	}
	return NULL;
}

static int add_history(struct live_view *view, const struct run_service *service,
		       struct live_history **ret_history)
{
	autofree struct live_history *history = calloc(1, sizeof(*history));
	autofree struct run_service *key = calloc(1, sizeof(*key));

	if (!history || !key || ARRAY_GROW(view->histories, view->history_count) < 0)
		return -ENOMEM;
	key->netns = service->netns;
	key->port = service->port;
	memcpy(key->protocol, service->protocol, sizeof(key->protocol));
	history->key = TAKE_PTR(key);
	/* When it was first seen: its silence before that is not known. */
	history->answered_ns = view->total->duration_ns - view->interval->duration_ns;
	*ret_history = TAKE_PTR(history);
	view->histories[view->history_count++] = *ret_history;
	return 0;
}

static void add_point(struct live_history *history, const struct live_row *row)
{
	bool full = history->count == LIVE_HISTORY;

	for (enum live_series i = 0; i < LIVE_SERIES; i++) {
		double *points = history->points[i];

		if (full)
			memmove(points, points + 1, (LIVE_HISTORY - 1) * sizeof(*points));
		points[full ? LIVE_HISTORY - 1 : history->count] = live_series_value(row, i);
	}
	history->count += !full;
}

static int remember(struct live_view *view)
{
	for (size_t i = 0; i < view->interval->service_count; i++) {
		const struct run_service *service = &view->interval->services[i];
		struct live_row row = {.service = service, .seconds = seconds_of(view->interval)};
		struct live_history *history = find_history(view, service);
		int r = history ? 0 : add_history(view, service, &history);

		if (r < 0)
			return r;
		add_point(history, &row);
		if (service->exchanges)
			history->answered_ns = view->total->duration_ns;
	}
	return 0;
}

/* ---- what waits for an answer ---- */

/* As in the doctor's requests-hang. */
#define OLD_NS	 NSEC_PER_SEC
#define HANGS_NS (3 * NSEC_PER_SEC)

static uint64_t silent_ns(const struct live_view *view, const struct run_service *service)
{
	const struct live_history *history = find_history(view, service);
	uint64_t now = view->total->duration_ns;

	/* Answers later than now: the replay went back. */
	return history && history->answered_ns < now ? now - history->answered_ns : 0;
}

/* An interval may be too short to show it. */
static bool is_told(const struct live_view *view, const struct run_service *service)
{
	const struct run_service *whole = run_find_service(view->total, service);

	return whole && run_is_told(whole);
}

struct live_open live_view_open(const struct live_view *view, const struct run_service *service)
{
	const struct run_open *now = &service->open;
	struct live_open open = {.known = now->read.known && now->unread.known};

	if (!open.known)
		return open;
	open.count = now->read.value + now->unread.value;
	open.oldest_ns = now->oldest_ns.value;
	open.silent_ns = silent_ns(view, service);
	if (open.silent_ns > run_open_waits(now))
		open.silent_ns = run_open_waits(now);
	if (!now->unread.value && is_told(view, service))
		return open;
	if (open.count && run_open_waits(now) >= OLD_NS)
		open.urgency = open.silent_ns >= HANGS_NS ? LIVE_HANGS : LIVE_OLD;
	return open;
}

/* ---- findings ---- */

/* Few readings have findings: they stay until the next look. */
static int keep_findings(struct live_view *view, struct run *total)
{
	struct run *found;

	if (!total->not_seen)
		return 0;
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	found->findings = TAKE_PTR(total->findings);
	found->finding_count = total->finding_count;
	total->finding_count = 0;
	run_free(view->found);
	view->found = found;
	return 0;
}

/* ---- rows ---- */

static bool contains(const char *text, const char *word)
{
	return strcasestr(text, word);
}

static bool matches(const struct live_view *view, const struct run_service *service)
{
	char port[16], where[RUN_PLACE_NAME];

	if (!view->filter[0])
		return true;
	if (contains(run_place_name(&service->place, where), view->filter) ||
	    contains(live_format_port(service, port, sizeof(port)), view->filter) ||
	    contains(service->address, view->filter))
		return true;
	for (size_t i = 0; i < service->process_count; i++) {
		char comm[sizeof(service->processes[i].comm) + 1] = "";

		memcpy(comm, service->processes[i].comm, sizeof(comm) - 1);
		if (contains(comm, view->filter))
			return true;
	}
	return false;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct live_row *left = a, *right = b;
	const struct live_view *view = context;
	int order = live_column_compare(&live_columns[view->sort], left, right);

	/* Unknown values stay last in both directions. */
	if (view->reversed && abs(order) < 2)
		order = -order;
	return order ? order : left->service->port - right->service->port;
}

/* Select the service that was selected. If it is gone, select the row where it was. */
static void select_again(struct live_view *view, const struct run_service *chosen)
{
	for (size_t i = 0; chosen && i < view->row_count; i++) {
		if (run_same_service(view->rows[i].service, chosen)) {
			view->selected = i;
			return;
		}
	}
	if (view->selected >= view->row_count)
		view->selected = view->row_count ? view->row_count - 1 : 0;
}

int live_view_arrange(struct live_view *view)
{
	const struct run *run = live_view_period(view);
	const struct live_row *row = live_view_selected(view);
	/* The row's history outlives the documents: it says which service was selected. */
	const struct run_service *chosen = row && row->history ? row->history->key : NULL;
	struct live_row *rows;

	if (!run) {
		view->row_count = 0;
		return 0;
	}
	rows = calloc(run->service_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	free(view->rows);
	view->rows = rows;
	view->row_count = 0;
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (matches(view, service))
			rows[view->row_count++] = (struct live_row){
				service, find_history(view, service), live_view_open(view, service),
				seconds_of(run), live_waits(service)};
	}
	qsort_r(rows, view->row_count, sizeof(*rows), compare_rows, view);
	select_again(view, chosen);
	return 0;
}

/* The view takes both readings. */
static int show(struct live_view *view, struct run *total, struct run *interval)
{
	run_free(view->total);
	run_free(view->judged);
	run_free(view->interval);
	view->total = total;
	view->interval = interval;
	return interval_judged(total, &view->judged);
}

int live_view_update(struct live_view *view, struct run *total)
{
	struct run *interval = NULL;
	int r = keep_findings(view, total);

	if (!r && view->total)
		r = interval_between(total, view->total, &interval);
	if (r < 0) {
		run_free(total);
		return r;
	}
	r = show(view, total, interval);
	if (!r && interval)
		r = remember(view);
	return r < 0 ? r : live_view_arrange(view);
}

void live_view_forget(struct live_view *view)
{
	run_free(TAKE_PTR(view->total));
	run_free(TAKE_PTR(view->judged));
	run_free(TAKE_PTR(view->found));
	for (size_t i = 0; i < view->history_count; i++)
		view->histories[i]->answered_ns = 0;
}

/* Drop the points of the interval that a step back leaves. */
static void unremember(struct live_view *view)
{
	for (size_t i = 0; view->interval && i < view->interval->service_count; i++) {
		struct live_history *history = find_history(view, &view->interval->services[i]);

		if (history && history->count)
			history->count--;
	}
}

int live_view_back(struct live_view *view, struct run *total, const struct run *before)
{
	struct run *interval = NULL;
	int r = keep_findings(view, total);

	if (!r && before)
		r = interval_between(total, before, &interval);
	if (r < 0) {
		run_free(total);
		return r;
	}
	unremember(view);
	r = show(view, total, interval);
	return r < 0 ? r : live_view_arrange(view);
}
