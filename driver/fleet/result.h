/* SPDX-License-Identifier: MIT */
/* The document of the run, made from the members' documents. */
#ifndef DRIVER_FLEET_RESULT_H
#define DRIVER_FLEET_RESULT_H

#include "member.h"
#include "options/options.h"
#include "sojourn/run.h"

/* The requested run, and how it ended. */
struct fleet_outcome {
	const struct options *options;
	char **command;
	bool interrupted; /* by the user or after the loss of a member */
};

/*
 * Merge the members' documents, which are taken from @members. -EINVAL with a sentence in
 * @ret_error: there is none, or they cannot be merged; -ENOMEM.
 */
int fleet_result(struct member *members, uint32_t count, const struct fleet_outcome *outcome,
		 struct run **ret_run, char **ret_error);

#endif
