/* SPDX-License-Identifier: MIT */
/* The parts of a text report, one function each; report_text.c puts them in order. */
#ifndef LIB_REPORT_PARTS_H
#define LIB_REPORT_PARTS_H

#include "report_print.h"

/* report_tree.c: how the driver's round trip splits at @service; both have requests. */
void report_tree(const struct page *page, const struct run *run, const struct run_service *service);

/* report_service.c: "tcp 127.0.0.1:8080 · nginx 812", with @remark after it unless NULL. */
void report_identity(const struct page *page, const struct run_service *service,
		     const char *remark);
/* Throughput, TIME_WAIT, fds, accept queue, lost: one line. */
void report_state(const struct page *page, const struct run *run,
		  const struct run_service *service);
/* Each stage with its percentiles. */
void report_stages(const struct page *page, const struct run_service *service);
/* Why @stage, which is @which, has no figures: the reason, if only that nothing was sampled; or NULL. */
const char *report_missing(const struct run_stage *stage, enum stage which);
/* What is no part of a round trip: how long connections waited for accept(), and responses for ack. */
void report_beside(const struct page *page, const struct run_service *service);
/* Connections, bytes, and what could not be seen. */
void report_details(const struct page *page, const struct run_service *service);

/* report_caveats.c: number @i of what was not seen of a service, as all forms of the report say it; false: nothing. */
struct report_caveat {
	uint64_t count;
	char text[256];
};

#define REPORT_CAVEATS (RUN_LOSS_COUNT + 2U)
bool report_caveat(const struct run_service *service, unsigned int i,
		   struct report_caveat *ret_caveat);
/* All of them as rows. */
void report_caveats(const struct page *page, const struct run_service *service);
/* Whether so many responses were not seen to leave that the means behind the residence are bent. */
bool report_is_unseen(const struct run_service *service);

/* report_notes.c: a sentence on requests that are in no percentile. */
struct report_note {
	char text[192];
};

#define REPORT_NOTES 2U
/* How many there are; none if every request was answered. */
size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES]);
/* A line for each. */
void report_print_notes(const struct page *page, const struct run_driver *driver);

/* report_driver.c: "GET http://… · 64 connections …". */
void report_target(const struct page *page, const struct run *run);
/* The first line of all, if the driver limited the result. */
void report_limited(const struct page *page, const struct run_driver *driver);
/* Under a rate: latency from the intended start, which comes before the round trip. */
void report_response_time(const struct page *page, const struct run_driver *driver);
/* The round trip's first line, with rate: the tree's root, or all there is without an observer. */
void report_round_trip(const struct page *page, const struct run_driver *driver);
/* Further percentiles, connect, status, errors, CPU. */
void report_driver(const struct page *page, const struct run *run);

/* Width of the label at the left of the driver's lines. */
unsigned int report_driver_columns(const struct run_driver *driver);

/* report_rows.c: steps, targets, statuses. */
void report_rows(const struct page *page, const struct run *run);

/* report_intervals.c: how the rate behaved over the intervals; nothing below three of them. */
void report_intervals(const struct page *page, const struct run_driver *driver);
/* What each of several drivers did; nothing if there is one alone. */
void report_drivers(const struct page *page, const struct run_driver *driver);
/*
 * report_joined.c: part number @i of joined exchanges, or of the sums of some of them, as all forms of the
 * report name it; a name that begins with blanks divides the part above it. False: not in this run.
 */
struct report_part {
	char name[SHORT_TEXT];
	uint64_t sum_ns;
	double share; /* of what the user waited, percent */
};

#define REPORT_PARTS 11U
bool report_part(const struct run_joined *joined, const struct run_parts *sums, size_t i,
		 struct report_part *ret_part);
/*
 * report_joined.c: "service 91 %, socket queue 8 %": the parts that are 0.5 % or more of @sums, the largest
 * first, as many as fit into @columns and @size bytes.
 */
void report_shares(const struct run_parts *sums, unsigned int columns, size_t size, char *ret_text);
/* report_joined.c: what of the slow requests is whose, and the slowest; nothing if nothing was sampled. */
void report_joined(const struct page *page, const struct run *run);

/* report_sweep.c: the first line of all, if the driver limited a step: a plateau may be its own. */
void report_sweep_limited(const struct page *page, const struct run *run);
/* report_sweep.c: a table of loads and what follows from it; nothing without a sweep. */
void report_sweep(const struct page *page, const struct run *run);

/* report_findings.c: what was running out on the observer's host, if anybody looked. */
void report_findings(const struct page *page, const struct run *run);

/* report_cost.c: what observing cost, and what was lost as a whole. */
void report_cost(const struct page *page, const struct run *run);

#endif
