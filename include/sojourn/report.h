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
 * The same as one HTML file that needs nothing else: @count runs with a name each, side by side.
 * -ENOMEM, -EIO.
 */
int report_html(struct run *const *runs, const char *const *names, size_t count, FILE *file);

/* The page that `sojourn serve` answers with: it asks /api/v1/ again and again. -EIO. */
int report_live_page(FILE *file);

/* The same as tables of Markdown (GitHub's), for issues and pages: the figures, findings and losses. */
int report_markdown(struct run *const *runs, const char *const *names, size_t count, FILE *file);

/*
 * The driver's figures as comma-separated values: a row per interval, per kind of latency of the whole
 * run, per step of a sweep. -ENODATA: there is no driver's part; -EIO.
 */
int report_csv(const struct run *run, FILE *file);

/*
 * Its latency as an HdrHistogram log with an interval per line, for the tools of that name; one line if
 * there are no intervals. -ENODATA: there is no driver's part; -ENOMEM, -EIO.
 */
int report_hlog(const struct run *run, FILE *file);

/* Several runs against the first, for people; -ENOMEM. @count is 2 or more. */
int report_compare(struct run *const *runs, const char *const *names, size_t count,
		   const struct report_options *options, FILE *file);

/* The service that the driver drove; NULL if there is no driver's part or nothing to split. */
const struct run_service *report_driven_service(const struct run *run);

/*
 * Everything that should have been seen of @service and was not, plus what the programs missed as a
 * whole: 0 in a run to be trusted.
 */
uint64_t report_lost(const struct run *run, const struct run_service *service);

#endif
