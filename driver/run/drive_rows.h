/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, or several targets, requested in turn. Each is a row of the result. */
#ifndef DRIVER_RUN_DRIVE_ROWS_H
#define DRIVER_RUN_DRIVE_ROWS_H

#include <stdint.h>

struct target;

#define DRIVE_ROWS_MAX 64U

struct drive_row {
	const char *name;
	const char *method; /* NULL: requests have none */
};

enum drive_rows_kind {
	DRIVE_ONE, /* one row: all requests are equal, and the result has no rows */
	DRIVE_TARGETS,
	DRIVE_STEPS,
};

struct drive_rows {
	enum drive_rows_kind kind;
	const char *scenario; /* name of the scenario */
	struct drive_row list[DRIVE_ROWS_MAX];
	const struct target *targets[DRIVE_ROWS_MAX]; /* of each row */
	uint32_t count;
	const uint64_t *think_ns; /* after each step; NULL: no think times */
};

#endif
