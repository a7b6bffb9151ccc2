/* SPDX-License-Identifier: MIT */
/* A service's past in which everything is known and all numbers differ; for runs.c. */
#ifndef UNIT_SUPPORT_SERIES_H
#define UNIT_SUPPORT_SERIES_H

#include "sojourn/series.h"

#include "unit.h"

static inline struct run_point support_point(uint64_t *last)
{
	struct run_point point = {
		.begin_ns = ++*last,
		.duration_ns = ++*last,
		.known = RUN_POINT_CONNECTIONS | RUN_POINT_TIME_WAIT | RUN_POINT_DEPTH |
			 RUN_POINT_FDS | RUN_POINT_SRTT | RUN_POINT_PORTS | RUN_POINT_DEPTH_MAX |
			 RUN_POINT_MIN_RTT | RUN_POINT_OVERFLOWS | RUN_POINT_CPU | RUN_POINT_OPEN,
		.accepted = ++*last,
		.exchanges = ++*last,
		.bytes_in = ++*last,
		.bytes_out = ++*last,
		.retransmits = ++*last,
		.resets = ++*last,
		.time_wait_created = ++*last,
		.overflows = ++*last,
		.cpu = {.count = ++*last},
		.connections = ++*last,
		.time_wait = ++*last,
		.depth = ++*last,
		.depth_max = ++*last,
		.fds = ++*last,
		.srtt_ns = ++*last,
		.min_rtt_ns = ++*last,
		.ports = ++*last,
		.open = ++*last,
		.open_oldest_ns = ++*last,
	};

	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		point.closes[i] = ++*last;
	for (unsigned int i = 0; i < RUN_LOSS_COUNT; i++)
		point.losses[i] = ++*last;
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		point.cpu.sum_ns[i] = ++*last;
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		point.known |= RUN_POINT_STAGE(i) | RUN_POINT_QUANTILE(i);
		point.stages[i] = (struct run_point_stage){++*last, ++*last, ++*last, ++*last};
	}
	return point;
}

static inline struct run_series *support_series(uint64_t *last)
{
	struct run_series *series = run_series_new();

	assert_non_null(series);
	series->started_ns = ++*last;
	for (unsigned int i = 0; i < 2; i++) {
		struct run_point point = support_point(last);

		assert_int_equal(run_series_add(series, &point), 0);
	}
	return series;
}

/* The padding after `known` is undefined. */
static inline void support_compare_point(const struct run_point *a, const struct run_point *b)
{
	size_t counted = offsetof(struct run_point, accepted);

	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->duration_ns, b->duration_ns);
	assert_int_equal(a->known, b->known);
	assert_memory_equal((const char *)a + counted, (const char *)b + counted,
			    sizeof(*a) - counted);
}

static inline void support_compare_series(const struct run_series *a, const struct run_series *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->started_ns, b->started_ns);
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		support_compare_point(&a->points[i], &b->points[i]);
}

#endif
