/* SPDX-License-Identifier: MIT */
/* Whether this host's source ports will do for a run: what it wants, and what is in use by now. */
#ifndef DRIVER_FORECAST_H
#define DRIVER_FORECAST_H

#include "drive.h"

/* At any time of the run, by each of its sockets: those of a sweep's last step. */
uint32_t forecast_connections(const struct options *options);

/*
 * What will go wrong, as a sentence that the caller frees, in *ret_text; NULL: nothing, or it cannot be
 * known. Of several servers it is about the one that is asked most. Their addresses are known; where one
 * is not (AF_UNSPEC) nothing is said of it. -ENOMEM.
 */
int forecast_ports(const struct drive_job *job, char **ret_text);

#endif
