/* SPDX-License-Identifier: MIT */
/* What happened between two readings, for sinks that show every interval. */
#ifndef OBSERVER_INTERVAL_H
#define OBSERVER_INTERVAL_H

#include "sojourn/run.h"

/* A document of what @now has more than @previous; both stay as they are. 0 or -errno. */
int interval_between(const struct run *now, const struct run *previous, struct run **ret_interval);

/* The process of @service whose descriptors are nearest to their limit; NULL: none is known. */
const struct run_process *interval_fullest(const struct run_service *service);

#endif
