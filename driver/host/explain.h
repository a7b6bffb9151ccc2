/* SPDX-License-Identifier: MIT */
/* Why something failed, with this host's numbers: asked right after the run. */
#ifndef DRIVER_HOST_EXPLAIN_H
#define DRIVER_HOST_EXPLAIN_H

#include <stdbool.h>

#include "sojourn/run.h"
#include "engine/engine.h"
#include "engine/target.h"
#include "transport/link_settings.h"

/* What failed: requests to @target. */
struct explain_run {
	const struct target *target;
	const struct link_settings *link;
	uint32_t connections;
	bool silent; /* not one byte has come */
};

/*
 * A sentence that the caller frees; NULL if there is nothing to add to run_error_help[]. @detail: of the
 * first one; may be empty.
 */
char *explain_failure(enum run_error error, const char *detail, const struct explain_run *run);

/* Why not one connection could be had, and where. A sentence that the caller frees; NULL: no memory. */
char *explain_unreached(const struct engine_result *failure, const struct explain_run *run);

/* How long TIME_WAIT blocks a source port towards @target: 60 s, 1 s where it is reused. */
unsigned int explain_time_wait_s(const struct target *target);

#endif
