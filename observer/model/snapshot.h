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

/* The maximum of open phases, and the memory that the readings at their begins may take. */
#define SNAPSHOT_PHASES	     64
#define SNAPSHOT_PHASE_BYTES (64UL << 20)

/* An address with connections to a service. */
struct snapshot_client {
	uint8_t family;
	uint8_t address[16]; /* the first four for AF_INET */
	size_t connections;
};

struct snapshot_clients {
	struct snapshot_client *list; /* the one with the most connections first */
	size_t count;
	size_t connections; /* of all of them */
	bool partial;	    /* there was no memory for some */
};

static inline void snapshot_clients_free(struct snapshot_clients *clients)
{
	free(clients->list);
	*clients = (struct snapshot_clients){};
}

/* The part of the past that a page requests. */
struct snapshot_past {
	uint32_t last_s; /* one point holds the time before that */
	uint32_t step_s; /* minimum duration of a point: 1, or 10 for more than ten minutes ago */
	uint16_t port;	 /* of the services at this port; 0: of all */
};

struct snapshot_source {
	void *context;
	/*
	 * Have @task called with @task_context between the steps of what takes long here, until it is set to NULL. It may
	 * call nothing below. NULL: nothing takes long.
	 */
	void (*meanwhile)(void *context, void (*task)(void *context), void *task_context);
	/* Return everything since the observation began. 0 or -errno. */
	int (*total)(void *context, struct run **ret_run);
	/* The same as total(), without single exchanges and findings, for frequent requests. */
	int (*brief)(void *context, struct run **ret_run);
	/* The same as brief(), with the recent past of services as series. -ENODATA: it is not kept. */
	int (*past)(void *context, const struct snapshot_past *past, struct run **ret_run);
	/*
	 * Add current findings, judged over the last minute, to a document of brief(). If findings are switched off
	 * it adds nothing, and not_seen stays NULL.
	 */
	int (*judge)(void *context, struct run *run);
	/* Add all calls to upstreams so far to a document of brief(), with --calls. NULL: there are none. */
	int (*calls)(void *context, struct run *run);
	/*
	 * Find the clients that are connected to @service now; the caller frees them. It walks over
	 * every connection of the host. -ENODATA: the service is in another network namespace.
	 */
	int (*clients)(void *context, const struct run_service *service,
		       struct snapshot_clients *ret_clients);
	/*
	 * Begin a measured phase, which ends unless it is renewed within @lease_s seconds. -ENOSPC:
	 * SNAPSHOT_PHASES are open; -EDQUOT: the open ones take the memory allowed for phases.
	 */
	int (*phase_begin)(void *context, uint32_t lease_s, uint64_t *ret_id);
	/* Renew a lease for its full time from now on. Errors as phase_end(). */
	int (*phase_renew)(void *context, uint64_t id, uint32_t *ret_lease_s);
	/* End phase @id and return its document. -ENOENT: no such phase is open. */
	int (*phase_end)(void *context, uint64_t id, struct run **ret_run);
};

#endif
