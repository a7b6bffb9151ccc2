/* SPDX-License-Identifier: MIT */
/*
 * The live view without a terminal: readings become rows that are filtered, sorted and remembered. live.c feeds it,
 * list.c and detail.c draw it.
 */
#ifndef OBSERVER_SINKS_LIVE_VIEW_H
#define OBSERVER_SINKS_LIVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/clock.h"
#include "sojourn/run.h"
#include "sojourn/units.h"

#define LIVE_HISTORY 240
#define LIVE_FILTER  48

/* Values that a service's detail page draws over time. */
enum live_series {
	LIVE_REQUESTS,	  /* per second */
	LIVE_ACCEPTS,	  /* per second */
	LIVE_QUEUE_P99,	  /* ns */
	LIVE_SERVICE_P99, /* ns */
	LIVE_ACCEPT_QUEUE,
	LIVE_TIME_WAIT,
	LIVE_FDS,
	LIVE_SERIES
};

/* One service's past, an interval per point, the oldest first; NAN: not known. */
struct live_history {
	struct run_service *key; /* names the service alone; owned */
	size_t count;
	double points[LIVE_SERIES][LIVE_HISTORY];
	uint64_t answered_ns; /* when it last answered, from the observation's start */
};

/* Requests that wait for their answer now, read or unread. */
struct live_open {
	bool known;
	uint64_t count;
	uint64_t oldest_ns; /* 0: there is none, or none of known age */
	uint64_t silent_ns; /* for so long nothing was answered, and a request has waited */
	enum {
		LIVE_CALM,
		LIVE_OLD,  /* the oldest has waited for long */
		LIVE_HANGS /* and nothing else was answered for long */
	} urgency;
};

struct live_row {
	const struct run_service *service; /* in the period that is shown */
	const struct live_history *history;
	struct live_open open;
	double seconds; /* of that period */
	bool waits;	/* for longer than it is worked on, and than the floor */
};

struct live_view {
	struct run *total;    /* since the observation began; NULL before the first reading */
	struct run *judged;   /* interval_judged(): the form to show; NULL: total itself */
	struct run *interval; /* since the reading before */
	/* Findings only, of the last reading with a look; NULL: there was none. */
	struct run *found;
	bool show_total;
	struct live_history **histories;
	size_t history_count;
	struct live_row *rows; /* filtered and sorted */
	size_t row_count;
	size_t selected; /* of rows */
	size_t sort;	 /* column of live_columns[] */
	bool reversed;	 /* against that column's own order */
	char filter[LIVE_FILTER];
};

/* Make an empty view that sorts by requests. */
void live_view_init(struct live_view *view);
void live_view_done(struct live_view *view);

/* Take @total, the next reading, which is the view's from here on in any case. 0 or -errno. */
int live_view_update(struct live_view *view, struct run *total);

/* Forget the last reading: the next one is another observation's first, and cannot be compared with it. */
void live_view_forget(struct live_view *view);

/*
 * Go back to @total, which is the view's from here on in any case; @before is the reading before it, NULL: it is
 * the first. 0 or -errno.
 */
int live_view_back(struct live_view *view, struct run *total, const struct run *before);

/* Make the rows again after a change of filter, order or period. The selected service stays. */
int live_view_arrange(struct live_view *view);

/* Return the period that is shown; NULL before the first reading. */
const struct run *live_view_period(const struct live_view *view);
/* Return the open requests of @service in the last reading, whatever period is shown. */
struct live_open live_view_open(const struct live_view *view, const struct run_service *service);
/* Return the selected row; NULL without rows. */
const struct live_row *live_view_selected(const struct live_view *view);

/*
 * A column of the list. An unknown value is NAN, is sorted last and shown as "-". It is shown as "unknown" if there
 * were requests whose time is not known.
 */
struct live_column {
	const char *group; /* above the title; NULL: none, or that of the column before */
	const char *title;
	int width;
	bool left;	/* text, left aligned, in ascending order; else a number in descending */
	int from_width; /* columns of a screen that has room for it */
	double (*value)(const struct live_row *row);
	/* At most @size bytes; NULL: the value as a count. Returns @buffer. */
	char *(*format)(const struct live_row *row, char *buffer, size_t size);
	const char *help;
};

extern const struct live_column live_columns[];
extern const size_t live_column_count;
#define LIVE_COLUMN_PROCESS  1
#define LIVE_COLUMN_REQUESTS 2
#define LIVE_COLUMN_WAITING  5

/* < 0, 0, > 0 in the column's own order. */
int live_column_compare(const struct live_column *column, const struct live_row *a,
			const struct live_row *b);
char *live_column_format(const struct live_column *column, const struct live_row *row, char *buffer,
			 size_t size);

/* p99 of waiting up to this causes no warning. */
#define LIVE_WAIT_FLOOR_NS (5 * NSEC_PER_MSEC)
/* Return whether p99 of waiting unread is above that, and above that of the server's own work. */
bool live_waits(const struct run_service *service);

/* "8080", "53u" for UDP. */
char *live_format_port(const struct run_service *service, char *buffer, size_t size);
/* Its first process, with bytes that are not printable ASCII as '?', and how many more: "nginx+3". */
char *live_format_process(const struct run_service *service, char *buffer, size_t size);
/* A number in at most five columns: "9.5", "99999", "117k". "-" if NAN. */
char *live_format_count(double value, char *buffer, size_t size);
/* "406 µs"; "-" if NAN. */
char *live_format_time(double ns, char *buffer, size_t size);
/* The same as an argument, like as_time(). */
#define live_count(value) live_format_count((value), UNITS_ROOM, UNITS_TEXT)
#define live_time(ns)	  live_format_time((ns), UNITS_ROOM, UNITS_TEXT)

/* The value of a series in @row's period, NAN if it is not known. */
double live_series_value(const struct live_row *row, enum live_series series);

#endif
