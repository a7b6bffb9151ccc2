/* SPDX-License-Identifier: MIT */
/* Sampled exchanges of several documents: adding and subtracting. */
#ifndef LIB_RUN_SAMPLES_H
#define LIB_RUN_SAMPLES_H

#include "sojourn/run.h"

/* Add the samples of @other, at the lower threshold. -ENOMEM. */
int run_samples_add(struct run_samples *samples, const struct run_samples *other);

/* Remove exchanges that @earlier has too, with the same key and start. Without memory they stay. */
void run_samples_subtract(struct run_samples *samples, const struct run_samples *earlier);

#endif
