/* SPDX-License-Identifier: MIT */
/* The outcomes of a run's requests, from which every share of errors is computed. */
#ifndef SOJOURN_OUTCOME_H
#define SOJOURN_OUTCOME_H

#include "sojourn/run.h"

/*
 * A bad response (RUN_ERROR_STATUS, RUN_ERROR_UNEXPECTED) is an error and a complete response of
 * one request, counted once. An attempt to connect without a free port or descriptor is no request.
 * The driver sends the request later or on another connection, except for a few that it gives up.
 */
struct run_outcome {
	uint64_t tried;	     /* good + failed */
	uint64_t good;	     /* answered as expected */
	uint64_t failed;     /* answered otherwise, or not */
	uint64_t unanswered; /* of these, without a complete response: in no histogram */
};

struct run_outcome run_driver_outcome(const struct run_driver *driver);
struct run_outcome run_row_outcome(const struct run_row *row);

/* Return failed / tried, 0 … 1; 0 if nothing was tried. */
double run_outcome_failed_share(const struct run_outcome *outcome);

/*
 * Return whether a row of driver.statuses has redirects, which the driver does not follow: 3xx
 * except 304, which answers a condition. False with --expect-status or in a scenario, where the
 * user says which statuses are expected.
 */
bool run_is_redirect(const struct run_driver *driver, const struct run_row *row);

/* Return how many requests are in no histogram: unanswered, and under a rate unsent. */
uint64_t run_driver_missing(const struct run_driver *driver);

#endif
