/* SPDX-License-Identifier: MIT */
/*
 * Takes slots from services for others, and keeps one sum of their counts. Slots are taken only
 * when few are free, so ended services keep their names in the document as long as there is room.
 */
#ifndef OBSERVER_MODEL_RECLAIM_H
#define OBSERVER_MODEL_RECLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/loader.h"
#include "sojourn/run.h"

struct reclaim;

/* 0 or -ENOMEM. */
int reclaim_new(struct loader *loader, struct reclaim **ret_reclaim);
void reclaim_free(struct reclaim *reclaim);

/*
 * Note after each visit to the sockets which services have the slots. @keys are the services by
 * index.
 */
void reclaim_update(struct reclaim *reclaim, const struct service_key *keys, size_t count);

/*
 * Take back slots that were unused at the last visit, as many as are wanted. Call @forget for each with its index,
 * once its counts are in the sum. 0 or -errno.
 */
int reclaim_slots(struct reclaim *reclaim, const struct service_key *keys, size_t count,
		  void (*forget)(void *context, uint32_t index), void *context);

/* Return the turn (struct run_service) of the service at @index. */
uint64_t reclaim_turn(const struct reclaim *reclaim, uint32_t index);
/* Return the sum of the counts of all services that lost their slots. */
const struct run_reclaimed *reclaim_sum(const struct reclaim *reclaim);

#endif
