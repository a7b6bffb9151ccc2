/* SPDX-License-Identifier: MIT */
/* Sampled exchanges of several documents: added, subtracted. */
#ifndef LIB_RUN_SAMPLES_H
#define LIB_RUN_SAMPLES_H

#include "sojourn/run.h"

/* Adds @other's to @samples, at the lower of the thresholds. -ENOMEM. */
int run_samples_add(struct run_samples *samples, const struct run_samples *other);

/*
 * Removes from @samples the exchanges that @earlier has too: of the same key, begun at the same time.
 * Without memory they stay.
 */
void run_samples_subtract(struct run_samples *samples, const struct run_samples *earlier);

#endif
