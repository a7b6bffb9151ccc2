/* SPDX-License-Identifier: MIT */
/*
 * Progress on a terminal, once a second, from counts that workers keep anyway: a screen
 * (progress_view.c) or a line that is rewritten.
 */
#ifndef DRIVER_RUN_PROGRESS_H
#define DRIVER_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stats/stats.h"

#define PROGRESS_PARTS_MAX 64U
#define PROGRESS_POINTS	   240U

/* A step or target. */
struct progress_part {
	const char *name;
	uint64_t last, now; /* requests at the two readings */
	double rate;	    /* per second, between the readings */
};

/* Charts: a point per second, oldest first. */
enum progress_series {
	PROGRESS_RATE, /* requests per second */
	PROGRESS_P50,  /* ns; NAN: no response */
	PROGRESS_P99,
	PROGRESS_ERRORS, /* per second */
	PROGRESS_SERIES
};

/* The figures of one moment. */
struct progress_figures {
	uint64_t elapsed_s;
	double share;  /* finished part of the phase; NAN: not known */
	char left[32]; /* remaining time of the phase: "18 s" */
	bool measured; /* false: warming up, the following are not known */
	bool paced;    /* times count from a request's due time */
	uint64_t errors;
	size_t count; /* number of points */
	double points[PROGRESS_SERIES][PROGRESS_POINTS];
};

struct progress {
	FILE *file; /* NULL: show nothing */
	bool view;  /* on a screen, otherwise as a line */
	bool shown; /* the line or the screen is shown */
	const char *what;
	struct progress_part parts[PROGRESS_PARTS_MAX];
	uint32_t part_count;
	uint64_t begin_ns;		/* start of the phase */
	uint64_t duration_ns, requests; /* length of the phase; 0: without this limit */
	uint64_t last_ns;		/* time of the reading below */
	struct stats last;
	struct stats now; /* scratch: too large for the stack */
	struct progress_figures figures;
};

struct progress_settings {
	FILE *file;
	bool quiet;
	bool line;	  /* never use a screen */
	const char *what; /* what is loaded, for the title; borrowed */
};

/*
 * Show progress only if the file is a terminal and not quiet. It is a screen if standard output is
 * a terminal too, and the program is in the foreground.
 */
void progress_open(struct progress *progress, const struct progress_settings *settings);
bool progress_is_shown(const struct progress *progress);

/* @duration_ns, @requests: end of the phase; 0: without this limit. */
void progress_begin_phase(struct progress *progress, uint64_t duration_ns, uint64_t requests);
/* Show that nothing has been measured yet. */
void progress_warmup(struct progress *progress);
/* Show a reading: progress->now, and @now of the parts. */
void progress_update(struct progress *progress);
void progress_resize(struct progress *progress);
/* Clear the line; the screen stays for the next phase. */
void progress_end_phase(struct progress *progress);
/* Restore the terminal. */
void progress_close(struct progress *progress);

/* For progress.c: draw on the screen, which is open. */
void progress_view_draw(const struct progress *progress);

#endif
