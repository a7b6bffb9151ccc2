/* SPDX-License-Identifier: MIT */
/* Finds what a server can do: one run for each load of a ladder, and what they say together. */
#ifndef DRIVER_SWEEP_H
#define DRIVER_SWEEP_H

#include "drive.h"

/*
 * Goes through @job's options->ladder. 0 with a document that holds run->sweep and no driver, also if
 * it was interrupted after the first step; errors as drive_run().
 */
int sweep_run(const struct drive_job *job, struct run **ret_run, char **ret_error);

#endif
