/* SPDX-License-Identifier: MIT */
/* The report for people, made from a run document alone. */
#ifndef SOJOURN_REPORT_H
#define SOJOURN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "sojourn/run.h"

struct report_options {
	bool colour;
	bool ascii; /* nothing but ASCII, for a locale without UTF-8 */
	bool verbose; /* all that the document says; else what one looks at first, and how several differ */
	unsigned int width; /* columns; lines are kept within it where possible; 0: 100 */
	char **broken; /* assertions that do not hold, a sentence each, NULL-terminated; may be NULL */
};

/*
 * Colour if @file is a terminal and NO_COLOR is unset or empty (https://no-color.org); its width; ASCII if the
 * locale says so.
 */
void report_options_for(FILE *file, struct report_options *ret_options);

/*
 * Prints @run: the verdict, what failed, a breakdown of the round trip when the driver's part is there, else the
 * observer's sheet for each service.
 */
int report_text(const struct run *run, const struct report_options *options, FILE *file);

struct run_sweep; /* sweep.h */
struct run_sweep_step;

/* One step of a sweep that goes on, as a line: "8 connections: 1,234/s, p50 1.2 ms, p99 4.5 ms". */
void report_sweep_step(const struct run_sweep *sweep, const struct run_sweep_step *step,
		       FILE *file);

/* Of a document of `sojourn doctor` only what runs out, what is fullest and what was not seen. -EIO. */
int report_host(const struct run *run, const struct report_options *options, FILE *file);

/*
 * report_text() as one HTML file that needs nothing else: @count runs with a name each, side by side.
 * -ENOMEM, -EIO.
 */
int report_html(struct run *const *runs, const char *const *names, size_t count, FILE *file);

/* The page that `sojourn serve` answers with: it asks /api/v1/ again and again. -EIO. */
int report_live_page(FILE *file);

/*
 * The same as tables of Markdown (GitHub's), for issues and pages: the figures, findings and losses. Of
 * several runs how they differ, and only if verbose each.
 */
int report_markdown(struct run *const *runs, const char *const *names, size_t count,
		    const struct report_options *options, FILE *file);

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

/* What the figures of a service may mean where they alone do not tell, and what would tell: a sentence each. */
struct report_hint {
	char text[512];
};

#define REPORT_HINTS 3U
/* How many there are. */
size_t report_hints(const struct run *run, const struct run_service *service,
		    struct report_hint ret_hints[static REPORT_HINTS]);

/*
 * "100 % redirected, not followed: 302", and "interrupted after 1.02 s of 10 s": as every form of the report says it.
 * False: there is nothing to say.
 */
bool report_redirected(const struct run_driver *driver, size_t size, char *ret_text);
bool report_interrupted(const struct run_driver *driver, size_t size, char *ret_text);

/* The service that the driver drove; NULL if there is no driver's part or nothing to split. */
const struct run_service *report_driven_service(const struct run *run);

/*
 * Everything that should have been seen of @service and was not, plus what the programs missed as a
 * whole: 0 in a run to be trusted.
 */
uint64_t report_lost(const struct run *run, const struct run_service *service);

#endif
