/* SPDX-License-Identifier: MIT */
/* Finds a server's capacity by one run for each load of a ladder, and a conclusion from all. */
#ifndef DRIVER_SWEEP_SWEEP_H
#define DRIVER_SWEEP_SWEEP_H

#include "load/ladder.h"
#include "run/drive.h"

struct run_sweep;
struct run_sweep_step;

/* Called for each finished step of @sweep, and again if the step is repeated. */
typedef void sweep_watch(const struct run_sweep *sweep, const struct run_sweep_step *step);

/*
 * Run @ladder with @job's settings; @watch may be NULL. Return 0 and a document with run->sweep and
 * no driver, even if interrupted after the first step. Errors as drive_run().
 */
int sweep_run(const struct drive_job *job, const struct ladder *ladder, sweep_watch *watch,
	      struct run **ret_run, char **ret_error);

#endif
