/* SPDX-License-Identifier: MIT */
/* The report for people, made from a run document alone. */
#ifndef SOJOURN_REPORT_H
#define SOJOURN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "sojourn/run.h"
#include "sojourn/secret.h"

struct report_options {
	bool colour;
	bool ascii;   /* ASCII only, for a locale without UTF-8 */
	bool verbose; /* the whole document; otherwise a summary, or the differences of several */
	unsigned int width; /* columns, kept where possible; 0: 100 */
	char **broken;	    /* failed assertions, a sentence each, NULL-terminated; may be NULL */
};

/*
 * Use colour on a terminal unless NO_COLOR is set and not empty (https://no-color.org), its width,
 * and ASCII if the locale requires it.
 */
void report_options_for(FILE *file, struct report_options *ret_options);

/*
 * Print @run: the verdict, failures, and a breakdown of the round trip; without a driver, the
 * observer's sheet for each service.
 */
int report_text(const struct run *run, const struct report_options *options, FILE *file);

struct run_sweep; /* sweep.h */
struct run_sweep_step;

/* Print a finished step of a running sweep: "8 connections: 1,234/s, p50 1.2 ms, p99 4.5 ms". */
void report_sweep_step(const struct run_sweep *sweep, const struct run_sweep_step *step,
		       FILE *file);

/* For `sojourn doctor`: print the findings, the fullest resources and those not seen. -EIO. */
int report_host(const struct run *run, const struct report_options *options, FILE *file);

/*
 * Print report_text() as one self-contained HTML file: @count named runs side by side. -ENOMEM,
 * -EIO.
 */
int report_html(struct run *const *runs, const char *const *names, size_t count, FILE *file);

/* Size of a nonce with its terminating zero. */
#define REPORT_NONCE (SECRET_LENGTH + 1)

/*
 * Print the page of `sojourn serve`, which polls /v1/. Only scripts and styles with @ret_nonce are its own: the
 * header Content-Security-Policy should allow no others. -EIO.
 */
int report_live_page(FILE *file, char ret_nonce[static REPORT_NONCE]);

/*
 * Print figures as comma-separated values. The driver has a row per interval, kind of latency and step
 * of a sweep, the observer one per route. -ENODATA: none of them; -EIO.
 */
int report_csv(const struct run *run, FILE *file);

/*
 * Print the driver's latency as an HdrHistogram log with an interval per line, or one line without
 * intervals. -ENODATA: no driver; -ENOMEM, -EIO.
 */
int report_hlog(const struct run *run, FILE *file);

/* Compare 2 or more runs with the first, for people, as compare_runs() groups them; -ENOMEM. */
int report_compare(struct run *const *runs, const char *const *names, size_t count,
		   const struct report_options *options, FILE *file);

/*
 * Write why the times of @call are not known, or "" if they are. @whole: the same since the observation began, by which
 * the connections are judged; @call itself in a document.
 */
#define REPORT_CALL_UNKNOWN 160
void report_call_unknown(const struct run_timed_call *whole, const struct run_timed_call *call,
			 char ret_text[static REPORT_CALL_UNKNOWN]);

/* A sentence on the possible meaning of ambiguous figures of a service, and how to find out. */
struct report_hint {
	char text[1280];
};

#define REPORT_HINTS 9U
size_t report_hints(const struct run *run, const struct run_service *service,
		    struct report_hint ret_hints[static REPORT_HINTS]);

/*
 * Write "100 % redirected, not followed: 302", or "interrupted after 1.02 s of 10 s", as in every
 * form of the report. False: nothing to say.
 */
bool report_redirected(const struct run_driver *driver, size_t size, char *ret_text);
bool report_interrupted(const struct run_driver *driver, size_t size, char *ret_text);

/* Return the service that the driver loaded; NULL: none, or several shared the requests. */
const struct run_service *report_driven_service(const struct run *run);

/* A host of several that are compared, or a pod or container there. */
#define REPORT_HOST_TEXT 320
#define REPORT_HOST_NAME (256 + RUN_PLACE_NAME)
struct report_host {
	char name[REPORT_HOST_NAME];
	char kind[24]; /* what the names are: "host", "pod", "host and pod" */
	uint64_t requests;
	bool timed;  /* the two times at the server are known */
	bool joined; /* the mean round trip is, too */
	double round_trip_ns;
	double at_server_ns; /* mean */
	uint64_t service_p99_ns;
	char text[REPORT_HOST_TEXT]; /* the largest part of the mean, or why there is none */
};

/* List the hosts, the slowest first, in an array to be freed; none if they are not compared. -ENOMEM. */
int report_list_hosts(const struct run *run, size_t *ret_count, struct report_host **ret_list);

/* Requests that reached the services at the driver's ports, on all hosts and from any client. */
struct report_unanswered {
	uint64_t count; /* not answered: they ended so, or were open at the end */
	uint64_t of;
};

/* Return false if not known: no such service, its open requests not counted, an observer lost. */
bool report_unanswered(const struct run *run, struct report_unanswered *ret_unanswered);

/*
 * Return the events of @service that were missed, plus those missed by programs as a whole: 0 in a
 * trustworthy run.
 */
uint64_t report_lost(const struct run *run, const struct run_service *service);

#endif
