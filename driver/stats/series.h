/* SPDX-License-Identifier: MIT */
/*
 * The measured phase cut into intervals, kept small: of every interval the counts and the buckets in
 * use. Neighbours: stats.h (counts one interval at a time), run/result.c (makes the document's intervals).
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
	bool by_intention; /* latency is the response time, else the round trip */
	size_t count;
	struct series_part *list;
};

/* Empty, from @begin_ns on. */
void series_begin(struct series *series, uint64_t begin_ns, uint64_t interval_ns,
		  bool by_intention);
void series_clear(struct series *series);

/* When the interval that holds @at_ns ends. */
uint64_t series_end_of(const struct series *series, uint64_t at_ns);

/*
 * Adds @stats to the interval that holds @at_ns. Beyond RUN_INTERVALS_MAX intervals become longer.
 * -ENOMEM.
 */
int series_put(struct series *series, uint64_t at_ns, const struct stats *stats);

/* Adds every interval of @other, a series of the same phase; a zeroed @series begins as @other. -ENOMEM. */
int series_add(struct series *series, const struct series *other);

/* The document's intervals of a phase that ended at @end_ns, and its drift. -ENOMEM. */
int series_fill(struct series *series, uint64_t end_ns, struct run_driver *driver);

#endif
