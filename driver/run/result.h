/* SPDX-License-Identifier: MIT */
/* From what the workers counted to the driver's part of the run document. */
#ifndef DRIVER_RUN_RESULT_H
#define DRIVER_RUN_RESULT_H

#include <stdint.h>

#include "crew.h"
#include "drive.h"
#include "host/port_watch.h"
#include "sojourn/run.h"
#include "stats/stats.h"
#include "stats/rows.h"
#include "stats/statuses.h"

/* The measured phase as the main thread saw it; CLOCK_MONOTONIC ns. */
struct result_phase {
	uint64_t begin_ns;
	uint64_t begin_wall_ns; /* the same by the wall clock */
	uint64_t stop_ns;	/* when requests ceased to start */
	uint64_t warmup_ns;	/* as it really was */
	struct row_table steps; /* or targets */
	struct status_table statuses;
	struct port_watch *ports; /* NULL: nobody looked */
	bool interrupted;	  /* by a signal */
};

/*
 * First request to last response, but at least to the time when requests ceased to start: a server
 * that stops answering must not shorten the run that it is judged by.
 */
uint64_t result_duration_ns(const struct stats *stats, const struct result_phase *phase);

/*
 * Attaches to @run what is known while the phase lasts: counts and histograms, but neither rows nor intervals, nor
 * explanations of failures. -ENOMEM.
 */
int result_so_far(const struct drive_job *job, const struct stats *stats,
		  const struct result_phase *phase, struct run *run);

/* Attaches the driver's part to @run and sets its duration. -ENOMEM. */
int result_fill(const struct drive_job *job, struct crew_result *result,
		const struct result_phase *phase, struct run *run);

#endif
