/* SPDX-License-Identifier: MIT */
/* The successive loads of a sweep: connections or rates. */
#ifndef DRIVER_LOAD_LADDER_H
#define DRIVER_LOAD_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LADDER_MAX 64

/* A load is measured so often until it is steady, each time after twice the warm-up. */
#define LADDER_ATTEMPTS 3U

struct ladder {
	bool of_rates; /* otherwise of connections */
	size_t count;
	uint64_t loads[LADDER_MAX]; /* rising */
};

/*
 * Parse a ladder: "1..512" doubles, "1..512x1.5" multiplies, "100..900+200" adds, "1,2,8" lists.
 * The end of a range is always the last step. "rate:" before it means rates, "connections:" is the
 * default. 3 to LADDER_MAX steps. -EINVAL with @ret_error.
 */
int ladder_parse(const char *text, struct ladder *ret_ladder, char **ret_error);

#endif
