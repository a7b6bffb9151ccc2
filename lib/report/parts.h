/* SPDX-License-Identifier: MIT */
/* The parts of a text report, one function each; text.c puts them in order. */
#ifndef LIB_REPORT_PARTS_H
#define LIB_REPORT_PARTS_H

#include "print.h"
#include "sojourn/sweep.h"

/* tree.c: how the driver's round trip splits at @service; both have requests. */
void report_tree(const struct page *page, const struct run *run, const struct run_service *service);

/* service.c: "tcp 127.0.0.1:8080 · nginx 812", with @remark after it unless NULL. */
void report_identity(const struct page *page, const struct run_service *service,
		     const char *remark);
/* From the first to the last request, or where that is not known the whole period; 0: neither is. */
uint64_t report_span(const struct run *run, const struct run_service *service);
uint64_t report_not_timed(const struct run_service *service);
/* Throughput, open requests, TIME_WAIT, fds, accept queue, lost. */
void report_state(const struct page *page, const struct run *run,
		  const struct run_service *service);
/* Source ports are the host's: a line for each destination, once for all services. */
void report_host_ports(const struct page *page, const struct run *run);
/* Each stage with its percentiles. */
void report_stages(const struct page *page, const struct run_service *service);
/* Why @stage, which is @which, has no figures: the reason, if only that nothing was sampled; or NULL. */
const char *report_missing(const struct run_stage *stage, enum stage which);
/* A datagram has only two of the stages: of the others nothing is missing. */
bool report_has_stage(const struct run_service *service, enum stage which);
/* Whether a stage is missing only because nobody asked for it: such ones stand in one line. */
bool report_is_unasked(const struct run_stage *stage);
void report_unasked(const struct page *page, const struct run_service *service);
/* What is no part of a round trip: how long connections waited for accept(), and responses for ack. */
void report_beside(const struct page *page, const struct run_service *service);
/* Connections, bytes, and what could not be seen. */
void report_details(const struct page *page, const struct run_service *service);

/* many.c: "tcp 127.0.0.1:8080 nginx". */
#define REPORT_NAME 128
const char *report_name(const struct run_service *service, char buffer[static REPORT_NAME]);
/* Services in a row each, the busiest first; @services is put into that order. */
void report_many(const struct page *page, const struct run *run,
		 const struct run_service **services, size_t count);

/* caveats.c: number @i of what was not seen of a service, as all forms of the report say it; false: nothing. */
struct report_caveat {
	uint64_t count;
	char text[256];
};

#define REPORT_CAVEATS (RUN_LOSS_COUNT + 3U)
bool report_caveat(const struct run_service *service, unsigned int i,
		   struct report_caveat *ret_caveat);
/* All of them as rows, or in one line unless the page has all. */
void report_caveats(const struct page *page, const struct run_service *service);
/* Whether so many responses were not seen to leave that the means behind the residence are bent. */
bool report_is_unseen(const struct run_service *service);

/* notes.c: a sentence on requests that are in no percentile. */
struct report_note {
	char text[256];
};

#define REPORT_NOTES 4U
/* How many there are; none if every request was answered. */
size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES]);
/*
 * Of what reached @service, how much was never answered, and for how long it had waited at least. False: too
 * little to move a percentile that is shown.
 */
bool report_service_note(const struct run_service *service, struct report_note *ret_note);
/* As a line; nothing if there is none. */
void report_print_service_note(const struct page *page, const struct run_service *service);
/* A line for each. */
void report_print_notes(const struct page *page, const struct run_driver *driver);

/* listeners.c: a line for each, the fullest first; nothing unless there are several. */
void report_listeners(const struct page *page, const struct run_service *service);

/* hints.c: a line for each hint on @service. */
void report_print_hints(const struct page *page, const struct run *run,
			const struct run_service *service);

/* driven.c: the port in the driver's URL, its scheme's own if it names none; 0 if it cannot be told. */
uint16_t report_target_port(const struct run_driver *driver);
/* driven.c: of several targets, or of the same port on several hosts, no one service saw all requests. */
bool report_is_split(const struct run *run);

/* A sentence that stands alone. */
struct report_verdict {
	char text[512];
	/* What holds most of the mean time at a service, in a word, and which share; NULL: it is not known. */
	const char *part;
	double percent;
	double total_ns;
};

/*
 * verdict.c: where most of the time of the driver's requests at @service went, or why that is not known; NULL: the
 * service they went to is not known. False: there is nothing to say.
 */
bool report_verdict(const struct run *run, const struct run_service *service,
		    struct report_verdict *ret_verdict);
