/* SPDX-License-Identifier: MIT */
/*
 * Joins the driver's samples and the observer's, exchange by exchange (docs/measurement.md, joining
 * with the driver). Only durations of the two sides are compared: their clocks never meet.
 */
#ifndef SOJOURN_JOIN_H
#define SOJOURN_JOIN_H

#include <stddef.h>

#include "sojourn/run.h"

/* How many of the slowest exchanges are kept with their timeline, unless asked otherwise. */
#define JOIN_SLOWEST	 10
#define JOIN_SLOWEST_MAX 10000

/*
 * Fills run->joined where the document has both sides, with the @slowest slowest exchanges; where
 * nothing could be joined its reason says why. A document that was joined already, and whose samples
 * are gone, stays as it is, but for the slowest, of which there are no more than @slowest then.
 * -ENOMEM.
 */
int join_run(struct run *run, size_t slowest);

/* Drops the raw samples of a document that is joined: what follows from them is exact. */
void join_drop_samples(struct run *run);

#endif
