/* SPDX-License-Identifier: MIT */
/* From options and steps, checked, to what run/drive.h carries out. */
#ifndef DRIVER_SCENARIO_JOB_H
#define DRIVER_SCENARIO_JOB_H

#include "engine.h"
#include "run/drive.h"
#include "scenario.h"

/* An opened job. Zeroed, it is valid and empty. It must not move. */
struct scenario_job {
	struct drive_job job;
	struct drive_rows rows;

	char *expected;
};

/* Return the job without its engine, as --check needs it. Borrows from all arguments. */
struct drive_job scenario_job_of(const struct options *options, const struct drive_rows *rows,
				 char **command);

/*
 * Look up targets and prepare their engines. @command: the command line, for the document. -EINVAL
 * with a sentence in @ret_error; -errno.
 */
int scenario_job_open(const struct options *options, struct scenario *scenario, char **command,
		      struct scenario_job *ret_job, char **ret_error);
void scenario_job_close(struct scenario_job *job);

/* Return the most connections at any time of the run; of a sweep those of its last step. */
uint32_t scenario_most_connections(const struct options *options);

/* Raise the limit of descriptors if needed. Errors as above. */
int scenario_job_raise_files(const struct options *options, struct drive_job *job,
			     char **ret_error);

#endif
