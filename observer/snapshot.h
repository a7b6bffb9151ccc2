/* SPDX-License-Identifier: MIT */
/*
 * What a sink sees of the observation: run documents, on demand. No sink knows where they come from
 * (model.c), and the model knows no sink.
 */
#ifndef OBSERVER_SNAPSHOT_H
#define OBSERVER_SNAPSHOT_H

#include <stdint.h>

#include "sojourn/run.h"

/* Phases that may be open at the same time. */
#define SNAPSHOT_PHASES 64

struct snapshot_source {
	void *context;
	/* Everything since the observation began. 0 or -errno. */
	int (*total)(void *context, struct run **ret_run);
	/* The same without single exchanges and findings: for what is shown often. */
	int (*brief)(void *context, struct run **ret_run);
	/*
	 * Adds what is running out now, judged over the last minute, to a document of brief(). Nothing if
	 * nobody looks: then not_seen stays NULL.
	 */
	int (*judge)(void *context, struct run *run);
	/* Begins a measured phase now. -ENOSPC: SNAPSHOT_PHASES are open. */
	int (*phase_begin)(void *context, uint64_t *ret_id);
	/* Ends phase @id and returns what it covers. -ENOENT: there is no such phase. */
	int (*phase_end)(void *context, uint64_t id, struct run **ret_run);
};

#endif
