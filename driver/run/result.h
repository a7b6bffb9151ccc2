/* SPDX-License-Identifier: MIT */
/* Converts the workers' counts to the driver's part of the run document. */
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

/* The measured phase as seen by the main thread; CLOCK_MONOTONIC ns. */
struct result_phase {
	uint64_t begin_ns;
	uint64_t begin_wall_ns; /* the same, by the wall clock */
	uint64_t stop_ns;	/* when requests stopped starting */
	uint64_t warmup_ns;	/* actual length */
	struct row_table steps; /* or targets */
	struct status_table statuses;
	struct port_watch *ports; /* NULL: not watched */
	bool interrupted;	  /* by a signal */
};

/*
 * Return the time from the first request to the last response, or until requests stopped starting
 * if that is later. A server that stops answering must not shorten the run.
 */
uint64_t result_duration_ns(const struct stats *stats, const struct result_phase *phase);

/*
 * Attach the figures of a running phase to @run: counts and histograms, but neither rows nor
 * intervals, nor explanations of failures. -ENOMEM.
 */
int result_so_far(const struct drive_job *job, const struct stats *stats,
		  const struct result_phase *phase, struct run *run);

/*
 * Record that the run is shorter than @load requested; its results are complete. @driver has no
 * such record yet. -ENOMEM.
 */
int result_set_interrupted(const struct load_settings *load, struct run_driver *driver);

/* Attach the driver's part to @run and set the duration. -ENOMEM. */
int result_fill(const struct drive_job *job, struct crew_result *result,
		const struct result_phase *phase, struct run *run);

#endif
