/* SPDX-License-Identifier: MIT */
/* From the members' documents to the one of the run. */
#ifndef DRIVER_FLEET_RESULT_H
#define DRIVER_FLEET_RESULT_H

#include "member.h"
#include "options/options.h"
#include "sojourn/run.h"

/* What was asked for, and how it ended. */
struct fleet_outcome {
	const struct options *options;
	char **command;
	bool interrupted; /* by the user, or for want of a member */
};

/*
 * Merges what the members told; they have nothing left then. -EINVAL with a sentence in @ret_error: none told
 * anything, or it cannot be merged; -ENOMEM.
 */
int fleet_result(struct member *members, uint32_t count, const struct fleet_outcome *outcome,
		 struct run **ret_run, char **ret_error);

#endif
