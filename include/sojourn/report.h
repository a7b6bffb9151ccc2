/* SPDX-License-Identifier: MIT */
/* The report for people, made from a run document alone. */
#ifndef SOJOURN_REPORT_H
#define SOJOURN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "sojourn/run.h"

struct report_options {
	bool colour;
	unsigned int width; /* columns; lines are kept within it where possible; 0: 100 */
};

/* Colour if @file is a terminal and NO_COLOR is unset or empty (https://no-color.org); its width. */
void report_options_for(FILE *file, struct report_options *ret_options);

/* Prints @run: a breakdown per service when the driver's part is there, else the observer's sheet. */
int report_text(const struct run *run, const struct report_options *options, FILE *file);

/*
 * Everything that should have been seen of @service and was not, plus what the programs missed as a
 * whole: 0 in a run to be trusted.
 */
uint64_t report_lost(const struct run *run, const struct run_service *service);

#endif
