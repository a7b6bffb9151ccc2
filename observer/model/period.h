/* SPDX-License-Identifier: MIT */
/* A period: the whole observation, or a measured phase. model.c begins and reads it. */
#ifndef OBSERVER_MODEL_PERIOD_H
#define OBSERVER_MODEL_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kept/packed.h"
#include "model/kept/series.h"
#include "model/upstreams/upstreams.h"
#include "resources/look.h"
#include "sources/ring.h"
#include "sojourn/run.h"

/* Its documents cover the time since the reading @base. */
struct period {
	uint64_t id;		   /* 0: free */
	struct run *base;	   /* its services are there only if it is not packed, or open */
	struct packed_run *packed; /* the owner of @base; NULL: the period */
	uint64_t *first_ns;	   /* by service: earliest arrival since the start, 0: none yet */
	struct source_samples *samples; /* NULL: none are taken */
	struct look *look;		/* for resources that run out; NULL: none is taken */
	struct model_series *series;	/* NULL: none is kept */
	struct upstreams *upstreams;	/* NULL: none are looked for */
	bool pointed;	     /* its last point ended with the model's tick; false: no point yet */
	uint32_t lease_s;    /* of a phase */
	uint64_t expires_ns; /* when its lease ends */
};

/* Free everything, and make the period free. */
void period_done(struct period *period, struct source_ring *ring);

/* Let the base take little memory, without services that had no counts. Without memory it stays as it is. */
void period_pack(struct period *period);
/* A packed base has its services between these. 0 or -ENOMEM. */
int period_open(const struct period *period);
void period_close(const struct period *period);

/* Return the memory in bytes, without samples and series, which have limits of their own. @services: of first_ns. */
size_t period_bytes(const struct period *period, size_t services);

/* Return the reading with which the last point of the period's series ended; @tick: that of all that have one. */
const struct run *period_last_point(const struct period *period, const struct run *tick);

/*
 * Add a point to the period's look and, with the reading @now, to its series. Without memory drop the series, which
 * would not add up.
 */
void period_point(struct period *period, const struct run *tick, const struct run *now,
		  uint64_t interval_ns);

/* Set the times of the period's first and last message in @run, whose services have the indices @used; 0 if it has none. */
void period_set_messages(const struct period *period, const uint32_t *used, struct run *run);

/*
 * Add connections to the open ones of a period's @run that came after the visit to the sockets began: its counts were read
 * later. Each accepted one is open if it has not ended. @came: how many came, by index; no more are added.
 */
void period_settle_connections(const uint64_t *came, const uint32_t *used, struct run *run);

/* Forget a service that no further reading has. */
void period_forget(struct period *period, uint32_t index, const struct run_service *like);

#endif
