/* SPDX-License-Identifier: MIT */
/* The user's conditions on the result, for the exit code: "p99<5ms", "errors<0.1%". */
#ifndef DRIVER_RUN_ASSERTION_H
#define DRIVER_RUN_ASSERTION_H

#include <stdbool.h>

#include "sojourn/run.h"

struct assertion {
	const char *text; /* as given */
	unsigned int metric;
	bool below;   /* < or <=; otherwise > or >= */
	bool or_same; /* <= or >= */
	bool share;   /* the limit is a percentage */
	double limit; /* ns, a count, requests/s, or percent */
};

/* -EINVAL with a sentence in @ret_error; -ENOMEM. */
int assertion_parse(const char *text, struct assertion *ret_assertion, char **ret_error);

/* Return whether the assertion limits this error: it then decides how many are allowed. */
bool assertion_is_about(const struct assertion *assertion, enum run_error error);

/* Return whether the assertion is about a count of the observer. */
bool assertion_needs_observer(const struct assertion *assertion);

#define ASSERTION_TEXT 128

/*
 * Return whether the driver's result in @run meets the assertion, and write the actual value to
 * *ret_actual, for people. A percentile fails if it falls among requests that were never answered,
 * as their times are not known; "max" fails if there is one.
 */
bool assertion_holds(const struct assertion *assertion, const struct run *run,
		     char ret_actual[static ASSERTION_TEXT]);

#endif
