/* SPDX-License-Identifier: MIT */
/* Finds what a server can do: one run for each load of a ladder, and what they say together. */
#ifndef DRIVER_SWEEP_SWEEP_H
#define DRIVER_SWEEP_SWEEP_H

#include "load/ladder.h"
#include "run/drive.h"

struct run_sweep;
struct run_sweep_step;

/* Called with each step of @sweep that has ended, and once more if it is repeated. */
typedef void sweep_watch(const struct run_sweep *sweep, const struct run_sweep_step *step);

/*
 * Goes through @ladder, with @job for the rest; @watch may be NULL. 0 with a document that holds run->sweep and no driver, also if
 * it was interrupted after the first step; errors as drive_run().
 */
int sweep_run(const struct drive_job *job, const struct ladder *ladder, sweep_watch *watch,
	      struct run **ret_run, char **ret_error);

#endif
