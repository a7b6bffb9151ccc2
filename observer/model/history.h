/* SPDX-License-Identifier: MIT */
/* The recent past of each service, for pages that are opened later: a point each second and each ten; see history.c. */
#ifndef OBSERVER_MODEL_HISTORY_H
#define OBSERVER_MODEL_HISTORY_H

#include "snapshot.h"

struct history;

/* Points of a second reach back ten minutes, those of ten seconds a day. */
#define HISTORY_SLOT_NS	  10000000000ULL
#define HISTORY_FINE_NS	  600000000000ULL
#define HISTORY_COARSE_NS 86400000000000ULL
/* All points together take so many bytes at most; beyond that the oldest of who has most are made one. */
#define HISTORY_BYTES (32UL << 20)
/* A document has so many points at most; a wish for more gets longer ones. */
#define HISTORY_POINTS 20000U

/* 0 or -ENOMEM. @bytes: HISTORY_BYTES, but for tests. */
int history_new(size_t bytes, struct history **ret_history);
void history_free(struct history *history);
DEFINE_CLEANUP(struct history *, history_free)

/* Which points. */
enum history_kind {
	HISTORY_FINE,
	HISTORY_COARSE,
	HISTORY_KINDS
};

/*
 * Add a point of @kind for each service: the difference between @now and @last. Both are readings of the whole
 * observation; times count from @base. Without memory a service's past starts over.
 */
void history_point(struct history *history, enum history_kind kind, const struct run *base,
		   const struct run *last, const struct run *now);

/* Which points @past is about. */
enum history_kind history_kind_of(const struct snapshot_past *past);

/*
 * Give the services of @now their past as series. One point has all older time, and the points of @past follow. The
 * last one has the time since @last, the reading of the last point of that kind. Return 0 or -ENOMEM.
 */
int history_read(const struct history *history, const struct snapshot_past *past,
		 const struct run *base, const struct run *last, struct run *now);

#endif
