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
/*
 * Maximum of bytes of all points. Beyond that the oldest points of the service with the most are
 * joined.
 */
#define HISTORY_BYTES (32UL << 20)
/* Maximum of points in a document; a request for more gets longer ones. */
#define HISTORY_POINTS 20000U

/* 0 or -ENOMEM. @bytes: maximum of all points, up to HISTORY_BYTES. */
int history_new(size_t bytes, struct history **ret_history);
void history_free(struct history *history);
DEFINE_CLEANUP(struct history *, history_free)

/* The kinds of points. */
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

/* Return the kind of points that @past requests. */
enum history_kind history_kind_of(const struct snapshot_past *past);

/*
 * Give the services of @now their past as series. One point has all older time, and the points of @past follow. The
 * last one has the time since @last, the reading of the last point of that kind. Return 0 or -ENOMEM.
 */
int history_read(const struct history *history, const struct snapshot_past *past,
		 const struct run *base, const struct run *last, struct run *now);

#endif
