/* SPDX-License-Identifier: MIT */
/*
 * What a terminal shows during the run, once a second, of what the workers count anyway: a screen of its
 * own (progress_view.c) or a line that is rewritten (progress_line.c).
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
	uint64_t last, now; /* requests, as they stand at the readings below */
	double rate;	    /* per second, between them */
};

/* What is charted: a point for each second that has passed, the oldest first. */
enum progress_series {
	PROGRESS_RATE, /* requests per second */
	PROGRESS_P50,  /* ns; NAN: no response came */
	PROGRESS_P99,
	PROGRESS_ERRORS, /* per second */
	PROGRESS_SERIES
};

/* How a moment of the run is told. */
struct progress_figures {
	uint64_t elapsed_s;
	double share;  /* of the phase that is over; NAN: not known */
	char left[32]; /* how long the phase goes on: "18 s" */
	bool measured; /* false: warming up, and nothing of the following is known */
	bool paced;    /* times count from when a request was due */
	uint64_t errors;
	size_t count; /* of the points */
	double points[PROGRESS_SERIES][PROGRESS_POINTS];
};

struct progress {
	FILE *file; /* NULL: show nothing */
	bool view;  /* on a screen of its own, else as a line */
	bool shown; /* the line, or the screen */
	const char *what;
	struct progress_part parts[PROGRESS_PARTS_MAX];
	uint32_t part_count;
	uint64_t begin_ns;		/* of the phase */
	uint64_t duration_ns, requests; /* how long the phase is to last; 0: not by this */
	uint64_t last_ns;		/* of the reading below */
	struct stats last;
	struct stats now; /* scratch: too large for the stack's taste */
	struct progress_figures figures;
};

struct progress_settings {
	FILE *file;
	bool quiet;
	bool line;	  /* no screen of its own, wherever it is */
	const char *what; /* that is loaded, for the title; borrowed */
};

/*
 * Shows something only if the file is a terminal and not quiet. It is a screen of its own if standard output
 * is a terminal, too, and the program is in the foreground.
 */
void progress_open(struct progress *progress, const struct progress_settings *settings);
bool progress_is_shown(const struct progress *progress);

/* @duration_ns, @requests: until when it lasts, 0: not by this. */
void progress_begin_phase(struct progress *progress, uint64_t duration_ns, uint64_t requests);
/* Before anything has been measured. */
void progress_warmup(struct progress *progress);
/* With progress->now, and that of the parts, as the reading of this moment. */
void progress_update(struct progress *progress);
/* The terminal has another size. */
void progress_resize(struct progress *progress);
/* Leaves the line empty; the screen stays for the next phase. */
void progress_end_phase(struct progress *progress);
/* Leaves the terminal as it was. */
void progress_close(struct progress *progress);

#endif
