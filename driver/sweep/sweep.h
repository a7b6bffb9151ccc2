/* SPDX-License-Identifier: MIT */
/* Finds a server's capacity by one run for each load of a ladder, and a conclusion from all. */
#ifndef DRIVER_SWEEP_SWEEP_H
#define DRIVER_SWEEP_SWEEP_H

#include "load/ladder.h"
#include "run/drive.h"
#include "sojourn/outcome.h"

struct run_sweep;
struct run_sweep_step;

/* Called for each finished step of @sweep, and again if the step is repeated. */
typedef void sweep_watch(const struct run_sweep *sweep, const struct run_sweep_step *step);

/* The result so far of a sweep whose process has ended. A zeroed one is valid: there is none. */
struct sweep_past {
	struct run *run;	    /* with its complete steps; NULL: there are none */
	struct run_outcome outcome; /* of the last one */
	char *resumed;		    /* after which steps the sweep was taken up, for people */
};

/* Carries out the runs of a sweep in place of drive_run(). */
struct sweep_runner {
	void *user;
	/*
	 * As drive_run(). If the run was interrupted by a loss, *ret_lost is a sentence about it,
	 * which the runner keeps.
	 */
	int (*run)(void *user, const struct drive_job *job, struct run **ret_run,
		   const char **ret_lost, char **ret_error);
	/*
	 * Step @index of @run is complete, or was repeated; @outcome is that of its last run. NULL:
	 * nobody keeps it.
	 */
	void (*keep)(void *user, const struct run *run, size_t index,
		     const struct run_outcome *outcome);
	struct sweep_past *past; /* to continue, which takes its run; NULL: it begins */
};

/*
 * Run @ladder with @job's settings; @runner and @watch may be NULL. Return 0 and a document with
 * run->sweep and no driver, even if interrupted after the first step. Errors as drive_run().
 */
int sweep_run(const struct drive_job *job, const struct ladder *ladder,
	      const struct sweep_runner *runner, sweep_watch *watch, struct run **ret_run,
	      char **ret_error);

#endif
