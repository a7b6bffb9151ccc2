/* SPDX-License-Identifier: MIT */
/* The line that a terminal shows during the run, rewritten once a second. */
#ifndef DRIVER_RUN_PROGRESS_H
#define DRIVER_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stats/stats.h"

#define PROGRESS_PARTS_MAX 64U

/* A step or target. */
struct progress_part {
	const char *name;
	uint64_t last, now; /* requests, as they stand at the readings below */
};

struct progress {
	FILE *file; /* NULL: show nothing */
	struct progress_part parts[PROGRESS_PARTS_MAX];
	uint32_t part_count;
	bool shown;
	uint64_t begin_ns;		/* of the phase */
	uint64_t duration_ns, requests; /* how long the phase is to last; 0: not by this */
	uint64_t last_ns;		/* of the reading below */
	struct stats last;
	struct stats now; /* scratch: too large for the stack's taste */
};

/* Shows something only if @file is a terminal and not @quiet. */
void progress_open(struct progress *progress, FILE *file, bool quiet);
bool progress_is_shown(const struct progress *progress);

/* @duration_ns, @requests: until when it lasts, 0: not by this. */
void progress_begin_phase(struct progress *progress, uint64_t duration_ns, uint64_t requests);
/* Before anything has been measured. */
void progress_warmup(struct progress *progress);
/* With progress->now, and that of the parts, as the reading of this moment. */
void progress_update(struct progress *progress);
/* Leaves the line empty. */
void progress_clear(struct progress *progress);

#endif
