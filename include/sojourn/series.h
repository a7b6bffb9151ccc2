/* SPDX-License-Identifier: MIT */
/*
 * A service's history in points: counts of about a second each, and the state at its end. Part of
 * the run document (run.h).
 */
#ifndef SOJOURN_SERIES_H
#define SOJOURN_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* Known members of a point, as bits of run_point.known. */
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

#define RUN_POINT_STAGE(stage)	  (1U << (8 + (stage)))	 /* count and sum */
#define RUN_POINT_QUANTILE(stage) (1U << (16 + (stage))) /* p50 and p99 */

_Static_assert(STAGE_COUNT <= 8, "the stages' bits of run_point.known");

struct run_point_stage {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t p50_ns;
	uint64_t p99_ns;
};

/* The parts of service, over `count` divided exchanges. */
struct run_point_cpu {
	uint64_t count;
	uint64_t sum_ns[RUN_CPU_COUNT];
};

struct run_point {
	uint64_t begin_ns; /* since the start of the period */
	uint64_t duration_ns;
	uint32_t known;
	/* Counts in the interval; all points sum to the period's. */
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
	/* State at the end. */
	uint64_t connections;
	uint64_t time_wait;
	uint64_t depth;	    /* of the accept queue */
	uint64_t depth_max; /* of the accept queue, maximum since the observation began */
	uint64_t fds;	    /* open in all processes of the service */
	uint64_t srtt_ns;
	uint64_t min_rtt_ns; /* of connections established then */
	uint64_t ports;	     /* run_service.ports.used */
	uint64_t open;	     /* requests in flight: read and not answered, or unread */
	uint64_t open_oldest_ns;
};

struct run_series {
	uint64_t started_ns; /* start of the period: wall clock, ns since 1970; 0: not known */
	struct run_point *points;
	size_t count;
	size_t capacity;
};

/* More points are joined in pairs: ten minutes have one per second. */
#define RUN_SERIES_MAX 600U

/* Join points in pairs until there are fewer than @most, so that one more fits. One remains in any case. */
void run_series_limit(struct run_series *series, size_t most);

struct run_series *run_series_new(void);
void run_series_free(struct run_series *series);
DEFINE_CLEANUP(struct run_series *, run_series_free)

/* Return a copy; NULL without memory. */
struct run_series *run_series_copy(const struct run_series *series);

/* Append @point, and join points if there are too many. -ENOMEM. */
int run_series_add(struct run_series *series, const struct run_point *point);

/*
 * Join @later, the next point, to @point: counts add, state is @later's, percentiles are known if
 * only one had exchanges.
 */
void run_point_join(struct run_point *point, const struct run_point *later);

/*
 * Subtract @before, an earlier reading of the service in the same observation, from @now; NULL:
 * there was none. The caller sets begin_ns and duration_ns.
 */
void run_point_between(const struct run_service *before, const struct run_service *now,
		       struct run_point *ret_point);

#endif
