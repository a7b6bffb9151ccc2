// SPDX-License-Identifier: MIT
/* The live view's table of one service's calls to upstreams (--calls), on its page of details. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/screen.h"
#include "sojourn/units.h"

#define VALUE_WIDTH 9
#define NAME_LEAST  21 /* "255.255.255.255:65535" */
#define NAME_MOST   48
#define PLACES_MOST 128 /* CALL_ROWS of wire/call.h, for all services */

static const char *const titles[] = {"calls", "calls/s", "failed", "open", "p50", "p99"};

/* The columns of a screen with 80 are whole. */
static int name_width(void)
{
	int room = screen_columns() - 1 - (int)ARRAY_SIZE(titles) * VALUE_WIDTH;

	return room < NAME_LEAST ? NAME_LEAST : room > NAME_MOST ? NAME_MOST : room;
}

static void put(int y, int column, unsigned int style, const char *text)
{
	screen_put(y, 1 + name_width() + column * VALUE_WIDTH, VALUE_WIDTH, style, SCREEN_RIGHT,
		   text);
}

static void draw_titles(int y)
{
	screen_put(y, 1, name_width(), SCREEN_DIM, SCREEN_LEFT, "calls to; times of wait");
	for (int i = 0; i < (int)ARRAY_SIZE(titles); i++)
		put(y, i, SCREEN_DIM, titles[i]);
}

/* @whole: its calls since the observation began. */
static void draw_call(const struct run_timed_call *call, const struct run_timed_call *whole,
		      double seconds, int y)
{
	const struct histogram *h = &call->wait;
	char unknown[REPORT_CALL_UNKNOWN];

	screen_put(y, 1, name_width() - 1, SCREEN_PLAIN, SCREEN_LEFT, call->towards);
	report_call_unknown(whole, call, unknown);
	if (*unknown) {
		screen_line(y, 1 + name_width(), SCREEN_DIM, "not known: %s", unknown);
		return;
	}
	put(y, 0, SCREEN_PLAIN, as_count(call->calls));
	put(y, 1, SCREEN_PLAIN, live_count(seconds > 0 ? (double)call->calls / seconds : NAN));
	put(y, 2, call->failed ? SCREEN_NOTICE : SCREEN_PLAIN, as_count(call->failed));
	put(y, 3, SCREEN_PLAIN, as_count(call->open));
	put(y, 4, SCREEN_PLAIN, live_time(h->count ? (double)histogram_quantile(h, 0.5) : NAN));
	put(y, 5, SCREEN_PLAIN, live_time(h->count ? (double)histogram_quantile(h, 0.99) : NAN));
}

/* Calls and connections that are in no row, or in no figure of it. */
static void draw_rest(const struct run_service *service, size_t more, int y)
{
	uint64_t untimed = 0, uncut = 0, lost = service->calls_lost.value;
	char text[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < service->timed_call_count; i++) {
		const struct run_timed_call *call = &service->timed_calls[i];

		untimed += call->untimed + call->handshakes;
		uncut += run_call_uncut(call);
	}
	const struct {
		uint64_t count;
		const char *what;
	} rest[] = {
		{more, "places more"},
		{untimed, "calls not timed"},
		{uncut, "connections without calls since the start"},
		{lost, "connections to places without room"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		if (rest[i].count)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s",
						 used ? " · " : "", as_count(rest[i].count),
						 rest[i].what);
	screen_line(y, 1, SCREEN_DIM, "%s", text);
}

/* Those that took most time come first. */
static int compare(const void *a, const void *b)
{
	const struct run_timed_call *x = *(const struct run_timed_call *const *)a;
	const struct run_timed_call *y = *(const struct run_timed_call *const *)b;

	if (x->wait.sum != y->wait.sum)
		return x->wait.sum < y->wait.sum ? 1 : -1;
	return strcmp(x->towards, y->towards);
}

void live_draw_calls(const struct live_row *row, const struct run *total, int y, int lines)
{
	const struct run_service *service = row->service, *whole = run_find_service(total, service);
	const struct run_timed_call *shown[PLACES_MOST];
	size_t count = 0, rows = (size_t)lines - 2;

	for (size_t i = 0; i < service->timed_call_count && count < PLACES_MOST; i++)
		shown[count++] = &service->timed_calls[i];
	qsort(shown, count, sizeof(const struct run_timed_call *), compare);
	if (count)
		draw_titles(y);
	else
		screen_line(y, 1, SCREEN_DIM, "calls: none, or not asked for, see --calls");
	for (size_t i = 0; i < count && i < rows; i++) {
		const struct run_timed_call *all =
			whole ? run_find_call(whole, shown[i]->towards) : NULL;

		draw_call(shown[i], all ? all : shown[i], row->seconds, y + 1 + (int)i);
	}
	draw_rest(service, count > rows ? count - rows : 0,
		  y + 1 + (int)(count < rows ? count : rows));
}
