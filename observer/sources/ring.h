/* SPDX-License-Identifier: MIT */
/* Sampled exchanges of the open periods; see ring.c. A ring that is NULL samples nothing. */
#ifndef OBSERVER_SOURCES_RING_H
#define OBSERVER_SOURCES_RING_H

#include <stdint.h>

#include "kernel/loader.h"
#include "sojourn/run.h"

struct source_ring;
/* The samples of one period. */
struct source_samples;

/* @limit: maximum of samples of a service in a period. @most: of all its services. 0 or -errno. */
int source_ring_new(struct loader *loader, uint32_t limit, uint32_t most,
		    struct source_ring **ret_ring);
void source_ring_free(struct source_ring *ring);
DEFINE_CLEANUP(struct source_ring *, source_ring_free)

/* Becomes readable when the ring should be drained soon; -1 without a ring. */
int source_ring_fd(const struct source_ring *ring);

/* Take the ring's current events, at most a ring full. 0 or -errno. */
int source_ring_drain(struct source_ring *ring);

/*
 * Begin a period: sample exchanges that arrive from now on. *ret_samples is NULL if too many periods are open. 0 or
 * -ENOMEM.
 */
int source_ring_begin(struct source_ring *ring, struct source_samples **ret_samples);
void source_ring_end(struct source_ring *ring, struct source_samples *samples);

/* Drop the samples at @index in all periods: another service gets its slots. */
void source_ring_forget(struct source_ring *ring, uint32_t index);

/* Copy the samples of the service with this index into @service; nothing without @samples. */
int source_ring_read(const struct source_ring *ring, const struct source_samples *samples,
		     uint32_t index, struct run_service *service);

/* Copy the newest samples of the service with this index into @service, whatever the periods are. */
void source_ring_read_newest(const struct source_ring *ring, uint32_t index,
			     struct run_service *service);

#endif
