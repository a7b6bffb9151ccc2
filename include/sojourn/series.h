/* SPDX-License-Identifier: MIT */
/*
 * A service's past, point by point: what it counted in each second or so of a period, and its state at
 * the end of that. Part of the run document (run.h).
 */
#ifndef SOJOURN_SERIES_H
#define SOJOURN_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* What of a point is known, as bits of run_point.known. */
enum run_point_value {
	RUN_POINT_CONNECTIONS = 1 << 0,
	RUN_POINT_TIME_WAIT = 1 << 1,
	RUN_POINT_DEPTH = 1 << 2,
	RUN_POINT_FDS = 1 << 3,
	RUN_POINT_SRTT = 1 << 4,
	RUN_POINT_PORTS = 1 << 5,
	RUN_POINT_DEPTH_MAX = 1 << 6,
	RUN_POINT_MIN_RTT = 1 << 7,
	RUN_POINT_OPEN = 1 << 26,
	RUN_POINT_OVERFLOWS = 1 << 24,
	RUN_POINT_CPU = 1 << 25,
};

#define RUN_POINT_STAGE(stage)	  (1U << (8 + (stage)))	 /* its count and sum */
#define RUN_POINT_QUANTILE(stage) (1U << (16 + (stage))) /* its p50 and p99 */

_Static_assert(STAGE_COUNT <= 8, "the stages' bits of run_point.known");

struct run_point_stage {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t p50_ns;
	uint64_t p99_ns;
};

/* What service divided into; `count` exchanges were divided. */
struct run_point_cpu {
	uint64_t count;
	uint64_t sum_ns[RUN_CPU_COUNT];
};

struct run_point {
	uint64_t begin_ns; /* from the begin of the period */
	uint64_t duration_ns;
	uint32_t known;
	/* Counted in it: over all points they sum to those of the period. */
	uint64_t accepted;
	uint64_t exchanges;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t retransmits;
	uint64_t resets; /* by either side */
	uint64_t time_wait_created;
	uint64_t closes[RUN_CLOSE_COUNT];
	uint64_t losses[RUN_LOSS_COUNT];
	uint64_t overflows; /* of the accept queue */
	struct run_point_stage stages[STAGE_COUNT];
	struct run_point_cpu cpu;
	/* At its end. */
	uint64_t connections;
	uint64_t time_wait;
	uint64_t depth;	    /* of the accept queue */
	uint64_t depth_max; /* likewise, the highest since the observation began */
	uint64_t fds;	    /* open, of all the service's processes */
	uint64_t srtt_ns;
	uint64_t min_rtt_ns; /* of the connections established then */
	uint64_t ports;	     /* run_service.ports.used */
	uint64_t open;	     /* requests: read and not answered, or unread */
	uint64_t open_oldest_ns;
};

struct run_series {
	uint64_t started_ns; /* the period's begin: wall clock, ns since 1970; 0: not known */
	struct run_point *points;
	size_t count;
	size_t capacity;
};

/* More points than these are joined by two: ten minutes have one for each second. */
#define RUN_SERIES_MAX 600U

/* Joins points until there is room for another one below @most. */
void run_series_limit(struct run_series *series, size_t most);

struct run_series *run_series_new(void);
void run_series_free(struct run_series *series);
DEFINE_CLEANUP(struct run_series *, run_series_free)

/* A copy; NULL without memory. */
struct run_series *run_series_copy(const struct run_series *series);

/* Appends @point, and joins points where there are too many. -ENOMEM. */
int run_series_add(struct run_series *series, const struct run_point *point);

/*
 * Makes @point that of both, where @later follows it: counts add, the state is that of the later one, percentiles are
 * known if only one of them had exchanges.
 */
void run_point_join(struct run_point *point, const struct run_point *later);

/*
 * What @now, a reading of a service, has beyond @before, an earlier one of the same observation; NULL: it was
 * not there. begin_ns and duration_ns are the caller's.
 */
void run_point_between(const struct run_service *before, const struct run_service *now,
		       struct run_point *ret_point);

#endif
