/* SPDX-License-Identifier: MIT */
/*
 * Joins the samples of driver and observer, exchange by exchange (docs/measurement.md, joining with
 * the driver). Only durations of the two sides are compared, never their clocks.
 */
#ifndef SOJOURN_JOIN_H
#define SOJOURN_JOIN_H

#include <stddef.h>

#include "sojourn/run.h"

/* Default number of the slowest exchanges kept with their timeline. */
#define JOIN_SLOWEST	 10
#define JOIN_SLOWEST_MAX 10000

/*
 * Fill run->joined of a document with both sides, with the @slowest slowest exchanges, and what single requests waited
 * for upstreams, of any document. If nothing could be joined, its reason says why. An already joined document without samples only loses
 * exchanges beyond @slowest. -ENOMEM.
 */
int join_run(struct run *run, size_t slowest);

/* Drop the samples of a joined document; the results are exact without them. */
void join_drop_samples(struct run *run);

#endif
