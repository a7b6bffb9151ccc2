/* SPDX-License-Identifier: MIT */
/* What became of the requests of a run: every share of errors is made of these numbers. */
#ifndef SOJOURN_OUTCOME_H
#define SOJOURN_OUTCOME_H

#include "sojourn/run.h"

/*
 * A response that is not good (RUN_ERROR_STATUS, RUN_ERROR_UNEXPECTED) is an error and a complete response
 * of one request, which counts once. Attempts to connect that found no port or descriptor are no requests:
 * what was to be sent is sent by another connection or later, but for the few that are given up.
 */
struct run_outcome {
	uint64_t tried;	     /* good + failed */
	uint64_t good;	     /* answered as they should be */
	uint64_t failed;     /* answered otherwise, or not at all */
	uint64_t unanswered; /* of these without a complete response: in no histogram */
};

struct run_outcome run_driver_outcome(const struct run_driver *driver);
struct run_outcome run_row_outcome(const struct run_row *row);

/* Failed of tried, 0 … 1; 0 if nothing was tried. */
double run_outcome_failed_share(const struct run_outcome *outcome);

/*
 * Whether a row of driver.statuses is of redirects, which the driver does not follow: 3xx but for 304, which answers
 * a condition. They are none where they were meant: by --expect-status, or in a scenario.
 */
bool run_is_redirect(const struct run_driver *driver, const struct run_row *row);

/* All that should have been answered and are in no histogram: unanswered, and under a rate unsent. */
uint64_t run_driver_missing(const struct run_driver *driver);

#endif
