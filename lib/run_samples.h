/* SPDX-License-Identifier: MIT */
/* Sampled exchanges as JSON: a table of flows, and columns. For run_write.c and run_read.c. */
#ifndef LIB_RUN_SAMPLES_H
#define LIB_RUN_SAMPLES_H

#include <jansson.h>

#include "run_reader.h"
#include "sojourn/run.h"

/* NULL without memory. */
json_t *run_samples_write(const struct run_samples *samples);
/* @ret_samples is set, to be freed by the caller, also if they are refused. */
int run_samples_read(struct reader *reader, const json_t *json, struct run_samples **ret_samples);

/* Adds @other's to @samples, at the lower of the thresholds. -ENOMEM. */
int run_samples_add(struct run_samples *samples, const struct run_samples *other);

/*
 * Removes from @samples the exchanges that @earlier has too: of the same key, begun at the same time.
 * Without memory they stay.
 */
void run_samples_subtract(struct run_samples *samples, const struct run_samples *earlier);

#endif
