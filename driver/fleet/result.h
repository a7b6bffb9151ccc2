/* SPDX-License-Identifier: MIT */
/* The document of the run, made from the members' documents. */
#ifndef DRIVER_FLEET_RESULT_H
#define DRIVER_FLEET_RESULT_H

#include "load/load_settings.h"
#include "member.h"
#include "run/observers.h"
#include "run/run_settings.h"
#include "sojourn/run.h"

/* The requested run, and how it ended. */
struct fleet_outcome {
	const struct load_settings *load;
	uint32_t threads; /* of each member */
	char **command;
	bool interrupted; /* by the user or after the loss of a member */
};

#define FLEET_SUM_LEVELS 16U

/*
 * The sum of the documents so far. A zeroed one is valid and empty. Level n has the sum of 2^n
 * documents, or NULL. A sum lists all its drivers, so adding the documents to it one by one would
 * take quadratic time.
 */
struct fleet_sum {
	struct run *levels[FLEET_SUM_LEVELS];
	int err; /* from then on nothing is added */
	char *error;
};

/*
 * Add a member's last document and free it: of many members and intervals, all documents together
 * would take gigabytes.
 */
void fleet_sum_add(struct fleet_sum *sum, struct member *member);
void fleet_sum_clear(struct fleet_sum *sum);

/*
 * Add the documents of lost members, which are not in @sum yet, and take the run from it. Return
 * -EINVAL with a sentence in @ret_error if there is no document, or they cannot be merged; -ENOMEM.
 */
int fleet_result(struct fleet_sum *sum, struct member *members, uint32_t count,
		 const struct fleet_outcome *outcome, struct run **ret_run, char **ret_error);
/* End the phase of the observers, and add their part to @run. As observers_merge(). */
int fleet_result_observe(struct observers *observers, const struct run_settings *settings,
			 struct run *run);

#endif