/* The same of all requests that the observer saw at @service; false: there is nothing to say. */
bool report_service_verdict(const struct run_service *service, struct report_verdict *ret_verdict);
void report_print_verdict(const struct page *page, const struct report_verdict *verdict);

/* failures.c: "100 % failed: 404", and which share that is, 0 … 1; 0: nothing failed, and there is no text. */
double report_failure(const struct run_driver *driver, struct report_verdict *ret_verdict);
/* "100 % redirected, not followed: 302"; likewise. */
double report_redirects(const struct run_driver *driver, struct report_verdict *ret_verdict);
/* Whether most of the requests failed or were redirected: no time says more than that. */
bool report_headline(const struct run_driver *driver, struct report_verdict *ret_verdict);
/* Both, the assertions that do not hold, and each kind of failure. */
void report_failures(const struct page *page, const struct run_driver *driver, char *const *broken);

/* distribution.c: whether the values of @h differ and are enough for a picture. */
#define REPORT_DISTRIBUTION_ROWS 8U
bool report_has_distribution(const struct histogram *h);
/* That in at most so many @rows, 2 to REPORT_DISTRIBUTION_ROWS. */
void report_distribution(const struct page *page, const struct histogram *h, unsigned int rows);

/* ascii.c: replaces each character beyond ASCII by one. */
void report_to_ascii(char *text);
bool report_locale_is_ascii(void);

/* driver.c: "GET http://… · 64 connections …". */
void report_target(const struct page *page, const struct run *run);
/* The first line of all, if the driver limited the result. */
void report_limited(const struct page *page, const struct run_driver *driver);
/* Under a rate: latency from the intended start, which comes before the round trip. */
void report_response_time(const struct page *page, const struct run_driver *driver);
/* The round trip's first line, with rate: the tree's root, or all there is without an observer. */
void report_round_trip(const struct page *page, const struct run_driver *driver);
/* Further percentiles, connect, status, CPU. */
void report_driver(const struct page *page, const struct run *run);
/* In one line, where that is not printed: what the first line lacks. */
void report_beyond(const struct page *page, const struct run_driver *driver);
/* Of that what belongs to the result: steps, targets, drivers, datagrams. */
void report_driver_rows(const struct page *page, const struct run *run);

/*
 * joined.c: part number @i of joined exchanges, or of the sums of some of them, as all forms of the
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
 * joined.c: "service 91 %, socket queue 8 %": the parts that are 0.5 % or more of @sums, the largest
 * first, as many as fit into @columns and @size bytes.
 */
void report_shares(const struct run_joined *joined, const struct run_parts *sums,
		   unsigned int columns, size_t size, char *ret_text);
/* joined.c: "p99", "p99.9". */
const char *report_percentile_name(uint32_t per_mille, char buffer[static SHORT_TEXT]);
/* joined.c: what of the slow requests is whose, and the slowest; nothing if nothing was sampled. */
void report_joined(const struct page *page, const struct run *run);

/* sweep.c: the first line of all, if the driver limited a step: a plateau may be its own. */
void report_sweep_limited(const struct page *page, const struct run *run);
/* sweep.c: what follows from the loads, and a table of them; nothing without a sweep. */
void report_sweep(const struct page *page, const struct run *run);
/* sweep.c: what is to be known before a step's figures are used: "not steady, 12 never sent"; or "". */
#define SWEEP_REMARKS 256
const char *report_sweep_remarks(const struct run_sweep_step *step,
				 char ret_text[static SWEEP_REMARKS]);
/* sweep.c: requests per second; small rates with decimals. */
const char *report_sweep_rate(double per_second, char ret_text[static SHORT_TEXT]);
/* sweep.c: the step from which on throughput does not grow; the number of steps: none is told. */
size_t report_sweep_knee(const struct run_sweep *sweep);
bool report_sweep_is_rated(const struct run_sweep *sweep);
/* sweep.c: "2,500 requests/s from 3 connections on"; why there is none. */
const char *report_sweep_plateau(const struct run_sweep *sweep,
				 char ret_text[static SWEEP_REMARKS]);

/* findings.c: what was running out on the observer's host, if anybody looked. */
void report_findings(const struct page *page, const struct run *run);
/* What it could not see, and why. */
void report_not_seen(const struct page *page, const struct run *run);

/* cost.c: what observing cost, and what was lost as a whole. */
void report_cost(const struct page *page, const struct run *run);
/* Services without a slot, and those that gave theirs to others. */
void report_slots(const struct page *page, const struct run *run);

#endif
