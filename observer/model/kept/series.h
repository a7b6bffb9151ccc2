/* SPDX-License-Identifier: MIT */
/* The past of each service of a period; see series.c. */
#ifndef OBSERVER_MODEL_KEPT_SERIES_H
#define OBSERVER_MODEL_KEPT_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/run.h"

struct model_series;

/*
 * @bytes: memory for all services' points, including a document. The more services there are, the fewer points each
 * has. @sparse: a service takes none until something happens, and then as few as one. 0 or -ENOMEM.
 */
int model_series_new(uint64_t bytes, bool sparse, struct model_series **ret_series);
/* Change the memory. It holds from the next point of a service on. */
void model_series_limit(struct model_series *series, uint64_t bytes);
void model_series_free(struct model_series *series);

/* Return the memory of all points in bytes, without that of a document. */
size_t model_series_bytes(const struct model_series *series);

/*
 * Add a point for each service: the difference of @now and @last. Both are readings of the whole
 * observation; @base is that at the period's begin. -ENOMEM.
 */
int model_series_point(struct model_series *series, const struct run *base, const struct run *last,
		       const struct run *now);

/* Drop the past of a service that no further reading has. */
void model_series_forget(struct model_series *series, const struct run_service *like);

/* Give the services of @now their past, with one more point for the time since @last. -ENOMEM. */
int model_series_read(const struct model_series *series, const struct run *base,
		      const struct run *last, struct run *now);

/* The same without that point, for a period that began at @started_ns (wall clock; 0: not known). */
int model_series_give(const struct model_series *series, uint64_t started_ns, struct run *run);

#endif
