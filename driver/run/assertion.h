/* SPDX-License-Identifier: MIT */
/* What the user demands of the result, for the exit code: "p99<5ms", "errors<0.1%". */
#ifndef DRIVER_RUN_ASSERTION_H
#define DRIVER_RUN_ASSERTION_H

#include <stdbool.h>

#include "sojourn/run.h"

struct assertion {
	const char *text; /* as it was given */
	unsigned int metric;
	bool below;   /* < or <=; else > or >= */
	bool or_same; /* <= or >= */
	bool share;   /* the limit is a percentage */
	double limit; /* ns, a count, requests/s, or percent */
};

/* -EINVAL with a sentence in @ret_error; -ENOMEM. */
int assertion_parse(const char *text, struct assertion *ret_assertion, char **ret_error);

/* Whether it is about this error: then it decides how many of them are too many. */
bool assertion_is_about(const struct assertion *assertion, enum run_error error);

/* Whether it is about what an observer counts. */
bool assertion_needs_observer(const struct assertion *assertion);

#define ASSERTION_TEXT 128

/*
 * Whether the driver's result in @run meets it; *ret_actual is what it is about, for people. A percentile does not hold
 * if so many requests were never answered that it is one of theirs: nobody knows how long they would have
 * taken. The same for "max" if there is one.
 */
bool assertion_holds(const struct assertion *assertion, const struct run *run,
		     char ret_actual[static ASSERTION_TEXT]);

#endif
