/* SPDX-License-Identifier: MIT */
/* The loads that a sweep goes through, one after the other: connections or rates. */
#ifndef DRIVER_LOAD_LADDER_H
#define DRIVER_LOAD_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LADDER_MAX 64

struct ladder {
	bool of_rates; /* else of connections */
	size_t count;
	uint64_t loads[LADDER_MAX]; /* rising */
};

/*
 * "1..512" doubles, "1..512x1.5" multiplies, "100..900+200" adds, "1,2,8" lists; the end of a range is
 * always its last step. "rate:" before it makes rates of them, "connections:" is the default. At
 * least 3 and at most LADDER_MAX steps. -EINVAL with a sentence in @ret_error, freed by the caller.
 */
int ladder_parse(const char *text, struct ladder *ret_ladder, char **ret_error);

#endif
