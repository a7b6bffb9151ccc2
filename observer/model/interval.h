/* SPDX-License-Identifier: MIT */
/* The events between two readings, for sinks that show every interval. */
#ifndef OBSERVER_MODEL_INTERVAL_H
#define OBSERVER_MODEL_INTERVAL_H

#include "sojourn/run.h"

/*
 * Make a document of the difference between @now and @previous, with its own findings. Both stay as they are. Return
 * 0 or -errno.
 */
int interval_between(const struct run *now, const struct run *previous, struct run **ret_interval);

/*
 * Make the form of the reading @total that is shown, in which stages are not known if too many
 * replies could not be matched. NULL: @total itself.
 */
int interval_judged(const struct run *total, struct run **ret_judged);

#endif
