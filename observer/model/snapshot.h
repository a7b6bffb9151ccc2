/* SPDX-License-Identifier: MIT */
/*
 * A sink's view of the observation: run documents, on demand. No sink knows where they come from (model.c), and the
 * model knows no sink.
 */
#ifndef OBSERVER_MODEL_SNAPSHOT_H
#define OBSERVER_MODEL_SNAPSHOT_H

#include <stdint.h>
#include <stdlib.h>

#include "sojourn/run.h"

/* Phases that may be open at the same time, and the memory that the readings at their begins may take. */
#define SNAPSHOT_PHASES	     64
#define SNAPSHOT_PHASE_BYTES (64UL << 20)

/* An address that is connected to a service. */
struct snapshot_client {
	uint8_t family;
	uint8_t address[16]; /* the first four for AF_INET */
	size_t connections;
};

struct snapshot_clients {
	struct snapshot_client *list; /* that with the most connections first */
	size_t count;
	size_t connections; /* of all of them */
	bool partial;	    /* there was no memory for some */
};

static inline void snapshot_clients_free(struct snapshot_clients *clients)
{
	free(clients->list);
	*clients = (struct snapshot_clients){};
}

/* How much of the past a page wants. */
struct snapshot_past {
	uint32_t last_s; /* before that there is one point */
	uint32_t
		step_s; /* a point's duration at least: 1, or 10 for what is longer ago than ten minutes */
	uint16_t port; /* of the services at this port; 0: of all */
};

struct snapshot_source {
	void *context;
	/* Everything since the observation began. 0 or -errno. */
	int (*total)(void *context, struct run **ret_run);
	/* The same without single exchanges and findings: for what is shown often. */
	int (*brief)(void *context, struct run **ret_run);
	/* The same with the recent past of services as series. -ENODATA: nobody keeps it. */
	int (*past)(void *context, const struct snapshot_past *past, struct run **ret_run);
	/*
	 * Adds what is running out now, judged over the last minute, to a document of brief(). Nothing if
	 * nobody looks: then not_seen stays NULL.
	 */
	int (*judge)(void *context, struct run *run);
	/*
	 * Find the clients that are connected to @service now; the caller frees them. Every connection of the host is
	 * looked at. -ENODATA: its network namespace is another one.
	 */
	int (*clients)(void *context, const struct run_service *service,
		       struct snapshot_clients *ret_clients);
	/*
	 * Begins a measured phase now, which ends unheard if it was not renewed for @lease_s seconds. -ENOSPC:
	 * SNAPSHOT_PHASES are open; -EDQUOT: the open ones take the memory that phases may.
	 */
	int (*phase_begin)(void *context, uint32_t lease_s, uint64_t *ret_id);
	/* From now on the lease lasts as long as at the begin. Errors as below. */
	int (*phase_renew)(void *context, uint64_t id, uint32_t *ret_lease_s);
	/* Ends phase @id and returns what it covers. -ENOENT: no such phase is open. */
	int (*phase_end)(void *context, uint64_t id, struct run **ret_run);
};

#endif
