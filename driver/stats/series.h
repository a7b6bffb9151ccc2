/* SPDX-License-Identifier: MIT */
/*
 * The measured phase in compact intervals: counts and used buckets. Neighbours: stats.h (counts one
 * interval at a time), run/result.c (writes the document's intervals).
 */
#ifndef DRIVER_STATS_SERIES_H
#define DRIVER_STATS_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/run.h"
#include "stats.h"

struct series_bucket {
	uint64_t index;
	uint64_t count;
};

/* One interval. */
struct series_part {
	uint64_t requests;
	uint64_t errors;
	uint64_t connects;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t latency_count;
	uint64_t latency_sum;
	uint64_t latency_max;
	uint64_t bucket_count;
	struct series_bucket *buckets;
};

struct series {
	uint64_t begin_ns; /* of the phase */
	uint64_t interval_ns;
	bool by_intention; /* latency is the response time, otherwise the round trip */
	size_t count;
	struct series_part *list;
};

/* Begin an empty series at @begin_ns. */
void series_begin(struct series *series, uint64_t begin_ns, uint64_t interval_ns,
		  bool by_intention);
void series_clear(struct series *series);

/* Return the end of the interval that contains @at_ns. */
uint64_t series_end_of(const struct series *series, uint64_t at_ns);

/*
 * Add @stats to the interval that contains @at_ns. Beyond RUN_INTERVALS_MAX, intervals become
 * longer. -ENOMEM.
 */
int series_put(struct series *series, uint64_t at_ns, const struct stats *stats);

/* Add every interval of @other, of the same phase; a zeroed @series starts like @other. -ENOMEM. */
int series_add(struct series *series, const struct series *other);

/* Fill the document's intervals and drift, for a phase that ended at @end_ns. -ENOMEM. */
int series_fill(struct series *series, uint64_t end_ns, struct run_driver *driver);

#endif
