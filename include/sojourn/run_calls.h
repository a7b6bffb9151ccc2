/* SPDX-License-Identifier: MIT */
/* Calls to upstreams, with --calls: part of the run document in memory (run.h). */
#ifndef SOJOURN_RUN_CALLS_H
#define SOJOURN_RUN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/histogram.h"
#include "sojourn/run_values.h"

/* Why a connection cannot be cut into calls. */
enum run_uncut {
	RUN_UNCUT_HTTP2,
	RUN_UNCUT_PERHAPS_HTTP2,
	RUN_UNCUT_OVERLAPPED,
	RUN_UNCUT_TUNNELS,
	RUN_UNCUT_UNSEEN,
	RUN_UNCUT_COUNT
};

extern const char *const run_uncut_names[RUN_UNCUT_COUNT];
extern const char *const run_uncut_help[RUN_UNCUT_COUNT];

/* The calls of a service's processes to one place, as seen by these processes. */
struct run_timed_call {
	char towards[56]; /* "10.0.0.5:9000", "[2001:db8::1]:9000" */
	/* As in struct run_upstream. */
	struct run_number serves_too;
	uint64_t connects;   /* connections opened in the period */
	uint64_t connect_ns; /* the sum of their times */
	uint64_t connects_failed;
	uint64_t older;	 /* connections that were picked up */
	uint64_t calls;	 /* whose response has begun */
	uint64_t failed; /* without a response: the connection ended */
	uint64_t open;	 /* now, without a response so far */
	uint64_t untimed;
	uint64_t handshakes;
	uint64_t trailing;
	uint64_t carried;
	uint64_t uncut[RUN_UNCUT_COUNT]; /* connections, since the observation began */
	struct histogram wait;		 /* the request's last write → the response's first read */
	struct histogram whole;		 /* the request's first write → the response's last read */
};

/* Return how many connections could not be cut into calls. */
uint64_t run_call_uncut(const struct run_timed_call *call);

/* Return whether the times of its calls are known: nearly all connections can be cut. */
bool run_call_is_timed(const struct run_timed_call *call);

#endif
