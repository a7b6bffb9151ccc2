/* SPDX-License-Identifier: MIT */
/* The past of each service of a period; see source_series.c. */
#ifndef OBSERVER_SOURCE_SERIES_H
#define OBSERVER_SOURCE_SERIES_H

#include "sojourn/run.h"

/* Between two points. */
#define SERIES_POINT_NS 1000000000ULL

struct source_series;

/* 0 or -ENOMEM. */
int source_series_new(struct source_series **ret_series);
void source_series_free(struct source_series *series);

/*
 * One more point for each service: what @now has beyond @last. Both are readings of the whole observation;
 * @base is that at the period's begin. -ENOMEM.
 */
int source_series_point(struct source_series *series, const struct run *base,
			const struct run *last, const struct run *now);

/* Gives the services of @now their past, with one more point for the time since @last. -ENOMEM. */
int source_series_read(const struct source_series *series, const struct run *base,
		       const struct run *last, struct run *now);

/* The same without that point, for a period that began at @started_ns (wall clock; 0: not known). */
int source_series_give(const struct source_series *series, uint64_t started_ns, struct run *run);

#endif
