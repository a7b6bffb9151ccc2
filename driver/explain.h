/* SPDX-License-Identifier: MIT */
/* Why something failed, with this host's numbers: asked right after the run. */
#ifndef DRIVER_EXPLAIN_H
#define DRIVER_EXPLAIN_H

#include "options.h"
#include "sojourn/run.h"
#include "target.h"

/* A sentence that the caller frees; NULL if there is nothing to add to run_error_help[].
 * @detail: of the first one; may be empty. */
char *explain_failure(enum run_error error, const char *detail, const struct options *options,
		      const struct target *target);

/* How long TIME_WAIT blocks a source port towards @target: 60 s, 1 s where it is reused. */
unsigned int explain_time_wait_s(const struct target *target);

#endif
