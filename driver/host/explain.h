/* SPDX-License-Identifier: MIT */
/* Explains why requests failed, with figures of this host that are read right after the run. */
#ifndef DRIVER_HOST_EXPLAIN_H
#define DRIVER_HOST_EXPLAIN_H

#include <stdbool.h>

#include "sojourn/run.h"
#include "engine/engine.h"
#include "engine/target.h"
#include "transport/link.h"

/* The failed requests, to @target. */
struct explain_run {
	const struct target *target;
	const struct link_settings *link;
	uint32_t connections;
	bool silent; /* not one byte came */
};

/*
 * Return a sentence that the caller frees; NULL: nothing to add to run_error_help[]. @detail: of
 * the first failure, or empty.
 */
char *explain_failure(enum run_error error, const char *detail, const struct explain_run *run);

/* Explain why no connection was established. The caller frees the sentence; NULL: no memory. */
char *explain_unreached(const struct engine_result *failure, const struct explain_run *run);

/* Return for how long TIME_WAIT blocks a source port: 60 s, or 1 s where ports are reused. */
unsigned int explain_time_wait_s(const struct target *target);

#endif
